//! Recognises agent pods of a platform by their labels and annotations, before any other field is read.

use std::collections::BTreeMap;

/// What the pods of one sort have in common; an entry of the webhook configuration each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSelector {
    /// The start of the entry's name: the family, with a suffix if the family has several selectors.
    pub name: &'static str,
    /// Labels that must exist, with the allowed values; an empty list allows any value.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// An annotation that must exist.
    pub annotation: Option<&'static str>,
    /// A prefix that no label key may have.
    pub without: Option<&'static str>,
}

impl PodSelector {
    /// Selects pods that have these labels.
    pub const fn labelled(
        name: &'static str,
        labels: &'static [(&'static str, &'static [&'static str])],
    ) -> Self {
        Self { name, labels, annotation: None, without: None }
    }

    /// The label selector of a list, which selects at least these pods; `None` if that is all pods.
    pub fn query(&self) -> Option<String> {
        let one = |(key, values): &(&str, &[&str])| {
            if values.is_empty() { (*key).to_owned() } else { format!("{key} in ({})", values.join(",")) }
        };
        let labels: Vec<String> = self.labels.iter().map(one).collect();
        (!labels.is_empty()).then(|| labels.join(","))
    }

    /// Whether it selects a pod with these labels.
    pub fn selects(
        &self,
        labels: &BTreeMap<String, String>,
        has_annotation: impl Fn(&'static str) -> bool,
    ) -> bool {
        let is_left_out = |start: &str| labels.keys().any(|key| key.starts_with(start));
        self.may_select(|key| labels.get(key).map(String::as_str), has_annotation)
            && !self.without.is_some_and(is_left_out)
    }

    /// Whether it selects a pod, unless the pod has a label that it leaves out.
    pub fn may_select<'l>(
        &self,
        label: impl Fn(&'static str) -> Option<&'l str>,
        has_annotation: impl Fn(&'static str) -> bool,
    ) -> bool {
        let is_label = |(key, values): &(&'static str, &[&str])| {
            label(key).is_some_and(|value| values.is_empty() || values.contains(&value))
        };
        self.labels.iter().all(is_label) && self.annotation.is_none_or(has_annotation)
    }
}

//! Recognises agent pods of a platform by their labels and annotations, before any other field is read.

/// Selects one group of agent pods. Each selector has an entry in the webhook configuration.
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
    #[must_use]
    pub const fn labelled(
        name: &'static str,
        labels: &'static [(&'static str, &'static [&'static str])],
    ) -> Self {
        Self { name, labels, annotation: None, without: None }
    }
}

//! Label selectors of the Kubernetes API (`metav1.LabelSelector`).

use std::collections::BTreeMap;

/// The value of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelValue<'v> {
    /// The label exists and has this value.
    Found(&'v str),
    /// The label does not exist.
    Missing,
    /// It is not known whether the label exists.
    Unknown,
}

/// A label selector. Without requirements it matches all objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// All of them must hold.
    pub requirements: Vec<Requirement>,
}

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// How the value of the label is compared.
    pub operator: SelectorOperator,
    /// The values to compare it with.
    pub values: Vec<String>,
}

/// How the value of a label compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorOperator {
    /// The value is one of these.
    In,
    /// The value is not one of these, or the label is missing.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether labels match; `None` when that depends on a label that is not known.
    pub fn matches<'v>(&self, label: impl Fn(&str) -> LabelValue<'v>) -> Option<bool> {
        let mut all = Some(true);
        for requirement in &self.requirements {
            match requirement.holds(label(&requirement.key)) {
                Some(false) => return Some(false),
                None => all = None,
                Some(true) => {}
            }
        }
        all
    }

    /// Whether these labels match, all of them being known.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let of = |key: &str| labels.get(key).map_or(LabelValue::Missing, |value| LabelValue::Found(value));
        self.matches(of) == Some(true)
    }
}

impl Requirement {
    fn holds(&self, value: LabelValue<'_>) -> Option<bool> {
        let value = match value {
            LabelValue::Found(value) => Some(value),
            LabelValue::Missing => None,
            LabelValue::Unknown => return None,
        };
        let listed = || value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value));
        Some(match self.operator {
            SelectorOperator::In => listed(),
            SelectorOperator::NotIn => !listed(),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        })
    }
}

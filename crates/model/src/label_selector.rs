//! Label selectors of the Kubernetes API (`metav1.LabelSelector`).

use std::collections::BTreeMap;

/// The value of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelValue<'v> {
    /// It is there.
    Found(&'v str),
    /// It is not there.
    Missing,
    /// The label is not known.
    Unknown,
}

/// What labels must be like; one without requirements fits all.
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
    /// How its value compares.
    pub operator: SelectorOperator,
    /// With what.
    pub values: Vec<String>,
}

/// How the value of a label compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorOperator {
    /// It is one of the values.
    In,
    /// The value is not one of them, or the label is missing.
    NotIn,
    /// There is such a label.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether labels fit; `None` when that depends on one that is not known.
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

    /// Whether labels that are known fit.
    #[must_use]
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

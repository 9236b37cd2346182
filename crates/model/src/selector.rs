//! How agent pods of a platform are recognised by labels and annotations, before anything else of them is
//! read.

/// What the pods of one sort have in common; an entry of the webhook configuration each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSelector {
    /// The start of the entry's name: the family, with a suffix where it has several.
    pub name: &'static str,
    /// Labels that must be there, with the values that count; an empty list means any value.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// An annotation that must be there.
    pub annotation: Option<&'static str>,
    /// The start that no label key may have.
    pub without: Option<&'static str>,
}

impl PodSelector {
    /// Pods that bear a label, whatever its value.
    #[must_use]
    pub const fn labelled(
        name: &'static str,
        labels: &'static [(&'static str, &'static [&'static str])],
    ) -> Self {
        Self { name, labels, annotation: None, without: None }
    }
}

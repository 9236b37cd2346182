//! Makes the findings of rules about elements of lists.

use std::fmt::Display;

use crate::message::{fit_names, fit_texts, fits};
use crate::prelude::*;
use crate::sympozium::api::ensemble::Ensemble;
use memgate_model::finding::{Code, Details, excerpt};
use memgate_primitives::duration;
use memgate_primitives::fix::Fix;
use memgate_primitives::suggest;

/// Makes findings within a budget. Each text owns the values that it shows.
#[derive(Clone, Copy)]
pub(super) struct Report<'w> {
    budget: &'w Budget<'w>,
}

impl<'w> Report<'w> {
    pub(super) const fn new(budget: &'w Budget<'w>) -> Self {
        Self { budget }
    }

    /// Whether warnings are reported. For a stored object, only denials are.
    pub(super) fn wants_warnings(self) -> bool {
        self.budget.wants_warnings() && !self.budget.has_ended()
    }

    /// A denial with this whole message; `None` once the decision has ended.
    pub(super) fn deny_whole<T: Into<Details>>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        details: impl Fn(&Pointer) -> T + Send + Sync + 'static,
    ) -> Option<Finding> {
        (!self.budget.has_ended()).then(|| Finding::deny_within(self.budget, code, at(), details))
    }

    /// A warning with this whole message; `None` where warnings are not needed.
    pub(super) fn warn_whole(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        message: impl Fn(&Pointer) -> String + Send + Sync + 'static,
    ) -> Option<Finding> {
        self.wants_warnings().then(|| Finding::warn_within(self.budget, code, at(), message))
    }

    /// A denial whose message starts with its field.
    pub(super) fn deny<T: Display>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        text: impl Fn() -> T + Send + Sync + 'static,
    ) -> Option<Finding> {
        self.deny_whole(code, at, move |at| format!("{}: {}", at.field(), text()))
    }

    /// A warning whose message starts with its field.
    pub(super) fn warn<T: Display>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        text: impl Fn() -> T + Send + Sync + 'static,
    ) -> Option<Finding> {
        self.warn_whole(code, at, move |at| format!("{}: {}", at.field(), text()))
    }

    /// A warning whose message starts with its field. These names are truncated until the message fits.
    pub(super) fn warn_of<const N: usize>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        names: [&str; N],
        text: impl Fn([&str; N]) -> String + Send + Sync + 'static,
    ) -> Option<Finding> {
        if !self.wants_warnings() {
            return None;
        }
        let names = names.map(excerpt);
        self.warn_whole(code, at, move |at| {
            let field = at.field();
            fit_texts(names.each_ref().map(AsRef::as_ref), |names| format!("{field}: {}", text(names)))
        })
    }

    /// A warning about a second entry with the same name. The first entry counts.
    pub(super) fn duplicate_value(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        name: &str,
    ) -> Option<Finding> {
        let finding =
            self.warn_of(code, at, [name], |[name]| format!("Duplicate value: {}", quoted(name)))?;
        Some(finding.fix(Some(Fix::RemoveRepeated)))
    }

    /// A reference to a config that the Ensemble does not have.
    pub(super) fn not_found(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        name: &str,
        ensemble: &Ensemble<'_>,
    ) -> Option<Finding> {
        let (known, name) = (ensemble.known_names(), excerpt(name));
        self.warn_whole(code, at, move |at| {
            let hint = suggest::did_you_mean(suggest::nearest(&name, known.iter().map(AsRef::as_ref)));
            let message = |name: &str, hint: &str| {
                format!("{}: there is no agent config {}{hint}", at.field(), quoted(name))
            };
            let whole = message(&name, &hint);
            if fits(&whole) { whole } else { fit_names([&*name], |[name]| message(name, "")) }
        })
    }
}

/// The finding about a duration with the one that was meant, if that has days or weeks.
pub(super) fn in_hours(finding: Finding, text: &str) -> Finding {
    match duration::in_hours(text) {
        Some(hours) => finding.help(format!("write {hours}")).fix(Some(Fix::Text(hours))),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sympozium::codes::TYPE_INVALID;

    #[test]
    fn makes_no_warnings_where_only_denials_are_needed() {
        let budget = Budget::for_denials();
        let (report, at) = (Report::new(&budget), || Pointer::new("/spec/access"));
        assert_eq!(report.warn(&TYPE_INVALID, at, || "odd"), None);
        assert!(report.deny(&TYPE_INVALID, at, || "odd").is_some());
    }
}

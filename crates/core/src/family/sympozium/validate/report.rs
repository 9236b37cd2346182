//! How rules make findings. Of very many, only the first get a message.

use std::fmt::Display;

use crate::family::message::fit_names;
use crate::model::finding::{Code, Finding, quoted};
use crate::model::fix::Fix;
use crate::model::pointer::Pointer;
use crate::model::suggest;
use crate::model::work::Work;

/// What rules report with.
#[derive(Clone, Copy)]
pub(super) struct Report<'w> {
    work: &'w Work<'w>,
}

impl<'w> Report<'w> {
    pub(super) const fn new(work: &'w Work<'w>) -> Self {
        Self { work }
    }

    /// Whether warnings are reported. Of a stored object only denials are.
    pub(super) fn wants_warnings(self) -> bool {
        self.work.wants_warnings() && !self.work.has_ended()
    }

    /// A denial with this message; `None` once the decision has ended.
    pub(super) fn deny_in_words(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        message: impl FnOnce(&Pointer) -> String,
    ) -> Option<Finding> {
        (!self.work.has_ended()).then(|| Finding::deny_within(self.work, code, at(), message))
    }

    /// A warning with this message; `None` if warnings are not reported.
    pub(super) fn warn_in_words(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        message: impl FnOnce(&Pointer) -> String,
    ) -> Option<Finding> {
        self.wants_warnings().then(|| Finding::warn_within(self.work, code, at(), message))
    }

    /// A denial whose message starts with its field.
    pub(super) fn deny<T: Display>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        text: impl FnOnce() -> T,
    ) -> Option<Finding> {
        self.deny_in_words(code, at, |at| format!("{}: {}", at.field(), text()))
    }

    /// A warning whose message starts with its field.
    pub(super) fn warn<T: Display>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        text: impl FnOnce() -> T,
    ) -> Option<Finding> {
        self.warn_in_words(code, at, |at| format!("{}: {}", at.field(), text()))
    }

    /// A warning whose message starts with its field and fits, with these names as far as there is room.
    pub(super) fn warn_of<const N: usize>(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        names: [&str; N],
        text: impl Fn([&str; N]) -> String,
    ) -> Option<Finding> {
        self.warn_in_words(code, at, |at| {
            let field = at.field();
            fit_names(names, |names| format!("{field}: {}", text(names)))
        })
    }

    /// Denies a value that the CRD's schema does not accept. An empty value is never accepted.
    pub(super) fn unsupported(
        self,
        code: &'static Code,
        at: impl FnOnce() -> Pointer,
        value: Option<&str>,
        supported: &[&str],
    ) -> Option<Finding> {
        let value = value.filter(|value| !supported.contains(value))?;
        let text = || {
            let listed: Vec<String> = supported.iter().map(|value| quoted(value)).collect();
            format!("Unsupported value: {}: supported values: {}", quoted(value), listed.join(", "))
        };
        let finding = self.deny(code, at, text)?.fingerprint_value(value);
        Some(in_words(finding, |finding| match suggest::help(value, supported.iter().copied()) {
            Some(help) => finding.help(help),
            None => finding,
        }))
    }

    /// A second entry of a name, of which the first one counts.
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
    ) -> Option<Finding> {
        self.warn_of(code, at, [name], |[name]| format!("Not found: {}", quoted(name)))
    }
}

/// The finding with what else there is to say, where it has words at all.
pub(super) fn in_words(finding: Finding, more: impl FnOnce(Finding) -> Finding) -> Finding {
    if finding.is_wordless() { finding } else { more(finding) }
}

#[cfg(test)]
mod tests {
    use super::super::super::codes::TYPE_INVALID;
    use super::*;

    #[test]
    fn says_which_value_was_meant() {
        let work = Work::default();
        let help = |value| {
            let at = || Pointer::new("/spec/access");
            let supported = ["read-write", "read-only"];
            Report::new(&work).unsupported(&TYPE_INVALID, at, Some(value), &supported)?.help
        };
        assert_eq!(help("readonly").as_deref(), Some("did you mean \"read-only\"?"));
        assert_eq!(help("all"), None);
    }

    #[test]
    fn asks_for_denials_alone_where_nobody_reads() {
        let work = Work::wordless(None);
        let (report, at) = (Report::new(&work), || Pointer::new("/spec/access"));
        assert_eq!(report.warn(&TYPE_INVALID, at, || "odd"), None);
        let denial = report.deny(&TYPE_INVALID, at, || "odd").expect("a denial");
        assert!(denial.is_wordless());
    }
}

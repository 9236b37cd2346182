//! Makes the findings of rules about elements of lists, of templates of [`crate::message`].

use super::prelude::*;
use crate::message::{MAX_NAME_CHARS, fill, fit_message, fits};
use memgate_model::finding::Details;
use memgate_primitives::duration;

/// What a finding says.
#[derive(Clone, Copy)]
pub(super) struct Text {
    message: &'static str,
    help: Option<&'static str>,
    /// Whether the message starts with the field.
    names_field: bool,
}

/// A message that does not start with the field.
pub(super) const fn whole(message: &'static str) -> Text {
    Text { message, help: None, names_field: false }
}

impl Text {
    /// The same with what to do.
    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }

    fn details(self, message: String) -> Details {
        Details { help: self.help.map(Cow::Borrowed), ..Details::from(message) }
    }

    fn fill<T: AsRef<str>>(self, severity: Severity, at: &Pointer, values: &[T]) -> String {
        let field = at.field();
        let start = if self.names_field { format!("{field}: ") } else { String::new() };
        let fill = |limit| [start.as_str(), &fill(self.message, &field, values, limit)].concat();
        // A text that is too long without its names is upstream's own.
        let cut = Some(fit_message(fill)).filter(|cut| severity != Severity::Deny && fits(cut));
        cut.unwrap_or_else(|| fill(MAX_NAME_CHARS))
    }
}

/// A second entry of a name.
pub(super) const DUPLICATE: Text = Text { message: "Duplicate value: {}", help: None, names_field: true };
/// A second rule about a config.
pub(super) const DUPLICATE_RULE: Text = DUPLICATE.help("the first rule wins");

/// A name that no config has.
pub(super) const UNKNOWN: Text =
    Text { message: "there is no agent config {}{bare}", help: None, names_field: true };

impl From<&'static str> for Text {
    fn from(message: &'static str) -> Self {
        Self { message, help: None, names_field: true }
    }
}

impl From<(&'static str, &'static str)> for Text {
    fn from((message, help): (&'static str, &'static str)) -> Self {
        Self::from(message).help(help)
    }
}

/// Collects the findings of rules about elements of lists, within a budget.
pub(super) struct Report<'w> {
    budget: &'w Budget<'w>,
    pub(super) findings: Vec<Finding>,
}

impl<'w> Report<'w> {
    pub(super) const fn new(budget: &'w Budget<'w>) -> Self {
        Self { budget, findings: Vec::new() }
    }

    /// Adds findings that are made elsewhere.
    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
    }

    /// Whether warnings are reported. For a stored object, only denials are.
    pub(super) fn wants_warnings(&self) -> bool {
        self.budget.wants_warnings() && !self.budget.has_ended()
    }

    /// A finding; `None` for a warning where these are not needed, and once the decision has ended. A denial depends on
    /// its values.
    pub(super) fn finding(
        &self,
        severity: Severity,
        code: &'static Code,
        at: Path<'_>,
        text: impl Into<Text>,
        values: &[&str],
    ) -> Option<Finding> {
        let is_denial = severity == Severity::Deny;
        if self.budget.has_ended() || !is_denial && !self.budget.wants_warnings() {
            return None;
        }
        let text = text.into();
        let shown: Box<[Box<str>]> = values.iter().map(|value| excerpt(value)).collect();
        let details = move |at: &Pointer| text.details(text.fill(severity, at, &shown));
        let finding = Finding::deny_within(self.budget, code, at.pointer(), details);
        let fingerprint_value = if is_denial { values.join("\n") } else { String::new() };
        Some(Finding { severity, fingerprint_value, ..finding })
    }

    /// Adds a finding.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        code: &'static Code,
        at: Path<'_>,
        text: impl Into<Text>,
        values: &[&str],
    ) {
        self.findings.extend(self.finding(severity, code, at, text, values));
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, code: &'static Code, at: Path<'_>, text: impl Into<Text>, of: &[&str]) {
        self.add(Severity::Warn, code, at, text, of);
    }

    /// Adds a denial.
    pub(super) fn deny(&mut self, code: &'static Code, at: Path<'_>, text: impl Into<Text>, of: &[&str]) {
        self.add(Severity::Deny, code, at, text, of);
    }

    /// Adds a finding about a duration, with the one that was meant, if that has days or weeks.
    pub(super) fn duration(
        &mut self,
        severity: Severity,
        code: &'static Code,
        at: Path<'_>,
        text: impl Into<Text>,
        value: &str,
    ) {
        let hours = |finding: Finding| match duration::in_hours(value) {
            Some(hours) => finding.help(format!("write {hours}")).fix(Some(Fix::Text(hours))),
            None => finding,
        };
        let finding = self.finding(severity, code, at, text, &[value]).map(hours);
        self.extend(finding);
    }

    /// Warns about a second entry with the same name, where the first one counts.
    pub(super) fn duplicate(
        &mut self,
        code: &'static Code,
        at: Path<'_>,
        (text, name): (Text, &str),
        (first, label): (Path<'_>, &'static str),
    ) {
        let finding = self.finding(Severity::Warn, code, at, text, &[name]);
        let related = |it: Finding| it.fix(Some(Fix::RemoveRepeated)).related(first.pointer(), label);
        self.extend(finding.map(related));
    }

    /// Warns about a name that no config of the Ensemble has.
    pub(super) fn not_found(
        &mut self,
        code: &'static Code,
        at: Path<'_>,
        (text, name): (Text, &str),
        ensemble: &Ensemble<'_>,
    ) {
        if !self.wants_warnings() || ensemble.has_config(name) {
            return;
        }
        let (known, name) = (ensemble.known_names(), excerpt(name));
        let finding = Finding::warn_within(self.budget, code, at.pointer(), move |at| {
            let message = |hint: &str| text.fill(Severity::Warn, at, &[&*name, hint]);
            let whole = message(&did_you_mean(nearest(&name, known.iter().map(AsRef::as_ref))));
            text.details(if fits(&whole) { whole } else { message("") })
        });
        self.extend([finding]);
    }

    /// Keeps the findings after the first ones for changes that are allowed.
    pub(super) fn when_allowed(&mut self, after: usize) {
        self.findings.iter_mut().skip(after).for_each(|finding| finding.when_allowed = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sympozium::codes::TYPE_INVALID;

    #[test]
    fn makes_no_warnings_where_only_denials_are_needed() {
        let budget = Budget::for_denials();
        let (mut report, at) = (Report::new(&budget), Path::Known("/spec/access"));
        report.warn(&TYPE_INVALID, at, "odd", &[]);
        assert_eq!(report.findings, []);
        report.deny(&TYPE_INVALID, at, "odd", &[]);
        assert_eq!(report.findings.len(), 1);
    }

    #[test]
    fn begins_with_the_field() {
        assert_eq!(
            Text::from("is {}").fill(Severity::Warn, &Pointer::new("/spec/a"), &["b"]),
            "spec.a: is \"b\""
        );
    }
}

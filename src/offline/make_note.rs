//! Turns a finding into a note that says why it does not count.

use memgate_model::finding::{Finding, Severity, presentable};

/// Turns a finding into a note, unless it is one.
pub(super) fn make_note(finding: &mut Finding, reason: &str) {
    let effect = match finding.severity {
        Severity::Deny => "; the cluster still denies it",
        Severity::Warn => "",
        Severity::Note => return,
    };
    // The reason is a user's text.
    let reason = presentable(reason);
    let message = format!("{} ({reason}{effect})", finding.message());
    *finding = finding.clone().with_message(message);
    finding.severity = Severity::Note;
    if let Some(policy) = &mut finding.policy {
        policy.is_assumed = false;
    }
}

//! What is only said of the objects of a unit because the unit does not hold what others make.

use std::sync::Arc;

use crate::build::layout::shown;
use crate::build::neighbours::Elsewhere;
use crate::files::judge::{Checked, Decided, NO_OBJECT_OF_KIND};
use memgate_model::decision::Decision;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::object::Reference;
use memgate_primitives::plain_text::plain;

/// Leaves out what is said because an object is missing that another unit makes. Of one that a file has which no kustomization
/// lists it says so, and where another unit has objects of the kind, a missing one is no note.
pub(crate) fn apply(checked: &mut Checked) {
    let (neighbours, number) = (Arc::clone(&checked.inputs.neighbours), checked.inputs.number);
    if neighbours.is_empty() {
        return;
    }
    for Decided { decision: Decision { findings, unknown, .. }, .. } in &mut checked.decided {
        let is_made = |it: &Reference| matches!(neighbours.find(number, it), Some(Elsewhere::Made));
        unknown.retain(|it| !is_made(it));
        let elsewhere = |finding: &Finding| {
            let missing = || finding.missing.iter().find_map(|missing| neighbours.find(number, missing));
            if finding.is_denial() { None } else { missing() }
        };
        findings.retain_mut(|finding| match elsewhere(finding) {
            Some(Elsewhere::Made) => false,
            Some(Elsewhere::Unknown) => {
                unknown.extend(finding.missing.first().cloned());
                false
            }
            Some(Elsewhere::Unlisted(file)) => {
                warn(finding, &format!("; {} has it, but no kustomization lists it", plain(&shown(&file))));
                true
            }
            None => {
                if finding.missing.iter().any(|it| neighbours.has_kind(number, it)) {
                    warn(finding, "");
                }
                true
            }
        });
    }
}

/// Makes a warning of a note that an object is missing, with these words behind it.
fn warn(finding: &mut Finding, more: &str) {
    let message = finding.message().into_owned();
    let bare = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})"));
    if bare.is_none() && more.is_empty() {
        return;
    }
    *finding = finding.clone().with_message(format!("{}{more}", bare.unwrap_or(&message)));
    if finding.cause == Cause::NotFound {
        finding.severity = finding.severity.max(Severity::Warn);
    }
}

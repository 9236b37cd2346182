//! Files behind links that lead out of the repository. The author of a change can make any file of the machine a link,
//! so nothing of what such a link leads to is shown: a report has the code, the severity, the file, line and column of what is
//! wrong there, and [`NOT_SHOWN`].
//!
//! That holds by construction. The source of such a link has no text
//! ([`Source::outside`](memgate_manifest::source::Source::outside)), so that no reader of the inputs finds an object, a
//! comment or a value in it. What it leads to is read and judged apart, with the other files as its state, and only
//! places and codes come back from there. The other files are judged without it, since their findings would name its
//! objects; of the kinds that it holds, what is not among the other files is unknown. Where others would be judged by
//! such a link alone (policies, state, settings, charts and overlays to render) it is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ignore;
use crate::inputs::{Hidden, Inputs};
use crate::judge::{self, Checked};
use crate::notices::Notice;
use crate::passed_over::PassedOver;
use crate::place::report;
use crate::report::{FileLocation, ObjectRef};
use memgate_manifest::source::{NOT_SHOWN, Span};
use memgate_model::finding::Finding;
use memgate_model::policy_rule::PolicyFinding;
use memgate_model::request::Occasion;
use memgate_primitives::pointer::Pointer;

/// Decides about every object ([`judge::check`]), and first about those behind links.
pub fn check(mut inputs: Inputs, occasion: Occasion<'static>) -> Checked {
    judge_apart(&mut inputs, occasion);
    judge::check(inputs, occasion)
}

/// Judges what was read apart by the policies of the inputs, and adds to these what may be shown of it.
fn judge_apart(inputs: &mut Inputs, occasion: Occasion<'static>) {
    let Some(mut apart) = inputs.outside.take() else { return };
    apart.snapshot.policies = Arc::clone(&inputs.snapshot.policies);
    apart.snapshot.uses.clone_from(&inputs.snapshot.uses);
    let mut checked = judge::check(*apart, occasion);
    checked.note_later();
    ignore::apply(&mut checked);
    inputs.take_errors_behind_links(&mut checked.inputs);
    let (place, report) = (inputs.place_of_link(), report(&checked));
    let notices = report.causes().filter_map(|located| {
        let FileLocation { file, start, end, line, column, .. } = located.location;
        let (source, span) = place(file, Span { start, end, line, column })?;
        Some(Notice::new(&source, span, bare(located.finding)))
    });
    inputs.notices.extend(notices);
    let denied = checked.decided.iter().filter(|decided| !decided.allowed());
    let denied = denied.map(|decided| decided.object.file_and_line());
    let denied: BTreeSet<_> = denied.map(|(source, line)| (source.name(), line)).collect();
    let objects = report.objects.iter().filter_map(|object| {
        let (link, span) = place(object.file, Span { start: 0, end: 0, line: object.line, column: 1 })?;
        let is_denied = denied.contains(&(object.file, object.line));
        Some(Hidden { link, line: span.line, is_denied, object_ref: ObjectRef::default() })
    });
    let passed_over = checked.inputs.passed_over.iter().filter_map(|it| {
        let (source, span) = place(it.source.name(), it.span)?;
        Some(PassedOver { source, span, object_ref: None, why: it.why })
    });
    inputs.hidden.extend(objects);
    inputs.passed_over.extend(passed_over);
}

/// A finding with its code and severity, and nothing of what it is about.
fn bare(finding: &Finding) -> Finding {
    let policy = finding.policy.as_deref();
    let policy = policy.map(|it| Box::new(PolicyFinding { exemption: None, excess: 0, ..it.clone() }));
    let (severity, cause) = (finding.severity, finding.cause);
    Finding { severity, cause, policy, ..Finding::warn(finding.code, Pointer::root(), NOT_SHOWN) }
}

//! The findings of an apiserver about schema and metadata, for files that no apiserver has checked.
//!
//! A family's own rules come first: where one of them denies, the schema adds nothing. Rules that only repeat the
//! bundled definition give way to a definition among the inputs.

use crate::decide::contradicted::drop_contradicted;
use crate::decide::covered::Covered;
use crate::decide::over_limit;
use crate::decide::reported::MAX_REPORTED;
use crate::family::common::VERSION_UNKNOWN;
use crate::family::schema_check::{unknown_field_message, unquote};
use memgate_model::crds::Crds;
use memgate_model::decision::NotShown;
use memgate_model::family::{Family, Subject};
use memgate_model::finding::{Cause, Code, Finding, Severity};
use memgate_model::kind::NAMESPACE;
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::budget::Budget;
use memgate_primitives::fix::Fix;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{self, nearest, only_nearest};
use memgate_schema::crd::Crd;
use memgate_schema::violation::{BrokenRule, SchemaViolation};
use memgate_schema::{Breaches, Document, NewObject, PointerText, ReportedPlaces, Status};

/// How many unknown fields of metadata are compared with known ones.
const MAX_UNKNOWN_FIELDS: usize = 64;

/// The findings of the schema.
#[derive(Default)]
pub(super) struct SchemaFindings {
    /// Those that may be reported.
    pub(super) findings: Vec<Finding>,
    /// How many more there are.
    pub(super) not_shown: NotShown,
}

/// Finds what an apiserver would refuse, in addition to `own`, the findings of the family before the ratchet.
/// Removes findings of `own` that contradict a definition among the inputs.
pub(super) fn findings(
    family: &'static Family,
    subject: &Subject<'_>,
    request: &Request<'_>,
    snapshot: &Snapshot,
    budget: &Budget<'_>,
    own: &mut Vec<Finding>,
) -> SchemaFindings {
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    let (Some(crds), Some(text), true) = (&snapshot.crds, request.object, is_written) else {
        return SchemaFindings::default();
    };
    let (mut found, over) =
        budget.apart(text.len(), || compare(family, subject, (request, text), crds, budget, own));
    found.findings.extend(over.map(|over| over_limit::of_schema(&over)));
    found
}

fn compare(
    family: &'static Family,
    subject: &Subject<'_>,
    (request, text): (&Request<'_>, &str),
    crds: &Crds,
    budget: &Budget<'_>,
    own: &mut Vec<Finding>,
) -> SchemaFindings {
    let kind = subject.kind;
    if family.kinds.misnamed.contains(&kind) {
        return SchemaFindings::default();
    }
    let crd = crds.get(family, kind.group, kind.kind);
    let is_given = crds.is_given(kind.group, kind.kind);
    let version = crd.as_deref().and_then(|crd| crd.served(&request.version).or_else(|| crd.newest()));
    let version = version.filter(|_| is_given || !family.definitions.stand_in.unreleased.contains(&kind));
    let judged = family.definitions.stand_in.with_status.contains(&kind);
    let status = if judged { Status::Judged } else { Status::Dropped };
    let Some(object) = memgate_schema::document(text, version, status, budget) else {
        return SchemaFindings::default();
    };
    let mut findings = misspelt(family, &object);
    findings.extend(crd.as_deref().and_then(|crd| version_unknown(crd, &request.version)));
    let given = version.filter(|_| is_given);
    let new = (request.operation == Operation::Create).then_some(NewObject {
        name: &request.name,
        namespaced: kind.namespaced,
        name_is_label: *kind == NAMESPACE,
    });
    if memgate_schema::is_right(&object, version, new) {
        drop_contradicted(family, given, &Breaches::new(&object, budget), own);
        return SchemaFindings { findings, ..SchemaFindings::default() };
    }
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    let is_same = old == Some(text);
    let stored = old.filter(|_| !is_same);
    let stored = stored
        .and_then(|old| budget.apart(old.len(), || memgate_schema::document(old, version, status, budget)).0);
    let old = if is_same { Some(&object) } else { stored.as_ref() };
    let mut breaches = Breaches::new(&object, budget);
    memgate_schema::check_metadata(&object, new, old, &mut breaches);
    let of_metadata = breaches.len();
    if let Some(version) = version {
        memgate_schema::check(version, &object, old, &mut breaches);
    }
    drop_contradicted(family, given, &breaches, own);
    let not_shown = add(family, subject, &breaches, of_metadata, own, &mut findings);
    SchemaFindings { findings, not_shown }
}

/// Warns about misspelt fields of metadata: without them an object lands in another namespace, or no selector
/// matches it.
fn misspelt(family: &Family, object: &Document<'_>) -> Vec<Finding> {
    const MEANT: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];
    let Some(code) = family.definitions.stand_in.unknown_field else { return Vec::new() };
    let finding = |field: &str| {
        let meant = nearest(field, MEANT)?;
        let shown = format!("metadata.{}", quoted(field).trim_matches('"'));
        let pointer = Pointer::new("/metadata").key(field);
        let finding = Finding::warn(code, pointer, unknown_field_message(&shown, Some(meant))).at_key();
        Some(finding.fix(only_nearest(field, MEANT).map(|meant| Fix::Rename(meant.to_owned()))))
    };
    memgate_schema::unknown_metadata(object).take(MAX_UNKNOWN_FIELDS).filter_map(finding).collect()
}

/// Adds findings about breaches that the family neither covers nor tolerates, one for each place. Returns how many
/// more there are.
fn add(
    family: &'static Family,
    subject: &Subject<'_>,
    breaches: &Breaches<'_>,
    of_metadata: usize,
    own: &[Finding],
    findings: &mut Vec<Finding>,
) -> NotShown {
    let stand_in = &family.definitions.stand_in;
    let (covered, mut text) = (Covered::by(own), PointerText::default());
    let mut seen = ReportedPlaces::default();
    let (mut denials, mut warnings) = (0, 0);
    for (index, breach) in breaches.iter().enumerate() {
        let broken = breaches.describe(breach, &mut text);
        let is_tolerated =
            || index >= of_metadata && (stand_in.tolerates)(subject.kind, subject.object, broken);
        if covered.contains(broken, breach.stored) || is_tolerated() || !seen.is_first(breach) {
            continue;
        }
        let count = if breach.stored { &mut warnings } else { &mut denials };
        *count += 1;
        if *count <= MAX_REPORTED {
            findings.push(finding(stand_in.code, stand_in.message, &breaches.violation(breach)));
        }
    }
    let not_shown = |count: usize| count.saturating_sub(MAX_REPORTED);
    NotShown { denials: not_shown(denials), warnings: not_shown(warnings) }
}

fn version_unknown(crd: &Crd, version: &str) -> Option<Finding> {
    let newest = crd.newest().filter(|_| crd.served(version).is_none())?;
    let name = |version: &str| quoted(&format!("{}/{version}", crd.group));
    let message = format!("apiVersion {} is not served; use {}", name(version), name(&newest.name));
    Some(Finding::warn(&VERSION_UNKNOWN, Pointer::new("/apiVersion"), message))
}

/// The finding about a violation, with the family's code and message.
pub(super) fn finding(
    code: &'static Code,
    message: fn(&SchemaViolation) -> String,
    violation: &SchemaViolation,
) -> Finding {
    let mut finding = Finding::deny(code, violation.pointer.clone(), message(violation));
    if violation.stored {
        finding.severity = Severity::Warn;
    }
    finding.at_key = violation.at_key;
    finding.cause = match &violation.rule {
        BrokenRule::Type { .. } => Cause::TypeInvalid,
        BrokenRule::Required(_) => Cause::Required,
        BrokenRule::Unsupported { .. } => Cause::NotSupported,
        BrokenRule::Duplicate(_) => Cause::Duplicate,
        _ => finding.cause,
    };
    let finding = finding.fix(fix(violation));
    match help(violation) {
        Some(help) => finding.help(help),
        None => finding,
    }
}

/// What is right instead, where there is only one answer.
fn fix(violation: &SchemaViolation) -> Option<Fix> {
    match &violation.rule {
        // With more values than are listed here, another one may be as near.
        BrokenRule::Unsupported { value, supported, more: 0 } => {
            let meant = only_nearest(value.trim_matches('"'), supported.iter().map(String::as_str))?;
            Some(Fix::Text(meant.to_owned()))
        }
        BrokenRule::Type { expected, got: "string" } => unquote(expected),
        BrokenRule::Duplicate(_) => Some(Fix::RemoveRepeated),
        _ => None,
    }
}

fn help(violation: &SchemaViolation) -> Option<String> {
    match &violation.rule {
        BrokenRule::Unsupported { value, supported, .. } => {
            suggest::help(value.trim_matches('"'), supported.iter().map(String::as_str))
        }
        BrokenRule::Type { expected: "string", got: "boolean" | "integer" | "number" } => {
            Some("put the value in quotes".to_owned())
        }
        BrokenRule::Type { expected: "integer" | "number" | "boolean", got: "string" } => {
            Some("take the quotes away".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::decide;
    use crate::family::orka;
    use memgate_model::request::Occasion;

    use crate::state;
    use memgate_model::snapshot::Snapshot;

    const TASK: &str = r#"{"metadata":{"name":"A_b"},"spec":{"type":"aii"}}"#;

    fn request(object: &str) -> Request<'_> {
        Request {
            operation: Operation::Create,
            group: "core.orka.ai".into(),
            version: "v1alpha1".into(),
            kind: "Task".into(),
            subresource: "".into(),
            namespace: "team-a".into(),
            name: "A_b".into(),
            object: Some(object),
            old_object: None,
            occasion: Occasion::default(),
            cancelled: None,
        }
    }

    fn codes(snapshot: &Snapshot) -> Vec<&'static str> {
        decide(&request(TASK), snapshot).findings.iter().map(|finding| finding.code.name).collect()
    }

    #[test]
    fn gives_the_cause_of_the_rule() {
        let stand_in = &orka::FAMILY.definitions.stand_in;
        let violation = |rule| SchemaViolation::new(Pointer::new("/spec/a"), rule);
        let cause = |rule| finding(stand_in.code, stand_in.message, &violation(rule)).cause;
        let text = || "a".to_owned();
        for (rule, expected) in [
            (BrokenRule::Type { expected: "string", got: "integer" }, Cause::TypeInvalid),
            (BrokenRule::Required(""), Cause::Required),
            (BrokenRule::Unsupported { value: text(), supported: Vec::new(), more: 0 }, Cause::NotSupported),
            (BrokenRule::Duplicate(text()), Cause::Duplicate),
            (BrokenRule::TooLong { max: 1 }, Cause::Invalid),
        ] {
            assert_eq!(cause(rule), expected);
        }
    }

    #[test]
    fn counts_findings_that_are_not_reported() {
        let finalizers = vec!["1"; 300].join(",");
        let object = format!(r#"{{"metadata":{{"name":"a","finalizers":[{finalizers}]}}}}"#);
        let decision = decide(&request(&object), &state::empty(crate::family::default_settings()));
        assert_eq!(decision.findings.len(), MAX_REPORTED);
        let wrong =
            decision.findings.iter().filter(|finding| finding.message().contains("finalizers")).count();
        assert_eq!(wrong + decision.not_shown.denials, 300);
    }

    #[test]
    fn leaves_what_an_apiserver_has_checked() {
        assert_eq!(codes(&state::empty(crate::family::default_settings())), ["orka/schema", "orka/schema"]);
        assert_eq!(codes(&Snapshot::new(crate::family::default_settings())), <[&str; 0]>::default());
    }
}

//! The schema of a kind and the rules of metadata, where no apiserver has checked them.
//!
//! A family's own rules speak first: where one of them denies, the schema adds nothing. Those that only repeat
//! the bundled definition give way to a definition among the inputs.

use crate::crd::{self, Breaches, Document, NewObject, Status, Told, Written};
use crate::decide::contradicted::drop_contradicted;
use crate::decide::limits::MAX_FINDINGS_TOLD;
use crate::decide::spoken::{Around, InStep, Spoken};
use crate::family::common::VERSION_UNKNOWN;
use crate::family::schema_check::{unknown_field_message, unquote};
use crate::model::crd::{Crd, Crds};
use crate::model::decision::Untold;
use crate::model::family::{Family, Subject};
use crate::model::finding::{Cause, Code, Finding, Severity, quoted};
use crate::model::fix::Fix;
use crate::model::kind::NAMESPACE;
use crate::model::pointer::Pointer;
use crate::model::request::{Operation, Request};
use crate::model::suggest::{self, nearest, only_nearest};
use crate::model::violation::{BrokenRule, Violation};
use crate::model::work::Work;

/// How many unknown fields of metadata are compared with known ones.
const MAX_UNKNOWN_FIELDS: usize = 64;

/// What stands in for an apiserver that has not seen the object.
pub(super) struct StandIn<'s> {
    pub(super) request: &'s Request<'s>,
    pub(super) crds: &'s Crds,
    /// What is done about the object.
    pub(super) work: &'s Work<'s>,
    /// What is done about the stored one.
    pub(super) old_work: &'s Work<'s>,
}

/// What an apiserver would say, in addition to `own`, the findings of the family before any of them is
/// ratcheted: what may be told of it, and how much more there is. Of `own` the findings go that contradict a
/// definition among the inputs.
pub(super) fn findings(
    family: &'static Family,
    subject: &Subject<'_>,
    stand_in: &StandIn<'_>,
    own: &mut Vec<Finding>,
) -> (Vec<Finding>, Untold) {
    let (kind, request) = (subject.kind, stand_in.request);
    let checked = matches!(request.operation, Operation::Create | Operation::Update);
    if !checked || family.kinds.misnamed.contains(&kind) {
        return Default::default();
    }
    let crd = stand_in.crds.get(family, kind.group, kind.kind);
    let is_given = stand_in.crds.is_given(kind.group, kind.kind);
    let version = crd.as_deref().and_then(|crd| crd.served(&request.version).or_else(|| crd.newest()));
    let version = version.filter(|_| is_given || !family.definitions.stand_in.unreleased.contains(&kind));
    let judged = family.definitions.stand_in.with_status.contains(&kind);
    let status = if judged { Status::Judged } else { Status::Dropped };
    let read = |text, work| crd::document(text, version, status, work);
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    let Some(object) = request.object.and_then(|text| read(text, stand_in.work)) else {
        return Default::default();
    };
    let mut findings = misspelt(family, &object);
    findings.extend(crd.as_deref().and_then(|crd| version_unknown(crd, &request.version)));
    let given = version.filter(|_| is_given);
    let new = (request.operation == Operation::Create).then_some(NewObject {
        name: &request.name,
        namespaced: kind.namespaced,
        name_is_label: *kind == NAMESPACE,
    });
    if crd::is_right(&object, version, new) {
        drop_contradicted(family, given, &Breaches::new(&object, stand_in.work), own);
        return (findings, Untold::default());
    }
    let is_same = old.is_some() && old == request.object;
    let stored = old.filter(|_| !is_same).and_then(|text| read(text, stand_in.old_work));
    let old = if is_same { Some(&object) } else { stored.as_ref() };
    let mut found = Breaches::new(&object, stand_in.work);
    crd::check_metadata(&object, new, old.map(|old| (old, stand_in.old_work)), &mut found);
    let of_metadata = found.len();
    if let Some(version) = version {
        crd::check(version, &object, old, &mut found);
    }
    drop_contradicted(family, given, &found, own);
    let untold = tell(family, subject, &found, of_metadata, own, &mut findings);
    (findings, untold)
}

/// The fields of metadata that are likely misspelt: without them an object lands in another namespace, or
/// is selected by nothing.
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
    crd::unknown_metadata(object).take(MAX_UNKNOWN_FIELDS).filter_map(finding).collect()
}

/// Adds what is not said yet and not let pass on purpose; returns how much more there is.
fn tell(
    family: &'static Family,
    subject: &Subject<'_>,
    found: &Breaches<'_>,
    of_metadata: usize,
    own: &[Finding],
    findings: &mut Vec<Finding>,
) -> Untold {
    let stand_in = &family.definitions.stand_in;
    let mut written = Written::default();
    let (mut in_step, mut asked, mut open) = (InStep::of(own), Around::default(), Vec::new());
    for (index, breach) in found.iter().enumerate() {
        if !own.is_empty() {
            let broken = found.describe(breach, &mut written);
            if in_step.covers(broken, breach.stored) {
                continue;
            }
            asked.add(broken.pointer);
        }
        open.push((index >= of_metadata, breach));
    }
    let spoken = Spoken::of(own, &asked);
    let mut told = Told::default();
    let (mut denials, mut warnings) = (0, 0);
    for (of_schema, breach) in open {
        if of_schema || !own.is_empty() {
            let broken = found.describe(breach, &mut written);
            let is_tolerated = || (stand_in.tolerates)(subject.kind, subject.object, broken);
            if spoken.covers(broken, breach.stored) || of_schema && is_tolerated() {
                continue;
            }
        }
        if !told.is_first(breach) {
            continue;
        }
        let count = if breach.stored { &mut warnings } else { &mut denials };
        *count += 1;
        if *count <= MAX_FINDINGS_TOLD {
            findings.push(finding(stand_in.code, stand_in.message, &found.violation(breach)));
        }
    }
    let untold = |count: usize| count.saturating_sub(MAX_FINDINGS_TOLD);
    Untold { denials: untold(denials), warnings: untold(warnings) }
}

fn version_unknown(crd: &Crd, version: &str) -> Option<Finding> {
    let newest = crd.newest().filter(|_| crd.served(version).is_none())?;
    let name = |version: &str| quoted(&format!("{}/{version}", crd.group));
    let message = format!("apiVersion {} is not served; use {}", name(version), name(&newest.name));
    Some(Finding::warn(&VERSION_UNKNOWN, Pointer::new("/apiVersion"), message))
}

/// What is said of a violation, under a code and in the words of `message`.
pub(super) fn finding(
    code: &'static Code,
    message: fn(&Violation) -> String,
    violation: &Violation,
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
fn fix(violation: &Violation) -> Option<Fix> {
    match &violation.rule {
        // Of very many values not all are known here.
        BrokenRule::Unsupported { value, supported, more: 0 } => {
            let meant = only_nearest(value.trim_matches('"'), supported.iter().map(String::as_str))?;
            Some(Fix::Text(meant.to_owned()))
        }
        BrokenRule::Type { expected, got: "string" } => unquote(expected),
        BrokenRule::Duplicate(_) => Some(Fix::RemoveRepeated),
        _ => None,
    }
}

fn help(violation: &Violation) -> Option<String> {
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
    use crate::model::request::Occasion;
    use crate::model::settings::Settings;
    use crate::model::snapshot::Snapshot;
    use crate::state;

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
        let violation = |rule| Violation::new(Pointer::new("/spec/a"), rule);
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
    fn counts_what_it_does_not_tell() {
        let finalizers = vec!["1"; 300].join(",");
        let object = format!(r#"{{"metadata":{{"name":"a","finalizers":[{finalizers}]}}}}"#);
        let decision = decide(&request(&object), &state::empty(Settings::default()));
        assert_eq!(decision.findings.len(), MAX_FINDINGS_TOLD);
        let wrong = decision.findings.iter().filter(|finding| finding.message.contains("finalizers")).count();
        assert_eq!(wrong + decision.untold.denials, 300);
    }

    #[test]
    fn leaves_what_an_apiserver_has_checked() {
        assert_eq!(codes(&state::empty(Settings::default())), ["orka/schema", "orka/schema"]);
        assert_eq!(codes(&Snapshot::default()), <[&str; 0]>::default());
    }
}

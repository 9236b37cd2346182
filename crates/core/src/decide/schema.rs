//! The schema of a kind and the rules of metadata, where no apiserver has checked them.
//!
//! A family's own rules speak first: where one of them denies, the schema adds nothing. Those that only repeat
//! the bundled definition give way to a definition among the inputs.

use std::collections::BTreeSet;
use std::iter::successors;

use serde_json::Value;

use crate::crd::{self, NewObject, Status};
use crate::family::common::VERSION_UNKNOWN;
use crate::family::schema_check::unknown_field_message;
use crate::family::suggest::{self, nearest};
use crate::model::cel::NotInCel;
use crate::model::crd::{Crd, Crds, SchemaNode};
use crate::model::family::Family;
use crate::model::finding::{Cause, Finding, Severity, quoted};
use crate::model::kind::{Kind, NAMESPACE};
use crate::model::pointer::{Pointer, list_index};
use crate::model::request::{Operation, Request};
use crate::model::violation::{BrokenRule, Violation};

/// What an apiserver would say, in addition to `own`, the findings of the family before any of them is
/// ratcheted. Of these the ones go that contradict a definition among the inputs.
pub(super) fn findings(
    family: &'static Family,
    kind: &'static Kind,
    request: &Request<'_>,
    crds: &Crds,
    own: &mut Vec<Finding>,
) -> Vec<Finding> {
    let checked = matches!(request.operation, Operation::Create | Operation::Update);
    if !checked || family.misnamed.contains(&kind) {
        return Vec::new();
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let Some(mut object) = request.object.and_then(parse) else { return Vec::new() };
    let mut old = request.old_object.filter(|_| request.operation == Operation::Update).and_then(parse);
    let mut violations = metadata(kind, request, &object, old.as_ref());
    let mut findings = misspelt(family, &object);
    if let Some(crd) = crds.get(family, kind.group, kind.kind) {
        findings.extend(version_unknown(&crd, &request.version));
        if let Some(version) = crd.served(&request.version).or_else(|| crd.newest()) {
            let judged = family.stand_in.with_status.contains(&kind);
            let status = if judged { Status::Judged } else { Status::Dropped };
            let found = crd::violations(version, status, &mut object, old.as_mut());
            if crds.is_given(kind.group, kind.kind) {
                drop_contradicted(family, &version.schema, &found, own);
            }
            violations.extend(tolerated_aside(family, kind, request, crds, found));
        }
    }
    let spoken = Spoken::of(own);
    let mut told = BTreeSet::new();
    violations.retain(|violation| !spoken.covers(violation) && told.insert(violation.pointer.clone()));
    findings.extend(violations.iter().map(|violation| finding(family, violation)));
    findings
}

/// What is wrong with the metadata; what was wrong before is marked.
fn metadata(kind: &Kind, request: &Request<'_>, object: &Value, old: Option<&Value>) -> Vec<Violation> {
    let new = (request.operation == Operation::Create).then_some(NewObject {
        name: &request.name,
        namespaced: kind.namespaced,
        name_is_label: *kind == NAMESPACE,
    });
    let mut found = crd::metadata_violations(object, new);
    if !found.is_empty()
        && let Some(old) = old
    {
        let stored: BTreeSet<_> =
            crd::metadata_violations(old, None).iter().map(Violation::message).collect();
        for violation in &mut found {
            violation.stored = stored.contains(&violation.message());
        }
    }
    found
}

/// The fields of metadata that are likely misspelt: without them an object lands in another namespace, or
/// is selected by nothing.
fn misspelt(family: &Family, object: &Value) -> Vec<Finding> {
    const MEANT: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];
    let Some(code) = family.stand_in.unknown_field else { return Vec::new() };
    let fields = object.get("metadata").and_then(Value::as_object);
    let finding = |field: &String| {
        let meant = nearest(field, MEANT)?;
        let shown = format!("metadata.{}", quoted(field).trim_matches('"'));
        let pointer = Pointer::new("/metadata").key(field);
        Some(Finding::warn(code, pointer, unknown_field_message(&shown, Some(meant))).at_key())
    };
    fields.into_iter().flatten().filter_map(|(field, _)| finding(field)).collect()
}

/// Drops what the family says only because the bundled definition does, where the one that counts says
/// something else.
fn drop_contradicted(family: &Family, schema: &SchemaNode, found: &[Violation], own: &mut Vec<Finding>) {
    let broken: BTreeSet<&Pointer> = found.iter().map(|violation| &violation.pointer).collect();
    let is_broken =
        |pointer: &Pointer| successors(Some(pointer.clone()), Pointer::parent).any(|at| broken.contains(&at));
    own.retain(|finding| {
        if family.stand_in.unknown_field == Some(finding.code) {
            return !declares(schema, &finding.pointer);
        }
        !repeats_schema(family, finding) || is_broken(&finding.pointer)
    });
}

/// Whether a finding is a denial about the type of a value, or about a fixed set of values, of which the bundled
/// definition says the same.
fn repeats_schema(family: &Family, finding: &Finding) -> bool {
    finding.severity == Severity::Deny
        && matches!(finding.code.cause, Cause::TypeInvalid | Cause::NotSupported)
        && family.not_in_cel.contains(&(finding.code, NotInCel::Schema))
}

/// Whether a schema declares a field.
fn declares(schema: &SchemaNode, field: &Pointer) -> bool {
    let mut here = schema;
    for token in field.tokens() {
        let items = here.list.items.as_deref().filter(|_| list_index(&token).is_some());
        match items.or_else(|| here.object.field(&token)) {
            Some(below) => here = below,
            None => return false,
        }
    }
    true
}

/// The violations that the family does not let pass on purpose.
fn tolerated_aside(
    family: &'static Family,
    kind: &'static Kind,
    request: &Request<'_>,
    crds: &Crds,
    violations: Vec<Violation>,
) -> Vec<Violation> {
    let stand_in = &family.stand_in;
    let unreleased = stand_in.unreleased.contains(&kind) && !crds.is_given(kind.group, kind.kind);
    if violations.is_empty() || unreleased {
        return Vec::new();
    }
    // The object as it was written, with what the schema does not know.
    let written = request.object.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let tolerated = |violation: &Violation| (stand_in.tolerates)(kind, &written, violation);
    violations.into_iter().filter(|violation| !tolerated(violation)).collect()
}

fn version_unknown(crd: &Crd, version: &str) -> Option<Finding> {
    let newest = crd.newest().filter(|_| crd.served(version).is_none())?;
    let name = |version: &str| quoted(&format!("{}/{version}", crd.group));
    let message = format!("apiVersion {} is not served; use {}", name(version), name(&newest.name));
    Some(Finding::warn(&VERSION_UNKNOWN, Pointer::new("/apiVersion"), message))
}

fn finding(family: &'static Family, violation: &Violation) -> Finding {
    let message = (family.stand_in.message)(violation);
    let mut finding = Finding::deny(family.stand_in.code, violation.pointer.clone(), message);
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
    match help(violation) {
        Some(help) => finding.help(help),
        None => finding,
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

/// The places about which a family speaks by itself.
struct Spoken<'f> {
    /// Every place of a finding.
    all: BTreeSet<&'f str>,
    /// Those of denials, and of advice about the same kind of fault.
    faults: BTreeSet<&'f str>,
    /// Those of denials for a missing value.
    missing: BTreeSet<&'f str>,
}

impl<'f> Spoken<'f> {
    fn of(own: &'f [Finding]) -> Self {
        let places = |is_wanted: fn(&Finding) -> bool| {
            own.iter().filter(|finding| is_wanted(finding)).map(|finding| finding.pointer.as_str()).collect()
        };
        Self {
            all: places(|_| true),
            faults: places(|finding| {
                let of_schema = [Cause::Required, Cause::NotSupported, Cause::TypeInvalid];
                finding.severity == Severity::Deny || of_schema.contains(&finding.code.cause)
            }),
            missing: places(|finding| {
                finding.severity == Severity::Deny && finding.code.cause == Cause::Required
            }),
        }
    }

    /// Whether the family speaks about the place of a violation; about a missing value also if it names a field
    /// in it, or what should hold it.
    fn covers(&self, violation: &Violation) -> bool {
        let here = violation.pointer.as_str();
        if self.faults.contains(here) || violation.stored && self.all.contains(here) {
            return true;
        }
        if !matches!(violation.rule, BrokenRule::Required(_)) {
            return false;
        }
        let below = format!("{here}/");
        let names_field =
            self.missing.range(below.as_str()..).next().is_some_and(|found| found.starts_with(&below));
        names_field || violation.pointer.parent().is_some_and(|parent| self.missing.contains(parent.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::decide;
    use crate::family::orka;
    use crate::model::settings::Settings;
    use crate::model::snapshot::Snapshot;
    use crate::state;

    const TASK: &str = r#"{"metadata":{"name":"A_b"},"spec":{"type":"aii"}}"#;

    fn codes(snapshot: &Snapshot) -> Vec<&'static str> {
        let request = Request {
            operation: Operation::Create,
            group: "core.orka.ai".into(),
            version: "v1alpha1".into(),
            kind: "Task".into(),
            subresource: "".into(),
            namespace: "team-a".into(),
            name: "A_b".into(),
            object: Some(TASK),
            old_object: None,
            cancelled: None,
        };
        decide(&request, snapshot).findings.iter().map(|finding| finding.code.name).collect()
    }

    #[test]
    fn gives_the_cause_of_the_rule() {
        let cause = |rule| finding(&orka::FAMILY, &Violation::new(Pointer::new("/spec/a"), rule)).cause;
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
    fn leaves_what_an_apiserver_has_checked() {
        assert_eq!(codes(&state::empty(Settings::default())), ["orka/schema", "orka/schema"]);
        assert_eq!(codes(&Snapshot::default()), <[&str; 0]>::default());
    }
}

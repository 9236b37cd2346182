//! The schema of a kind and the rules of metadata, where no apiserver has checked them.
//!
//! A family's own rules speak first: where one of them denies, the schema adds nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::crd::{self, NewObject, Status};
use crate::family::common::VERSION_UNKNOWN;
use crate::family::suggest::{did_you_mean, nearest};
use crate::model::crd::{Crd, Crds};
use crate::model::family::Family;
use crate::model::finding::{Cause, Finding, Severity, quoted};
use crate::model::kind::Kind;
use crate::model::pointer::Pointer;
use crate::model::request::{Operation, Request};
use crate::model::violation::{BrokenRule, Violation};

/// What an apiserver would say, in addition to `own`, the findings of the family before any of them is
/// ratcheted.
pub(super) fn findings(
    family: &'static Family,
    kind: &'static Kind,
    request: &Request<'_>,
    crds: &Crds,
    own: &[Finding],
) -> Vec<Finding> {
    let checked = matches!(request.operation, Operation::Create | Operation::Update);
    if !checked || family.misnamed.contains(&kind) {
        return Vec::new();
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let Some(mut object) = request.object.and_then(parse) else { return Vec::new() };
    let mut old = request.old_object.filter(|_| request.operation == Operation::Update).and_then(parse);
    let mut violations = metadata(kind, request, &object, old.as_ref());
    let mut findings = Vec::new();
    if let Some(crd) = crds.get(family, kind.group, kind.kind) {
        findings.extend(version_unknown(&crd, &request.version));
        if let Some(version) = crd.served(&request.version).or_else(|| crd.newest()) {
            let judged = family.stand_in.with_status.contains(&kind);
            let status = if judged { Status::Judged } else { Status::Dropped };
            let found = crd::violations(version, status, &mut object, old.as_mut());
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
    let new = (request.operation == Operation::Create)
        .then_some(NewObject { name: &request.name, namespaced: kind.namespaced });
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
    match help(violation) {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn help(violation: &Violation) -> Option<String> {
    match &violation.rule {
        BrokenRule::Unsupported { value, supported } => {
            let meant = nearest(value.trim_matches('"'), supported.iter().map(String::as_str));
            meant.map(|meant| did_you_mean(Some(meant)).trim_start_matches("; ").to_owned())
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
        };
        decide(&request, snapshot).findings.iter().map(|finding| finding.code.name).collect()
    }

    #[test]
    fn leaves_what_an_apiserver_has_checked() {
        assert_eq!(codes(&state::empty(Settings::default())), ["orka/schema", "orka/schema"]);
        assert_eq!(codes(&Snapshot::default()), <[&str; 0]>::default());
    }
}

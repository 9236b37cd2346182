//! What is wrong with a part of an object, such as a patch in a file, whatever the rest of it is: types, enums, bounds,
//! lengths, patterns, names and unknown fields. What the part lacks, the object may have.
//!
//! It has the codes and words of a whole object. No policy judges it, nothing that it refers to is looked up, and it gets no
//! defaults.

use memgate_model::decision::NotShown;
use memgate_model::finding::{Cause, Finding};
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;
use serde_json::Value;

use super::{form, over_limit, reported, schema, subject};

/// The findings about a part, and how many more there are; `None` for kinds without a definition. The occasion of the request
/// says that it is a part; `value` is its object, and `snapshot` has the definitions and no object.
pub fn findings(
    request: &Request<'_>,
    value: &Value,
    snapshot: &Snapshot,
) -> Option<(Vec<Finding>, NotShown)> {
    let families = &snapshot.settings.families;
    let Some((family, kind)) = memgate_platforms::validated(families, &request.group, &request.kind) else {
        memgate_schema::builtin_version(&request.group, &request.kind)?;
        return Some((form::findings(request), NotShown::default()));
    };
    let text = request.object.unwrap_or_default();
    let budget = Budget::new(request.cancelled, text.len());
    let object = Tree::parse_within(text, &kind.schema, &budget).ok()?;
    let (subject, mut state) = subject(kind, request, (&object, None), snapshot, &budget);
    let mut findings = (family.faces.validate)(&subject, &mut state);
    findings.retain(|finding| is_of_value(finding, value) && !super::later::is_about(request, finding));
    let schema = schema::findings(family, &subject, request, snapshot, &budget, &mut findings);
    findings.retain(|finding| {
        let is_wrong = if finding.is_denial() {
            finding.cause != Cause::Required
        } else {
            is_unsupported_word(finding, value)
        };
        let is_alone = is_wrong && family.read_besides(finding.code).is_none();
        is_alone || schema.broken.contains(&finding.pointer)
    });
    findings.extend(schema.findings);
    if let Some(stop) = budget.stopped() {
        findings = over_limit::resource(request, stop, &[], false).findings;
    }
    let not_shown = schema.not_shown.and(reported::select(&mut findings, &object));
    Some((findings, not_shown))
}

/// Whether a finding is about a value of the part itself.
fn is_of_value(finding: &Finding, value: &Value) -> bool {
    matches!(finding.cause, Cause::Invalid | Cause::NotSupported | Cause::TypeInvalid | Cause::Required)
        && finding.pointer != Pointer::root()
        && value.pointer(finding.pointer.as_str()).is_some_and(|value| !value.is_null())
}

/// Whether a finding is about a word that is none of a list.
fn is_unsupported_word(finding: &Finding, value: &Value) -> bool {
    let place = finding.pointer.as_str();
    finding.cause == Cause::NotSupported
        && ["/spec/", "/metadata/"].iter().any(|start| place.starts_with(start))
        && value.pointer(place).is_some_and(Value::is_string)
}

//! The findings of an apiserver about schema and metadata, for files that no apiserver has checked.
//!
//! A family's own rules come first: where one of them denies, the schema adds nothing. Rules that only repeat the
//! bundled definition give way to a definition among the inputs.

use std::collections::BTreeSet;

use memgate_model::crds::Crds;
use memgate_model::decision::NotShown;
use memgate_model::family::{Family, SchemaStandIn, Subject, Words};
use memgate_model::finding::{Cause, Code, Finding, Severity, excerpt};
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_platforms::common::VERSION_UNKNOWN;
use memgate_primitives::budget::Budget;
use memgate_primitives::duration;
use memgate_primitives::fix::{Fix, unquoted};
use memgate_primitives::members::Members;
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{self, did_you_mean, nearest, only_nearest};
use memgate_schema::crd::{Crd, CrdVersion};
use memgate_schema::violation::{Rule, SchemaViolation, message, supported};
use memgate_schema::{Document, NewObject, Status, Violations};

use super::reported::{Covered, MAX_REPORTED, drop_around_wrong_types, drop_contradicted};
use super::{later, over_limit, unknown_fields};

/// The findings of the schema.
#[derive(Default)]
pub(super) struct SchemaFindings {
    /// Those that may be reported.
    pub(super) findings: Vec<Finding>,
    /// How many more there are.
    pub(super) not_shown: NotShown,
    /// Of a part of an object, the places where it breaks its definition.
    pub(super) broken: BTreeSet<Pointer>,
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
    let stand_in = &family.definitions.stand_in;
    let own_is_given = crds.is_given(subject.kind.group, subject.kind.kind);
    let moved = (stand_in.moved)(subject.kind, &request.version).filter(|_| !own_is_given);
    if moved.is_none() && family.kinds.misnamed.contains(&subject.kind) {
        return SchemaFindings::default();
    }
    let kind = moved.unwrap_or(subject.kind);
    let crd = crds.get(family, kind.group, kind.kind);
    let is_given = crds.is_given(kind.group, kind.kind);
    let version = crd.as_deref().and_then(|crd| crd.served(&request.version).or_else(|| crd.newest()));
    let version = version.filter(|_| is_given || !stand_in.unreleased.contains(&kind));
    let judged = stand_in.with_status.contains(&kind);
    let status = if judged { Status::Judged } else { Status::Dropped };
    let Some(object) = memgate_schema::document(text, version, status, budget) else {
        return SchemaFindings::default();
    };
    let (mut findings, more_in_metadata) = unknown_in_metadata(family, &object);
    findings.extend(crd.as_deref().and_then(|crd| version_unknown(crd, &request.version)));
    let new = (request.operation == Operation::Create).then_some(NewObject {
        name: &request.name,
        namespaced: kind.namespaced,
        name_is_label: *kind == NAMESPACE,
    });
    let stored_text = request.old_object.filter(|_| request.operation == Operation::Update);
    let stored = stored_text
        .filter(|old| *old != text)
        .and_then(|old| budget.apart(old.len(), || memgate_schema::document(old, version, status, budget)).0);
    let old = if stored_text == Some(text) { Some(&object) } else { stored.as_ref() };
    // A rule of the whole object may ask what the stored status says.
    let has_root_rules =
        status == Status::Dropped && version.is_some_and(|version| !version.schema.rules.is_empty());
    let stored_with_status = stored_text.filter(|_| has_root_rules).and_then(|old| {
        budget.apart(old.len(), || memgate_schema::document(old, version, Status::Judged, budget)).0
    });
    let mut violations = Violations::new(budget);
    memgate_schema::check_metadata(&object, new, old, &mut violations);
    let waived = if is_given { BTreeSet::new() } else { unknown_fields::waived(family, kind, &object) };
    // An unknown value does not break a rule, and other rules are judged in spite of it.
    let is_known = |it: &SchemaViolation<'_>| !later::violates(request, it) && !waived.contains(&it.pointer);
    violations.retain(is_known);
    let of_metadata = violations.len();
    if let Some(version) = version {
        memgate_schema::check(version, &object, old, &mut violations);
        violations.retain(is_known);
    }
    if is_given {
        drop_contradicted(family, &violations, own);
    }
    let is_wrong = |it: &&SchemaViolation<'_>| {
        matches!(it.rule, Rule::Type { .. }) && !(stand_in.tolerates)(subject.kind, subject.object, it)
    };
    drop_around_wrong_types(violations.iter().skip(of_metadata).filter(is_wrong), own);
    let broken = request.occasion.is_part.then(|| violations.iter().map(|it| it.pointer.clone()).collect());
    if let Some(version) = version.filter(|_| !request.occasion.is_part) {
        let old = stored_with_status.as_ref().or(old);
        memgate_schema::check_rules(version, crds.allowance(), &object, old, &mut violations);
        violations.retain(is_known);
    }
    let schema = OfDefinition { from: of_metadata, is_given };
    let mut not_shown = add(family, subject, &violations, schema, own, &mut findings);
    not_shown.warnings += more_in_metadata;
    if let Some(CrdVersion { schema, .. }) = version {
        let definition = unknown_fields::Definition { kind, schema, is_given };
        findings.extend(unknown_fields::findings(family, definition, &object, own));
        not_shown.warnings += object.more_unknown_fields();
    }
    SchemaFindings { findings, not_shown, broken: broken.unwrap_or_default() }
}

/// Warns about unknown fields of metadata. A misspelt one lets an object land in another namespace, or no selector matches
/// it. Returns how many more there are.
fn unknown_in_metadata(family: &Family, object: &Document<'_>) -> (Vec<Finding>, usize) {
    const MEANT: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];
    let code = family.definitions.stand_in.unknown_field;
    let finding = |field: &str| {
        let pointer = Pointer::new("/metadata").key(field);
        let message = unknown_fields::message(&pointer, &did_you_mean(nearest(field, MEANT)), "");
        let finding = Finding::warn(code, pointer, message)
            .at_key()
            .help(unknown_fields::help("the metadata of Kubernetes"));
        finding.fix(only_nearest(field, MEANT).map(|meant| Fix::Rename(meant.to_owned())))
    };
    let mut unknown = memgate_schema::unknown_metadata(object);
    (unknown.by_ref().take(MAX_REPORTED).map(finding).collect(), unknown.count())
}

/// The violations of a definition, as opposed to those of metadata.
#[derive(Clone, Copy)]
struct OfDefinition {
    /// The first of them.
    from: usize,
    /// Whether the definition is among the inputs.
    is_given: bool,
}

/// Adds findings about violations that the family neither covers nor tolerates, one for each place. Returns how many
/// more there are.
fn add(
    family: &'static Family,
    subject: &Subject<'_>,
    violations: &Violations<'_>,
    schema: OfDefinition,
    own: &[Finding],
    findings: &mut Vec<Finding>,
) -> NotShown {
    let stand_in = &family.definitions.stand_in;
    let (covered, mut seen) = (Covered::by(own), Members::default());
    let (mut denials, mut warnings, mut notes) = (0, 0, 0);
    for (index, violation) in violations.iter().enumerate() {
        let of_definition = index >= schema.from;
        let is_tolerated = || of_definition && (stand_in.tolerates)(subject.kind, subject.object, violation);
        // Several rules in CEL may stand at one place.
        let is_rule = matches!(violation.rule, Rule::Cel(_) | Rule::CelError(_) | Rule::NotEvaluated(..));
        if covered.contains(violation) || is_tolerated() || !(is_rule || seen.insert(&violation.pointer)) {
            continue;
        }
        let by_bundle = of_definition && !schema.is_given;
        if let Some(warning) = by_bundle.then(|| (stand_in.other_release)(subject.kind, violation)).flatten()
        {
            findings.push(warning);
            continue;
        }
        let count = match violation.rule {
            Rule::NotEvaluated(..) => &mut notes,
            _ if violation.stored => &mut warnings,
            _ => &mut denials,
        };
        *count += 1;
        if *count <= MAX_REPORTED {
            findings.push(in_own_words(stand_in, (subject.kind, of_definition), violation));
        }
    }
    let not_shown = |count: usize| count.saturating_sub(MAX_REPORTED);
    NotShown { denials: not_shown(denials), warnings: not_shown(warnings) }
}

/// The finding about a violation, as a family says it.
fn in_own_words(
    stand_in: &SchemaStandIn,
    (kind, of_definition): (&Kind, bool),
    violation: &SchemaViolation<'_>,
) -> Finding {
    let mut finding = finding(stand_in.code, violation);
    if !of_definition {
        return finding;
    }
    if matches!(violation.rule, Rule::Type { .. }) && kind.schema.reads(&violation.pointer) {
        finding.code = stand_in.wrong_type;
        return finding;
    }
    let (path, cause) = (unknown_fields::path(&violation.pointer), finding.cause);
    let is_about =
        |words: &&Words| words.code.cause == cause && words.field == path && words.kinds.contains(&kind);
    let Some(words) = stand_in.words.iter().find(is_about) else { return finding };
    finding.code = words.code;
    match words.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn version_unknown(crd: &Crd, version: &str) -> Option<Finding> {
    let newest = crd.newest().filter(|_| crd.served(version).is_none())?;
    unserved_version(&crd.group, version, &newest.name)
}

/// The warning about a version that is not served; `served` is one that is.
pub fn unserved_version(group: &str, version: &str, served: &str) -> Option<Finding> {
    if version == served {
        return None;
    }
    let name = |version: &str| match group {
        "" => quoted_key(version),
        group => quoted_key(&format!("{group}/{version}")),
    };
    let message = format!("apiVersion {} is not served; use {}", name(version), name(served));
    Some(Finding::warn(&VERSION_UNKNOWN, Pointer::new("/apiVersion"), message))
}

/// The finding about a violation, with the family's code.
pub(super) fn finding(code: &'static Code, violation: &SchemaViolation<'_>) -> Finding {
    let mut finding = Finding::deny(code, violation.pointer.clone(), message(violation));
    if violation.stored {
        finding.severity = Severity::Warn;
    }
    if let Rule::NotEvaluated(..) = violation.rule {
        finding.severity = Severity::Note;
    }
    finding.at_key = violation.at_key();
    finding.cause = match violation.rule {
        Rule::Type { .. } => Cause::TypeInvalid,
        Rule::Required(..) => Cause::Required,
        Rule::Unsupported(_) => Cause::NotSupported,
        Rule::Duplicate(_) => Cause::Duplicate,
        Rule::NotEvaluated(..) => Cause::Unavailable,
        Rule::Cel(rule) => match rule.reason.as_str() {
            "FieldValueRequired" => Cause::Required,
            "FieldValueDuplicate" => Cause::Duplicate,
            "FieldValueForbidden" => Cause::Conflict,
            _ => finding.cause,
        },
        _ => finding.cause,
    };
    let finding = finding.fix(fix(violation)).proposing_name(violation.wrong_name().unwrap_or_default());
    match help(violation) {
        Some(help) => finding.help(help),
        None => finding,
    }
}

/// What is right instead, where there is only one answer.
fn fix(violation: &SchemaViolation<'_>) -> Option<Fix> {
    match violation.rule {
        Rule::Unsupported(allowed) => {
            // With more values than are listed here, another one may be as near.
            let (supported, 0) = supported(allowed) else { return None };
            let shown = violation.shown();
            let meant = only_nearest(shown.trim_matches('"'), supported.iter().map(String::as_str))?;
            Some(Fix::Text(meant.to_owned()))
        }
        Rule::Type { expected: expected @ ("integer" | "number" | "boolean"), got: "string", .. } => {
            Some(Fix::Unquote(expected))
        }
        Rule::Duplicate(_) => Some(Fix::RemoveRepeated),
        _ => None,
    }
}

fn help(violation: &SchemaViolation<'_>) -> Option<String> {
    match violation.rule {
        Rule::Unsupported(allowed) => {
            let supported = supported(allowed).0;
            suggest::help(violation.shown().trim_matches('"'), supported.iter().map(String::as_str))
        }
        Rule::Type { expected: "string", got: "boolean" | "integer" | "number", .. } => {
            Some("put the value in quotes".to_owned())
        }
        Rule::Type { expected: expected @ ("integer" | "number" | "boolean"), got: "string", .. } => {
            let text = violation.text()?;
            let is_quoted = unquoted(text, expected).is_some();
            if is_quoted {
                Some("take the quotes away".to_owned())
            } else {
                in_seconds(&violation.pointer, text)
            }
        }
        Rule::Type { expected: expected @ ("object" | "array"), got: "string", only: Some(field) } => {
            let meant = meant_instead(&violation.pointer, violation.text()?, field, expected == "array");
            Some(format!("write `{meant}`"))
        }
        _ => None,
    }
}

/// What to write for a duration in a field that takes a number of seconds.
fn in_seconds(field: &Pointer, text: &str) -> Option<String> {
    let takes_seconds = field.tokens().last()?.to_ascii_lowercase().ends_with("seconds");
    let meant = duration::in_hours(text);
    let time = duration::parse(meant.as_deref().unwrap_or(text))?;
    let seconds = (takes_seconds && time.subsec_nanos() == 0).then_some(time.as_secs())?;
    Some(format!("write {seconds}, the number of seconds"))
}

/// The YAML that the user probably meant by a bare string in place of an object with one string, or of a list of such
/// objects.
fn meant_instead(here: &Pointer, text: &str, field: &str, is_list: bool) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/');
    let word = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"].contains(&&*text.to_lowercase());
    let is_plain = !word && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    let text = excerpt(text);
    let text = if is_plain { String::from(text) } else { serde_json::Value::from(&*text).to_string() };
    let meant = format!("{{{field}: {text}}}");
    let meant = if is_list { format!("[{meant}]") } else { meant };
    let path = here.field();
    let last = path.rsplit('.').next().unwrap_or_default();
    if last.ends_with(']') { meant } else { format!("{last}: {meant}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_durations_in_seconds() {
        for (field, text, expected) in [
            ("/spec/redis/ttlSeconds", "30d", Some("write 2592000, the number of seconds")),
            ("/spec/ttl_seconds", "1h30m", Some("write 5400, the number of seconds")),
            ("/spec/ttlSeconds", "1500ms", None),
            ("/spec/ttlSeconds", "soon", None),
            ("/spec/maxEntries", "30d", None),
        ] {
            assert_eq!(in_seconds(&Pointer::new(field), text).as_deref(), expected, "{field}: {text}");
        }
    }

    #[test]
    fn says_what_was_meant_in_yaml() {
        let meant = |at, is_list, text| meant_instead(&Pointer::new(at), text, "name", is_list);
        assert_eq!(meant("/spec/ref", false, "house-1"), "ref: {name: house-1}");
        assert_eq!(meant("/spec/ref", false, "a: b"), r#"ref: {name: "a: b"}"#);
        assert_eq!(meant("/spec/ref", false, "no"), r#"ref: {name: "no"}"#);
        assert_eq!(meant("/spec/refs", true, "house"), "refs: [{name: house}]");
        assert_eq!(meant("/spec/refs/0", false, "house"), "{name: house}");
    }
}

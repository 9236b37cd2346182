//! Warns about fields that the definition of a kind does not have: an apiserver drops them, and kubectl refuses them.
//! Only for files; a review comes from an apiserver, which has dropped them already.

use std::collections::BTreeSet;

use memgate_model::family::Family;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::Kind;
use memgate_platforms::message::{filled, fits};
use memgate_platforms::spellings::{Spelling, at_other_levels, declared, spelling};
use memgate_primitives::fix::Fix;
use memgate_primitives::members::Members;
use memgate_primitives::plain_text::{quoted, quoted_key, quoted_text};
use memgate_primitives::pointer::{Pointer, list_index};
use memgate_primitives::suggest::{did_you_mean, nearest, only_nearest};
use memgate_schema::crd::SchemaNode;
use memgate_schema::{Document, UnknownField};

/// Up to this many fields of an object are listed where no single one can be meant.
const FEW_FIELDS: usize = 4;

/// Two fields that are named together are not longer.
const MAX_TWO_BYTES: usize = 80;

/// What to do about a field of another release.
const OF_OTHER_RELEASE: &str =
    "memgate judges by the definitions of your release if they are among the inputs (--with)";

/// The definition that an object does not follow.
#[derive(Clone, Copy)]
pub(super) struct Definition<'s> {
    pub(super) kind: &'s Kind,
    pub(super) schema: &'s SchemaNode,
    /// Whether it is among the inputs, rather than bundled.
    pub(super) is_given: bool,
}

/// The warnings about an object, one for each field on which the family has no finding of its own.
pub(super) fn findings(
    family: &'static Family,
    of: Definition<'_>,
    object: &Document<'_>,
    own: &[Finding],
) -> Vec<Finding> {
    let mut told: Members<&str> = own.iter().map(|finding| finding.pointer.as_str()).collect();
    let source = source(family, of);
    let mut findings = Vec::new();
    for field in object.unknown_fields() {
        let path = path(&field.pointer);
        let is_old = || family.definitions.stand_in.old_fields.contains(&(of.kind, path.as_str()));
        if told.insert(field.pointer.as_str()) && !is_old() {
            findings.push(finding(family, of, (field, &path), &source));
        }
    }
    findings
}

/// The fields that may be missing, for another release, beside those which only it has.
pub(super) fn waived(family: &Family, kind: &Kind, object: &Document<'_>) -> BTreeSet<Pointer> {
    let unknown = object.unknown_fields().iter().map(|field| &field.pointer);
    let beside =
        |field: &Pointer| Some(field.parent()?.key(spelling(family, kind, &path(field))?.instead_of?));
    unknown.filter_map(beside).collect()
}

/// The definition in words.
fn source(family: &Family, of: Definition<'_>) -> String {
    if of.is_given {
        let name = quoted(&format!("{}.{}", of.kind.plural, of.kind.group));
        return format!("CustomResourceDefinition {name} among the inputs");
    }
    (family.definitions.stand_in.as_of)(of.kind).to_owned()
}

fn finding(
    family: &'static Family,
    of: Definition<'_>,
    (field, path): (&UnknownField<'_>, &str),
    source: &str,
) -> Finding {
    let code = family.definitions.stand_in.unknown_field;
    let name = field.pointer.tokens().last().unwrap_or_default();
    let known = || field.holder.object.properties.keys().map(String::as_str);
    let exists = |row: &Spelling| !row.is_field || declared(of.schema, &row.meant).is_some();
    let row = spelling(family, of.kind, path).filter(exists);
    if let Some(row) = row.as_ref().filter(|row| row.is_of_other_release && !of.is_given) {
        let note = Finding::warn(code, field.pointer.clone(), row.meant.as_str());
        return Finding { severity: Severity::Note, ..note.at_key().help(OF_OTHER_RELEASE) };
    }
    let words = row.as_ref().filter(|row| !row.is_field).map(|row| format!("; {}", row.meant));
    let ending = match (&row, nearest(&name, known())) {
        (Some(row), _) if row.is_field => did_you_mean(Some(from_section(&row.meant, path))),
        (None, Some(near)) => did_you_mean(Some(near)),
        (None, None) => elsewhere(of.schema, path),
        _ => String::new(),
    };
    let besides = if row.is_none() && ending.is_empty() { few(known()) } else { String::new() };
    let message = message(&field.pointer, &ending, &besides) + &words.unwrap_or_default();
    let more = row.as_ref().and_then(|row| row.help).map(|help| format!("{help}; ")).unwrap_or_default();
    let help = format!("{more}{}", help(source));
    let meant = row.is_none().then(|| only_nearest(&name, known())).flatten();
    let finding = Finding::warn(code, field.pointer.clone(), message).at_key().help(help);
    finding.fix(meant.map(|meant| Fix::Rename(meant.to_owned())))
}

/// Where a field is not, and what becomes of it.
pub(super) fn help(source: &str) -> String {
    format!(
        "not in {source}; \"kubectl apply\" refuses it (strict field validation), GitOps drops it silently"
    )
}

/// A field as a message about the one at `path` names it: without the section, if both are in it.
fn from_section<'m>(meant: &'m str, path: &str) -> &'m str {
    let section = path.rsplit_once('.').map(|(section, _)| section).filter(|it| it.contains('.'));
    section.and_then(|section| meant.strip_prefix(section)?.strip_prefix('.')).unwrap_or(meant)
}

/// The end of the message about a field whose name the definition has at another level.
fn elsewhere(schema: &SchemaNode, path: &str) -> String {
    match at_other_levels(schema, path).as_slice() {
        [one, other] if one.len() + other.len() < MAX_TWO_BYTES => {
            format!("; did you mean {} or {}?", quoted_text(one), quoted_text(other))
        }
        [only] => did_you_mean(Some(from_section(only, path))),
        _ => String::new(),
    }
}

/// The message about an unknown field, given how the message ends, and what it says besides if there is room.
pub(super) fn message(field: &Pointer, ending: &str, besides: &str) -> String {
    let shown = quoted_text(&field.field());
    let shown = shown.trim_matches('"');
    let message = |more: &str| format!("{shown}: unknown field, it will be dropped{ending}{more}");
    if let Some(message) = [besides, ""].into_iter().map(message).find(|message| fits(message)) {
        return message;
    }
    filled("{name}: unknown field{bare}", [shown, ending])
}

/// The fields of an object that has few.
fn few<'f>(fields: impl Iterator<Item = &'f str>) -> String {
    let fields: Vec<String> = fields.take(FEW_FIELDS + 1).map(quoted_key).collect();
    if fields.is_empty() || fields.len() > FEW_FIELDS {
        return String::new();
    }
    format!("; fields here: {}", fields.join(", "))
}

/// The path of a field with `[]` for each list element, as tables of fields write it: `spec.headers[].value`.
pub(super) fn path(pointer: &Pointer) -> String {
    let mut path = String::new();
    for token in pointer.tokens() {
        if list_index(&token).is_some() {
            path.push_str("[]");
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&token);
        }
    }
    path
}

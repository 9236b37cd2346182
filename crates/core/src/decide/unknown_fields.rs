//! Warns about fields that the definition of a kind does not have: an apiserver drops them, and kubectl refuses them.
//! Only for files; a review comes from an apiserver, which has dropped them already.

use memgate_model::family::Family;
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_platforms::schema_check::unknown_field_message;
use memgate_platforms::spellings::{Meant, meant};
use memgate_primitives::fix::Fix;
use memgate_primitives::members::Members;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::{Pointer, list_index};
use memgate_primitives::suggest::{nearest, only_nearest};
use memgate_schema::{Document, UnknownField};

/// Up to this many fields of an object are listed where no single one can be meant.
const FEW_FIELDS: usize = 4;

/// The warnings about an object, one for each field on which the family has no finding of its own.
pub(super) fn findings(
    family: &'static Family,
    kind: &Kind,
    object: &Document<'_>,
    is_given: bool,
    own: &[Finding],
) -> Vec<Finding> {
    let stand_in = &family.definitions.stand_in;
    let told: Members<&str> = own.iter().map(|finding| finding.pointer.as_str()).collect();
    let source =
        if is_given { "the CustomResourceDefinition among the inputs" } else { (stand_in.as_of)(kind) };
    let is_new = |field: &&UnknownField<'_>| {
        !told.contains(field.pointer.as_str()) && !(stand_in.later_field)(kind, &path(&field.pointer))
    };
    let fields = object.unknown_fields().iter().filter(is_new);
    fields.map(|field| finding(family, kind, field, source)).collect()
}

fn finding(family: &'static Family, kind: &Kind, field: &UnknownField<'_>, source: &str) -> Finding {
    let name = field.pointer.tokens().last().unwrap_or_default();
    let shown = quoted(&field.pointer.field());
    let known = || field.holder.object.properties.keys().map(String::as_str);
    let path = path(&field.pointer);
    let holder = path.rsplit_once('.').map_or("", |(holder, _)| holder);
    let ending = match meant(family, kind, &path) {
        Some(Meant::Field(meant)) => {
            let sibling = meant.strip_prefix(holder).and_then(|rest| rest.strip_prefix('.'));
            did_you_mean(sibling.filter(|rest| !rest.contains('.')).unwrap_or(meant))
        }
        Some(Meant::FieldOf { kind, field }) => format!("; set {field} on the {kind}"),
        Some(Meant::Words(words)) => format!("; {words}"),
        None => match nearest(&name, known()) {
            Some(meant) => did_you_mean(meant),
            None => few(known()),
        },
    };
    let message = unknown_field_message(shown.trim_matches('"'), &ending);
    let help = format!(
        "not in {source}; \"kubectl apply\" refuses it (strict field validation), GitOps drops it silently"
    );
    let fix = only_nearest(&name, known()).map(|meant| Fix::Rename(meant.to_owned()));
    let code = family.definitions.stand_in.unknown_field;
    Finding::warn(code, field.pointer.clone(), message).at_key().help(help).fix(fix)
}

fn did_you_mean(field: &str) -> String {
    format!("; did you mean \"{field}\"?")
}

/// The fields of an object that has few.
fn few<'f>(fields: impl Iterator<Item = &'f str>) -> String {
    let fields: Vec<String> = fields.take(FEW_FIELDS + 1).map(quoted).collect();
    if fields.is_empty() || fields.len() > FEW_FIELDS {
        return String::new();
    }
    format!("; fields here: {}", fields.join(", "))
}

/// The path of a field with `[]` for each list element, as tables of fields write it: `spec.headers[].value`.
fn path(pointer: &Pointer) -> String {
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

//! `labels`: which labels objects must have, and with which values.

use memgate_model::finding::Cause;
use memgate_model::typed_rule::TypedRule;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::glob::Glob;

use super::check::{AnyGlob, Check, Condition, Shows};
use super::checks::Checks;
use super::words::{MAX_ENTRIES, fields};
use crate::names::{MAX_KEY_CHARS, label_key, wrong_label_key};
use crate::reader::Reader;
use crate::text::patterns;

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["required", "values"])?;
    let required = fields.texts("required", MAX_ENTRIES, MAX_KEY_CHARS).unwrap_or_default();
    let required = required.iter().filter_map(|(_, key)| label_key(key)).map(|key| {
        let says = ("", Shows::Nothing, format!("label \"{key}\" is required"));
        check(key, "required", Condition::Exists(true), says)
    });
    let values = fields.get("values").map(|it| values(&it)).unwrap_or_default();
    Some(Box::new(Checks::of_type(required.chain(values))))
}

fn values(reader: &Reader<'_>) -> Vec<Check> {
    let Some(fields) = reader.any_fields() else { return Vec::new() };
    if fields.names().next().is_none() || fields.names().nth(MAX_ENTRIES).is_some() {
        fields.fault_here(Cause::Invalid, &format!("must have 1 to {MAX_ENTRIES} entries"));
    }
    let mut keys: Vec<&str> = fields.names().take(MAX_ENTRIES).collect();
    keys.sort_unstable();
    let of_key = |key: &str| {
        if let Some(wrong) = wrong_label_key(key) {
            fields.fault_at_key(key, &wrong);
        }
        let globs = fields.texts(key, MAX_ENTRIES, 63).unwrap_or_default();
        let globs: Vec<Glob> = globs.into_iter().map(|(text, _)| Glob::new(text)).collect();
        let behind = format!("; allowed are {}", patterns(&globs));
        let globs = globs.into_iter().map(AnyGlob::Text).collect();
        let condition = Condition::Fits { globs, written: Vec::new(), wanted: true };
        let shows = if is_credential_name(key) { Shows::Hidden } else { Shows::Value };
        check(key, "values", condition, (&*format!("label \"{key}\" has value "), shows, behind))
    };
    keys.into_iter().map(of_key).collect()
}

fn check(key: &str, field: &'static str, condition: Condition, says: (&str, Shows, String)) -> Check {
    let check = Check::new("labels", &format!("labels.{field}.{key}"), field, condition, says);
    Check { key: Some(key.to_owned()), ..check }
}

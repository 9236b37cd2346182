//! `labels`: which labels objects must have, and with which values.

use std::collections::BTreeMap;

use memgate_model::finding::Cause;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, TypedRule};
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::glob::Glob;
use memgate_primitives::pointer::Pointer;

use super::words::{MAX_ENTRIES, fields};
use crate::names::{MAX_KEY_CHARS, label_key, wrong_label_key};
use crate::reader::Reader;
use crate::text::{HIDDEN, patterns, value};

#[derive(Debug)]
struct Labels {
    required: Vec<String>,
    values: BTreeMap<String, Vec<Glob>>,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["required", "values"])?;
    let required = fields.texts("required", MAX_ENTRIES, MAX_KEY_CHARS).unwrap_or_default();
    let required = required.iter().filter_map(|(_, key)| label_key(key)).map(str::to_owned).collect();
    let values = fields.get("values").map(|it| values(&it)).unwrap_or_default();
    Some(Box::new(Labels { required, values }))
}

fn values(reader: &Reader<'_>) -> BTreeMap<String, Vec<Glob>> {
    let mut values = BTreeMap::new();
    let Some(fields) = reader.any_fields() else { return values };
    if fields.names().next().is_none() || fields.names().nth(MAX_ENTRIES).is_some() {
        fields.fault_here(Cause::Invalid, &format!("must have 1 to {MAX_ENTRIES} entries"));
    }
    for key in fields.names().take(MAX_ENTRIES) {
        if let Some(wrong) = wrong_label_key(key) {
            fields.fault_at_key(key, &wrong);
        }
        let globs = fields.texts(key, MAX_ENTRIES, 63).unwrap_or_default();
        values.insert(key.to_owned(), globs.into_iter().map(|(text, _)| Glob::new(text)).collect());
    }
    values
}

impl TypedRule for Labels {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let labels = &judged.view.labels;
        let place = Pointer::new("/metadata/labels");
        for key in self.required.iter().filter(|key| !labels.contains_key(*key)) {
            outcome.add(place.key(key), format!("label \"{key}\" is required"), key);
        }
        for (key, globs) in &self.values {
            let Some(found) =
                labels.get(key).filter(|found| !globs.iter().any(|glob| glob.matches(found, judged.budget)))
            else {
                continue;
            };
            let allowed = patterns(globs);
            let shown = if is_credential_name(key) { HIDDEN.to_owned() } else { value(judged, found) };
            let message = format!("label \"{key}\" has value {shown}; allowed are {allowed}");
            outcome.add(place.key(key), message, format!("{key} {found}"));
        }
    }

    fn paths(&self) -> Vec<&str> {
        vec!["labels"]
    }
}

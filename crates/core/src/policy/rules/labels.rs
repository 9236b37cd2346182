//! `labels`: which labels objects must have, and with which values.

use std::collections::BTreeMap;

use crate::model::finding::Cause;
use crate::model::glob::Glob;
use crate::model::pointer::Pointer;
use crate::model::typed_rule::{Judged, Outcome, TypedRule};

use super::super::names::{MAX_KEY_CHARS, label_key, wrong_label_key};
use super::super::reader::Reader;
use super::super::text::{patterns, value};
use super::words::{MAX_ENTRIES, fields};

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
    fn judge(&self, judged: &Judged<'_>) -> Outcome {
        let (mut outcome, labels) = (Outcome::default(), &judged.view.labels);
        let place = Pointer::new("/metadata/labels");
        for key in self.required.iter().filter(|key| !labels.contains_key(*key)) {
            outcome.add(place.key(key), format!("label \"{key}\" is required"), "");
        }
        for (key, globs) in &self.values {
            let Some(found) = labels.get(key).filter(|found| !globs.iter().any(|glob| glob.matches(found)))
            else {
                continue;
            };
            let allowed = patterns(globs);
            let shown = value(judged, found);
            let message = format!("label \"{key}\" has value {shown}; allowed are {allowed}");
            outcome.add(place.key(key), message, found);
        }
        outcome
    }
}

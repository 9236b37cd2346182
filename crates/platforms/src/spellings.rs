//! What users write for a field that a kind does not have, from the platform's `spellings.yaml`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use serde_json::{Map, Value};

/// What is meant by a field that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    /// A field of the same kind, by its path from the root.
    Field(&'static str),
    /// A field of another kind.
    FieldOf {
        /// The kind.
        kind: &'static str,
        /// The field, by its path from the root.
        field: &'static str,
    },
    /// No field; a few words say what there is.
    Words(&'static str),
}

/// The tables of all platforms, by name.
static TABLES: LazyLock<BTreeMap<&str, Map<String, Value>>> = LazyLock::new(|| {
    let read = |family: &'static Family| {
        let documents =
            values(&Arc::new(Source::new("spellings.yaml", family.definitions.spellings)), &mut Vec::new());
        let root = documents.first().and_then(|document| document.value().as_object().cloned());
        (family.name, root.unwrap_or_default())
    };
    crate::ALL.into_iter().map(read).collect()
});

/// What is meant by a field of a kind; list elements of its path are `[]`.
pub fn meant(family: &Family, kind: &Kind, field: &str) -> Option<Meant> {
    let table = TABLES.get(family.name)?;
    let with_group = format!("{}.{}", kind.kind, kind.group);
    let mut rows = table.get(&with_group).or_else(|| table.get(kind.kind));
    while let Some(of_kind) = rows {
        if let Some(meant) = of_kind.get(field).and_then(Value::as_str) {
            return Some(read(meant));
        }
        rows = of_kind.get("like").and_then(Value::as_str).and_then(|twin| table.get(twin));
    }
    None
}

fn read(meant: &'static str) -> Meant {
    match meant.split_once(' ') {
        None => Meant::Field(meant),
        Some((kind, field)) if !field.contains(' ') => Meant::FieldOf { kind, field },
        Some(_) => Meant::Words(meant),
    }
}

//! What users write for a field that a kind does not have, from the platform's `spellings.yaml`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_schema::crd::SchemaNode;
use serde_json::{Map, Value};

/// What is meant by a field that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// What the user meant.
    pub meant: Meant,
    /// More about it.
    pub help: Option<&'static str>,
}

/// What the user meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// A field of the same kind, by its path from the root.
    Field(String),
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

type Table = Map<String, Value>;

/// The tables of all platforms, by name.
static TABLES: LazyLock<BTreeMap<&str, Table>> = LazyLock::new(|| {
    let read = |family: &'static Family| (family.name, table(family.definitions.spellings));
    crate::ALL.into_iter().map(read).collect()
});

fn table(text: &'static str) -> Table {
    let documents = values(&Arc::new(Source::new("spellings.yaml", text)), &mut Vec::new());
    documents.first().and_then(|document| document.value().as_object().cloned()).unwrap_or_default()
}

/// What is meant by a field of a kind; list elements of its path are `[]`.
pub fn spelling(family: &Family, kind: &Kind, field: &str) -> Option<Spelling> {
    let table = TABLES.get(family.name)?;
    let with_group = format!("{}.{}", kind.kind, kind.group);
    let mut rows = table.get(&with_group).or_else(|| table.get(kind.kind));
    while let Some(of_kind) = rows {
        let row = of_kind.get(field).and_then(|row| read(row, ""));
        if let Some(found) = row.or_else(|| below(table, of_kind, field)) {
            return Some(found);
        }
        rows = like(table, of_kind);
    }
    None
}

/// The rows that another entry of the table takes over.
fn like<'t>(table: &'t Table, entry: &Value) -> Option<&'t Value> {
    entry.get("like").and_then(Value::as_str).and_then(|twin| table.get(twin))
}

/// The row for the field at a place.
fn below(table: &'static Table, of_kind: &Value, field: &str) -> Option<Spelling> {
    let (holder, name) = field.rsplit_once('.')?;
    read(like(table, of_kind.get(holder)?)?.get(name)?, holder)
}

/// A row, of which paths begin at `holder`.
fn read(row: &'static Value, holder: &str) -> Option<Spelling> {
    let help = row.get("help").and_then(Value::as_str);
    let text = row.as_str().or_else(|| row.get("say").and_then(Value::as_str))?;
    let meant = match text.split_once(' ') {
        None if holder.is_empty() => Meant::Field(text.to_owned()),
        None => Meant::Field(format!("{holder}.{text}")),
        Some((kind, field)) if !field.contains(' ') && field.contains('.') => Meant::FieldOf { kind, field },
        Some(_) => Meant::Words(text),
    };
    Some(Spelling { meant, help })
}

/// The part of a definition at a path, if it has one; list elements are `[]`.
pub fn declared<'s>(schema: &'s SchemaNode, path: &str) -> Option<&'s SchemaNode> {
    path.split('.').try_fold(schema, |here, segment| {
        let below = here.object.field(segment.trim_end_matches("[]"))?;
        if segment.ends_with("[]") { below.list.items.as_deref() } else { Some(below) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_primitives::suggest::nearest;
    use memgate_schema::crd::Crd;

    fn definitions(family: &Family) -> Vec<Crd> {
        let source = |file: &fn() -> std::borrow::Cow<'static, str>| Arc::new(Source::new("crds", file()));
        let documents =
            family.definitions.crds.iter().flat_map(|file| values(&source(file), &mut Vec::new()));
        documents.map(|document| memgate_schema::read(document.value()).expect("a definition")).collect()
    }

    /// The definitions of the kind of an entry.
    fn of<'c>(crds: &'c [Crd], entry: &str) -> Vec<&'c Crd> {
        let (kind, group) = entry.split_once('.').unwrap_or((entry, ""));
        crds.iter().filter(|crd| crd.kind == kind && (group.is_empty() || crd.group == group)).collect()
    }

    fn root(crd: &Crd) -> &SchemaNode {
        &crd.newest().expect("a version").schema
    }

    /// Whether a definition has what is meant.
    fn has(crds: &[Crd], own: &SchemaNode, meant: &Meant) -> bool {
        match meant {
            Meant::Field(field) => declared(own, field).is_some(),
            Meant::FieldOf { kind, field } => {
                let kinds = of(crds, kind);
                !kinds.is_empty() && kinds.iter().all(|crd| declared(root(crd), field).is_some())
            }
            Meant::Words(_) => true,
        }
    }

    /// What is wrong with a row for a field at `path`, whose paths begin at `holder`.
    fn fault(
        crds: &[Crd],
        own: &SchemaNode,
        (path, holder): (&str, &str),
        row: &'static Value,
    ) -> Option<String> {
        let spelling = read(row, holder).expect("a row");
        if declared(own, path).is_some() {
            return Some(format!("{path} exists"));
        }
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        if declared(own, section).is_none_or(|holder| holder.object.preserves_unknown) {
            return Some(format!("nothing is said of {path}"));
        }
        let near = declared(own, section)
            .and_then(|holder| nearest(name, holder.object.properties.keys().map(String::as_str)))
            .map(|near| Meant::Field(format!("{section}.{near}")));
        if spelling.help.is_none() && near.is_some_and(|near| spelling.meant == near) {
            return Some(format!("{path} does not need a row: it is near in spelling"));
        }
        (!has(crds, own, &spelling.meant)).then(|| format!("{path}: no {:?}", spelling.meant))
    }

    #[test]
    fn each_right_path_exists_and_no_wrong_one_does() {
        let mut faults = Vec::new();
        let mut rows = 0;
        for family in crate::ALL {
            let (crds, table) = (definitions(family), &TABLES[family.name]);
            for (kind, entry) in table {
                for own in of(&crds, kind).into_iter().map(root) {
                    for (path, row) in
                        entry.as_object().expect("rows").iter().filter(|(key, _)| *key != "like")
                    {
                        let listed = like(table, row).and_then(Value::as_object);
                        let below = listed.into_iter().flatten();
                        let below = below.filter_map(|(name, row)| {
                            fault(&crds, own, (&format!("{path}.{name}"), path), row)
                        });
                        let here = listed.is_none().then(|| fault(&crds, own, (path, ""), row)).flatten();
                        faults
                            .extend(below.chain(here).map(|fault| format!("{} {kind} {fault}", family.name)));
                        rows += listed.map_or(1, Map::len);
                    }
                }
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
        assert!(rows > 350, "{rows} rows");
    }

    /// A misspelt kind, or one that is named nowhere, would leave its rows without effect.
    #[test]
    fn each_entry_is_a_kind_or_stands_for_others() {
        for family in crate::ALL {
            let (crds, table) = (definitions(family), &TABLES[family.name]);
            let entries = || table.values().filter_map(Value::as_object);
            let named = entries().flat_map(|rows| {
                rows.iter().filter_map(|(key, row)| match key.as_str() {
                    "like" => row.as_str(),
                    _ => row.get("like").and_then(Value::as_str),
                })
            });
            let named: Vec<&str> = named.collect();
            for entry in table.keys() {
                assert!(!of(&crds, entry).is_empty() || named.contains(&entry.as_str()), "{entry}");
            }
            assert!(named.iter().all(|name| table.contains_key(*name)), "{named:?}");
        }
    }
}

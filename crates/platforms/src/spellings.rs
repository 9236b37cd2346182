//! What users write for a field that a kind does not have: from the platform's `spellings.yaml`, and from the definition
//! itself, where the name is that of a field one or two levels higher or lower.

use crate::prelude::*;
use std::sync::LazyLock;

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_schema::crd::SchemaNode;
use serde_json::{Map, Value};

/// What is meant by a field that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// A field of the same kind, by its path from the root; else a few words that say what there is.
    pub meant: String,
    /// Whether it is a field.
    pub is_field: bool,
    /// More about it.
    pub help: Option<&'static str>,
    /// Whether another release has the field: nothing is wrong with it.
    pub is_of_other_release: bool,
    /// The field beside it that such a release does not ask for where this one is.
    pub instead_of: Option<&'static str>,
}

type Table = Map<String, Value>;

/// The tables of all platforms, by name.
static TABLES: LazyLock<BTreeMap<&str, Table>> = LazyLock::new(|| {
    let read = |family: &'static Family| {
        let source = Arc::new(Source::new("spellings.yaml", family.definitions.spellings));
        let table = values(&source, &mut Vec::new()).first().and_then(|it| it.value().as_object().cloned());
        (family.name, table.unwrap_or_default())
    };
    crate::ALL.into_iter().map(read).collect()
});

/// What is meant by a field of a kind; list elements of its path are `[]`.
pub fn spelling(family: &Family, kind: &Kind, field: &str) -> Option<Spelling> {
    let table = TABLES.get(family.name)?;
    let with_group = format!("{}.{}", kind.kind, kind.group);
    let own = table.get(&with_group).or_else(|| table.get(kind.kind));
    let mut twins = std::iter::successors(own, |rows| like(table, rows)).enumerate();
    twins.find_map(|(twin, rows)| {
        let row = rows.get(field).and_then(|row| read(row, ""));
        // The releases of a twin are others.
        row.or_else(|| below(table, rows, field)).filter(|row| twin == 0 || !row.is_of_other_release)
    })
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
    let part = |key| row.get(key).and_then(Value::as_str);
    let [note, help, instead_of] = ["note", "help", "instead_of"].map(part);
    let text = row.as_str().or(note).or_else(|| part("say"))?;
    let is_field = !text.contains(' ');
    let meant = if is_field && !holder.is_empty() { format!("{holder}.{text}") } else { text.to_owned() };
    Some(Spelling { meant, is_field, help, is_of_other_release: note.is_some(), instead_of })
}

/// The part of a definition at a path, if it has one; list elements are `[]`.
pub fn declared<'s>(schema: &'s SchemaNode, path: &str) -> Option<&'s SchemaNode> {
    path.split('.').filter(|segment| !segment.is_empty()).try_fold(schema, |here, segment| {
        let below = here.object.field(segment.trim_end_matches("[]"))?;
        if segment.ends_with("[]") { below.list.items.as_deref() } else { Some(below) }
    })
}

/// The most sections of a definition in which a name is looked for.
const MAX_SEARCHED: usize = 2000;

/// The fields of a definition with the name of one at `path` that it does not have: those one level higher or lower, else
/// those two levels away. Nothing if more than two are as near: then the name says little.
pub fn at_other_levels(schema: &SchemaNode, path: &str) -> Vec<String> {
    let (mut here, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut lower =
        declared(schema, here).map(|section| (here.to_owned(), section)).into_iter().collect::<Vec<_>>();
    for _ in 0..2 {
        lower = lower.iter().flat_map(sections_below).take(MAX_SEARCHED).collect();
        here = here.rsplit_once('.').map_or("", |(above, _)| above);
        let above = declared(schema, here).map(|section| (here.to_owned(), section));
        let having = above.iter().chain(&lower).filter(|(_, it)| it.object.properties.contains_key(name));
        let fields = having.map(|(section, _)| format!("{section}.{name}"));
        // What every object has, and the section in which the field is, cannot be meant.
        let fields = fields.filter(|it| !it.starts_with('.') && !path.starts_with(&format!("{it}.")));
        let fields: Vec<String> = fields.take(3).collect();
        if !fields.is_empty() {
            return if fields.len() > 2 { Vec::new() } else { fields };
        }
    }
    Vec::new()
}

/// The sections one level lower, each with its path.
fn sections_below<'s>(
    (path, section): &(String, &'s SchemaNode),
) -> impl Iterator<Item = (String, &'s SchemaNode)> {
    let is_own = |name: &str| !path.is_empty() || !["metadata", "status"].contains(&name);
    let fields = section.object.properties.iter().filter(move |(name, _)| is_own(name));
    fields.map(move |(name, field)| {
        let below = format!("{path}.{name}").trim_start_matches('.').to_owned();
        match &field.list.items {
            Some(items) => (below + "[]", items.as_ref()),
            None => (below, field.as_ref()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_primitives::suggest::nearest;
    use memgate_schema::crd::Crd;
    use serde_json::json;

    fn definitions(family: &Family) -> Vec<Crd> {
        let source = |file: &fn() -> Cow<'static, str>| Arc::new(Source::new("crds", file()));
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

    /// What is wrong with a row for a field at `path`, whose paths begin at `holder`.
    fn fault(own: &SchemaNode, (path, holder): (&str, &str), row: &'static Value) -> Option<String> {
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
            .map(|near| format!("{section}.{near}"));
        if spelling.help.is_none() && near.is_some_and(|near| spelling.meant == near) {
            return Some(format!("{path} does not need a row: it is near in spelling"));
        }
        if spelling.help.is_none() && at_other_levels(own, path) == [spelling.meant.as_str()] {
            return Some(format!("{path} does not need a row: the definition has its name at another level"));
        }
        let has = !spelling.is_field || declared(own, &spelling.meant).is_some();
        (!has).then(|| format!("{path}: no {}", spelling.meant))
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
                        let below = below
                            .filter_map(|(name, row)| fault(own, (&format!("{path}.{name}"), path), row));
                        let here = listed.is_none().then(|| fault(own, (path, ""), row)).flatten();
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

    fn schema(node: &Value) -> SchemaNode {
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": node}});
        let spec = json!({"group": "x.dev", "names": {"kind": "Thing"}, "versions": [version]});
        let mut crd =
            memgate_schema::read(&json!({"metadata": {"name": "a"}, "spec": spec})).expect("a definition");
        crd.versions.remove(0).schema
    }

    fn with_fields(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
        let fields: Map<String, Value> = fields.into_iter().collect();
        json!({"type": "object", "properties": fields})
    }

    #[test]
    fn finds_names_at_other_levels() {
        let of = |names: &[&str], node: &Value| {
            with_fields(names.iter().map(|it| ((*it).to_owned(), node.clone())))
        };
        let text = json!({"type": "string"});
        let deep = of(&["deep"], &of(&["deeper"], &of(&["deepest"], &text)));
        let list = json!({"type": "array", "items": of(&["port", "own"], &text)});
        let map = json!({"type": "object", "additionalProperties": of(&["x"], &text)});
        let parts = [
            ("a", of(&["same", "one"], &text)),
            ("b", of(&["same", "both"], &text)),
            ("c", of(&["both"], &text)),
            ("d", of(&["both"], &text)),
            ("list", list),
            ("map", map),
            ("deep", deep),
            ("top", text),
        ];
        let spec = with_fields(parts.map(|(name, node)| (name.to_owned(), node)));
        let root = schema(&with_fields([
            ("spec".to_owned(), spec),
            ("status".to_owned(), of(&["phase"], &json!({"type": "string"}))),
        ]));
        for (place, expected) in [
            ("spec.one", vec!["spec.a.one"]),
            ("spec.a.top", vec!["spec.top"]),
            ("spec.same", vec!["spec.a.same", "spec.b.same"]),
            ("spec.both", vec![]),
            ("spec.port", vec!["spec.list[].port"]),
            ("spec.list[].top", vec!["spec.top"]),
            ("spec.map.key.top", vec!["spec.top"]),
            ("one", vec!["spec.a.one"]),
            ("phase", vec![]),
            // Three levels away.
            ("spec.deepest", vec![]),
            ("spec.deeper", vec!["spec.deep.deep.deeper"]),
            // It is in them.
            ("spec.a.a", vec![]),
            ("spec.kind", vec![]),
            ("spec.a.kind", vec![]),
        ] {
            assert_eq!(at_other_levels(&root, place), expected, "{place}");
        }
    }

    #[test]
    fn looks_at_a_part_of_a_very_large_definition() {
        let text = json!({"type": "string"});
        let many = with_fields((0..300).map(|number| (format!("f{number}"), text.clone())));
        let all = with_fields((0..300).map(|number| (format!("f{number}"), many.clone())));
        let root = schema(&with_fields([("spec".to_owned(), all)]));
        assert_eq!(at_other_levels(&root, "spec.none"), Vec::<String>::new());
        assert_eq!(at_other_levels(&root, "spec.f7.f8"), ["spec.f8"]);
    }

    /// A misspelt code would leave a row without effect.
    #[test]
    fn each_row_about_other_fields_is_of_a_code() {
        for family in crate::ALL {
            let rows = family.validation.reads.lines();
            for (name, fields) in rows.map(|row| row.split_once(": ").expect("a row")) {
                let code = family.codes.iter().find(|code| code.name == name).expect(name);
                assert!(
                    fields.split(' ').eq(family.read_besides(code).expect(name)),
                    "{name} is there twice"
                );
            }
        }
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

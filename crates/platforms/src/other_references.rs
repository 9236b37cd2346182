//! The references of a platform's objects that no finding is about, from its `references.yaml`. Those with a finding are
//! [edges](memgate_model::edge::Edge).

use crate::prelude::*;
use std::sync::LazyLock;

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::edge::{Edge, Home};
use serde_json::{Map, Value};

/// A field that names another object by the whole value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherReference {
    /// The kind that has the field.
    pub from: GroupKind,
    /// The field, as a JSON pointer with `*` for the elements of a list.
    pub path: String,
    /// The field with the namespace of the named object, in the same form, if there may be one.
    pub namespace: Option<String>,
    /// The kind of the named object.
    pub to: GroupKind,
    /// Both kinds, if memgate reads them.
    known: Option<[[&'static Kind; 1]; 2]>,
}

impl OtherReference {
    /// The same as an edge.
    fn edge(&'static self) -> Option<Edge> {
        let [from, to] = self.known.as_ref()?;
        let edge = Edge::new(from, &self.path, to);
        Some(if self.namespace.is_some() { edge.in_home(Home::Beside("namespace")) } else { edge })
    }
}

/// A kind that memgate may not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKind {
    /// The kind.
    pub kind: String,
    /// Its group; empty for the core group.
    pub group: String,
}

/// The rows of all platforms, by name.
static TABLES: LazyLock<BTreeMap<&str, Vec<OtherReference>>> = LazyLock::new(|| {
    let read = |family: &'static Family| (family.name, read(family.definitions.references));
    crate::ALL.into_iter().map(read).collect()
});

/// The rows of a platform.
pub fn other_references(family: &Family) -> &'static [OtherReference] {
    TABLES.get(family.name).map(Vec::as_slice).unwrap_or_default()
}

/// Those of them whose kinds memgate reads.
pub fn other_edges(family: &Family) -> &'static [Edge] {
    static EDGES: LazyLock<BTreeMap<&str, Vec<Edge>>> = LazyLock::new(|| {
        let edges = |rows: &'static Vec<OtherReference>| rows.iter().filter_map(OtherReference::edge);
        TABLES.iter().map(|(family, rows)| (*family, edges(rows).collect())).collect()
    });
    EDGES.get(family.name).map(Vec::as_slice).unwrap_or_default()
}

fn read(text: &'static str) -> Vec<OtherReference> {
    let documents = values(&Arc::new(Source::new("references.yaml", text)), &mut Vec::new());
    let mut found = Vec::new();
    for (group, kinds) in documents.first().and_then(|it| it.value().as_object()).into_iter().flatten() {
        for (kinds, fields) in kinds.as_object().into_iter().flatten() {
            for kind in kinds.split(", ") {
                let from = GroupKind { kind: kind.to_owned(), group: group.clone() };
                fields.as_object().into_iter().for_each(|fields| collect(&from, "", fields, &mut found));
            }
        }
    }
    found
}

/// Adds the rows of the fields below `holder`.
fn collect(from: &GroupKind, holder: &str, fields: &Map<String, Value>, found: &mut Vec<OtherReference>) {
    for (field, target) in fields {
        let pointer = |field: &str| format!("{holder}/{}", field.replace("[]", "/*").replace('.', "/"));
        let (path, namespace) = match field.strip_suffix("{name, namespace}") {
            Some(parent) => (pointer(parent) + "name", Some(pointer(parent) + "namespace")),
            None => (pointer(field), None),
        };
        let row = |to: &Value| {
            let to = kind(to.as_str()?, &from.group);
            let known = |kind: &GroupKind| crate::state_kind(&crate::ALL, &kind.group, &kind.kind);
            let known = known(from).zip(known(&to)).map(|(from, to)| [[from], [to]]);
            Some(OtherReference {
                from: from.clone(),
                path: path.clone(),
                namespace: namespace.clone(),
                to,
                known,
            })
        };
        match target {
            Value::Object(below) => collect(from, &path, below, found),
            Value::Array(several) => found.extend(several.iter().filter_map(row)),
            one => found.extend(row(one)),
        }
    }
}

/// The kind that a text of the file means.
fn kind(text: &str, own_group: &str) -> GroupKind {
    let (kind, group) = match text.strip_prefix("v1/") {
        Some(of_core) => (of_core, ""),
        None => text.split_once('.').unwrap_or((text, own_group)),
    };
    GroupKind { kind: kind.to_owned(), group: group.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_schema::crd::{Crd, SchemaNode};

    /// Kinds of Kubernetes itself that fields name.
    const BUILT_IN: [(&str, &str); 6] = [
        ("", "ConfigMap"),
        ("", "PersistentVolumeClaim"),
        ("", "Secret"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("storage.k8s.io", "StorageClass"),
    ];

    fn definitions(family: &Family) -> Vec<Crd> {
        let files = family.definitions.crds.iter();
        let documents =
            files.flat_map(|file| values(&Arc::new(Source::new("crds", file())), &mut Vec::new()));
        documents.map(|document| memgate_schema::read(document.value()).expect("a definition")).collect()
    }

    /// The part of a definition at a path.
    fn at<'s>(schema: &'s SchemaNode, path: &str) -> Option<&'s SchemaNode> {
        path.split('/').skip(1).try_fold(schema, |here, token| match token {
            "*" => here.list.items.as_deref(),
            name => here.object.properties.get(name).map(AsRef::as_ref),
        })
    }

    fn has(crds: &[Crd], from: &GroupKind, path: &str) -> bool {
        let of_kind = crds.iter().filter(|crd| crd.kind == from.kind && crd.group == from.group);
        let mut versions = of_kind.flat_map(|crd| &crd.versions);
        versions.any(|version| at(&version.schema, path).is_some())
    }

    fn is_kind(family: &Family, crds: &[Crd], kind: &GroupKind) -> bool {
        BUILT_IN.contains(&(&*kind.group, &*kind.kind))
            || crds.iter().any(|crd| crd.kind == kind.kind && crd.group == kind.group)
            || family.other_kinds().any(|other| other == (&*kind.group, &*kind.kind))
    }

    #[test]
    fn each_row_is_a_field_and_a_kind() {
        let (mut faults, mut rows) = (Vec::new(), 0);
        for family in crate::ALL {
            let crds = definitions(family);
            for row in other_references(family) {
                let beside = row.path.strip_suffix("/name").map(|parent| format!("{parent}/namespace"));
                let beside = beside.filter(|path| has(&crds, &row.from, path));
                if !has(&crds, &row.from, &row.path) || beside != row.namespace {
                    faults.push(format!(
                        "{}: no such field, or another field for the namespace: {row:?}",
                        family.name
                    ));
                }
                if !is_kind(family, &crds, &row.to) {
                    faults.push(format!("{}: an unknown kind: {row:?}", family.name));
                }
                rows += 1;
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
        assert!(rows > 150, "{rows} rows");
    }

    /// One of both would say the same twice, or not the same.
    #[test]
    fn no_row_is_an_edge() {
        for family in crate::ALL {
            for row in other_references(family) {
                let is_edge = family.edges.iter().find(|edge| {
                    let is_from = edge.from.iter().any(|kind| kind.is(&row.from.group, &row.from.kind));
                    is_from && edge.path == row.path && edge.form == memgate_model::edge::Form::Whole
                });
                assert!(is_edge.is_none(), "{row:?}");
            }
        }
    }
}

//! With the file of `memgate schema kustomize`, kustomize keeps every reference right: each of its rows is tried by an object
//! with the field and an object that it names.

#![expect(clippy::indexing_slicing, reason = "a missing key of JSON is null")]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::{Value, json};

use crate::kustomize::run;
use crate::objects::Objects;

/// The file.
const FILE: &str = include_str!("../../docs/schema/kustomize.yaml");

/// A row of a list of the file: a field of a kind.
struct Row {
    kind: String,
    api_version: String,
    steps: Vec<String>,
}

impl Row {
    fn read(row: &Value) -> Self {
        let path = row["path"].as_str().expect("a path").replace("\\/", "\0");
        let steps = path.split('/').map(|step| step.replace('\0', "/")).collect();
        Self { kind: text(&row["kind"]), api_version: api_version(row), steps }
    }

    /// An object of this name with a value in the field; below `spec`, each value of a list is in a list.
    fn object(&self, name: &str, value: &str, has_lists: bool) -> Value {
        let wrap = |value: Value| if has_lists { json!([value]) } else { value };
        let (root, below) = self.steps.split_first().expect("a step");
        let inner = below.iter().rev().fold(json!(value), |inner, step| json!({step: wrap(inner)}));
        let mut object =
            json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}});
        match object.get_mut(root) {
            Some(metadata) => {
                metadata.as_object_mut().expect("a map").extend(inner.as_object().cloned().expect("a map"));
            }
            None => object[root] = inner,
        }
        object
    }

    /// The value in the field of a rendered object of this name.
    fn value<'o>(&self, objects: &'o Objects, name: &str) -> &'o Value {
        let object = objects.values().find(|it| it["kind"] == *self.kind && it["metadata"]["name"] == name);
        let object = object.expect("the object is there");
        let first = |value: &'o Value| value.get(0).unwrap_or(value);
        self.steps.iter().fold(object, |here, step| first(&here[step]))
    }

    /// Whether the object is one of a platform, of which kustomize knows nothing.
    fn is_of_platform(&self) -> bool {
        !["v1", "apps/v1", "batch/v1"].contains(&&*self.api_version) && self.steps[0] == "spec"
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// An `apiVersion` of a kind; which version it is does not matter to kustomize.
fn api_version(row: &Value) -> String {
    row["group"].as_str().map_or_else(|| text(&row["version"]), |group| format!("{group}/v1"))
}

fn read(file: &str) -> Value {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("file", file)), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    documents.first().expect("a document").value().clone()
}

fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// What kustomize makes of some objects with the file.
fn built(file: &str, objects: &[Value], kustomization: &Value) -> Objects {
    let scratch = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).expect("can be written");
    let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
    write("objects.yaml", &objects.join("\n---\n"));
    write("memgate.yaml", file);
    write("kustomization.yaml", &kustomization.to_string());
    run(scratch.path()).expect("it can be built")
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn each_name_follows_the_object() {
    let file = FILE;
    let mut tried = Vec::new();
    let mut objects = Vec::new();
    for target in rows(&read(file)["nameReference"]) {
        for row in rows(&target["fieldSpecs"]).map(Row::read) {
            let shapes = [false, true].into_iter().filter(|has_lists| !has_lists || row.is_of_platform());
            let names = shapes.map(|has_lists| {
                let [from, to] = ["from", "to"].map(|end| format!("{end}-{}", objects.len()));
                let metadata = json!({"name": to});
                let target =
                    json!({"apiVersion": api_version(target), "kind": target["kind"], "metadata": metadata});
                objects.extend([row.object(&from, &to, has_lists), target]);
                [from, to]
            });
            tried.push((names.collect::<Vec<_>>(), row));
        }
    }
    assert!(tried.len() > 300, "{} rows", tried.len());
    let kustomization =
        json!({"resources": ["objects.yaml"], "configurations": ["memgate.yaml"], "namePrefix": "p-"});
    let rendered = built(file, &objects, &kustomization);
    let made: BTreeSet<&str> = rendered.values().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    let mut wrong = Vec::new();
    for (names, row) in &tried {
        for [from, to] in names.iter().map(|names| names.each_ref().map(|name| format!("p-{name}"))) {
            if !made.contains(&*to) || *row.value(&rendered, &from) != *to {
                wrong.push(format!("{} {:?}", row.kind, row.steps));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn a_name_gets_the_hash_of_its_generator() {
    let memory = json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": {"name": "notes"},
        "spec": {"redis": {"secretRef": {"name": "notes-redis"}}}});
    let generator = json!([{"name": "notes-redis", "literals": ["REDIS_URL=redis://redis"]}]);
    let kustomization = json!({"resources": ["objects.yaml"], "configurations": ["memgate.yaml"], "secretGenerator": generator});
    let rendered = built(FILE, &[memory], &kustomization);
    let name = |kind: &str, pointer: &str| {
        let object = rendered.values().find(|it| it["kind"] == kind).expect("an object");
        object.pointer(pointer).and_then(Value::as_str).expect("a name").to_owned()
    };
    let made = name("Secret", "/metadata/name");
    assert!(made.len() > "notes-redis".len(), "{made}");
    assert_eq!(name("ArkMemory", "/spec/redis/secretRef/name"), made);
}

/// The list of these fields is a comment.
#[test]
#[ignore = "needs Go, for kubectl"]
fn each_namespace_can_follow() {
    let file = FILE.replace("\n# namespace:", "\nnamespace:").replace("\n# - {path", "\n- {path");
    let namespaces: Vec<Row> = rows(&read(&file)["namespace"]).map(Row::read).collect();
    assert!(namespaces.len() > 10, "{} rows", namespaces.len());
    let name = |index: usize| format!("from-{index}");
    let object = |(index, row): (usize, &Row)| row.object(&name(index), "before", false);
    let objects: Vec<Value> = namespaces.iter().enumerate().map(object).collect();
    let kustomization =
        json!({"resources": ["objects.yaml"], "configurations": ["memgate.yaml"], "namespace": "after"});
    let rendered = built(&file, &objects, &kustomization);
    for (index, row) in namespaces.iter().enumerate() {
        assert_eq!(row.value(&rendered, &name(index)), "after", "{} {:?}", row.kind, row.steps);
    }
}

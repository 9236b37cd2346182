//! The JSON Schemas of kinds accept the objects in which memgate finds nothing, and describe every field for editors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use memgate_core::decide::codes;
use memgate_model::kind::POLICY_KINDS;
use memgate_model::schema::Schema;
use memgate_workbench::files::kind_schema::{KindDefinition, combined, definitions};
use serde_json::{Value, json};

use crate::schema::{documents, expect_valid, printed, validator};

/// Cases about objects that are right only where they are, with the reason.
const RIGHT_IN_THEIR_PLACE: [(&str, &str); 5] = [
    ("accepts-an-input-that-is-null", "any type of it passes, so memgate leaves it to the apiserver"),
    ("writes-the-embedding-model", "a policy writes what is missing"),
    ("leaves-a-query-with-a-spec-of-the-wrong-type", "it is the apiserver's business in a mutating call"),
    ("accepts-what-only-the-definition-among-the-inputs-allows", "the input brings a definition of its own"),
    ("accepts-a-backend-of-the-definition-among-the-inputs", "the input brings a definition of its own"),
];

/// The validator of each kind, and that of all kinds in one.
struct Schemas {
    definitions: Vec<KindDefinition>,
    of_kinds: BTreeMap<String, Validator>,
    of_all: Validator,
}

impl Schemas {
    fn new() -> Self {
        let definitions = definitions();
        let of_kind = |it: &KindDefinition| (it.full_name(), validator(&it.json_schema()));
        let of_kinds = definitions.iter().map(of_kind).collect();
        let of_all = validator(&combined(&definitions));
        Self { definitions, of_kinds, of_all }
    }

    /// What is wrong with an object of a kind with a definition; `None` for others.
    fn faults(&self, object: &Value) -> Option<String> {
        let definition = of_object(&self.definitions, object)?;
        let object = without_nulls(object.clone());
        let mut faults = BTreeSet::new();
        for schema in [self.of_kinds.get(&definition.full_name()), Some(&self.of_all)] {
            let errors = schema.expect("each definition has a schema").iter_errors(&object);
            // An editor marks fields that an apiserver drops.
            let errors =
                errors.filter(|it| !matches!(it.kind(), ValidationErrorKind::AdditionalProperties { .. }));
            faults.extend(errors.map(|it| format!("{}: {it}", it.instance_path())));
        }
        Some(faults.into_iter().collect::<Vec<_>>().join("; "))
    }
}

/// Expects that all of these are right, and that so many of them are of kinds with a definition.
fn expect_right(objects: impl IntoIterator<Item = (String, Value)>, at_least: usize) {
    let schemas = Schemas::new();
    let (mut judged, mut wrong) = (0, Vec::new());
    for (name, object) in objects {
        let Some(faults) = schemas.faults(&object) else { continue };
        judged += 1;
        if !faults.is_empty() {
            wrong.push(format!("{name}: {faults}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged >= at_least, "{judged} objects");
}

/// To an apiserver a null is as if the field were absent; to an editor it is a line that is not finished.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[test]
fn kinds_are_as_described() {
    // The example of the first is a sketch, that of the second has a value that is filled in later, and those of the others
    // ignore what is wrong.
    let is_other = |name: &str| {
        ["memgate/over-limit", "memgate/value-unknown"].contains(&name) || name.starts_with("memgate/ignore-")
    };
    let codes = codes::all(&memgate_platforms::ALL).filter(|code| !is_other(code.name));
    let objects = codes.flat_map(|code| {
        let section = code.page.text().split_once("## Passing example").map_or("", |(_, section)| section);
        let text = section.split("```yaml\n").nth(1).and_then(|text| text.split("```").next());
        let objects = text.map(documents).unwrap_or_default();
        objects.into_iter().map(|object| (code.name.to_owned(), object))
    });
    expect_right(objects, 50);
}

#[test]
fn examples_are_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let folders = memgate_platforms::ALL
        .map(|family| family.name)
        .into_iter()
        .chain(["policy", "orka/unreleased", "kagent/older"]);
    let files = folders.flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder"));
    let objects = files.flat_map(|file| {
        let file = file.expect("an entry").path();
        let text = fs::read_to_string(&file).unwrap_or_default();
        documents(&text).into_iter().map(move |object| (file.display().to_string(), object))
    });
    expect_right(objects, 30);
}

#[test]
fn what_memgate_admits_without_a_word_is_right() {
    let unreleased: BTreeSet<&str> = memgate_platforms::ALL
        .iter()
        .flat_map(|family| family.definitions.stand_in.unreleased)
        .map(|kind| kind.kind)
        .collect();
    let is_judged = |case: &Value| {
        let (object, expect) = (&case["object"], &case["expect"]);
        let silent =
            expect["codes"].as_array().is_none_or(Vec::is_empty) && expect["warnings_contain"].is_null();
        let silent = silent && !case["name"].as_str().is_some_and(|name| name.starts_with("warns-"));
        // What is stored or on its way out may be left as it is.
        let stored = case["operation"].as_str().is_some_and(|operation| operation != "CREATE");
        let stored = stored || !object["metadata"]["deletionTimestamp"].is_null();
        let released = object["kind"].as_str().is_some_and(|kind| !unreleased.contains(kind));
        let known = RIGHT_IN_THEIR_PLACE.iter().any(|(name, _)| case["name"] == *name);
        expect["allowed"] == true && silent && !stored && case["subresource"].is_null() && released && !known
    };
    let files = crate::cases::documents().expect("case files");
    let cases = files.into_iter().flat_map(|(file, cases)| {
        let cases = cases.as_array().cloned().unwrap_or_default();
        cases.into_iter().map(move |case| (format!("{file}: {}", case["name"]), case))
    });
    let judged = cases.filter(|(_, case)| is_judged(case));
    expect_right(judged.map(|(name, case)| (name, case["object"].clone())), 200);
}

#[test]
fn kinds_have_no_other_fields() {
    let memory = validator(&printed("ArkMemory"));
    let object = |spec: Value| json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": {"name": "a"}, "spec": spec});
    assert!(memory.is_valid(&object(json!({"backend": "in-context"}))));
    for spec in [json!({"backend": "in-context", "ttl": 5}), json!({"backend": 5}), json!({})] {
        assert!(!memory.is_valid(&object(spec.clone())), "{spec}");
    }
}

#[test]
fn distinguishes_all_kinds_and_accepts_others() {
    let all = validator(&printed("all"));
    let object = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec});
    for (right, object) in [
        (true, object("orloj.dev/v1", "Memory", json!({"provider": "in-memory"}))),
        (false, object("orloj.dev/v1", "Memory", json!({"address": {"value": "http://a"}}))),
        (true, object("ark.mckinsey.com/v1alpha1", "Memory", json!({"address": {"value": "http://a"}}))),
        (false, object("ark.mckinsey.com/v1alpha1", "Memory", json!({"provider": "in-memory"}))),
        (true, object("apps/v1", "Deployment", json!({"provider": 1}))),
        (true, object("orloj.dev/v1", "Task", json!({"provider": 1}))),
    ] {
        assert_eq!(all.is_valid(&object), right, "{object}");
    }
    expect_valid(&all, &json!({}), "a file that is only begun");
}

/// Of volumes and of variables Kubernetes itself has the words.
const OF_KUBERNETES: [&str; 2] = ["volumes", "valueFrom"];

/// Of the kinds of platforms, the fields that memgate reads.
#[test]
fn every_field_is_described() {
    let mut silent = Vec::new();
    for definition in definitions() {
        let schema = definition.json_schema();
        assert!(schema["description"].is_string(), "{} says nothing", definition.full_name());
        let mut kinds = memgate_platforms::ALL.iter().flat_map(|family| family.kinds.validated);
        match kinds.find(|kind| kind.group == definition.group && kind.kind == definition.kind) {
            Some(kind) => collect_unread(&kind.schema, &schema, &definition.full_name(), &mut silent),
            None if POLICY_KINDS.iter().any(|kind| kind.kind == definition.kind) => {
                collect_silent(&schema, &definition.full_name(), &mut silent);
            }
            // A kind that is only looked up.
            None => {}
        }
    }
    for name in ["cases", "settings", "project"] {
        let schema = printed(name);
        collect_silent(&schema, name, &mut silent);
        for (definition, schema) in schema["definitions"].as_object().into_iter().flatten() {
            collect_silent(schema, &format!("{name} {definition}"), &mut silent);
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// The fields that memgate reads and a schema does not describe.
fn collect_unread(read: &Schema, schema: &Value, place: &str, silent: &mut Vec<String>) {
    if let Schema::List(element) = read {
        return collect_unread(element, &schema["items"], place, silent);
    }
    for field in read.fields().iter().filter(|field| field.name != "status") {
        let (place, below) = (format!("{place} {}", field.name), &schema["properties"][field.name]);
        // Another version has it.
        if below.is_null() || OF_KUBERNETES.contains(&field.name) {
            continue;
        }
        if below["description"].as_str().is_none_or(str::is_empty) {
            silent.push(place.clone());
        }
        collect_unread(&field.schema, below, &place, silent);
    }
}

fn collect_silent(schema: &Value, place: &str, silent: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place} {name}");
        let is_elsewhere = field["$ref"].is_string();
        if !is_elsewhere && field["description"].as_str().is_none_or(str::is_empty) {
            silent.push(place.clone());
        }
        if !OF_KUBERNETES.contains(&name.as_str()) {
            collect_silent(field, &place, silent);
            collect_silent(&field["items"], &place, silent);
        }
    }
}

fn of_object<'d>(definitions: &'d [KindDefinition], object: &Value) -> Option<&'d KindDefinition> {
    let (group, _) = object["apiVersion"].as_str()?.split_once('/')?;
    definitions.iter().find(|it| it.group == group && object["kind"] == *it.kind)
}

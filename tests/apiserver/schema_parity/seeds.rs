//! The valid objects from which the others are made.

use std::sync::Arc;

use anyhow::{Result, ensure};
use memgate_manifest::document::parse;
use memgate_workbench::build::exclude::Exclude;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::read::collect;
use serde_json::{Value, json};

use crate::{fixture::Fixture, request::create};

use super::{
    definitions::{self, Definition},
    maximal, mutation,
};

/// A valid object.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    pub(super) object: Value,
    /// The schema of its kind.
    pub(super) schema: Arc<Value>,
    /// Whether the apiserver has stored it: what is made from it updates it.
    pub(super) is_stored: bool,
}

/// Those in `examples/` and one with all fields of each kind, in no namespace. Kinds that no CRD defines
/// have no schema, and are left out.
pub(super) fn all() -> Result<Vec<Seed>> {
    let examples = examples()?;
    let mut seeds = Vec::new();
    for definition in definitions::all()? {
        let is_of_kind =
            |it: &&Value| it["apiVersion"] == definition.api_version && it["kind"] == definition.kind;
        let schema = Arc::new(definition.schema.clone());
        let seed = |object| Seed { object, schema: Arc::clone(&schema), is_stored: false };
        seeds.push(seed(maximal::object(&definition)));
        seeds.push(seed(minimal(&definition)));
        seeds.extend(examples.iter().filter(is_of_kind).cloned().map(seed));
    }
    Ok(seeds)
}

/// The same in the apiserver, each with a name of its own; without those that have to have the name of another one.
pub(super) fn stored(fixture: &Fixture) -> Result<Vec<Seed>> {
    let home = fixture.namespace("parity-stored", &[])?;
    let cluster = fixture.cluster()?;
    let mut stored = Vec::new();
    // Other trials would meet an ArkConfig, which is one for the whole cluster, and count the users of a SkillPack, which has
    // them in all namespaces.
    let is_seen_elsewhere = |seed: &Seed| {
        let is_of_sympozium =
            seed.object["apiVersion"].as_str().is_some_and(|it| it.starts_with("sympozium.ai/"));
        let has_skills = seed.object.pointer("/spec/skills").is_some();
        seed.object["kind"] == "ArkConfig" || is_of_sympozium && has_skills
    };
    let seeds = all()?.into_iter().filter(|seed| !is_seen_elsewhere(seed));
    for (number, mut seed) in seeds.enumerate() {
        if seed.object["metadata"]["name"] != "default" {
            seed.object["metadata"]["name"] = json!(format!("stored-{number}"));
        }
        let answer = cluster.block_on(create(&cluster.client(), &home, &seed.object, ""))?;
        if answer.granted() {
            stored.push(Seed { object: answer.body, is_stored: true, ..seed });
        }
    }
    Ok(stored)
}

/// The same with what is required alone.
fn minimal(definition: &Definition) -> Value {
    let full = maximal::object(definition);
    let mut object = full.clone();
    keep_required(&mut object, &definition.schema);
    object["metadata"] = json!({"name": full["metadata"]["name"]});
    for (_, pointer) in NEEDED.iter().filter(|(kind, _)| *kind == definition.kind) {
        if let Some(value) = full.pointer(pointer) {
            mutation::set(&mut object, pointer, value);
        }
    }
    object
}

/// What is needed besides what schemas require: by their rules, or by memgate's.
const NEEDED: [(&str, &str); 14] = [
    ("ArkAgent", "/spec/systemPrompt"),
    ("ArkonisDeployment", "/spec/systemPrompt"),
    ("AgentDeployment", "/spec/systemPrompt"),
    ("SwarmMemory", "/spec/vectorStore"),
    ("SwarmAgent", "/spec/prompt/inline"),
    ("Memory", "/spec/address"),
    ("ModelEndpoint", "/spec/default_model"),
    ("SwarmMemory", "/spec/embedding"),
    // Of kagent.
    ("Agent", "/spec/template"),
    ("Agent", "/spec/harnessRef"),
    ("Harness", "/spec/kagent"),
    ("Harness", "/spec/substrate/workerPoolRef/name"),
    ("Agent", "/spec/declarative"),
    ("SandboxAgent", "/spec/declarative"),
];

fn keep_required(value: &mut Value, schema: &Value) {
    if let Some(items) = value.as_array_mut() {
        for item in items {
            keep_required(item, &schema["items"]);
        }
        return;
    }
    let Some(fields) = value.as_object_mut() else { return };
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    if let Some(properties) = schema["properties"].as_object() {
        fields.retain(|name, _| {
            required(name) || ["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str())
        });
        for (name, value) in fields.iter_mut().filter(|(name, _)| *name != "metadata") {
            keep_required(value, &properties.get(name).cloned().unwrap_or_default());
        }
    }
}

/// The objects in `examples/`, in no namespace, but for those that are wrong on purpose.
fn examples() -> Result<Vec<Value>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples").to_owned();
    let mut exclude = Exclude::default();
    exclude.add("wrong", None)?;
    let plan = Plan { exclude: Arc::new(exclude), ..Plan::default() };
    let collected = collect(&[folder], &plan, &mut std::io::empty());
    ensure!(collected.errors.is_empty(), "{:?}", collected.errors);
    let documents = collected.sources.into_iter().flat_map(|source| parse(&source).documents);
    let mut objects: Vec<Value> = documents.map(|document| document.value().clone()).collect();
    for object in &mut objects {
        mutation::remove(object, "/metadata/namespace");
    }
    Ok(objects)
}

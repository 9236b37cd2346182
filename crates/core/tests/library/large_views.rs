//! Views of objects with ten thousand of everything, and of objects about whose surroundings nothing is known.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]
use memgate_core::state;
use memgate_model::memory_view::MemoryView;
use memgate_model::object::Reference;
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::views::view;

const MANY: usize = 10_000;

fn many(element: impl Fn(usize) -> Value) -> Value {
    (0..MANY).map(element).collect()
}

fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "big", "namespace": "team"}, "spec": spec})
}

fn view_of(family: &str, object: &Value, snapshot: &Snapshot) -> (MemoryView, Vec<String>) {
    let family = memgate_platforms::find(family).expect("a family");
    let (view, unknown) = view(family, object, "team", snapshot);
    let name = |it: &Reference| format!("{} {}/{}", it.kind.kind, it.namespace, it.name);
    (view.expect("a view"), unknown.iter().map(name).collect())
}

#[test]
fn finds_the_skill_behind_ten_thousand() {
    let mut skills = many(|index| json!({"skillPackRef": format!("s{index}")}));
    skills.as_array_mut().expect("a list").push(json!({"skillPackRef": "memory"}));
    let agent = object("sympozium.ai/v1alpha1", "Agent", &json!({"skills": skills}));
    let (view, _) = view_of("sympozium", &agent, &state::empty(memgate_platforms::default_settings()));
    assert_eq!(view.text("backend"), Some("sqlite"));
    assert_eq!(view.pointer("backend").as_str(), "/spec/skills/10000/skillPackRef");
}

#[test]
fn shares_with_ten_thousand_configs() {
    let name = |index| format!("c{index}");
    let ensemble = json!({
        "agentConfigs": many(|index| json!({"name": name(index)})),
        "excludePersonas": many(|index| json!(name(index + 1))),
        "relationships": many(|index| json!({"source": name(index), "target": "c0", "type": "delegation"})),
        "sharedMemory": {
            "enabled": true,
            "accessRules": many(|index| json!({"agentConfig": name(MANY - index), "access": "read-only"})),
            "membrane": {"permeability": many(|index| json!({"agentConfig": name(MANY - index)}))},
        },
    });
    let ensemble = object("sympozium.ai/v1alpha1", "Ensemble", &ensemble);
    let (view, _) = view_of("sympozium", &ensemble, &state::empty(memgate_platforms::default_settings()));
    assert_eq!(view.sharing.expect("shares").configs.len(), 1);
}

#[test]
fn lists_each_tool_once_and_each_token() {
    let spec = json!({"tools": many(|_| json!({"name": "remember"})), "runtime": {}});
    let agent = object("core.orka.ai/v1alpha1", "Agent", &spec);
    let (view, _) = view_of("orka", &agent, &state::empty(memgate_platforms::default_settings()));
    assert_eq!(view.operations.expect("has some").len(), 1);
    let env = many(|index| json!({"name": "ORKA_SA_TOKEN", "value": format!("t{index}")}));
    let task = object("core.orka.ai/v1alpha1", "Task", &json!({"type": "ai", "env": env}));
    let (view, _) = view_of("orka", &task, &state::empty(memgate_platforms::default_settings()));
    assert_eq!(view.inline.len(), MANY);
    assert_eq!(view.inline[1].field.as_str(), "/spec/env/1/value");
    assert_ne!(view.inline[0].digest, view.inline[1].digest);
}

#[test]
fn asks_for_what_it_does_not_know() {
    let nothing = Snapshot::new(memgate_platforms::default_settings());
    let agent = object("sympozium.ai/v1alpha1", "Agent", &json!({"skills": [{"skillPackRef": "memory"}]}));
    let (view, unknown) = view_of("sympozium", &agent, &nothing);
    let why = view.endpoint.and_then(|endpoint| endpoint.unknown).map(|why| why.to_string());
    assert_eq!(why.as_deref(), Some("SkillPack \"team/memory\" is not known"));
    assert_eq!(unknown, ["SkillPack team/memory"]);
    let run = object("sympozium.ai/v1alpha1", "AgentRun", &json!({"agentRef": "a"}));
    let (view, unknown) = view_of("sympozium", &run, &nothing);
    assert_eq!((view.references[0].found, view.sources.len()), (None, 0));
    assert_eq!(unknown, ["Agent team/a"]);
    let task = object("core.orka.ai/v1alpha1", "Task", &json!({"type": "ai", "agentRef": {"name": "a"}}));
    let (view, unknown) = view_of("orka", &task, &nothing);
    assert_eq!((view.references[0].found, view.operations.map(|it| it.len())), (None, Some(4)));
    assert_eq!(unknown, ["Agent team/a", "Namespace /team"]);
}

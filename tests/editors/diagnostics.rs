//! What is marked, and what is not.

use serde_json::Value;
use std::fs;
use std::path::Path;

use crate::client::Client;
use crate::page::block;
use crate::workspace::Workspace;

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    fs::read_to_string(root.join(name)).expect("an example")
}

fn messages(said: &[Value]) -> Vec<&str> {
    said.iter().filter_map(|said| said["message"].as_str()).collect()
}

/// An example, and the same with a value that does not exist.
fn expect_a_wrong_value_to_be_marked(editor: &mut Client, workspace: &Workspace, modeline: &str) {
    let right = format!("{modeline}{}", example("arkonis/memory-redis.yaml"));
    let said = editor.open(&workspace.file("deploy/right.yaml"), &right);
    assert_eq!(said, Vec::<Value>::new());
    let wrong = right.replace("backend: redis", "backend: rediss");
    let said = editor.open(&workspace.file("deploy/wrong.yaml"), &wrong);
    assert_eq!(
        messages(&said),
        [r#"Value is not accepted. Valid values: "in-context", "vector-store", "redis"."#]
    );
    let line = wrong.lines().position(|line| line.contains("rediss"));
    assert_eq!(said[0]["range"]["start"]["line"].as_u64(), line.map(|line| line as u64));
}

#[test]
#[ignore = "needs node and npm"]
fn a_wrong_value_is_marked_by_settings() {
    let workspace = Workspace::new();
    expect_a_wrong_value_to_be_marked(&mut workspace.with_settings(), &workspace, "");
}

#[test]
#[ignore = "needs node and npm"]
fn a_wrong_value_is_marked_by_a_modeline() {
    let workspace = Workspace::new();
    expect_a_wrong_value_to_be_marked(
        &mut workspace.without_settings(),
        &workspace,
        &block("The schemas", "yaml"),
    );
}

#[test]
#[ignore = "needs node and npm"]
fn examples_are_not_marked() {
    let workspace = Workspace::new();
    let mut editor = workspace.with_settings();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut opened = 0;
    for folder in memgate_platforms::ALL
        .map(|family| family.name)
        .into_iter()
        .chain(["policy", "orka/unreleased", "kagent/older"])
    {
        for file in fs::read_dir(root.join(folder)).expect("a folder") {
            let file = file.expect("an entry").path();
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let name = file.file_name().expect("a name").display().to_string();
            let said = editor.open(&workspace.file(&format!("deploy/{folder}/{name}")), &text);
            assert_eq!(messages(&said), <[&str; 0]>::default(), "{folder}/{name}");
            opened += 1;
        }
    }
    assert!(opened > 30, "{opened} examples");
    let cases =
        editor.open(&workspace.file("tests/memgate/baseline.yaml"), &example("policy-cases/baseline.yaml"));
    assert_eq!(messages(&cases), <[&str; 0]>::default());
}

#[test]
#[ignore = "needs node and npm"]
fn a_file_of_several_objects_is_checked_object_by_object() {
    let workspace = Workspace::new();
    let mut editor = workspace.with_settings();
    let text = "\
apiVersion: apps/v1
kind: Deployment
spec: {backend: rediss}
---
apiVersion: sympozium.ai/v1alpha1
kind: Ensemble
metadata: {name: a}
spec:
  enabled: on # YAML 1.1 reads it as true, and so does Kubernetes
  agentConfigs: [{name: a, systemPrompt: a}]
  sharedMemory:
    enabled: yes
    accessRules: [{agentConfig: a, access: read-write}, {agentConfig: b, access: write}]
---
apiVersion: orloj.dev/v1
kind: Memory
metadata: {name: a}
spec: {provider: http}
";
    let said = editor.open(&workspace.file("agents/all.yaml"), text);
    let places: Vec<_> = said.iter().filter_map(|said| said["range"]["start"]["line"].as_u64()).collect();
    assert_eq!(places, [12, 17], "{:?}", messages(&said));
    assert_eq!(messages(&said)[0], r#"Value is not accepted. Valid values: "read-write", "read-only"."#);
}

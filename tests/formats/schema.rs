//! The JSON Schemas accept the files that memgate writes and reads.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::{Value, json};

use crate::archive::scenarios;
use crate::run::{BAD, Scratch};

pub(crate) fn printed(name: &str) -> Value {
    Scratch::with(&[]).json(&["schema", name])
}

pub(crate) fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).expect("is a schema")
}

/// One of the definitions, in which every field has to stand that is written.
fn strict(definition: &str) -> Validator {
    let mut schema = printed("output");
    close(&mut schema);
    schema.as_object_mut().expect("an object").remove("anyOf");
    schema["$ref"] = json!(format!("#/definitions/{definition}"));
    validator(&schema)
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && map.get("type") == Some(&json!("object")) {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

pub(crate) fn expect_valid(validator: &Validator, value: &Value, name: &str) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
}

pub(crate) fn expect_report(report: &Value, name: &str) {
    static REPORT: LazyLock<Validator> = LazyLock::new(|| strict("report"));
    expect_valid(&REPORT, report, name);
}

#[test]
fn a_field_that_is_not_described_is_noticed() {
    let mut report = Scratch::with(&[("bad.yaml", BAD)]).json(&["check", "bad.yaml", "-o", "json"]);
    expect_valid(&strict("report"), &report, "as it is");
    report["findings"][0]["more"] = json!(1);
    assert!(!strict("report").is_valid(&report));
}

#[test]
fn what_came_of_cases_is_as_described() {
    let case = json!([
        {"name": "fails", "object": {"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
            "metadata": {"name": "a", "namespace": "b"}, "spec": {"backend": "x"}}, "expect": {"allowed": true}},
        {"name": "passes", "object": {"apiVersion": "v1", "kind": "ConfigMap"}, "expect": {"allowed": true}},
    ]);
    let scratch = Scratch::with(&[("cases.yaml", &case.to_string()), ("bad.yaml", "- a: [\n")]);
    let result = scratch.json(&["test", ".", "-o", "json"]);
    expect_valid(&strict("cases"), &result, "cases");
    assert_eq!(result["summary"], json!({"passed": 1, "failed": 1, "errors": 1}));
    assert_eq!(result["cases"][0]["passed"], false);
    assert_eq!(result["inputErrors"][0]["line"], 1);
}

#[test]
fn the_cases_of_the_project_are_case_files() {
    let cases = validator(&printed("cases"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    for family in fs::read_dir(root).expect("families").map(|entry| entry.expect("an entry").path()) {
        for file in fs::read_dir(&family).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            let text = fs::read_to_string(&file).expect("text");
            for document in documents(&text) {
                expect_valid(&cases, &document, &file.display().to_string());
                count += 1;
            }
        }
    }
    assert!(count > 5, "{count} files");
    for wrong in [json!([{"name": "a"}]), json!([{"name": "a", "expect": {"allow": true}}])] {
        assert!(!cases.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn settings_that_are_described_are_read() {
    let schema = printed("settings");
    let settings = json!({
        "families": memgate_platforms::ALL.map(|family| family.name),
        "ark": {"sidecars": ["logger-*"]},
        "orloj": {"jobNamespaces": ["orloj"], "sharedSecrets": ["*-token"], "sourceNamespaces": ["team"]},
        "sympozium": {"memoryMode": "sidecar", "writerTokens": "never", "waitImage": "a:1", "memoryImage": "b:1",
            "wait": "never", "imagePullSecrets": ["mirror"], "resources": {"wait": {"limits": {"cpu": 0.5}},
            "server": {"requests": {"memory": "64Mi", "ephemeral-storage": "1e6"}}}},
    });
    expect_valid(&validator(&schema), &settings, "settings");
    for key in ["families", "ark", "orloj", "sympozium"] {
        let described = schema["properties"][key]["properties"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(described, settings[key].as_object().map_or(0, serde_json::Map::len), "{key}");
    }
    let project = json!({
        "paths": ["bad.yaml"],
        "rules": [{"codes": ["ark/*", "arkonis/redis-required", "policy/a/b"], "severity": "note"}],
        "exclude": ["vendor"],
        "families": settings["families"],
        "failOn": "warn",
        "strict": true,
        "namespace": "team-a",
        "settings": settings,
    });
    expect_valid(&validator(&printed("project")), &project, "project");
    let (settings, project) = (settings.to_string(), project.to_string());
    let files = [("settings.json", &*settings), (".memgate.yaml", &*project), ("bad.yaml", BAD)];
    let scratch = Scratch::with(&files);
    for arguments in [&["--project", "none", "--settings", "settings.json", "bad.yaml"][..], &[]] {
        let output = scratch.run(&[&["check"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The schema refuses the wrong files of tests/ui, and accepts the right ones there and in the documents.
#[test]
fn choices_of_a_repository_are_as_described() {
    let project = validator(&printed("project"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut right, mut wrong) = (0, 0);
    for (name, case) in scenarios("check") {
        let (stderr, text) = (case.text_of("stderr"), case.text_of(".memgate.yaml"));
        if !stderr.contains(".memgate.yaml") || text.is_empty() {
            continue;
        }
        let [file]: [Value; 1] = documents(text).try_into().expect("one document");
        // What is said of the file itself has its line.
        if stderr.starts_with("error: .memgate.yaml:") {
            assert!(!project.is_valid(&file), "{name}");
            wrong += 1;
        } else {
            expect_valid(&project, &file, &name);
            right += 1;
        }
    }
    assert!(right >= 3 && wrong >= 2, "{right} are right and {wrong} wrong");
    let page = fs::read_to_string(root.join("docs/check.md")).expect("the page");
    let (_, section) = page.split_once("\n## Choices of a repository\n").expect("a section");
    let example = section.split("```yaml\n").nth(1).and_then(|text| text.split("```").next());
    let [example]: [Value; 1] = documents(example.expect("an example")).try_into().expect("one document");
    expect_valid(&project, &example, "docs/check.md");
    let described = printed("project")["properties"].as_object().expect("fields").len();
    assert_eq!(example.as_object().map(serde_json::Map::len), Some(described), "the example has all keys");
    for wrong in [
        json!({"paths": "deploy"}),
        json!({"exclude": [1]}),
        json!({"families": ["arkonsi"]}),
        json!({"failOn": "warning"}),
        json!({"strict": "yes"}),
        json!({"settings": {"orloj": {"jobNamespace": ["a"]}}}),
        json!({"values": ["values.yaml"]}),
        json!({"sets": {"dev": ["x"]}}),
        json!({"values": ["x.yaml"]}),
        json!({"helmArgs": ["--set=a=b"]}),
        json!({"rules": [{"codes": ["ark/*"]}]}),
        json!({"rules": [{"codes": ["arkonis/redis-require"], "severity": "off"}]}),
        json!({"rules": [{"codes": ["ark/*"], "severity": "error"}]}),
        json!({"rules": [{"codes": ["ark/*"], "paths": [], "severity": "deny"}]}),
    ] {
        assert!(!project.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn choices_of_a_repository_hold_settings() {
    let (project, settings) = (printed("project"), printed("settings"));
    let inner = &project["properties"]["settings"];
    for key in ["type", "additionalProperties"] {
        assert_eq!(inner[key], settings[key], "{key}");
    }
    let keys = inner["properties"].as_object().expect("keys");
    assert_eq!(
        keys.keys().collect::<Vec<_>>(),
        ["families", "ark", "orloj", "sympozium"],
        "none of serve alone"
    );
    for (key, described) in keys {
        assert_eq!(*described, settings["properties"][key], "{key}");
    }
    assert_eq!(project["definitions"], settings["definitions"]);
    assert_eq!(project["properties"]["families"], settings["properties"]["families"]);
}

pub(crate) fn documents(text: &str) -> Vec<Value> {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("example", text)), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    documents.iter().map(|document| document.value().clone()).collect()
}

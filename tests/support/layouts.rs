//! The layouts of tests/layouts.yaml.
#![allow(clippy::expect_used, reason = "the file is ours, and a test that reads it wrongly must fail")]

use std::collections::BTreeMap;

use serde_json::Value;

/// The text of the file.
const TEXT: &str = include_str!("../layouts.yaml");

/// A repository, and what is to be found in it.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) files: BTreeMap<String, String>,
    /// The values of a release.
    pub(crate) given: Option<String>,
    /// The command that prints each unit.
    pub(crate) build: BTreeMap<String, String>,
    pub(crate) exit: i32,
    pub(crate) findings: Vec<String>,
}

/// All layouts.
pub(crate) fn all() -> Vec<Layout> {
    let all: Vec<Value> = serde_saphyr::from_str(TEXT).expect("is YAML");
    all.iter().map(layout).collect()
}

fn layout(value: &Value) -> Layout {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = |field: &str| value[field].as_array().into_iter().flatten().map(text).collect();
    let map = |field: &str| {
        let entries = value[field].as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.clone(), text(value))).collect()
    };
    Layout {
        name: text(&value["name"]),
        arguments: list("arguments"),
        files: map("files"),
        given: value["given"].as_str().map(str::to_owned),
        build: map("build"),
        exit: i32::try_from(value["exit"].as_i64().expect("a number")).expect("an exit code"),
        findings: list("findings"),
    }
}

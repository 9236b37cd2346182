//! Credentials are never injected as literals, because a caller that claims the namespace of a pod in a review reads what
//! its pods get. The tests use all cases, as they are and with credentials in the objects of their state. S14 of
//! stress/ATTACKS.md.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use memgate_core::admission;
use memgate_core::decide::decide;
use memgate_core::state;
use memgate_primitives::credential::{is_credential_name, value_spans};
use memgate_primitives::review_path::Phase;
use memgate_workbench::files::casefile::request;
use serde_json::{Value, json};

use crate::claims::marks::{MARK, UrlPart, mark};
use crate::support::cases::cases;

/// What platforms say themselves that pods are given as it stands, though the user wrote a credential into it, of which a
/// warning about the object tells. The last two only look like credentials.
const COPIED: [(&str, &str); 7] = [
    ("ARK_MEMORY_URL", "ark: a literal address of the pod's own namespace is injected as a literal"),
    ("ARK_MEMORY_HEADER_*", "ark: so is a literal header, other than those that hold credentials"),
    ("AGENT_MEMORY_VECTOR_STORE_ENDPOINT", "arkonis: the operator passes the endpoint on verbatim"),
    ("AGENT_VECTOR_STORE_URL", "kubeswarm: the operator makes it of the endpoint"),
    ("ORLOJ_MEMORY_DSN", "orloj: a user before the host, behind which the kubelet puts the password"),
    ("ORLOJ_MEMORY_ENDPOINT", "orloj: a parameter whose name only contains a word of credentials"),
    ("a word of a command", "sympozium: a pod waits for the address that it sets itself"),
];

/// The row of a variable.
fn row(name: &str) -> String {
    if name.starts_with("ARK_MEMORY_HEADER_") { "ARK_MEMORY_HEADER_*".to_owned() } else { name.to_owned() }
}

/// The literals of a patch: variables by their name, and the words of commands.
fn literals(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| literals(item, found)),
        Value::Object(map) => {
            if let (Some(Value::String(name)), Some(Value::String(value))) =
                (map.get("name"), map.get("value"))
            {
                found.push((name.clone(), value.clone()));
            }
            for word in ["command", "args"].into_iter().filter_map(|key| map.get(key)?.as_array()).flatten() {
                found.push(("a word of a command".to_owned(), word.as_str().unwrap_or_default().to_owned()));
            }
            map.values().for_each(|value| literals(value, found));
        }
        _ => {}
    }
}

/// Whether a literal is a credential, or holds one that was planted. What the kubelet fills in is none.
fn is_credential(name: &str, value: &str) -> bool {
    let value = value.replace("$(ORLOJ_MEMORY_PASSWORD)", "");
    let named = is_credential_name(name) && !value.is_empty() && !value.starts_with("$(");
    named || value.contains(MARK) || !value_spans(value.trim_end_matches(':')).is_empty()
}

#[test]
fn no_literal_is_a_credential() {
    let mut copied: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut seen = 0;
    // A value whose name is not that of a credential may be copied.
    let parts = [UrlPart::Password, UrlPart::User, UrlPart::TokenQuery].map(Some);
    for (_, case) in cases().unwrap() {
        for part in parts.into_iter().chain([None]) {
            let mut snapshot = state::empty(memgate_platforms::default_settings());
            for object in &case.state {
                let mut object = object.clone();
                if let Some(part) = part {
                    mark(&mut object, part);
                }
                state::add(&mut snapshot, &object).unwrap();
            }
            let review = request::review(&case).to_string();
            let review = admission::parse(&review).unwrap();
            let decision = decide(&review.request, &snapshot);
            let answer = admission::respond(Phase::Mutate, &review, &decision).unwrap();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            let Some(patch) = answer["response"]["patch"].as_str() else { continue };
            let patch: Value = serde_json::from_slice(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
            let mut found = Vec::new();
            literals(&patch, &mut found);
            seen += found.len();
            for (name, value) in found.into_iter().filter(|(name, value)| is_credential(name, value)) {
                copied.entry(row(&name)).or_default().push(format!("{}: {value}", case.name));
            }
        }
    }
    assert!(seen > 1_000, "{seen} literals are too few to say anything");
    let known = COPIED.map(|(row, _)| row);
    let new: Vec<_> = copied.iter().filter(|(row, _)| !known.contains(&row.as_str())).collect();
    assert!(new.is_empty() && copied.len() == known.len(), "{new:#?}");
}

#[test]
fn literals_are_found_wherever_they_stand() {
    let patch = json!([
        {"op": "add", "path": "/spec/containers/0/env/0", "value": {"name": "A", "value": "x"}},
        {"op": "add", "path": "/spec/initContainers", "value": [
            {"name": "c", "command": ["sh", "y"], "env": [{"name": "B", "value": "z"}, {"name": "C", "valueFrom": {}}]},
        ]},
    ]);
    let mut found = Vec::new();
    literals(&patch, &mut found);
    let values: Vec<_> = found.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["x", "sh", "y", "z"]);
    for (name, value, expected) in [
        ("A", "https://u:p@h", true),
        ("API_TOKEN", "a", true),
        ("API_TOKEN", "$(OTHER)", false),
        ("DSN", "postgres://u:$(ORLOJ_MEMORY_PASSWORD)@h/db", true),
        ("A", "http://h:80/v1", false),
    ] {
        assert_eq!(is_credential(name, value), expected, "{name} {value}");
    }
}

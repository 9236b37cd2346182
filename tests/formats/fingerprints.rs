//! A finding keeps its fingerprint in whatever file and line it is.

use serde_json::Value;

use crate::repositories::programs;
use crate::run::{BAD, Scratch};

fn fingerprints(name: &str, text: &str) -> Vec<String> {
    let report = Scratch::with(&[(name, text)]).json(&["check", name, "-o", "json"]);
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["fingerprint"].as_str().map(str::to_owned)).collect()
}

#[test]
fn moved_lines_and_renamed_files_keep_it() {
    let before = fingerprints("bad.yaml", BAD);
    assert_eq!(before.len(), 2, "{before:?}");
    let moved = format!("# one\n# two\n---\n{}", BAD.replace("spec:\n", "spec:\n  # three\n"));
    assert_eq!(fingerprints("other/name.yaml", &moved), before);
    let other = fingerprints("bad.yaml", &BAD.replace("name: notes", "name: others"));
    assert_eq!(other.iter().filter(|it| before.contains(it)).count(), 1, "{other:?}");
}

#[test]
fn repeated_findings_are_numbered() {
    let first = BAD.split("---\n").next().expect("an object");
    let report = Scratch::with(&[("a.yaml", first), ("b.yaml", first)]).json(&["check", ".", "-o", "json"]);
    let of_code = |finding: &&Value| finding["code"] == "arkonis/backend-unknown";
    let findings = report["findings"].as_array().expect("findings").iter().filter(of_code);
    let found: Vec<&str> = findings.filter_map(|finding| finding["fingerprint"].as_str()).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1], format!("{}-2", found[0]));
}

/// The unit is part of a fingerprint; plain manifests have none.
#[test]
#[ignore = "needs kubectl and helm"]
fn units_have_their_own() {
    let first = BAD.split("---\n").next().expect("an object");
    let of = |kustomizations: &[(&str, &str)]| {
        let scratch = Scratch::with(&[&[("a/a.yaml", first), ("b/b.yaml", first)], kustomizations].concat());
        let mut command = scratch.command(&["check", "-o", "json", "."]);
        let output = command.env("PATH", programs()).output().expect("memgate runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        let of_code = |finding: &&Value| finding["code"] == "arkonis/backend-unknown";
        let findings = report["findings"].as_array().expect("findings").iter().filter(of_code);
        findings.filter_map(|finding| finding["fingerprint"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let alone = fingerprints("a.yaml", first);
    let one = ("a/kustomization.yaml", "resources: [a.yaml]\n");
    let two = ("b/kustomization.yaml", "resources: [b.yaml]\n");
    assert_eq!(of(&[]), [alone[0].clone(), format!("{}-2", alone[0])]);
    let apart = of(&[one, two]);
    assert!(apart.len() == 2 && apart[0] != apart[1] && !apart.contains(&alone[0]), "{apart:?}");
    let mut mixed = of(&[one]);
    mixed.sort();
    let mut expected = [alone[0].clone(), apart[0].clone()];
    expected.sort();
    assert_eq!(mixed, expected);
}

//! A finding keeps its fingerprint in whatever file and line it is.

use serde_json::Value;

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

/// Files of no set keep the fingerprints that they always had.
#[test]
fn sets_have_their_own() {
    let first = BAD.split("---\n").next().expect("an object");
    let of = |project: &str| {
        let files = [(".memgate.yaml", project), ("a/a.yaml", first), ("b/b.yaml", first)];
        let report = Scratch::with(&files).json(&["check", "-o", "json"]);
        let of_code = |finding: &&Value| finding["code"] == "arkonis/backend-unknown";
        let findings = report["findings"].as_array().expect("findings").iter().filter(of_code);
        findings.filter_map(|finding| finding["fingerprint"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let alone = fingerprints("a.yaml", first);
    let together = of("paths: [a, b]");
    assert_eq!(together, [alone[0].clone(), format!("{}-2", alone[0])]);
    let apart = of("sets: {one: [a], two: [b]}");
    assert!(apart.len() == 2 && apart[0] != apart[1] && !apart.contains(&alone[0]), "{apart:?}");
    assert_eq!(of("sets: {one: [a]}\npaths: [b]"), [alone[0].clone(), apart[0].clone()]);
}

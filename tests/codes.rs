//! That every finding code keeps its promises: a page with two examples that do what they say, a
//! case that fires it, and one beside it that does not.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use memgate::casefile::Case;
use memgate::casefile::read::read;
use memgate::family;
use memgate::manifest::document::values;
use memgate::manifest::source::Source;
use memgate::model::finding::Code;
use memgate::offline::collect::collect;
use serde_json::Value;

/// The codes that no manifest and no case can show, with the reason.
const IN_A_CLUSTER_ONLY: &[(&str, &str)] = &[
    ("arkonis/lookup-failed", "files are never out of reach; tests/server shows it"),
    ("orloj/lookup-failed", "files are never out of reach"),
    ("ark/lookup-failed", "files are never out of reach"),
    ("orka/lookup-failed", "files are never out of reach"),
    ("sympozium/lookup-failed", "files are never out of reach"),
];

fn shown_outside_a_cluster() -> impl Iterator<Item = &'static Code> {
    let hidden = |code: &&Code| IN_A_CLUSTER_ONLY.iter().all(|(name, _)| *name != code.name);
    family::codes(&family::ALL).filter(hidden)
}

#[test]
fn names_are_unique_and_kebab_case() {
    let mut seen = BTreeSet::new();
    for code in family::codes(&family::ALL) {
        assert!(seen.insert(code.name), "{} stands there twice", code.name);
        let (family, name) = code.name.split_once('/').expect("family/name");
        let kebab = |part: &str| {
            part.split('-').all(|word| {
                !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            })
        };
        assert!(kebab(family) && kebab(name), "{} is not kebab-case", code.name);
    }
}

#[test]
fn every_page_is_that_of_a_code() {
    let names: BTreeSet<&str> = family::codes(&family::ALL).map(|code| code.name).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/codes");
    for family in std::fs::read_dir(&root).expect("docs/codes") {
        let family = family.expect("an entry").path();
        for page in std::fs::read_dir(&family).expect("a directory") {
            let page = page.expect("an entry").path();
            let stem = page.file_stem().expect("a name").to_string_lossy().into_owned();
            let name = format!("{}/{stem}", family.file_name().expect("a name").to_string_lossy());
            assert!(names.contains(name.as_str()), "{} is the page of no code", page.display());
        }
    }
    for code in family::codes(&family::ALL) {
        assert!(code.page.starts_with(&format!("# {}\n", code.name)), "the title of {}", code.name);
        for heading in ["## What to do", "## Source"] {
            assert!(code.page.contains(heading), "{} has no {heading}", code.name);
        }
    }
}

#[test]
fn failing_examples_fire_and_passing_ones_do_not() {
    for code in shown_outside_a_cluster() {
        let failing = reported(example(code, "## Failing example"));
        assert!(failing.contains(code.name), "the failing example of {} reports {failing:?}", code.name);
        let passing = reported(example(code, "## Passing example"));
        assert!(passing.is_empty(), "the passing example of {} reports {passing:?}", code.name);
    }
}

/// The only fenced block under a heading: its language and its text.
fn example(code: &'static Code, heading: &str) -> (&'static str, &'static str) {
    let (_, section) =
        code.page.split_once(heading).unwrap_or_else(|| panic!("{} has no {heading}", code.name));
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut fences = section.split("```");
    let block = fences.nth(1).unwrap_or_else(|| panic!("{}: no block under {heading}", code.name));
    assert_eq!(fences.count(), 1, "{}: one block under {heading}", code.name);
    block.split_once('\n').expect("a language")
}

/// The codes that an example reports: manifests through `memgate check`, a case through
/// `memgate test`, which also holds that what the case claims is so.
fn reported((language, text): (&str, &str)) -> BTreeSet<String> {
    match language {
        "yaml" => {
            let (output, _) = memgate(&["check", "-o", "json", "-"], text);
            let report: Value = serde_json::from_str(&output).expect("a report");
            let findings = report["findings"].as_array().expect("findings");
            findings.iter().map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
        }
        "case" => {
            let (output, good) = memgate(&["test", "-"], text);
            assert!(good, "{output}");
            cases_in(text).into_iter().flatten().collect()
        }
        other => panic!("an example in {other}"),
    }
}

fn memgate(arguments: &[&str], input: &str) -> (String, bool) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("memgate starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    (String::from_utf8(output.stdout).expect("text"), output.status.success())
}

/// For each case of a file the codes that it expects, where it does not leave them open.
fn cases_in(text: &str) -> Vec<BTreeSet<String>> {
    let source = Arc::new(Source::new("example", text));
    cases_of(&source).into_iter().map(|(_, codes)| codes).collect()
}

/// The same, each with the kind of its object.
fn cases_of(source: &Arc<Source>) -> Vec<(String, BTreeSet<String>)> {
    let mut errors = Vec::new();
    let documents = values(source, &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    let cases = documents.iter().flat_map(|document| read(document.value()).expect("cases"));
    let kind_and_codes = |case: Case| {
        let object = case.object.or(case.old_object).unwrap_or_default();
        Some((object["kind"].as_str()?.to_owned(), case.expect.codes?.into_iter().collect()))
    };
    cases.filter_map(kind_and_codes).collect()
}

/// Beside: on an object of the same kind.
#[test]
fn every_code_has_a_case_that_fires_it_and_one_beside_it_that_does_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let sources = collect(&[root.display().to_string()], &mut std::io::empty()).sources.into_iter();
    let cases: Vec<_> = sources.flat_map(|source| cases_of(&Arc::new(source))).collect();
    for code in shown_outside_a_cluster() {
        let fires = |codes: &BTreeSet<String>| codes.contains(code.name);
        let kinds: BTreeSet<&str> =
            cases.iter().filter(|(_, codes)| fires(codes)).map(|(kind, _)| kind.as_str()).collect();
        assert!(!kinds.is_empty(), "no case fires {}", code.name);
        let beside = cases.iter().any(|(kind, codes)| kinds.contains(kind.as_str()) && !fires(codes));
        assert!(beside, "every case of {kinds:?} fires {}", code.name);
    }
    let known: BTreeSet<&str> = family::codes(&family::ALL).map(|code| code.name).collect();
    let named: BTreeSet<&str> = cases.iter().flat_map(|(_, codes)| codes).map(String::as_str).collect();
    assert!(named.is_subset(&known), "cases name codes that do not exist");
}

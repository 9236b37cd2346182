//! That every finding code keeps its promises: a page with two examples that do what they say, a
//! case that fires it, and one for the same kind that does not.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use memgate_core::decide::codes;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::finding::Code;
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::read::read;
use serde_json::Value;

use super::cases::cases;
use super::memgate;

/// The codes that no manifest and no case can show, with the reason.
pub(super) const WITHOUT_EXAMPLE: &[(&str, &str)] = &[
    ("arkonis/memory-invalid", "the denied memory says it; tests/ui shows it with --with"),
    ("arkonis/pod-memory-invalid", "the denied memory says it"),
    ("arkonis/lookup-failed", "files are never out of reach; tests/server shows it"),
    ("orloj/lookup-failed", "files are never out of reach"),
    ("ark/lookup-failed", "files are never out of reach"),
    ("orka/lookup-failed", "files are never out of reach"),
    ("orloj/pod-ambiguous", "it takes a setting; tests/claims shows it"),
    ("sympozium/lookup-failed", "files are never out of reach"),
    ("memgate/kustomization-invalid", "it is about a kustomization; tests/ui shows it"),
    ("memgate/not-judged", "it is about --base; tests/pull_requests shows it"),
    ("memgate/state-age", "files have no age; tests/apiserver shows it"),
    ("policy/default-missing", "only audits report it; tests/ui shows it"),
    ("policy/unused", "it is about --policy; tests/ui shows it"),
    ("policy/exemption-unused", "it hangs on the day; tests/ui shows it with --at"),
    ("memgate/over-limit", "ten thousand lines; `limits` among the tests of the core has them"),
];

/// The codes that are about files, which cases do not have.
const OF_FILES: &[&str] = &[
    "memgate/ignore-unknown",
    "memgate/ignore-without-reason",
    "memgate/kind-misspelt",
    "memgate/not-an-object",
    "memgate/object-repeated",
    "memgate/pod-template-unread",
    "memgate/schema",
    "memgate/state-unreadable",
    "memgate/value-unknown",
    "policy/exemption-expired",
    "policy/exemption-rejected",
];

fn with_example() -> impl Iterator<Item = &'static Code> {
    let hidden = |code: &&Code| WITHOUT_EXAMPLE.iter().all(|(name, _)| *name != code.name);
    codes::all(&memgate_platforms::ALL).filter(hidden)
}

#[test]
fn names_are_unique_and_kebab_case() {
    let mut seen = BTreeSet::new();
    for code in codes::all(&memgate_platforms::ALL) {
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
    let names: BTreeSet<&str> = codes::all(&memgate_platforms::ALL).map(|code| code.name).collect();
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
    for code in codes::all(&memgate_platforms::ALL) {
        assert!(code.page.starts_with(&format!("# {}\n", code.name)), "the title of {}", code.name);
        for heading in ["## What to do", "## Source"] {
            assert!(code.page.contains(heading), "{} has no {heading}", code.name);
        }
    }
}

#[test]
fn failing_examples_fire_and_passing_ones_do_not() {
    for code in with_example() {
        let failing = reported(example(code, "## Failing example"));
        assert!(failing.contains(code.name), "the failing example of {} reports {failing:?}", code.name);
        let passing = reported(example(code, "## Passing example"));
        assert!(passing.is_empty(), "the passing example of {} reports {passing:?}", code.name);
    }
}

fn example(code: &'static Code, heading: &str) -> (&'static str, &'static str) {
    block(code.page.text(), code.name, heading)
}

/// The only fenced block under a heading of a page: its language and its text.
pub(super) fn block(page: &'static str, name: &str, heading: &str) -> (&'static str, &'static str) {
    let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("{name} has no {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut fences = section.split("```");
    let block = fences.nth(1).unwrap_or_else(|| panic!("{name}: no block under {heading}"));
    assert_eq!(fences.count(), 1, "{name}: one block under {heading}");
    block.split_once('\n').expect("a language")
}

/// The codes that an example reports: manifests through `memgate check`, notes aside, since all but three are about what
/// is ignored; a case through `memgate test`, which also holds that what the case claims is so.
pub(super) fn reported((language, text): (&str, &str)) -> BTreeSet<String> {
    match language {
        "yaml" => {
            let output = memgate(&["check", "-o", "json", "-"], text);
            let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
            let findings = report["findings"].as_array().expect("findings");
            let not_found = |finding: &Value| {
                finding["message"].as_str().is_some_and(|text| text.ends_with("hold no object of this kind)"))
            };
            let counts = |finding: &&Value| {
                let notes = [
                    "policy/hint-missing", "memgate/value-unknown", "memgate/pod-template-unread",
                    "sympozium/pod-agent-made",
                ];
                let is_note_only = notes.iter().any(|it| finding["code"] == *it);
                finding["severity"] != "note" || is_note_only || not_found(finding)
            };
            let findings = findings.iter().filter(counts);
            findings.map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
        }
        "case" => {
            let output = memgate(&["test", "-"], text);
            assert!(output.status.success(), "{}", super::text(&output.stdout));
            cases_in(text).into_iter().filter_map(kind_and_codes).flat_map(|(_, codes)| codes).collect()
        }
        other => panic!("an example in {other}"),
    }
}

/// The cases in a text.
fn cases_in(text: &str) -> Vec<Case> {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("example", text)), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    documents.iter().flat_map(|document| read(document.value()).expect("cases")).collect()
}

/// The kind of a case's object and the codes that it expects; none where it leaves them open.
fn kind_and_codes(case: Case) -> Option<(String, BTreeSet<String>)> {
    let object = case.object.or(case.old_object).unwrap_or_default();
    Some((object["kind"].as_str()?.to_owned(), case.expect.codes?.into_iter().collect()))
}

/// The second one is about an object of the same kind.
#[test]
fn every_code_has_a_case_that_fires_it_and_one_that_does_not() {
    let cases = cases().expect("the case files").into_iter();
    let cases: Vec<_> = cases.filter_map(|(_, case)| kind_and_codes(case)).collect();
    for code in with_example().filter(|code| !OF_FILES.contains(&code.name)) {
        let fires = |codes: &BTreeSet<String>| codes.contains(code.name);
        let kinds: BTreeSet<&str> =
            cases.iter().filter(|(_, codes)| fires(codes)).map(|(kind, _)| kind.as_str()).collect();
        assert!(!kinds.is_empty(), "no case fires {}", code.name);
        let passes = cases.iter().any(|(kind, codes)| kinds.contains(kind.as_str()) && !fires(codes));
        assert!(passes, "every case of {kinds:?} fires {}", code.name);
    }
    let known: BTreeSet<&str> = codes::all(&memgate_platforms::ALL).map(|code| code.name).collect();
    let of_memgate = |code: &&str| code.matches('/').count() == 1;
    let named = cases.iter().flat_map(|(_, codes)| codes).map(String::as_str);
    let named: BTreeSet<&str> = named.filter(of_memgate).collect();
    assert!(named.is_subset(&known), "cases name codes that do not exist");
}

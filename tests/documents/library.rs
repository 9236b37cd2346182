//! That the library of policies (`examples/policy/library`) keeps its promises: nothing is doubtful about a policy, its
//! cases see each rule fire and not fire, it judges the examples of the platforms, and docs/policy-library.md names it.

#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_policy::rules::TYPES;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{memgate, text};

const LIBRARY: &str = "examples/policy/library";
const CASES: &str = "examples/library-cases";

/// The page.
const PAGE: &str = "docs/policy-library.md";

/// Before any of the dates in the library.
const EARLY: &str = "2026-12-16T00:00:00Z";

/// The names of the policies, each that of its file too.
fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(LIBRARY);
    let entries = fs::read_dir(folder).expect("the library").map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> =
        entries.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn file(name: &str) -> String {
    format!("{LIBRARY}/{name}.yaml")
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a file")
}

/// The ids of the rules of a policy.
fn rules_of(name: &str) -> Vec<String> {
    let policy = read(&file(name));
    policy.lines().filter_map(|line| Some(line.strip_prefix("    - id: ")?.to_owned())).collect()
}

#[test]
fn each_policy_has_the_name_of_its_file_and_says_what_it_is_for() {
    for name in names() {
        let policy = read(&file(&name));
        assert!(policy.starts_with("# "), "{name} does not say what it is for");
        assert!(policy.contains(&format!("metadata:\n  name: {name}\n")), "{name} has another name");
        assert!(!rules_of(&name).is_empty(), "{name} has no rule");
    }
}

#[test]
fn nothing_is_doubtful_about_them() {
    for name in names() {
        let output = memgate(&["check", "--at", EARLY, "--fail-on", "warn", &file(&name)], "");
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stdout));
    }
    let output = memgate(&["check", "--at", EARLY, "--fail-on", "warn", LIBRARY], "");
    assert_eq!(output.status.code(), Some(0), "all together: {}", text(&output.stdout));
}

#[test]
fn the_cases_of_each_pass_and_see_its_rules_both_ways() {
    for name in names() {
        let cases = format!("{CASES}/{name}.yaml");
        let command = format!("# memgate test --policy {} {cases}\n", file(&name));
        assert!(read(&cases).starts_with(&command), "{cases} does not begin with {command}");
        let output = memgate(&["test", "-o", "json", "--policy", &file(&name), &cases], "");
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{printed}");
        let report: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let counts = report["rules"].as_array().expect("rules");
        for rule in rules_of(&name) {
            let count = counts.iter().find(|it| it["policy"] == *name && it["rule"] == *rule);
            let count = count.unwrap_or_else(|| panic!("{name}/{rule} is not in\n{printed}"));
            let [judged, fired] = ["judged", "fired"].map(|it| count[it].as_u64().expect("a number"));
            assert!(0 < fired && fired < judged, "{count}");
        }
    }
}

#[test]
fn each_is_audited_over_the_examples_of_each_platform() {
    for name in names() {
        for family in memgate_platforms::ALL {
            let folder = format!("examples/{}", family.name);
            let findings = findings(&["audit", "--at", EARLY, "--policy", &file(&name), &folder]);
            let codes: Vec<&str> = findings.iter().map(|(code, _)| code.as_str()).collect();
            // The examples of kagent have both of its lines.
            let expected = |code: &&str| {
                code.starts_with(&format!("policy/{name}/"))
                    || ["policy/unused", "kagent/line-removed"].contains(code)
            };
            assert!(codes.iter().all(expected), "{name} over {folder}: {codes:?}");
        }
    }
}

#[test]
fn all_of_them_together_judge_the_examples_as_each_alone_does() {
    for family in memgate_platforms::ALL {
        let folder = format!("examples/{}", family.name);
        let together = findings(&["audit", "--at", EARLY, "--policy", LIBRARY, &folder]);
        let mut alone = Vec::new();
        for name in names() {
            alone.extend(findings(&["audit", "--at", EARLY, "--policy", &file(&name), &folder]));
        }
        assert_eq!(counted(&together), counted(&alone), "{folder}");
    }
}

/// How often each finding of a policy is there. An unused policy is left out, which may be used when another is there.
fn counted(findings: &[(String, String)]) -> BTreeMap<&(String, String), usize> {
    let mut counts = BTreeMap::new();
    let of_policies = |(code, _): &&(String, String)| code.starts_with("policy/") && code != "policy/unused";
    for finding in findings.iter().filter(of_policies) {
        *counts.entry(finding).or_default() += 1;
    }
    counts
}

/// The findings that a command prints, each with its message.
fn findings(arguments: &[&str]) -> Vec<(String, String)> {
    let output = memgate(&[arguments, &["-o", "json"]].concat(), "");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}", text(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = printed["findings"].as_array().expect("findings").iter();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (word(&finding["code"]), word(&finding["message"]))).collect()
}

#[test]
fn the_page_names_each() {
    let page = read(PAGE);
    for name in names() {
        assert!(page.contains(&format!("[{name}](../{})", file(&name))), "{PAGE} does not name {name}");
    }
}

#[test]
fn each_type_of_rule_is_used() {
    let all: String = names().iter().map(|name| read(&file(name))).collect();
    let used = |kind: &str| [" ", "{"].iter().any(|before| all.contains(&format!("{before}{kind}:")));
    let unused: Vec<&str> = TYPES.iter().map(|kind| kind.name).filter(|kind| !used(kind)).collect();
    assert_eq!(unused, [""; 0]);
}

/// The tour of docs/policy.md: what it asks the reader to write is what the files hold.
#[test]
fn the_dated_policies_are_those_of_the_library_with_a_date() {
    let tour = read("docs/policy.md");
    let block = tour.split("```yaml\n").find(|block| block.starts_with("  promote:")).expect("the block");
    let block = block.split("```").next().expect("its end");
    let mut dated = 0;
    for name in names() {
        let file = format!("examples/policy/dated/{name}.yaml");
        let Ok(policy) = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)) else {
            continue;
        };
        let without = policy.replace(block, "");
        assert_ne!(policy, without, "{file} lacks\n{block}");
        // One that allows exemptions anyway has that part changed.
        let library = read(&self::file(&name));
        let original = match library.split_once("  exemptions:") {
            Some((start, rest)) => {
                let (_, rest) = rest.split_once("  rules:").expect("rules");
                format!("{start}  rules:{rest}")
            }
            None => library,
        };
        assert_eq!(without, original, "{file}");
        dated += 1;
    }
    assert_eq!(dated, 3);
    let output = memgate(&["check", "--at", EARLY, "--fail-on", "warn", "examples/policy/dated/"], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let command =
        tour.lines().find_map(|line| line.strip_prefix("$ memgate exempt --policy examples/policy/dated/"));
    let arguments = format!("exempt --policy examples/policy/dated/{}", command.expect("the command"));
    let output = memgate(&arguments.split(' ').collect::<Vec<_>>(), "");
    assert_eq!(text(&output.stdout), read("examples/policy/dated-exemption.yaml"));
}

//! That the library of policies (`examples/policy/library`) keeps its promises: nothing is doubtful about a policy, its
//! cases see each rule fire and not fire, it judges the examples of the platforms, and docs/policy-library.md says what
//! it covers and what of it can be exported.

#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::family::Family;
use memgate_policy::coverage::{Coverage, coverage};
use memgate_policy::read::policy;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{memgate, text};

const LIBRARY: &str = "examples/policy/library";
const CASES: &str = "examples/library-cases";

/// The page.
const PAGE: &str = "docs/policy-library.md";

/// Before any of the dates in the library.
const EARLY: &str = "2026-12-16T00:00:00Z";

/// The first line of what is generated in it.
const TABLE: &str = "| policy | what for |";

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
        let output = memgate(&["test", "-v", "--policy", &file(&name), &cases], "");
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{printed}");
        for rule in rules_of(&name) {
            let fired =
                printed.lines().find(|line| line.starts_with(&format!("rule  policy/{name}/{rule} ")));
            let fired = fired.unwrap_or_else(|| panic!("{name}/{rule} is not in\n{printed}"));
            assert!(!fired.ends_with(", never") && !fired.ends_with(", always"), "{fired}");
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

/// What `explain` says of each rule of the library, platform by platform.
#[test]
fn explain_says_what_each_rule_covers() {
    let mut said = String::new();
    for name in names() {
        for rule in rules_of(&name) {
            let code = format!("policy/{name}/{rule}");
            let output = memgate(&["explain", &code, "--policy", &file(&name)], "");
            assert_eq!(output.status.code(), Some(0), "{code}: {}", text(&output.stderr));
            let printed = text(&output.stdout);
            let (_, families) = printed.split_once("\nfamilies:").expect("a line");
            let families = families.lines().enumerate();
            let families =
                families.map_while(|(at, line)| (at == 0 || line.starts_with(' ')).then_some(line));
            let families: Vec<&str> = families.map(str::trim).collect();
            let named: Vec<&str> = families.iter().filter_map(|line| Some(line.split_once(':')?.0)).collect();
            assert_eq!(named, memgate_platforms::ALL.map(|family| family.name), "{code}");
            let _infallible = writeln!(said, "{code}\n  {}", families.join("\n  "));
        }
    }
    for words in [": judged\n", ": judged; unknown where ", ": no such thing\n"] {
        assert!(said.contains(words), "{words}");
    }
    compare("tests/documents/library_coverage.txt", &said);
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let written = fs::read_to_string(&path).unwrap_or_default();
    compare(PAGE, &page(written.split(TABLE).next().expect("a start")));
}

/// Compares a file with what it has to hold, or writes it.
fn compare(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).expect("the file can be written");
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == expected,
        "{file} is out of date; write it anew with BLESS=1 cargo test --test documents library"
    );
}

/// The page, after what is written by hand.
fn page(by_hand: &str) -> String {
    let mut page = by_hand.to_owned();
    // The platforms with the cases in which a value is not known there, and the policies of which that holds.
    let mut unknown: Groups<Groups<String, &str>, String> = Vec::new();
    let families: Vec<&str> = memgate_platforms::ALL.iter().map(|family| family.name).collect();
    let _infallible = writeln!(page, "{TABLE} {} |", families.join(" | "));
    let _infallible = writeln!(page, "|---|---|{}", "---|".repeat(families.len()));
    for name in names() {
        let mut cells = Vec::new();
        let mut not_judged: Groups<String, &str> = Vec::new();
        for family in memgate_platforms::ALL {
            let covered = covered(&name, family);
            cells.push(match &covered {
                None => "–",
                Some(cases) if cases.is_empty() => "yes",
                Some(_) => "mostly",
            });
            let cases: Vec<&str> = covered.into_iter().flatten().collect();
            if !cases.is_empty() {
                add(&mut not_judged, cases.join("; "), family.name);
            }
        }
        let (file, purpose, cells) = (file(&name), purpose(&name), cells.join(" | "));
        let _infallible = writeln!(page, "| [{name}](../{file}) | {purpose} | {cells} |");
        if !not_judged.is_empty() {
            add(&mut unknown, not_judged, name);
        }
    }
    let _infallible = write!(page, "\n{UNKNOWN}\n| policies | platforms | not judged |\n|---|---|---|\n");
    for (not_judged, names) in unknown {
        let mut names = names.join(", ");
        for (cases, families) in not_judged {
            // The names come once, in the first line.
            let names = std::mem::take(&mut names);
            let _infallible = writeln!(page, "| {names} | {} | {cases} |", families.join(", "));
        }
    }
    page
}

/// Names by a key that they share.
type Groups<Key, Name> = Vec<(Key, Vec<Name>)>;

/// Adds a name to those of a key.
fn add<Key: PartialEq, Name>(groups: &mut Groups<Key, Name>, key: Key, name: Name) {
    match groups.iter_mut().find(|(other, _)| *other == key) {
        Some((_, names)) => names.push(name),
        None => groups.push((key, vec![name])),
    }
}

const UNKNOWN: &str = "\
## What cannot be judged

In these cases the result is a note, or what `onUnknown` of the rule says:
";

/// The first paragraph of the comment of a policy.
fn purpose(name: &str) -> String {
    let policy = read(&file(name));
    let lines = policy.lines().map_while(|line| line.strip_prefix("# "));
    lines.collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What the rules of the policy judge on a platform, together, and the cases in which that cannot be known.
fn covered(name: &str, family: &'static Family) -> Option<BTreeSet<&'static str>> {
    let source = Arc::new(Source::new("policy", read(&file(name))));
    let documents = values(&source, &mut Vec::new());
    let (policy, faults) = policy(documents.first().expect("a policy").value(), &memgate_platforms::ALL);
    assert!(faults.is_empty(), "{name}: {faults:?}");
    let kinds = policy.matching.kinds.as_deref();
    let coverages = policy.rules.iter().map(|rule| coverage(rule, kinds, family));
    let judged = coverages.filter_map(|coverage| match coverage {
        Coverage::Judged(cases) => Some(cases),
        Coverage::Nothing => None,
    });
    judged.fold(None, |all, cases| Some(all.into_iter().flatten().chain(cases).collect()))
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

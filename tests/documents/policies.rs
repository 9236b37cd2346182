//! That the examples of policies can be copied: nothing is doubtful about them, each finds something in the examples
//! of a platform or is met by all of them, and their cases pass. The same of those in docs/policy.md, as they stand there.

use std::fs;
use std::path::Path;

use memgate_policy::rules::TYPES;

use super::{memgate, text};

/// Before any of the dates in the examples.
const EARLY: &str = "2026-12-16T00:00:00Z";

/// The policies, with the examples that they are about.
const POLICIES: [(&str, &str); 4] = [
    ("baseline", "examples/arkonis"),
    ("tenancy", "examples/arkonis"),
    ("images", "examples/sympozium"),
    ("roll-out", "examples/arkonis"),
];

#[test]
fn nothing_is_doubtful_about_the_examples() {
    for (name, _) in POLICIES {
        let file = format!("examples/policy/{name}.yaml");
        let output = memgate(&["check", "--at", EARLY, "--fail-on", "warn", &file], "");
        assert_eq!(output.status.code(), Some(0), "{file}: {}", text(&output.stdout));
    }
}

#[test]
fn the_examples_match_something() {
    for (name, objects) in POLICIES {
        let file = format!("examples/policy/{name}.yaml");
        let output = memgate(&["check", "--at", EARLY, "-o", "json", "--policy", &file, objects], "");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{file}: {}", text(&output.stderr));
        assert!(!text(&output.stdout).contains("\"policy/unused\""), "{file} matches nothing");
    }
}

#[test]
fn the_promotion_and_the_exemption_count_at_their_dates() {
    for (file, at, expected) in [
        ("examples/policy/roll-out.yaml", "2027-02-28T23:59:59Z", 0),
        ("examples/policy/roll-out.yaml", "2027-03-01T00:00:00Z", 1),
        ("examples/policy/exemption.yaml", "2027-02-28T23:59:59Z", 0),
        ("examples/policy/exemption.yaml", "2027-03-01T00:00:00Z", 1),
    ] {
        let baseline = if file.contains("exemption") { "examples/policy/baseline.yaml" } else { file };
        let policies = ["--policy", baseline, "--policy", file];
        let arguments =
            [&["check", "--point", "admission", "--at", at], &policies[..], &["examples/arkonis"]];
        let output = memgate(&arguments.concat(), "");
        assert_eq!(output.status.code(), Some(expected), "{file} at {at}: {}", text(&output.stdout));
    }
}

#[test]
fn their_cases_pass() {
    let output = memgate(&["test", "examples/policy-cases/"], "");
    assert!(output.status.success(), "{}", text(&output.stdout));
}

/// The policies to copy of the page: the title of each, and its blocks, the policy and its cases.
fn to_copy(page: &str) -> Vec<(&str, Vec<&str>)> {
    let (_, rest) = page.split_once("\n## Policies to copy\n").expect("the policies");
    let (sections, _) = rest.split_once("\n## Reference\n").expect("the reference");
    let titled = sections.split("\n### ").skip(1).map(|it| it.split_once('\n').expect("a title"));
    titled.map(|(title, section)| (title, blocks(section))).collect()
}

/// The blocks of YAML in a text.
fn blocks(text: &str) -> Vec<&str> {
    text.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0)).collect()
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.md")).expect("the page")
}

/// Writes a policy to a file in which `check` finds nothing, not even a note.
fn written(folder: &Path, title: &str, policy: &str) -> String {
    let file = folder.join("policy.yaml").display().to_string();
    fs::write(&file, policy).expect("written");
    let output = memgate(&["check", "--at", EARLY, &file], "");
    assert!(output.status.success() && output.stdout.is_empty(), "{title}: {}", text(&output.stdout));
    file
}

#[test]
fn policies_to_copy_do_what_their_cases_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = page();
    let all = to_copy(&page);
    assert!(!all.is_empty(), "no policy to copy");
    for (title, blocks) in all {
        let [policy, cases] = blocks.try_into().unwrap_or_else(|_| panic!("{title}: a policy and cases"));
        let policy = written(folder.path(), title, policy);
        let file = folder.path().join("cases.yaml").display().to_string();
        fs::write(&file, cases).expect("written");
        let output = memgate(&["test", "-v", "--policy", &policy, &file], "");
        let printed = text(&output.stdout);
        assert!(output.status.success() && !printed.contains(", never"), "{title}: {printed}");
        for verdict in ["allowed: true", "allowed: false"] {
            assert!(cases.contains(verdict), "{title}: no case is {verdict}");
        }
    }
}

#[test]
fn policies_to_copy_are_listed_and_use_each_type_of_rule() {
    let page = page();
    let (contents, _) = page.split_once("\n## Policies to copy\n").expect("the contents");
    let all = to_copy(&page);
    for (title, _) in &all {
        let (first, rest) = title.split_at(1);
        assert!(contents.contains(&format!("[{}{rest}](#", first.to_lowercase())), "{title}");
    }
    let policies: String = all.iter().filter_map(|(_, blocks)| blocks.first().copied()).collect();
    for kind in &TYPES {
        let is_used = ["{", "["].iter().any(|start| policies.contains(&format!("{}: {start}", kind.name)));
        assert!(is_used, "none has {}", kind.name);
    }
}

#[test]
fn nothing_is_doubtful_about_the_examples_of_the_reference() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = page();
    let (_, reference) = page.split_once("\n## Reference\n").expect("the reference");
    let (_, head) = reference.split_once("```text\n").expect("the first lines");
    let (head, _) = head.split_once("```").expect("an end");
    let examples: Vec<&str> = blocks(reference).into_iter().filter(|it| it.starts_with("spec:\n")).collect();
    assert!(examples.len() >= 8, "{examples:?}");
    for example in examples {
        written(folder.path(), example, &format!("{head}{example}\n"));
    }
}

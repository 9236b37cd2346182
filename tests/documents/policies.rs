//! That the examples of policies can be copied: nothing is doubtful about them, each finds something in the examples
//! of a platform or is met by all of them, and their cases pass; and that nothing is doubtful about those in docs/policy.md.

use std::fs;
use std::path::Path;

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

/// The blocks of YAML in a text.
fn blocks(text: &str) -> Vec<&str> {
    text.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0)).collect()
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
fn nothing_is_doubtful_about_the_examples_of_the_reference() {
    let folder = tempfile::tempdir().expect("a folder");
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.md")).expect("the page");
    let (_, reference) = page.split_once("\n## Reference\n").expect("the reference");
    let (_, head) = reference.split_once("```text\n").expect("the first lines");
    let (head, _) = head.split_once("```").expect("an end");
    let examples: Vec<&str> = blocks(reference).into_iter().filter(|it| it.starts_with("spec:\n")).collect();
    assert!(examples.len() >= 8, "{examples:?}");
    for example in examples {
        written(folder.path(), example, &format!("{head}{example}\n"));
    }
}

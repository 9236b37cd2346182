//! Findings as people read them: folded, counted, with hints beside their rule, and without notes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::run::{BAD, Scratch};

fn memory(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: team-a}}\n\
         spec: {{{spec}}}\n"
    )
}

/// So many objects with one fault, and one with another.
fn repeated(count: usize) -> Scratch {
    let mut text: String =
        (0..count).map(|number| memory(&format!("m{number}"), "backend: reddis")).collect();
    text += &memory("other", "backend: redis");
    Scratch::with(&[("a.yaml", &text)])
}

#[test]
fn every_finding_is_listed_in_every_format() {
    let scratch = repeated(44);
    for format in ["text", "concise", "json", "gitlab", "sarif", "junit"] {
        let out = scratch.out(&["check", "a.yaml", "-o", format]);
        assert!(out.matches("arkonis/backend-unknown").count() >= 44, "{format}");
    }
}

#[test]
fn denials_come_first_over_all_files() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: team-a}\n";
    let spec = "backend: redis, redis: {secretRef: {name: a}}";
    let warned = |name: &str| format!("{secret}{}", memory(name, spec));
    let (first, last) = (warned("first"), warned("last"));
    let scratch = Scratch::with(&[("a.yaml", &first), ("b.yaml", BAD), ("c.yaml", &last), ("d.yaml", BAD)]);
    for (format, files) in [("text", ["b.yaml:", "a.yaml:"]), ("concise", ["d.yaml:", "a.yaml:"])] {
        let out = scratch.out(&["check", ".", "-o", format]);
        let [last_denial, first_warning] = files.map(|file| out.find(file));
        assert!(last_denial.is_some() && last_denial < first_warning, "{out}");
        assert!(out.rfind("arkonis/backend-unknown") < out.find("arkonis/secret-missing"), "{out}");
    }
}

#[test]
fn other_messages_are_other_causes() {
    let text: String = (0..8)
        .map(|number| memory("m", &format!("backend: in-context, {}: 1", "x".repeat(number + 1))))
        .collect();
    let scratch = Scratch::with(&[("a.yaml", &text)]);
    let text = scratch.out(&["check", "a.yaml"]);
    assert_eq!(text.matches("warn[arkonis/unknown-field]").count(), 8, "{text}");
}

#[test]
fn a_hint_stands_with_the_first_finding_of_its_rule() {
    let text = repeated(3).out(&["check", "a.yaml"]);
    let findings: Vec<&str> = text.split("deny[").skip(1).collect();
    let hint = |code: &str| format!("= learn more: memgate explain {code}\n");
    let expected = [Some("arkonis/backend-unknown"), None, None, Some("arkonis/redis-required")];
    assert_eq!(findings.len(), expected.len(), "{text}");
    for (finding, code) in findings.iter().zip(expected) {
        assert_eq!(finding.contains("learn more"), code.is_some(), "{finding}");
        assert!(
            code.is_none_or(|code| finding.starts_with(code) && finding.contains(&hint(code))),
            "{finding}"
        );
    }
}

#[test]
fn quiet_writes_findings_and_errors_only() {
    let scratch = Scratch::with(&[
        ("a.yaml", BAD),
        ("b.yaml", "a: [\n"),
        ("c.yaml", ""),
        (".memgate.yaml", "strict: false"),
    ]);
    for flag in ["-q", "--quiet"] {
        let plain = scratch.run(&["check", "a.yaml"]);
        let quiet = scratch.run(&["check", "a.yaml", flag]);
        assert_eq!((&quiet.stdout, quiet.status), (&plain.stdout, plain.status));
        assert!(quiet.stderr.is_empty() && !plain.stderr.is_empty());
    }
    let broken = scratch.run(&["check", "a.yaml", "b.yaml", "-q"]);
    let stderr = String::from_utf8_lossy(&broken.stderr);
    assert!(stderr.contains("b.yaml:1:4") && !stderr.contains("checked in"), "{stderr}");
    let nothing = scratch.run(&["check", "c.yaml", "-q"]);
    assert_eq!(nothing.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&nothing.stderr).starts_with("error: nothing to check was found"));
    let mutated = scratch.run(&["mutate", "a.yaml", "-q"]);
    let stderr = String::from_utf8_lossy(&mutated.stderr);
    assert!(stderr.contains("deny[arkonis/backend-unknown]") && !stderr.contains("checked in"), "{stderr}");
}

#[test]
fn a_fix_reports_what_is_left_beside_a_file_that_cannot_be_written() {
    let scratch = Scratch::with(&[
        ("a.yaml", &memory("a", "backend: reddis, redis: {secretRef: {name: a}}")),
        ("b.yaml", &memory("b", "backend: in-contxt")),
        ("c.yaml", &memory("c", "backend: redis")),
    ]);
    let read_only = scratch.path().join("b.yaml");
    fs::set_permissions(&read_only, Permissions::from_mode(0o444)).expect("permissions");
    let output = scratch.run(&["check", ".", "--fix", "-o", "concise"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("failed to write ./b.yaml: the file is read-only"), "{stderr}");
    assert!(stderr.contains("fixed 1 finding in 1 file: ./a.yaml (1)\n"), "{stderr}");
    assert!(scratch.read("a.yaml").contains("backend: redis,"));
    let left = String::from_utf8_lossy(&output.stdout);
    let left: Vec<&str> = left.lines().map(|line| line.split(':').next().unwrap_or_default()).collect();
    assert_eq!(left, ["./b.yaml", "./c.yaml"]);
    let again = scratch.run(&["check", "b.yaml", "--fix"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("fixed nothing\n"), "{again:?}");
}

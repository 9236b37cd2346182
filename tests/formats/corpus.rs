//! Every case of tests/ui/check in every format.

use std::fs;

use serde_json::Value;

use crate::archive::{Archive, scenarios};
use crate::run::Scratch;
use crate::{github, junit, markdown, page, sarif, schema};

/// The least number of cases that write a report: the test would see nothing otherwise.
const AT_LEAST: usize = 50;

const FORMATS: [&str; 7] = ["json", "sarif", "junit", "gitlab", "github", "html", "markdown"];

#[test]
fn every_case_in_every_format() {
    let (mut written, mut clean, mut unreadable) = (0, 0, 0);
    for (name, case) in scenarios("check") {
        let Some((scratch, fails_on_warnings)) = formats_of(&case) else { continue };
        let mut report: Value = serde_json::from_str(&scratch.read("out.json")).expect("JSON");
        schema::expect_report(&report, &name);
        clean += usize::from(report["findings"] == Value::Array(Vec::new()));
        put_denials_first(&mut report);
        let log = serde_json::from_str(&scratch.read("out.sarif")).expect("JSON");
        sarif::expect_good(&log, &report, &name);
        junit::expect_good(&scratch.read("out.junit"), &report, fails_on_warnings, &name);
        expect_gitlab(&serde_json::from_str(&scratch.read("out.gitlab")).expect("JSON"), &report, &name);
        page::expect_good(&scratch.read("out.html"), &name);
        github::expect_good(&scratch.read("out.github"), &report, &name);
        markdown::expect_good(&scratch.read("out.markdown"), &report, &name);
        written += 1;
        unreadable += usize::from(report["summary"]["errors"] != 0);
    }
    assert!(written >= AT_LEAST && clean > 5 && unreadable > 5, "{written} cases, {clean} clean");
}

/// Runs a case with all formats; nothing when it ends before there is a report.
fn formats_of(case: &Archive) -> Option<(Scratch, bool)> {
    let scratch = Scratch::with(&[]);
    case.unpack_inputs(scratch.path()).expect("written");
    let line = case.command_line();
    let (line, input) = line.split_once(" < ").unwrap_or((line, ""));
    let mut words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
    words.extend(FORMATS.iter().map(|format| format!("--output={format}=out.{format}")));
    let mut command = scratch.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    if !input.is_empty() {
        command.stdin(fs::File::open(scratch.path().join(input)).expect("the input"));
    }
    command.output().expect("memgate runs");
    let fails_on_warnings = line.contains("--fail-on warn");
    scratch.path().join("out.json").exists().then_some((scratch, fails_on_warnings))
}

/// The findings as all formats but JSON have them: without those that only follow from a denial, denials first.
fn put_denials_first(report: &mut Value) {
    let findings = report["findings"].as_array_mut().expect("findings");
    findings.retain(|finding| finding["follows"] != true);
    let rank = |finding: &Value| ["deny", "warn", "note"].iter().position(|it| finding["severity"] == *it);
    findings.sort_by_key(rank);
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn expect_gitlab(issues: &Value, report: &Value, name: &str) {
    let issues = issues.as_array().expect("a list");
    let all = list(report, "inputErrors").iter().chain(list(report, "findings"));
    assert_eq!(issues.len(), all.clone().count(), "{name}");
    let mut fingerprints: Vec<_> = issues.iter().map(|issue| issue["fingerprint"].as_str()).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), issues.len(), "{name}: GitLab drops what has the fingerprint of another");
    for (issue, entry) in issues.iter().zip(all) {
        assert_eq!(issue["check_name"], entry["code"], "{name}");
        assert!(issue["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {issue}");
        let severity = match entry["severity"].as_str() {
            Some("deny") => "critical",
            Some("warn") => "minor",
            Some(_) => "info",
            None => "blocker",
        };
        assert_eq!(issue["severity"], severity, "{name}");
        assert!(issue["location"]["path"].as_str().is_some_and(|path| !path.starts_with("./")), "{name}");
        let line = |key| issue["location"]["lines"][key].as_u64().expect("a line");
        assert_eq!(line("begin"), entry["line"].as_u64().unwrap_or(1), "{name}");
        assert!(line("end") >= line("begin"), "{name}");
    }
}

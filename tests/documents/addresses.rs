//! That no address of a repository, a registry or a page of memgate is made up: outputs and sources name none that the
//! build was not given (`MEMGATE_PAGES`, `MEMGATE_IMAGE`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{memgate, text};

/// What an address of memgate's own would hold, put together here so that this file has none.
fn made_up() -> [String; 4] {
    ["github.com/", "gitlab.com/", "ghcr.io/", "docker.io/"].map(|host| format!("{host}memgate/"))
}

/// Folders of what is built, or of others.
const NOT_READ: [&str; 3] = [".git", "target", "node_modules"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_symlink() || NOT_READ.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn no_file_names_an_address_of_our_own() {
    let mut all = Vec::new();
    files(Path::new(env!("CARGO_MANIFEST_DIR")), &mut all);
    let mut found = Vec::new();
    for path in all {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let lines = text.lines().enumerate();
        let bad = lines.filter(|(_, line)| made_up().iter().any(|address| line.contains(address)));
        found.extend(bad.map(|(number, _)| format!("{}:{}", path.display(), number + 1)));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The addresses in an output, up to what ends one.
fn addresses(output: &str) -> BTreeSet<String> {
    let ends = |c: char| c.is_whitespace() || "\"'<>)`\\,;&".contains(c);
    let starts = ["https://", "http://"].into_iter().flat_map(|start| output.match_indices(start));
    starts.map(|(at, _)| output[at..].split(ends).next().unwrap_or_default().to_owned()).collect()
}

/// Each format of `check`, with denials, warnings, errors of inputs and a policy.
#[test]
fn no_format_links_to_an_address_that_is_not_configured() {
    let inputs = ["docs/tour/memory.yaml", "examples/arkonis", "no-such-file.yaml"];
    for format in ["text", "concise", "json", "github", "gitlab", "sarif", "junit", "html"] {
        let mut words = vec!["check", "--policy", "examples/policy/baseline.yaml", "-o", format];
        words.extend(inputs);
        let output = memgate(&words, "");
        let shown = text(&output.stdout);
        assert!(shown.contains("redis"), "{format}: {shown}");
        let mut found = addresses(&shown);
        // The format itself, and what the inputs and the pages of codes show as an example of an endpoint.
        found.retain(|it| {
            !it.contains("json.schemastore.org") && !it.contains("www.w3.org") && !it.contains(".svc")
        });
        assert_eq!(found, BTreeSet::new(), "{format}");
    }
}

/// Without an address each code brings its page.
#[test]
fn sarif_has_the_pages_of_its_codes() {
    let output = memgate(&["check", "-o", "sarif", "docs/tour/memory.yaml"], "");
    let log: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rules = log.pointer("/runs/0/tool/driver/rules").and_then(Value::as_array).expect("rules");
    assert!(!rules.is_empty());
    for rule in rules {
        let page = rule.pointer("/help/markdown").and_then(Value::as_str).unwrap_or_default();
        assert!(page.contains("## What to do") && rule.get("helpUri").is_none(), "{rule}");
        // A link to a file of the repository leads nowhere from a code scanning alert.
        assert!(!page.contains("](../"), "{page}");
    }
}

#[test]
fn alerts_name_the_command_that_prints_their_runbook() {
    let manifests = |flags: &[&str]| {
        let words = ["manifests", "--image", "any", "--component", "monitoring", "--only", "workload"];
        text(&memgate(&[&words, flags].concat(), "").stdout)
    };
    let plain = manifests(&[]);
    assert!(
        plain.contains("runbook: memgate explain runbook/no-answer") && !plain.contains("runbook_url"),
        "{plain}"
    );
    let with = manifests(&["--runbook-url", "https://wiki.example.com/memgate/"]);
    assert!(with.contains("runbook_url: https://wiki.example.com/memgate/no-answer.md"), "{with}");
    assert!(!with.contains("memgate explain runbook/"), "{with}");
}

/// What an alert names can be printed.
#[test]
fn every_runbook_is_printed() {
    let listed = text(&memgate(&["explain", "runbook"], "").stdout);
    let begins = listed.lines().filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = begins.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let page = memgate(&["explain", name], "");
        assert!(page.status.success() && text(&page.stdout).starts_with("# "), "{name}");
    }
}

//! Names and values that could break a format.

use roxmltree::Document;

use crate::github;
use crate::run::{BAD, Scratch};

const NAME: &str = "a:b,c%d <e>&\"\nf.yaml";

#[test]
fn names_of_files_stay_one_name() {
    let scratch = Scratch::with(&[(NAME, BAD)]);
    let annotations = github::parse(&scratch.out(&["check", ".", "-o", "github"]));
    assert_eq!(annotations[0].get("file"), Some(NAME));
    let issues = scratch.json(&["check", ".", "-o", "gitlab"]);
    assert_eq!(issues[0]["location"]["path"], NAME);
    let xml = scratch.out(&["check", ".", "-o", "junit"]);
    let document = Document::parse(&xml).expect("XML");
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).expect("a suite");
    assert!(suite.attribute("name").is_some_and(|name| name.ends_with(NAME)), "{xml}");
    let log = scratch.json(&["check", ".", "-o", "sarif"]);
    let uri = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "a%3Ab,c%25d%20%3Ce%3E&%22%0Af.yaml");
    assert_eq!(scratch.out(&["check", ".", "-o", "concise"]).lines().count(), 2);
    assert_eq!(scratch.out(&["check", ".", "-o", "jsonl"]).lines().count(), 3);
}

#[test]
fn values_cannot_break_out() {
    let value = r#""\e[31m]]></failure>\r\n::error::x%0A\0\u2028""#;
    let scratch = Scratch::with(&[("bad.yaml", &BAD.replace("reddis", value))]);
    for format in ["text", "concise", "json", "jsonl", "github", "gitlab", "sarif", "junit"] {
        let output = scratch.run(&["check", "bad.yaml", "-o", format]);
        assert_eq!(output.status.code(), Some(1), "{format}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{format}: {text:?}");
        match format {
            "github" => assert_eq!(github::parse(&text).len(), 2, "{text}"),
            "concise" => assert_eq!(text.lines().count(), 2, "{text}"),
            "junit" => drop(Document::parse(&text).expect("XML")),
            _ => {}
        }
    }
}

#[test]
fn a_directory_that_is_none_is_an_entry_everywhere() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    for format in ["concise", "json", "jsonl", "github", "gitlab", "sarif", "junit"] {
        let output = scratch.run(&["check", "bad.yaml", "missing/", "-o", format]);
        assert_eq!(output.status.code(), Some(2), "{format}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains("missing/") && text.contains("no such file or directory"), "{format}: {text}");
    }
}

//! JUnit's XML, by the XML Schema that Jenkins publishes.

use roxmltree::{Document, Node};
use serde_json::{Value, json};
use uppsala::XsdValidator;

use crate::run::{BAD, Scratch};

/// What is wrong with a document by the schema.
fn complaints(text: &str) -> Vec<String> {
    let schema = uppsala::parse(include_str!("junit/junit-4.xsd")).expect("XML");
    let schema = XsdValidator::from_schema(&schema).expect("a schema");
    let document = uppsala::parse(text).expect("XML");
    schema.validate(&document).iter().map(ToString::to_string).collect()
}

fn expect_valid(text: &str, name: &str) {
    let complaints = complaints(text);
    assert!(complaints.is_empty(), "{name}: {}", complaints.join("\n"));
}

/// A document by the schema, whose counts are right and that fails when the run does.
pub(crate) fn expect_good(text: &str, report: &Value, fails_on_warnings: bool, name: &str) {
    expect_valid(text, name);
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites", "{name}");
    for node in root.descendants().filter(Node::is_element) {
        if node.has_attribute("tests") {
            for (attribute, element) in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")]
            {
                let count = node.descendants().filter(|node| node.has_tag_name(element)).count();
                assert_eq!(node.attribute(attribute), Some(count.to_string().as_str()), "{name}");
            }
        }
        if node.has_tag_name("failure") || node.has_tag_name("error") {
            assert!(node.has_attribute("type") && node.has_attribute("message"), "{name}: {node:?}");
        }
    }
    let count = |element: &str| root.descendants().filter(|node| node.has_tag_name(element)).count();
    let number =
        |key: &str| usize::try_from(report["summary"][key].as_u64().expect("a number")).expect("fits");
    assert!(count("testcase") >= number("objects"), "{name}: what passes is visible");
    assert_eq!(count("error"), number("errors"), "{name}");
    let fails = number("deny") > 0 || fails_on_warnings && number("warn") > 0;
    assert_eq!(count("failure") > 0, fails, "{name}");
}

#[test]
fn has_a_test_for_each_object_and_code() {
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("tab.yaml", "apiVersion:\n\tb: 1\n")]);
    let text = scratch.out(&["check", ".", "-o", "junit"]);
    let document = Document::parse(&text).expect("XML");
    let of = |element: &str| -> Vec<&str> {
        let tests = document.descendants().filter(|node| node.has_tag_name("testcase"));
        tests
            .filter(|node| match element {
                "" => !node.has_children(),
                _ => node.children().any(|child| child.has_tag_name(element)),
            })
            .filter_map(|node| node.attribute("name"))
            .collect()
    };
    assert_eq!(of(""), ["ArkMemory team-a/plain"]);
    assert_eq!(of("failure"), ["ArkMemory team-a/notes: arkonis/backend-unknown"]);
    assert_eq!(of("system-out"), ["ArkMemory team-a/warned: arkonis/unknown-field"]);
    assert_eq!(of("error"), ["tab.yaml can be read"]);
    let strict = scratch.out(&["check", "bad.yaml", "--fail-on", "warn", "-o", "junit"]);
    assert!(strict.contains("failures=\"2\""), "{strict}");
}

#[test]
fn the_schema_notices_what_is_wrong() {
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("tab.yaml", "apiVersion:\n\tb: 1\n")]);
    let text = scratch.out(&["check", ".", "-o", "junit"]);
    expect_valid(&text, "as it is");
    for (part, wrong) in [
        (" name=\"ArkMemory team-a/plain\"", ""),
        (" tests=\"3\"", ""),
        (" message=", " line="),
        ("<testsuites name=\"memgate\"", "<testsuites title=\"memgate\""),
        ("</failure>", "</failure><properties/>"),
        ("</failure>", "</failure><error/>"),
        ("    <testcase", "text\n    <testcase"),
        ("  </testsuite>", "    <property/>\n  </testsuite>"),
    ] {
        let changed = text.replacen(part, wrong, 1);
        assert_ne!(changed, text, "{part}");
        assert!(!complaints(&changed).is_empty(), "{wrong}");
    }
}

#[test]
fn cases_are_written_by_the_schema_too() {
    let case = |name: &str, allowed: bool| {
        let object = json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
            "metadata": {"name": "a", "namespace": "b"}, "spec": {"backend": "in-context"}});
        json!([{"name": name, "object": object, "expect": {"allowed": allowed}}]).to_string()
    };
    let (passes, fails) = (case("accepts-it", true), case("rejects-<it>", false));
    let scratch =
        Scratch::with(&[("passes.yaml", &passes), ("fails.yaml", &fails), ("broken.yaml", "a: [\n")]);
    for (files, code, results) in [
        (&["passes.yaml"][..], 0, ["failures=\"0\"", "errors=\"0\""]),
        (&["passes.yaml", "fails.yaml"], 1, ["failures=\"1\"", "errors=\"0\""]),
        (&["passes.yaml", "broken.yaml"], 2, ["failures=\"0\"", "errors=\"1\""]),
    ] {
        let output = scratch.run(&[&["test", "-o", "junit"], files].concat());
        assert_eq!(output.status.code(), Some(code), "{files:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        expect_valid(&text, &format!("{files:?}"));
        assert!(results.iter().all(|result| text.contains(result)), "{files:?}: {text}");
        assert!(text.contains("accepts-it"), "{files:?}: what passes is visible: {text}");
    }
}

//! JUnit's XML, by what Jenkins publishes as its form.

use roxmltree::{Document, Node};
use serde_json::Value;

use crate::run::{BAD, Scratch};

/// Each element with its attributes and what may stand in it.
const FORM: [(&str, &[&str], &[&str]); 6] = [
    ("testsuites", &["name", "tests", "failures", "errors"], &["testsuite"]),
    ("testsuite", &["name", "tests", "failures", "errors"], &["testcase"]),
    ("testcase", &["classname", "name"], &["failure", "error", "system-out"]),
    ("failure", &["type", "message"], &[]),
    ("error", &["type", "message"], &[]),
    ("system-out", &[], &[]),
];

/// A document of that form, whose counts are right and that fails when the run does.
pub(crate) fn expect_good(text: &str, report: &Value, fails_on_warnings: bool, name: &str) {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites", "{name}");
    for node in root.descendants().filter(Node::is_element) {
        let (_, attributes, children) = FORM
            .iter()
            .find(|(element, ..)| node.has_tag_name(*element))
            .unwrap_or_else(|| panic!("{name}: {node:?}"));
        let names: Vec<_> = node.attributes().map(|attribute| attribute.name()).collect();
        assert!(
            names.iter().all(|name| attributes.contains(name)) && names.len() == attributes.len(),
            "{name}: {names:?}"
        );
        let mut below = node.children().filter(Node::is_element);
        assert!(below.all(|child| children.contains(&child.tag_name().name())), "{name}: {node:?}");
        if node.has_attribute("tests") {
            for (attribute, element) in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")]
            {
                let count = node.descendants().filter(|node| node.has_tag_name(element)).count();
                assert_eq!(node.attribute(attribute), Some(count.to_string().as_str()), "{name}");
            }
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
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("tab.yaml", "a:\n\tb: 1\n")]);
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

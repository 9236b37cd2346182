//! SARIF, checked by its schema and by the rules of code scanning.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::run::{BAD, Scratch, many};
use crate::schema::expect_valid;

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let mut schema: Value = serde_json::from_str(include_str!("sarif/sarif-2.1.0.json")).expect("JSON");
    // These have an extra bracket, so they are not regular expressions. Our results have no language.
    for holder in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{holder}/properties/language"));
        let language = language.and_then(Value::as_object_mut).expect("a schema");
        language.remove("pattern").expect("a pattern");
    }
    jsonschema::validator_for(&schema).expect("a schema")
});

/// A log by the schema, with all that a report has.
pub(crate) fn expect_good(log: &Value, report: &Value, name: &str) {
    expect_valid(&SCHEMA, log, name);
    let runs = log["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1, "{name}");
    let results = runs[0]["results"].as_array().expect("results, also when there are none");
    let list = |key: &str| report[key].as_array().expect("a list");
    assert_eq!(results.len(), list("inputErrors").len() + list("findings").len(), "{name}");
    let entries = list("inputErrors").iter().chain(list("findings"));
    let mut fingerprints = BTreeSet::new();
    for (result, entry) in results.iter().zip(entries) {
        assert_eq!(result["ruleId"], entry["code"], "{name}");
        let rules = runs[0]["tool"]["driver"]["rules"].as_array().expect("rules");
        let rule = rules.iter().find(|rule| rule["id"] == result["ruleId"]).expect("a rule");
        // The page itself is in the report: no address is built in.
        let is_error = list("inputErrors").contains(entry);
        assert!(
            is_error || rule["help"]["markdown"].as_str().is_some_and(|page| page.starts_with("# ")),
            "{name}"
        );
        assert!(rule["helpUri"].is_null() || entry["policy"].is_object(), "{name}: {rule}");
        // What GitHub asks of a rule besides, and how much of it it shows.
        for field in ["shortDescription", "fullDescription", "help"] {
            let text = rule[field]["text"].as_str().unwrap_or_default();
            let fits = field == "help" || text.chars().count() <= 1024;
            assert!(!text.is_empty() && fits, "{name}: {field}: {text}");
        }
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"], entry["line"], "{name}");
        if entry["endLine"].is_u64() {
            assert_eq!(place["region"]["endColumn"], entry["endColumn"], "{name}");
        }
        let uri = place["artifactLocation"]["uri"].as_str().expect("a file");
        assert!(!uri.starts_with('/') && !uri.contains([' ', ':', '<']), "{name}: {uri}");
        assert!(fingerprints.insert(result["partialFingerprints"].to_string()), "{name}: {result}");
    }
    let succeeded = &runs[0]["invocations"][0]["executionSuccessful"];
    assert_eq!(*succeeded, list("inputErrors").is_empty(), "{name}");
}

#[test]
fn the_schema_notices_what_is_wrong() {
    let mut log = Scratch::with(&[("bad.yaml", BAD)]).json(&["check", "bad.yaml", "-o", "sarif"]);
    expect_valid(&SCHEMA, &log, "as it is");
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0.into();
    assert!(!SCHEMA.is_valid(&log));
}

#[test]
fn keeps_as_many_results_as_code_scanning_does() {
    let scratch = Scratch::with(&[("many.yaml", &(BAD.to_owned() + &many(101)))]);
    let log = scratch.json(&["check", "many.yaml", "-o", "sarif"]);
    expect_valid(&SCHEMA, &log, "many");
    assert_eq!(log["runs"][0]["results"].as_array().map(Vec::len), Some(5_000));
    let notification = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
    let summary = scratch.json(&["check", "many.yaml", "-o", "json"])["summary"].take();
    let all = ["deny", "warn", "note"].map(|severity| summary[severity].as_u64().expect("a number"));
    let more = all.iter().sum::<u64>() - 5_000;
    assert!(
        notification.as_str().is_some_and(|text| text.starts_with(&format!("{more} findings more"))),
        "{notification}"
    );
}

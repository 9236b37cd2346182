//! What the alerts do when something happens: promtool runs them against the series of `alerts/*.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::monitoring::{alerts, read_yaml};
use crate::support::tools;

/// The files of tests, by name.
fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/deploy/alerts");
    let entries = fs::read_dir(folder).expect("the folder of the tests");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "there are no tests");
    files
}

/// The tests of all files.
fn tests() -> Vec<Value> {
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("a file of tests");
        read_yaml(&text).get("tests").and_then(Value::as_array).expect("tests").clone()
    };
    files().iter().flat_map(read).collect()
}

#[test]
#[ignore = "needs Go, for promtool"]
fn alerts_do_what_their_tests_say() {
    let promtool = tools::promtool().expect("promtool");
    let ran = Command::new(promtool).args(["test", "rules"]).args(files()).output().expect("promtool runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}{}", said(&ran.stdout), said(&ran.stderr));
}

/// Each alert has a test in which it fires and one in which it does not, and each test says in its name which of
/// the two it is.
#[test]
fn each_alert_is_seen_to_fire_and_to_be_silent() {
    let mut seen: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for test in tests() {
        let name = test["name"].as_str().expect("a name");
        let (alert, what) = name.split_once(' ').expect("an alert, and what it does");
        let fires = what.starts_with("fires ");
        assert!(fires || what.starts_with("is silent "), "{name}");
        let [asked] = test["promql_expr_test"].as_array().expect("questions").as_slice() else {
            panic!("{name} asks for more than one thing")
        };
        let question = format!("count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})");
        assert_eq!(asked["expr"], question, "{name}");
        let expected = if fires { json!([{"value": 1}]) } else { json!([]) };
        assert_eq!(asked["exp_samples"], expected, "{name}");
        seen.entry(alert.to_owned()).or_default().insert(fires);
    }
    let name = |alert: Value| alert["alert"].as_str().expect("a name").to_owned();
    let both = alerts().into_iter().map(|alert| (name(alert), BTreeSet::from([false, true])));
    assert_eq!(seen, both.collect());
}

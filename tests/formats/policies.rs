//! The members and properties of formats for findings of policies.

use serde_json::json;

use crate::archive::scenario;
use crate::run::Scratch;

/// The files of the command test with a violation, an exemption and something that cannot be judged.
fn scratch() -> Scratch {
    let scenario = scenario("check/judges-by-policies");
    Scratch::with(&["policy.yaml", "memories.yaml"].map(|file| (file, scenario.text_of(file))))
}

fn check(format: &'static str) -> [&'static str; 8] {
    ["check", "memories.yaml", "--policy", "policy.yaml", "--at", "2027-01-01T00:00:00Z", "-o", format]
}

#[test]
fn json_names_rule_and_status() {
    let report = scratch().json(&check("json"));
    let findings = report["findings"].as_array().expect("findings");
    let of = |status: &str| findings.iter().filter(|it| it["policy"]["status"] == status).count();
    assert_eq!([of("violated"), of("exempt"), of("unknown")], [2, 1, 1], "{report:#}");
    let expected = json!({"name": "org", "rule": "durable", "status": "violated", "severity": "high"});
    let durable = findings.iter().find(|it| it["code"] == "policy/org/durable").expect("a finding");
    assert_eq!(durable["policy"], expected);
}

#[test]
fn junit_skips_what_is_exempted() {
    let text = scratch().out(&check("junit"));
    assert_eq!(text.matches("<skipped>").count(), 1, "{text}");
    assert!(text.contains("ArkMemory team-a/scratch-1: policy/org/durable\"><skipped>"), "{text}");
}

#[test]
fn sarif_has_the_severity_of_the_rule() {
    let log = scratch().json(&check("sarif"));
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["id"] == "policy/org/tls").expect("the rule");
    assert_eq!(rule["properties"]["severity"], "critical");
    assert_eq!(rule["properties"]["security-severity"], "9.5");
    assert_eq!(rule["helpUri"], "https://docs.example/tls");
    let levels = log["runs"][0]["results"].as_array().expect("results").iter();
    assert!(levels.filter(|it| it["level"] == "note").count() == 2, "{log:#}");
}

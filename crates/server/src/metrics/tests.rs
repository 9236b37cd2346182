use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::policies::{Found, MAX_POLICIES};
use super::*;
use crate::metrics::labels::ShedCause;
use crate::outcomes;
use memgate_certs::metrics::CertKind;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::{MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
use memgate_model::policy::Policies;
use memgate_model::policy_rule::{PolicyFinding, PolicyStatus};
use memgate_policy::codes::RULE;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::review_path::Phase;

/// How many series one replica may have.
const MAX_SERIES: usize = 1943;

/// Metrics that have counted everything that can be counted.
fn all() -> Metrics {
    let metrics = Metrics::new(outcomes::all());
    for outcome in outcomes::all() {
        metrics.admission.count_request(outcome, Duration::ZERO);
        if outcome.verdict != "error" {
            metrics.admission.count_abandoned(outcome.webhook);
        }
    }
    for cause in ShedCause::ALL {
        metrics.admission.count_shed(cause);
    }
    for outcome in ResultLabel::HANDSHAKES {
        metrics.count_handshake(outcome);
    }
    for outcome in ResultLabel::LOOKUPS {
        metrics.count_lookup(outcome);
    }
    for outcome in ResultLabel::EVENTS {
        metrics.count_event(outcome);
    }
    for family in memgate_platforms::ALL {
        metrics.admission.count_held(family);
        metrics.set_store(family, 1, 1, Duration::ZERO);
    }
    for good in [true, false] {
        for kind in CertKind::ALL {
            metrics.certs.count_rotation(kind, good);
        }
        for kind in Phase::ALL {
            metrics.certs.count_cabundle_write(kind, good);
        }
    }
    for kind in CertKind::ALL {
        metrics.certs.set_validity(kind, (0, 1));
    }
    metrics.certs.set_renewal(CertKind::Ca, 1);
    metrics.set_replicas([("heard", 1), ("silent", 0), ("unknown", 0)]);
    for call in Phase::ALL {
        metrics.set_entries(call, [("Fail", 1), ("Ignore", 0)], 0);
    }
    count_policies(&metrics);
    metrics
}

/// Counts everything of more policies than have names of their own.
fn count_policies(metrics: &Metrics) {
    let (mut policies, now) = (Policies::default(), Timestamp::UNIX_EPOCH);
    for index in 0..=MAX_POLICIES {
        let name = format!("p-{index}");
        put(&mut policies, &name);
        for severity in [Severity::Deny, Severity::Warn, Severity::Note] {
            metrics.policies.count(&[finding(&policies, &name, severity, PolicyStatus::Violated)]);
        }
        metrics.policies.count(&[finding(&policies, &name, Severity::Note, PolicyStatus::Exempt)]);
    }
    let found = policies.iter().map(|policy| (policy.name.clone(), FOUND)).collect();
    metrics.policies.set(&policies, &found, now);
}

const FOUND: Found = Found { violations: 3, is_at_risk: true };

/// The policies that an audit knows have names up to the limit, and all others share one.
#[test]
fn violations_are_what_the_statuses_say_now() {
    let (metrics, mut policies) = (Metrics::new([]), Policies::default());
    put(&mut policies, "p-1");
    let text = |found: &[(&str, Found)]| {
        let found: BTreeMap<_, _> = found.iter().map(|(name, found)| ((*name).to_owned(), *found)).collect();
        metrics.policies.set(&policies, &found, Timestamp::UNIX_EPOCH);
        metrics.text().unwrap()
    };
    let violations = |count: i64| format!("memgate_policy_violations{{policy=\"p-1\"}} {count}\n");
    let risk = "memgate_policy_promotion_at_risk_timestamp_seconds{policy=\"p-1\"} 172800\n";
    let first = text(&[("p-1", FOUND), ("gone", FOUND)]);
    assert!(first.contains(&violations(3)) && first.contains(risk), "{first}");
    let second = text(&[("p-1", Found { violations: 0, is_at_risk: false })]);
    assert!(second.contains(&violations(0)) && !second.contains("at_risk_timestamp_seconds{"), "{second}");
    assert!(!second.contains("gone"), "{second}");
}

/// A policy, and an exemption from it that is in force.
fn put(policies: &mut Policies, name: &str) {
    let spec = json!({
        "rules": [{"id": "a", "labels": {"required": ["team"]}}],
        "promote": {"at": "1970-01-03T00:00:00Z", "to": "deny"},
        "exemptions": {"namespaces": ["granted"], "maxAge": "30d"},
    });
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let exemption = json!({
        "metadata": {"name": name, "namespace": "granted"},
        "spec": {
            "policy": name, "rules": ["a"], "target": {"namespaces": ["lab"]}, "reason": "it moves away soon",
            "from": "1969-12-31T00:00:00Z", "expiresAt": "1970-01-02T00:00:00Z",
        },
    });
    for (kind, manifest) in [(&MEMORY_POLICY, policy), (&MEMORY_POLICY_EXEMPTION, exemption)] {
        assert_eq!(memgate_policy::put(policies, &memgate_platforms::ALL, kind, &manifest), []);
    }
}

fn finding(policies: &Policies, policy: &str, severity: Severity, status: PolicyStatus) -> Finding {
    let rule = Arc::clone(&policies.get(policy).unwrap().rules[0].about);
    let about =
        PolicyFinding { rule, status, at_admission: None, exemption: None, is_assumed: false, excess: 0 };
    let policy = Some(Box::new(about));
    Finding { policy, severity, ..Finding::deny(&RULE, Pointer::root(), "it has no team") }
}

fn series(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series).collect()
}

#[test]
fn there_are_never_more_series_than_promised() {
    let text = all().text().unwrap();
    let count = series(&text).len();
    assert!(count > outcomes::all().count(), "the series of requests alone are more than {count}");
    assert!(count <= MAX_SERIES, "{count} series");
    assert!(DOCUMENTATION.contains(&format!("{count} series")), "{count} series");
}

/// A counter that first appears with 1 is not an increase for Prometheus.
#[test]
fn counters_begin_at_zero() {
    let (new, all) = (Metrics::new(outcomes::all()).text().unwrap(), all().text().unwrap());
    let counters: Vec<_> = all
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .filter(|name| name.starts_with("memgate_") && !name.starts_with("memgate_policy_"))
        .collect();
    assert!(counters.len() >= 10, "{counters:?}");
    let of = |text, name: &str| -> BTreeSet<String> {
        let start = format!("{name}_total");
        series(text).into_iter().filter(|series| series.starts_with(&start)).map(str::to_owned).collect()
    };
    for name in counters {
        assert_eq!(of(&new, name), of(&all, name));
    }
    let counted = new.lines().filter(|line| line.starts_with("memgate_") && line.contains("_total"));
    assert!(counted.clone().all(|line| line.ends_with(" 0")), "{:?}", counted.collect::<Vec<_>>());
}

#[test]
fn counters_of_policies_begin_at_zero_when_they_are_known() {
    let metrics = Metrics::new([]);
    let mut policies = Policies::default();
    put(&mut policies, "one");
    metrics.policies.set(&policies, &BTreeMap::new(), Timestamp::UNIX_EPOCH);
    let text = metrics.text().unwrap();
    for line in [
        r#"memgate_policy_findings_total{policy="one",action="deny"} 0"#,
        r#"memgate_policy_findings_total{policy="one",action="warn"} 0"#,
        r#"memgate_policy_findings_total{policy="one",action="report"} 0"#,
        r#"memgate_policy_exempted_total{policy="one"} 0"#,
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} is not in\n{text}");
    }
}

#[test]
fn counting_again_makes_no_further_series() {
    let metrics = all();
    let first = series(&metrics.text().unwrap()).len();
    for outcome in outcomes::all() {
        metrics.admission.count_request(outcome, Duration::from_secs(9));
    }
    assert_eq!(series(&metrics.text().unwrap()).len(), first);
}

#[test]
fn sub_millisecond_answers_have_buckets_of_their_own() {
    let metrics = Metrics::new([]);
    let outcome =
        RequestLabels { webhook: "mutate", operation: "CREATE", verdict: "allowed", reason: "injected" };
    for micros in [40, 90, 200, 400, 900] {
        metrics.admission.count_request(outcome, Duration::from_micros(micros));
    }
    let text = metrics.text().unwrap();
    for (bucket, count) in [("0.00005", 1), ("0.0001", 2), ("0.00025", 3), ("0.0005", 4), ("0.001", 5)] {
        let line = format!(r#"_bucket{{le="{bucket}",webhook="mutate"}} {count}"#);
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

const DOCUMENTATION: &str = include_str!("../../../../docs/metrics.md");

/// docs/metrics.md has a row for each metric, with its type and labels, and no other.
#[test]
fn the_documentation_lists_all_metrics() {
    let text = all().text().unwrap();
    let metrics = DOCUMENTATION.split("| label |").next().unwrap();
    let documented: BTreeSet<String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
            let (name, kind) = documented_kind(&cells[0]);
            format!("{name} {kind} {}", cells[1])
        })
        .collect();
    let exposed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            format!("{name}{suffix} {kind} {}", labels_of(&text, name))
        })
        .collect();
    assert_eq!(documented, exposed);
}

/// A metric and its type, as docs/metrics.md says it: in parentheses, else by the end of the name.
fn documented_kind(cell: &str) -> (&str, &str) {
    match cell.split_once(" (") {
        Some((name, kind)) => (name, kind.trim_end_matches(')')),
        None if cell.ends_with("_total") => (cell, "counter"),
        None if cell.ends_with("_info") => (cell, "info"),
        None => (cell, "gauge"),
    }
}

/// docs/metrics.md has a row for each label, with its values and no other.
#[test]
fn the_documentation_lists_all_values_of_labels() {
    let text = all().text().unwrap();
    let rows = DOCUMENTATION.split("| label |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<_> = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).collect();
    assert!(!rows.is_empty(), "no rows");
    for (label, row) in rows {
        let documented: BTreeSet<_> = row.split('`').skip(1).step_by(2).collect();
        let start = format!("{label}=\"");
        let values = series(&text)
            .into_iter()
            .filter_map(|line| line.split(['{', ',']).find_map(|pair| pair.strip_prefix(&start)));
        let values = values.map(|rest| rest.split('"').next().unwrap());
        let exposed: BTreeSet<_> = values.filter(|value| !value.starts_with("p-")).collect();
        assert_eq!(documented, exposed, "{label}");
    }
}

/// The names of the labels of a metric, `le` of buckets aside.
fn labels_of(text: &str, name: &str) -> String {
    let mut names = BTreeSet::new();
    for line in series(text).into_iter().filter(|line| line.starts_with(name)) {
        let labels = line.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
        names.extend(labels.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name));
    }
    names.remove("le");
    if names.is_empty() { "–".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
}

#[test]
fn policies_are_counted_by_what_comes_of_them() {
    let metrics = Metrics::new([]);
    let mut policies = Policies::default();
    put(&mut policies, "one");
    let invalid = json!({"metadata": {"name": "two"}, "spec": {"rules": [{"id": "a"}]}});
    assert_eq!(
        memgate_policy::put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY, &invalid).len(),
        1
    );
    metrics.policies.set(&policies, &BTreeMap::new(), Timestamp::UNIX_EPOCH);
    for (severity, status) in [
        (Severity::Deny, PolicyStatus::Violated),
        (Severity::Deny, PolicyStatus::Violated),
        (Severity::Warn, PolicyStatus::Unknown),
        (Severity::Note, PolicyStatus::Exempt),
    ] {
        metrics.policies.count(&[finding(&policies, "one", severity, status)]);
    }
    // A finding of a family does not count for a policy.
    metrics.policies.count(&[Finding::deny(&RULE, Pointer::root(), "it is wrong")]);
    let text = metrics.text().unwrap();
    for line in [
        r#"memgate_policy_findings_total{policy="one",action="deny"} 2"#,
        r#"memgate_policy_findings_total{policy="one",action="warn"} 1"#,
        r#"memgate_policy_exempted_total{policy="one"} 1"#,
        r#"memgate_policies{state="in_force"} 1"#,
        r#"memgate_policies{state="invalid"} 1"#,
        r#"memgate_policy_exemption_expires_timestamp_seconds{policy="one"} 86400"#,
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} is not in\n{text}");
    }

    // An exemption that has ended has no expiry metric.
    metrics.policies.set(&policies, &BTreeMap::new(), Timestamp::from_second(86_400).unwrap());
    assert!(!metrics.text().unwrap().contains("expires_timestamp_seconds{"));
}

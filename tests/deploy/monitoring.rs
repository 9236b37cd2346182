//! The alerts and the dashboard of `deploy/monitoring` only use existing metrics: every expression
//! is PromQL, every metric, label and label value exists, and every alert leads to help.
//!
//! What memgate exposes is read from docs/metrics.md, which unit tests hold equal to the server.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

use std::collections::{BTreeMap, BTreeSet};

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use promql_parser::label::MatchOp;
use promql_parser::parser::{self, AggregateExpr, BinaryExpr, Expr, VectorSelector};
use serde_json::Value;

const METRICS: &str = include_str!("../../docs/metrics.md");
const ALERTS: &str = include_str!("../../deploy/monitoring/alerts.yaml");
const DASHBOARD: &str = include_str!("../../deploy/monitoring/dashboard.json");

/// The labels that Prometheus itself adds to whatever it scrapes, or to what it sends on; one of them takes the place of
/// memgate's own, which it then renames.
const TARGET: [&str; 5] = ["cluster", "exported_namespace", "instance", "job", "namespace"];

/// What is used of kube-apiserver's metrics.
/// Source: k8s.io/apiserver v0.36, pkg/admission/metrics/metrics.go.
const APISERVER: [(&str, &[&str]); 6] = [
    ("apiserver_admission_webhook_fail_open_count", &["name", "type"]),
    (
        "apiserver_admission_webhook_rejection_count",
        &["name", "type", "operation", "error_type", "rejection_code"],
    ),
    ("apiserver_admission_webhook_request_total", &["name", "type", "operation", "code", "rejected"]),
    (
        "apiserver_admission_webhook_admission_duration_seconds_count",
        &["name", "type", "operation", "rejected"],
    ),
    (
        "apiserver_admission_webhook_admission_duration_seconds_bucket",
        &["name", "type", "operation", "rejected", "le"],
    ),
    ("apiserver_admission_match_condition_evaluation_errors_total", &["name", "kind", "type", "operation"]),
];

/// What Prometheus itself says of each target.
const UP: (&str, &[&str]) = ("up", &[]);

/// What is used of kube-state-metrics.
/// Source: kube-state-metrics, docs/metrics/workload, the pages on Deployments, pods and CronJobs.
const WORKLOADS: [(&str, &[&str]); 5] = [
    ("kube_deployment_spec_replicas", &["namespace", "deployment"]),
    ("kube_deployment_status_replicas_ready", &["namespace", "deployment"]),
    ("kube_pod_container_status_restarts_total", &["namespace", "pod", "container"]),
    ("kube_cronjob_status_last_successful_time", &["namespace", "cronjob"]),
    ("kube_cronjob_created", &["namespace", "cronjob"]),
];

/// What rules of deploy/monitoring record, and the labels that are left of what they ask for.
const RECORDED: [(&str, &[&str]); 3] = [
    ("memgate:reviews:rate5m", &["cluster", "namespace", "view"]),
    ("memgate:reviews_late:rate5m", &["cluster", "namespace", "view"]),
    ("memgate:reviews_late:ratio", &["cluster", "namespace", "view", "window"]),
];

/// The labels of each series.
type Known = BTreeMap<String, BTreeSet<String>>;

fn known() -> Known {
    let others = APISERVER.iter().chain(&WORKLOADS).chain(&RECORDED).chain([&UP]);
    let mut known: Known = others
        .map(|(name, labels)| ((*name).to_owned(), labels.iter().map(|label| (*label).to_owned()).collect()))
        .collect();
    let rows = METRICS.split("| label |").next().unwrap().lines().filter_map(|line| line.strip_prefix("| `"));
    for row in rows {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (name, kind) = cells[0].split_once('`').unwrap();
        let labels: BTreeSet<_> =
            cells[1].split(", ").filter(|label| *label != "–").map(str::to_owned).collect();
        if kind == " (histogram)" {
            let with_le = labels.iter().cloned().chain(["le".to_owned()]).collect();
            known.insert(format!("{name}_bucket"), with_le);
            known.insert(format!("{name}_sum"), labels.clone());
            known.insert(format!("{name}_count"), labels);
        } else {
            known.insert(name.to_owned(), labels);
        }
    }
    known
}

/// The values of memgate's labels.
fn label_values() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rows = METRICS.split("| label |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(label, row)| (label, row.split('`').skip(1).step_by(2).collect())).collect()
}

/// What is wrong with an expression.
fn faults(expression: &str) -> Vec<String> {
    // Grafana puts these in before it asks.
    let mut plain = expression.replace("$__rate_interval", "5m").replace("$__range", "1h");
    for variable in ["$instance", "$cluster", "$namespace"] {
        plain = plain.replace(variable, ".+");
    }
    match parser::parse(&plain) {
        Err(error) => vec![format!("{expression}: {error}")],
        Ok(parsed) => {
            let mut faults = Vec::new();
            walk(&parsed, &known(), &mut faults);
            faults.into_iter().map(|fault| format!("{expression}: {fault}")).collect()
        }
    }
}

/// Notes what an expression asks for that is not there; gives back its series' labels.
fn walk(expression: &Expr, known: &Known, faults: &mut Vec<String>) -> BTreeSet<String> {
    match expression {
        Expr::Aggregate(AggregateExpr { expr, modifier, .. }) => {
            let labels = walk(expr, known, faults);
            let Some(modifier) = modifier else { return BTreeSet::new() };
            for label in &modifier.labels().labels {
                if !labels.contains(label) {
                    faults.push(format!("there is no label {label} to group by"));
                }
            }
            modifier.labels().labels.iter().cloned().collect()
        }
        Expr::Unary(unary) => walk(&unary.expr, known, faults),
        Expr::Paren(paren) => walk(&paren.expr, known, faults),
        Expr::Subquery(subquery) => walk(&subquery.expr, known, faults),
        Expr::Binary(BinaryExpr { lhs, rhs, op, modifier }) => {
            let left = walk(lhs, known, faults);
            let right = walk(rhs, known, faults);
            let joined = modifier.as_ref().and_then(|modifier| modifier.matching.as_ref());
            match joined.filter(|joined| joined.is_include() && !op.is_set_operator()) {
                Some(joined) => joined.labels().labels.iter().cloned().collect(),
                None if left.is_empty() => right,
                None => left,
            }
        }
        Expr::Call(call) => {
            call.args.args.iter().flat_map(|argument| walk(argument, known, faults)).collect()
        }
        Expr::VectorSelector(selector) => selected(selector, known, faults),
        Expr::MatrixSelector(selector) => selected(&selector.vs, known, faults),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => BTreeSet::new(),
    }
}

fn selected(selector: &VectorSelector, known: &Known, faults: &mut Vec<String>) -> BTreeSet<String> {
    let name = selector.name.as_deref().unwrap_or_default();
    let Some(labels) = known.get(name) else {
        faults.push(format!("there is no metric {name:?}"));
        return BTreeSet::new();
    };
    let labels: BTreeSet<_> = labels.iter().cloned().chain(TARGET.map(str::to_owned)).collect();
    let values = label_values();
    for matcher in &selector.matchers.matchers {
        if !labels.contains(&matcher.name) {
            faults.push(format!("{name} has no label {}", matcher.name));
            continue;
        }
        if matcher.name == "le" || TARGET.contains(&matcher.name.as_str()) || !name.starts_with("memgate_") {
            continue;
        }
        let words: Vec<_> = match matcher.op {
            MatchOp::Equal | MatchOp::NotEqual => vec![matcher.value.as_str()],
            MatchOp::Re(_) | MatchOp::NotRe(_) => matcher.value.split('|').collect(),
        };
        let allowed = values.get(matcher.name.as_str());
        for word in words.into_iter().filter(|word| !allowed.is_some_and(|allowed| allowed.contains(word))) {
            faults.push(format!("{} is never {word:?}", matcher.name));
        }
    }
    labels
}

/// All rules: those that alert, and those that record.
fn rules() -> Vec<Value> {
    let file = read_yaml(ALERTS);
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// All alerts.
pub(crate) fn alerts() -> Vec<Value> {
    rules().into_iter().filter(|rule| rule.get("alert").is_some()).collect()
}

/// The only document of a file.
pub(crate) fn read_yaml(text: &str) -> Value {
    let source = std::sync::Arc::new(Source::new("a file".to_owned(), text.to_owned()));
    let mut errors = Vec::new();
    let documents = values(&source, &mut errors);
    assert!(errors.is_empty() && documents.len() == 1, "{errors:?}");
    documents[0].value().clone()
}

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

#[test]
fn faults_are_found() {
    assert_eq!(faults("sum by (reason) (rate(memgate_admission_requests_total[5m])) > 0"), [""; 0]);
    for (wrong, expected) in [
        ("sum(", "unclosed left parenthesis"),
        ("memgate_admission_request_total", "there is no metric"),
        ("memgate_panics_total{reason=\"x\"}", "has no label reason"),
        ("memgate_cert_not_after_seconds{kind=\"lief\"}", "kind is never \"lief\""),
        ("memgate_admission_requests_total{reason=~\"injected|injekted\"}", "reason is never \"injekted\""),
        ("sum by (family) (memgate_ready)", "there is no label family to group by"),
        ("sum by (family) (sum by (reason) (memgate_admission_requests_total))", "no label family"),
        ("1 - sum by (kind) (rate(memgate_panics_total[1m]))", "no label kind"),
    ] {
        let found = faults(wrong);
        assert!(found.len() == 1 && found[0].contains(expected), "{wrong}: {found:?}");
    }
}

#[test]
fn rules_ask_for_existing_metrics() {
    let faults: Vec<_> = rules().iter().flat_map(|rule| faults(rule["expr"].as_str().unwrap())).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// One Prometheus may watch several installations: what is joined is what one of them says.
#[test]
fn rules_keep_cluster_and_namespace() {
    for rule in rules() {
        let expression = rule["expr"].as_str().unwrap();
        let words: Vec<_> = expression.split([' ', '\n']).filter(|word| !word.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            let name = word.trim_start_matches('(');
            let aggregates = ["sum", "max", "min", "group", "count", "avg"];
            let Some(name) = aggregates.iter().find(|known| name.split('(').next() == Some(**known)) else {
                continue;
            };
            let following = words.get(at + 1..at + 4).unwrap_or_default();
            assert!(
                following.first() == Some(&"by")
                    && following[1] == "(cluster,"
                    && following[2].starts_with("namespace"),
                "{name} in {expression}"
            );
        }
        for joined in expression.split(" on (").skip(1).filter(|joined| !joined.starts_with(')')) {
            assert!(joined.starts_with("cluster, "), "{expression}");
        }
    }
}

/// The labels of what is recorded are those that the rules set and those that their expressions leave.
#[test]
fn rules_record_what_is_asked_for() {
    let mut recorded: Known = BTreeMap::new();
    for rule in rules() {
        let Some(name) = rule.get("record").and_then(Value::as_str) else { continue };
        let mut labels =
            walk(&parser::parse(rule["expr"].as_str().unwrap()).unwrap(), &known(), &mut Vec::new());
        labels.extend(rule["labels"].as_object().unwrap().keys().cloned());
        assert_eq!(labels, known()[name], "{name}");
        recorded.insert(name.to_owned(), labels);
    }
    assert!(recorded.keys().map(String::as_str).eq(RECORDED.map(|(name, _)| name)), "{recorded:?}");
}

#[test]
fn alerts_say_how_bad_it_is_and_what_to_do() {
    let mut pages = runbooks();
    let list = pages.remove("README.md").expect("the list of runbooks");
    let mut left: BTreeSet<&String> = pages.keys().collect();
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        assert!(name.starts_with("Memgate") && names.insert(name.to_owned()), "{name}");
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        let summary = alert["annotations"]["summary"].as_str().unwrap();
        let shown: String = summary.split("{{").map(|part| part.split("}}").last().unwrap()).collect();
        assert!(summary.ends_with('.') && shown.len() <= 120, "{name}: {summary}");
        let runbook = alert["annotations"]["runbook"].as_str().unwrap();
        let page =
            runbook.strip_prefix("memgate explain runbook/").unwrap_or_else(|| panic!("{name}: {runbook}"));
        let page = &format!("{page}.md");
        let text = pages.get(page).unwrap_or_else(|| panic!("{name}: docs/runbooks has no {page}"));
        assert!(text.contains(&format!("`{name}`")), "{page} does not name {name}");
        let row = list.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        assert!(row.is_some_and(|row| row.contains(&format!("]({page})"))), "{name}: {row:?}");
        left.remove(page);
    }
    assert!(names.len() >= 15, "{names:?}");
    assert!(left.is_empty(), "no alert leads to {left:?}");
}

/// The pages of docs/runbooks, by their names.
fn runbooks() -> BTreeMap<String, String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks");
    let pages = std::fs::read_dir(folder).expect("the runbooks").map(|page| page.expect("a page"));
    pages
        .map(|page| {
            (page.file_name().to_string_lossy().into_owned(), std::fs::read_to_string(page.path()).unwrap())
        })
        .collect()
}

/// A summary can only speak of labels that its expression leaves.
#[test]
fn alerts_speak_of_labels_that_are_left() {
    for alert in alerts() {
        let parsed = parser::parse(alert["expr"].as_str().unwrap()).unwrap();
        let left = walk(&parsed, &known(), &mut Vec::new());
        for part in alert["annotations"]["summary"].as_str().unwrap().split("$labels.").skip(1) {
            let label: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(left.contains(&label), "{}: no label {label} in {left:?}", alert["alert"]);
        }
    }
}

#[test]
fn panels_ask_for_existing_metrics() {
    let dashboard = dashboard();
    let mut faults_found = Vec::new();
    let mut expressions = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{} shows nothing", panel["title"]);
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
            faults_found.extend(faults(target["expr"].as_str().unwrap()));
            expressions += 1;
        }
    }
    assert!(faults_found.is_empty(), "{}", faults_found.join("\n"));
    assert!(expressions >= 25, "{expressions} expressions");
    let variables: Vec<_> = dashboard["templating"]["list"].as_array().unwrap().iter().collect();
    assert!(
        variables.iter().any(|variable| variable["name"] == "datasource" && variable["type"] == "datasource")
    );
    for variable in variables.iter().filter(|variable| variable["type"] == "query") {
        let query = variable["definition"].as_str().unwrap();
        let asked = query.strip_prefix("label_values(").and_then(|rest| rest.split_once(','));
        let (metric, _) = asked.unwrap_or_else(|| panic!("{query}"));
        assert!(known().contains_key(metric.split('{').next().unwrap()), "{query}");
    }
    for name in ["cluster", "namespace"] {
        assert!(variables.iter().any(|variable| variable["name"] == name), "{name}");
    }
}

#[test]
fn panels_have_ids_and_places_of_their_own() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| number(&panel["id"])).collect();
    assert_eq!(ids.len(), panels.len(), "ids are used twice");
    let titles: BTreeSet<_> = panels.iter().map(|panel| panel["title"].as_str().unwrap()).collect();
    assert_eq!(titles.len(), panels.len(), "titles are used twice");
    let mut taken = BTreeMap::new();
    for panel in panels {
        let (position, title) = (&panel["gridPos"], panel["title"].as_str().unwrap());
        let (x, y) = (number(&position["x"]), number(&position["y"]));
        assert!(x + number(&position["w"]) <= 24, "{title} is too wide");
        for cell in
            (x..x + number(&position["w"])).flat_map(|x| (y..y + number(&position["h"])).map(move |y| (x, y)))
        {
            let other = taken.insert(cell, title);
            assert_eq!(other, None, "{title} lies over another panel");
        }
    }
}

/// Dashboard and alerts together show every series of memgate's own.
#[test]
fn nothing_that_memgate_counts_is_left_out() {
    let shown = DASHBOARD.to_owned() + ALERTS;
    for metric in known().keys().filter(|name| name.starts_with("memgate")) {
        let base = metric.trim_end_matches("_sum").trim_end_matches("_count").trim_end_matches("_bucket");
        assert!(shown.contains(base), "{metric} is in no panel and no alert");
    }
}

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::policies::Head;
use super::report::{Report, content_digest};
use super::reports::Reports;
use super::state::Stored;
use super::status::{AuditCounts, PolicyCounts, status};
use super::{AuditPlan, Audited, ClusterReader, Faults, PAGE};
use memgate_core::decide::audit::audit;
use memgate_model::kind::{Kind, MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
use memgate_model::policy::Policies;
use memgate_model::policy_rule::Counts;
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_policy::judge::Judgement;
use memgate_policy::never_applies::never_applies;
use memgate_policy::put;

const NOW: &str = "2027-01-10T00:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn policies(spec: &Value) -> Policies {
    let mut policies = Policies::default();
    let manifest = json!({"metadata": {"name": "prod"}, "spec": spec});
    assert_eq!(put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY, &manifest), []);
    policies
}

fn promoted(to: &str) -> Value {
    json!({
        "promote": {"at": "2027-01-15T00:00:00Z", "to": to}, "actions": {"admission": "report"},
        "rules": [{"id": "durable", "backends": {"durable": true}, "severity": "low"}],
        "exemptions": {"namespaces": ["granted"], "maxAge": "30d"},
    })
}

fn memory_kind() -> &'static Kind {
    memgate_platforms::validated(&memgate_platforms::ALL, "arkonis.dev", "ArkMemory").unwrap().1
}

/// A memory that loses everything, and what the policies say of it at this time.
fn judged(policies: Policies, now: &str) -> (Stored, Judgement) {
    let object = json!({
        "metadata": {"name": "notes", "namespace": "lab", "uid": "u-1"}, "spec": {"backend": "in-context"},
    });
    let stored = Stored {
        kind: memory_kind(),
        namespace: "lab".to_owned(),
        name: "notes".to_owned(),
        uid: "u-1".to_owned(),
        text: object.to_string().into(),
    };
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    snapshot.policies = policies.into();
    let judgement = audit(&stored.request(time(now)), &snapshot).judgement;
    (stored, judgement)
}

fn outcome(policies: Policies, now: &str) -> Value {
    let (stored, judgement) = judged(policies, now);
    let report = Report::new(&stored, &judgement, "home").expect("a report");
    report.object["results"][0]["result"].clone()
}

#[test]
fn a_result_says_what_admission_makes_of_it_now_or_later() {
    assert_eq!(outcome(policies(&promoted("deny")), NOW), "fail");
    assert_eq!(outcome(policies(&promoted("deny")), "2027-02-01T00:00:00Z"), "fail");
    assert_eq!(outcome(policies(&promoted("warn")), NOW), "warn");
}

#[test]
fn a_result_that_is_exempt_says_by_what() {
    let mut policies = policies(&promoted("deny"));
    put_exemption(&mut policies, "2027-01-01T00:00:00Z", "2027-01-20T00:00:00Z");
    let (stored, judgement) = judged(policies, NOW);
    let report = Report::new(&stored, &judgement, "home").unwrap().object;
    let result = &report["results"][0];
    assert_eq!(result["result"], "skip");
    let properties = &result["properties"];
    assert_eq!(properties["exemption"], "granted/notes");
    assert_eq!(properties["expiresAt"], "2027-01-20T00:00:00Z");
    assert_eq!(report["summary"], json!({"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 1}));
}

#[test]
fn there_is_no_report_without_a_finding() {
    let none =
        json!({"rules": [{"id": "durable", "backends": {"durable": true}, "action": {"audit": "off"}}]});
    let (stored, judgement) = judged(policies(&none), NOW);
    assert!(Report::new(&stored, &judgement, "home").is_none());
}

/// One whose apiserver has sorted its fields.
#[test]
fn a_report_is_the_same_in_whatever_order_it_comes_back() {
    fn turned(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                fields.iter().rev().map(|(key, value)| (key.clone(), turned(value))).collect()
            }
            Value::Array(elements) => elements.iter().map(turned).collect(),
            scalar => scalar.clone(),
        }
    }
    let (stored, judgement) = judged(policies(&promoted("deny")), NOW);
    let report = Report::new(&stored, &judgement, "home").unwrap();
    let (digest, mut object) = (report.digest, report.object);
    assert_eq!(content_digest(&turned(&object)), Some(digest));
    object["metadata"]["labels"]["of"] = "others".into();
    object["metadata"]["uid"] = "u".into();
    assert_eq!(content_digest(&object), Some(digest));
    object["results"][0]["message"] = "it is well".into();
    assert_ne!(content_digest(&object), Some(digest));
    let other = Report::new(&stored, &judgement, "elsewhere").unwrap();
    assert_ne!(other.digest, digest);
}

fn put_exemption(policies: &mut Policies, from: &str, until: &str) {
    let spec = json!({
        "policy": "prod", "rules": ["durable"], "target": {"namespaces": ["lab"]},
        "reason": "it moves away soon", "from": from, "expiresAt": until,
    });
    let manifest = json!({"metadata": {"name": "notes", "namespace": "granted"}, "spec": spec});
    assert_eq!(put(policies, &memgate_platforms::ALL, &MEMORY_POLICY_EXEMPTION, &manifest), []);
}

fn head(kind: &'static Kind, status: Value) -> Head {
    let (namespace, name) = if kind.namespaced { ("granted", "notes") } else { ("", "prod") };
    Head {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        generation: 3,
        fault: None,
        doubts: Vec::new(),
        status,
    }
}

/// The statuses of conditions by type, with their times.
fn conditions(status: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |it: &Value| (text(&it["type"]), text(&it["status"]), text(&it["lastTransitionTime"]));
    status["conditions"].as_array().unwrap().iter().map(of).collect()
}

fn found(denied_later: usize) -> AuditCounts {
    let counts =
        Counts { violations: denied_later, denied_later, at_risk: denied_later, ..Counts::default() };
    let found = PolicyCounts { matched: 5, denied: 2, counts, first: Vec::new() };
    AuditCounts {
        policies: [("prod".to_owned(), found)].into(),
        exemptions: [("granted/notes".to_owned(), 2)].into(),
        ..AuditCounts::default()
    }
}

#[test]
fn a_status_moves_only_with_what_it_says() {
    let (policies, later) = (policies(&promoted("deny")), "2027-01-11T00:00:00Z");
    let first = status(&head(&MEMORY_POLICY, Value::Null), &policies, &found(2), time(NOW)).unwrap();
    assert_eq!(first["lastAudit"], NOW);
    let at_risk = ("PromotionAtRisk".to_owned(), "True".to_owned(), NOW.to_owned());
    assert!(conditions(&first).contains(&at_risk), "{first}");
    let stored = head(&MEMORY_POLICY, first);
    assert_eq!(status(&stored, &policies, &found(2), time(later)), None);
    let second = status(&stored, &policies, &found(0), time(later)).unwrap();
    assert_eq!(second["lastAudit"], later);
    let word = |name: &str, status: &str, since: &str| (name.to_owned(), status.to_owned(), since.to_owned());
    let expected =
        [word("Ready", "True", NOW), word("Promoted", "False", NOW), word("PromotionAtRisk", "False", later)];
    assert_eq!(conditions(&second), expected);
    let promoted = "2027-01-15T00:00:00Z";
    let third = status(&stored, &policies, &found(0), time(promoted)).unwrap();
    let expected = [
        word("Ready", "True", NOW),
        word("Promoted", "True", promoted),
        word("PromotionAtRisk", "False", promoted),
    ];
    assert_eq!(conditions(&third), expected);
}

/// A condition of another client does not count.
#[test]
fn what_others_add_to_a_status_does_not_count() {
    let policies = policies(&promoted("deny"));
    let mut stored = status(&head(&MEMORY_POLICY, Value::Null), &policies, &found(2), time(NOW)).unwrap();
    stored["conditions"].as_array_mut().unwrap().push(json!({"type": "Reviewed", "status": "True"}));
    stored["more"] = json!(1);
    assert_eq!(status(&head(&MEMORY_POLICY, stored), &policies, &found(2), time(NOW)), None);
}

#[test]
fn a_promotion_without_audits_has_unknown_risk() {
    let mut spec = promoted("deny");
    spec["actions"]["audit"] = "off".into();
    let status = status(&head(&MEMORY_POLICY, Value::Null), &policies(&spec), &found(0), time(NOW)).unwrap();
    let unknown = ("PromotionAtRisk".to_owned(), "Unknown".to_owned(), NOW.to_owned());
    assert!(conditions(&status).contains(&unknown), "{status}");
}

/// The reasons of the condition tell what the promotion changes: not rules with an action of their own at admission.
#[test]
fn the_risk_of_a_promotion_is_that_of_its_own_rules() {
    let report_only = json!({"admission": "report"});
    let not_audited = json!({"audit": "off"});
    let rule = |id: &str, action: &Value, roles: &[&str]| {
        let mut rule = json!({"id": id, "backends": {"durable": true}, "action": action});
        if !roles.is_empty() {
            rule["roles"] = json!(roles);
        }
        rule
    };
    let (plain, own) = (rule("durable", &json!({}), &[]), rule("own", &report_only, &[]));
    let (off, pods) = (rule("off", &not_audited, &[]), rule("pods", &json!({}), &["pod"]));
    let own_pods = rule("own", &report_only, &["pod"]);
    for (rules, to, violations, at_risk, expected) in [
        (vec![&plain], "deny", 0, 0, ("False", "NoViolations", "")),
        (vec![&plain], "deny", 2, 2, ("True", "OpenViolations", "")),
        (vec![&plain], "warn", 2, 0, ("False", "NothingDenied", "")),
        (vec![&own], "deny", 2, 0, ("False", "NothingDenied", "")),
        (vec![&own], "deny", 0, 0, ("False", "NothingDenied", "")),
        (vec![&plain, &own], "deny", 2, 0, ("False", "NoneDenied", "")),
        (vec![&plain, &own], "deny", 3, 1, ("True", "OpenViolations", "")),
        (vec![&off], "deny", 0, 0, ("Unknown", "NotAudited", "off")),
        (vec![&off], "warn", 0, 0, ("False", "NothingDenied", "")),
        (vec![&off, &own], "deny", 2, 0, ("Unknown", "NotAudited", "off")),
        (vec![&plain, &off], "deny", 0, 0, ("Unknown", "NotAudited", "off")),
        (vec![&plain, &off], "deny", 1, 1, ("True", "OpenViolations", "off")),
        (vec![&pods], "deny", 0, 0, ("Unknown", "NotAudited", "pods")),
        (vec![&plain, &pods], "deny", 0, 0, ("False", "NoViolations", "pods")),
        (vec![&plain, &own_pods], "deny", 0, 0, ("False", "NoViolations", "")),
        (vec![], "deny", 0, 0, ("False", "NothingDenied", "")),
    ] {
        let mut spec = promoted(to);
        spec["rules"] = json!(rules);
        spec["defaults"] = json!([{"family": "arkonis", "kind": "ArkMemory",
            "field": "/spec/redis/maxEntries", "value": 5}]);
        let counts = Counts { violations, at_risk, ..Counts::default() };
        let found = PolicyCounts { counts, ..PolicyCounts::default() };
        let found = AuditCounts { policies: [("prod".to_owned(), found)].into(), ..AuditCounts::default() };
        let status = status(&head(&MEMORY_POLICY, Value::Null), &policies(&spec), &found, time(NOW)).unwrap();
        let condition = &status["conditions"][2];
        let ids: Vec<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
        assert_eq!(condition["type"], "PromotionAtRisk");
        let (word, reason, not_judged) = expected;
        assert_eq!([&condition["status"], &condition["reason"]], [word, reason], "{ids:?} {to} {condition}");
        let message = condition["message"].as_str().unwrap();
        let named = message.split_once("audits do not judge these rules: ").map_or("", |(_, ids)| ids);
        assert_eq!(named, not_judged, "{ids:?} {message}");
    }
}

/// An exemption that ends before the day does not cover it.
#[test]
fn an_exemption_that_ends_too_soon_leaves_a_risk() {
    for (until, at_risk) in [("2027-01-14T00:00:00Z", 1), ("2027-01-20T00:00:00Z", 0)] {
        let mut policies = policies(&promoted("deny"));
        put_exemption(&mut policies, "2027-01-01T00:00:00Z", until);
        let counts = judged(policies, NOW).1.counts["prod"];
        assert_eq!((counts.at_risk, counts.exempted, counts.violations), (at_risk, 1, 0), "{until}");
    }
}

#[test]
fn a_policy_that_is_not_in_force_says_why() {
    let fault = Some("spec.rules[0] has no id".to_owned());
    let head = Head { fault, ..head(&MEMORY_POLICY, Value::Null) };
    let status = status(&head, &Policies::default(), &AuditCounts::default(), time(NOW)).unwrap();
    assert_eq!(status["conditions"][0]["status"], "False");
    assert_eq!(status["conditions"][0]["message"], "spec.rules[0] has no id");
    assert_eq!((&status["matched"], &status["observedGeneration"]), (&json!(0), &json!(3)));
}

#[test]
fn a_policy_that_judges_nothing_says_so() {
    let when = json!({"fields": [{"path": "kind", "equals": "Memory"}]});
    let rules = json!([{"id": "kept", "when": when, "retention": {"max": "30d"}}]);
    let manifest = json!({
        "metadata": {"name": "prod"}, "spec": {"match": {"kinds": ["ArkMemory"]}, "rules": rules},
    });
    let mut policies = Policies::default();
    assert_eq!(put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY, &manifest), []);
    let doubts = never_applies(policies.get("prod").unwrap(), &memgate_platforms::ALL);
    let head = Head { doubts, ..head(&MEMORY_POLICY, Value::Null) };
    let status = status(&head, &policies, &AuditCounts::default(), time(NOW)).unwrap();
    let proved = &status["conditions"][1];
    assert_eq!((&proved["type"], &proved["status"]), (&json!("Applies"), &json!("False")));
    assert!(proved["message"].as_str().unwrap().ends_with("(policy/never-applies)"), "{proved}");
}

#[test]
fn an_exemption_is_active_then_expired() {
    let mut policies = policies(&promoted("deny"));
    put_exemption(&mut policies, "2027-01-12T00:00:00Z", "2027-01-20T00:00:00Z");
    let said = |stored: Value, matches: usize, now: &str| {
        let found = AuditCounts {
            exemptions: [("granted/notes".to_owned(), matches)].into(),
            ..AuditCounts::default()
        };
        status(&head(&MEMORY_POLICY_EXEMPTION, stored), &policies, &found, time(now)).unwrap()
    };
    let words = |status: &Value| conditions(status).into_iter().map(|(_, word, _)| word).collect::<Vec<_>>();
    let before = said(Value::Null, 0, NOW);
    assert_eq!(words(&before), ["False"; 3]);
    assert_eq!((&before["conditions"][0]["reason"], before.get("lastMatched")), (&json!("NotYet"), None));
    let counts = said(before, 2, "2027-01-13T00:00:00Z");
    assert_eq!(words(&counts), ["True", "False", "False"]);
    assert_eq!((&counts["matches"], &counts["lastMatched"]), (&json!(2), &json!("2027-01-13T00:00:00Z")));
    let ended = said(counts, 0, "2027-01-20T00:00:00Z");
    assert_eq!(words(&ended), ["False", "True", "False"]);
    assert_eq!((&ended["matches"], &ended["lastMatched"]), (&json!(0), &json!("2027-01-13T00:00:00Z")));
}

/// How many memories the apiserver has: more than a page of them.
const MEMORIES: usize = 60;

/// The page of a list that starts at the continue token; none for a kind that is not served.
fn page(path: &str, query: &str) -> Option<Value> {
    let number = |key: &str| -> Option<usize> {
        query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    let policy = |_| json!({"metadata": {"name": "prod", "generation": 1}, "spec": promoted("deny")});
    let memory = |index| {
        let name = format!("notes-{index}");
        let metadata = json!({"name": name, "namespace": "lab", "uid": format!("u-{index}")});
        json!({"metadata": metadata, "spec": {"backend": "in-context"}})
    };
    let (count, object): (usize, &dyn Fn(usize) -> Value) = match path {
        "/apis/policy.memgate.dev/v1alpha1/memorypolicies" => (1, &policy),
        "/apis/arkonis.dev/v1alpha1/arkmemories" => (MEMORIES, &memory),
        "/apis/policy.memgate.dev/v1alpha1/memorypolicyexemptions"
        | "/apis/openreports.io/v1alpha1/reports"
        | "/apis/openreports.io/v1alpha1/clusterreports"
        | "/api/v1/namespaces"
        | "/api/v1/pods" => (0, &policy),
        _ => return None,
    };
    let from = number("continue").unwrap_or_default();
    let to = count.min(from + number("limit").unwrap_or(count));
    let next = if to < count { to.to_string() } else { String::new() };
    let items: Vec<Value> = (from..to).map(object).collect();
    Some(json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": next}, "items": items}))
}

/// A client of an apiserver that answers so many requests, and what it is asked to write.
fn client(most: usize) -> (kube::Client, Arc<Mutex<Vec<String>>>) {
    let (writes, asked) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Mutex::new(0)));
    let written = Arc::clone(&writes);
    let service = Router::new().fallback(move |request: Request<Body>| {
        let mut asked = asked.lock().expect("a lock");
        *asked += 1;
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let (code, body) = match page(path, query) {
            _ if *asked > most => (500, json!({"kind": "Status", "status": "Failure", "code": 500})),
            _ if request.method() != Method::GET => {
                written.lock().expect("a lock").push(path.to_owned());
                (200, json!({}))
            }
            _ if path == "/version" => (200, json!({"major": "1", "minor": "33"})),
            Some(page) => (200, page),
            None => (404, json!({"kind": "Status", "status": "Failure", "code": 404})),
        };
        let response = Response::builder().status(code).header("content-type", "application/json");
        std::future::ready(response.body(Body::from(body.to_string())).expect("a response"))
    });
    (kube::Client::new(service, "default"), writes)
}

fn audited(most: usize) -> (Audited, Vec<String>) {
    let families = vec![&memgate_platforms::arkonis::FAMILY];
    let settings = Settings { families, ..memgate_platforms::default_settings() };
    let plan = AuditPlan { settings, installation: "home".to_owned() };
    Runtime::new().expect("a runtime").block_on(async {
        let (client, writes) = client(most);
        let audited = super::audit(client, &plan).await;
        let writes = writes.lock().expect("a lock").clone();
        (audited, writes)
    })
}

/// Whole reports, and no status that does not count all objects.
#[test]
fn an_audit_that_loses_its_apiserver_writes_nothing_that_is_wrong() {
    let is_status = |path: &String| path.ends_with("/memorypolicies/prod/status");
    let (whole, writes) = audited(usize::MAX);
    assert!(whole.faults.is_empty(), "{:?}", whole.faults);
    assert_eq!((writes.len(), writes.last().is_some_and(is_status)), (MEMORIES + 1, true), "{writes:?}");
    let summary = format!(
        "stored objects judged: {MEMORIES}; with findings: {MEMORIES}; reports written: {MEMORIES}, deleted: 0"
    );
    assert!(whole.said.contains(&summary), "{:?}", whole.said);
    for most in 0..MEMORIES + 20 {
        let (broken, writes) = audited(most);
        assert!(!broken.faults.is_empty(), "{most}");
        assert!(writes.len() > MEMORIES || !writes.iter().any(is_status), "{most}: {writes:?}");
    }
}

#[test]
fn there_are_so_many_reports_and_the_rest_is_counted() {
    let (stored, judgement) = judged(policies(&promoted("deny")), NOW);
    let (said, written) = Runtime::new().expect("a runtime").block_on(async {
        let (client, writes) = client(usize::MAX);
        let reader = ClusterReader { client, page_objects: PAGE };
        let (mut said, mut faults) = (Vec::new(), Faults::default());
        let mut reports = Reports::list(&reader, "home", &mut said, &mut faults).await.expect("no fault");
        reports.most = 2;
        for _ in 0..5 {
            let report = Report::new(&stored, &judgement, "home").expect("a report");
            reports.put(report, &mut faults).await.expect("no fault");
        }
        let written = writes.lock().expect("a lock").len();
        (reports.said(5).collect::<Vec<_>>(), written)
    });
    assert_eq!(written, 2);
    assert_eq!(said[1], "3 more objects violate policies than the 2 that may have reports");
}

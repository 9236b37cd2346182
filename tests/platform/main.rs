//! One more platform out of one folder (`tiny/`) and one row (`tiny.rs`): that nothing else has to know of a
//! platform for its resources and pods to be admitted, its kinds to be watched, what it needs to be
//! installed, and its codes to be explained.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "../support/review.rs"]
mod review;
mod tiny;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memgate_certs::tls::CertSource;
use memgate_core::decide::codes;
use memgate_core::state;
use memgate_install::install_plan::{InstallPart, InstallPlan, WebhookEndpoint};
use memgate_install::render;
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;
use memgate_server::{Server, State, router};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use review::review;

fn settings() -> Settings {
    Settings { families: vec![&tiny::FAMILY], ..memgate_platforms::default_settings() }
}

fn notebook(spec: &Value) -> Value {
    let metadata = json!({"name": "diary", "namespace": "team-a"});
    json!({"apiVersion": "tiny.dev/v1", "kind": "Notebook", "metadata": metadata, "spec": spec})
}

fn pod(env: &Value) -> Value {
    let metadata = json!({"name": "p", "namespace": "team-a", "labels": {"tiny.dev/notebook": "diary"}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
           "spec": {"containers": [{"name": "main", "env": env}]}})
}

fn options(ca: std::path::PathBuf) -> Options {
    let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca });
    options.listen = ([127, 0, 0, 1], 0).into();
    options.health = ([127, 0, 0, 1], 0).into();
    options
}

/// The response of one of the two webhook calls to the CREATE of an object.
async fn admitted(path: &str, object: &Value, snapshot: Snapshot) -> Value {
    let router = router(&options("unused".into()), State::Fixed(snapshot));
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(review("team-a", object).to_string())).expect("a request");
    let response = router.oneshot(request).await.expect("an answer");
    let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    serde_json::from_slice::<Value>(&body).expect("a review")["response"].take()
}

fn patch(response: &Value) -> Value {
    let patch = response["patch"].as_str().expect("a patch");
    serde_json::from_slice(&STANDARD.decode(patch).expect("base64")).expect("JSON")
}

#[tokio::test]
async fn its_resources_are_validated_and_defaulted() {
    let empty = || state::empty(settings());
    let refused = admitted("/validate", &notebook(&json!({"pages": 1})), empty()).await;
    assert_eq!(refused["allowed"], false, "{refused}");
    assert_eq!(refused["status"]["details"]["causes"][0]["field"], "spec.url");
    let good = notebook(&json!({"url": "http://diary"}));
    assert_eq!(admitted("/validate", &good, empty()).await["allowed"], true);
    let defaulted = admitted("/mutate", &good, empty()).await;
    assert_eq!(patch(&defaulted), json!([{"op": "add", "path": "/spec/pages", "value": 100}]));
}

#[tokio::test]
async fn its_pods_get_their_memory() {
    let mut snapshot = state::empty(settings());
    state::add(&mut snapshot, &notebook(&json!({"url": "http://diary"}))).expect("it reads");
    let injected = admitted("/mutate", &pod(&json!([])), snapshot.clone()).await;
    let patch = patch(&injected);
    assert_eq!(patch[0]["value"], json!({"name": "NOTEBOOK_URL", "value": "http://diary"}));
    let marker = patch[1]["value"]["memgate.dev/injected"].as_str().expect("a marker");
    assert!(marker.contains(r#""family":"tiny","memory":"Notebook/diary""#), "{marker}");
    let other = pod(&json!([{"name": "NOTEBOOK_URL", "value": "http://other"}]));
    let kept = admitted("/mutate", &other, snapshot).await;
    assert!(kept["patch"].is_null() && kept["allowed"] == true, "{kept}");
    let warning = kept["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("NOTEBOOK_URL is already set in container"), "{kept}");
    let missing = admitted("/mutate", &pod(&json!([])), state::empty(settings())).await;
    assert!(missing["warnings"][0].as_str().is_some_and(|text| text.contains("not found")), "{missing}");
}

/// A policy on Notebooks with these rules and defaults.
fn policy(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["match"] = json!({"families": ["tiny"]});
    spec["actions"] = json!({"admission": "deny"});
    json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
           "metadata": {"name": "org"}, "spec": spec})
}

fn with_policy(spec: &Value) -> Snapshot {
    let mut snapshot = state::empty(settings());
    let added = state::add(&mut snapshot, &policy(spec)).expect("it reads");
    assert_eq!(added.faults, []);
    snapshot
}

#[tokio::test]
async fn its_resources_are_judged_by_policies() {
    let rules = json!({"rules": [
        {"id": "forget", "hint": "keep less", "retention": {"max": "1h"}},
        {"id": "tls", "hint": "use https", "endpoint": {"schemes": ["https"]}},
    ]});
    let bad = notebook(&json!({"url": "http://diary", "keepSeconds": 7200}));
    let refused = admitted("/validate", &bad, with_policy(&rules)).await;
    let causes = refused["status"]["details"]["causes"].as_array().expect("causes");
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default()).collect();
    assert_eq!(fields, ["spec.url", "spec.keepSeconds"], "{refused}");
    let good = notebook(&json!({"url": "https://diary", "keepSeconds": 60}));
    assert_eq!(admitted("/validate", &good, with_policy(&rules)).await["allowed"], true);
}

#[tokio::test]
async fn its_pods_are_judged_by_the_memory_that_they_use() {
    let rules = json!({"rules": [
        {"id": "tls", "hint": "use https", "roles": ["pod"], "endpoint": {"schemes": ["https"]}},
    ]});
    let mut snapshot = with_policy(&rules);
    state::add(&mut snapshot, &notebook(&json!({"url": "http://diary"}))).expect("it reads");
    let refused = admitted("/mutate", &pod(&json!([])), snapshot).await;
    assert_eq!(refused["allowed"], false, "{refused}");
    assert!(refused.to_string().contains("policy org/tls"), "{refused}");
}

#[tokio::test]
async fn its_references_are_looked_up_and_counted() {
    let mut snapshot = with_policy(&json!({"rules": [
        {"id": "few", "hint": "continue another", "fields": [{"path": "users", "max": 0}]},
    ]}));
    state::add(&mut snapshot, &notebook(&json!({"url": "http://diary"}))).expect("it reads");
    let mut next = notebook(&json!({"url": "http://next", "continues": "dairy"}));
    next["metadata"]["name"] = json!("next");
    let warned = admitted("/validate", &next, snapshot.clone()).await;
    let warning = warned["warnings"][0].as_str().unwrap_or_default();
    let missing =
        r#"spec.continues: Notebook "dairy" not found in namespace "team-a"; did you mean "diary"?"#;
    assert!(warning.contains(missing), "{warned}");
    next["spec"]["continues"] = json!("diary");
    let found = admitted("/validate", &next, snapshot.clone()).await;
    assert!(found["warnings"].is_null(), "{found}");
    state::add(&mut snapshot, &next).expect("it reads");
    let used = admitted("/validate", &notebook(&json!({"url": "http://diary"})), snapshot).await;
    assert!(used.to_string().contains("policy org/few"), "{used}");
}

#[tokio::test]
async fn policies_fill_its_fields() {
    let spec = json!({"defaults": [
        {"family": "tiny", "kind": "Notebook", "field": "/spec/keepSeconds", "value": 60},
    ]});
    let defaulted = admitted("/mutate", &notebook(&json!({"url": "http://diary"})), with_policy(&spec)).await;
    let added = json!({"op": "add", "path": "/spec/keepSeconds", "value": 60});
    assert!(patch(&defaulted).as_array().expect("edits").contains(&added), "{defaulted}");
}

#[tokio::test]
async fn advice_on_policies_knows_its_views() {
    let advice = async |rule: &Value| {
        let spec = json!({"rules": [rule]});
        let answer = admitted("/validate", &policy(&spec), state::empty(settings())).await;
        assert_eq!(answer["allowed"], true, "{answer}");
        answer["warnings"].to_string()
    };
    let retention = advice(&json!({"id": "a", "hint": "x", "retention": {"max": "1h"}})).await;
    assert_eq!(retention, "null");
    let when = json!({"fields": [{"path": "kind", "in": ["Diary"]}]});
    let never = advice(&json!({"id": "a", "hint": "x", "retention": {"max": "1h"}, "when": when})).await;
    assert!(never.contains("holds for nothing that the rule judges"), "{never}");
}

#[tokio::test]
async fn its_kinds_are_watched() {
    let (client, asked) = cluster();
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::Cluster { client, settings: settings() };
    let server = Server::bind(options(directory.path().join("ca.pem")), state).expect("it binds");
    let health = server.addresses().expect("addresses").health;
    let task = tokio::spawn(server.run(std::future::pending()));
    let known = async {
        while !get(health, "/metrics").await.contains(r#"memgate_store_objects{family="tiny"} 1"#) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), known).await.expect("the Notebook should become known");
    let ready = async {
        while !get(health, "/readyz").await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ready).await.expect("memgate should become ready");
    task.abort();
    let asked: BTreeSet<String> = asked.lock().expect("no panic").iter().cloned().collect();
    let watches =
        |path: &String| path.starts_with("/apis/tiny.dev/v1/notebooks?") && path.contains("watch=true");
    assert!(asked.iter().any(watches), "{asked:?}");
}

/// A cluster that serves the platform and holds one Notebook.
fn cluster() -> (kube::Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let path = request.uri().to_string();
        noted.lock().expect("no panic").push(path.clone());
        async move {
            let body = if path.contains("watch=true") {
                Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>())
            } else if path == "/apis" {
                Body::from(json!({"groups": [{"name": "tiny.dev", "versions": []}]}).to_string())
            } else {
                let items = [notebook(&json!({"url": "http://diary"}))];
                let list = json!({"apiVersion": "tiny.dev/v1", "kind": "NotebookList",
                                  "metadata": {"resourceVersion": "1"}, "items": items});
                Body::from(list.to_string())
            };
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    (kube::Client::new(service, "default"), asked)
}

/// The whole answer of the health port to a GET.
async fn get(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

#[test]
fn what_it_needs_is_installed() {
    let plan = InstallPlan {
        name: "memgate".to_owned(),
        policies: false,
        events: true,
        namespace: "memgate-system".to_owned(),
        image: "memgate".to_owned(),
        endpoint: WebhookEndpoint::Service,
        ca: None,
        runbooks: None,
        families: vec![&tiny::FAMILY],
        components: BTreeSet::new(),
        settings: serde_json::Map::new(),
        webhook_port: None,
    };
    let text = render(&plan, &InstallPart::ALL.map(|(_, part)| part)).expect("it renders");
    for part in ["--family=tiny", "tiny.pods.memgate.dev"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The right to watch it, the calls that default and validate it, and the one for its DELETE.
    assert!(text.matches("notebooks").count() >= 4, "{text}");
    // The condition about pauses names all platforms.
    assert!(!text.contains("arkmemories") && !text.contains("arkonis.pods.memgate.dev"), "{text}");
    assert!(tiny::FAMILY.definitions.crds[0]().contains("name: notebooks.tiny.dev"));
}

#[test]
fn its_codes_are_explained() {
    let ours: Vec<_> = codes::all(&[&tiny::FAMILY]).filter(|code| code.name.starts_with("tiny/")).collect();
    assert_eq!(ours.len(), tiny::codes::ALL.len());
    for code in ours {
        assert!(code.page.starts_with(&format!("# {}\n", code.name)), "{}", code.page.text());
    }
}

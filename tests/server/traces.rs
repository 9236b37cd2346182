//! What a collector of traces gets to see: how requests went, and nothing of what they were about.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State as Extracted;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post as posted;
use kube::{Client, Config};
use memgate_core::state;
use memgate_model::settings::Settings;
use memgate_server::State;
use memgate_server::traces::TraceOptions as Traces;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::{Connection, plain, post, request, review};
use crate::running::{Running, until};
use crate::serving::{OPTIONS, Serving};

const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

/// Words of a review that must not be in any byte that is sent; each occurs in it exactly once.
const SECRETS: [&str; 12] = [
    "mallory-the-user", "wheel-the-group", "extra-of-the-user", "uid-of-the-user", "name-of-the-pod",
    "namespace-of-the-pod", "value-of-the-env", "NAME_OF_THE_ENV", "image-of-the-container",
    "annotation-of-the-pod", "state-of-the-caller", "notes-of-the-agent",
];

/// A receiver of OTLP over HTTP that keeps what it gets.
struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Bytes>>>,
}

impl Collector {
    async fn start() -> Self {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let keep = |Extracted(bodies): Extracted<Arc<Mutex<Vec<Bytes>>>>, body: Bytes| async move {
            bodies.lock().unwrap().push(body);
        };
        let router = Router::new().route("/v1/traces", posted(keep)).with_state(Arc::clone(&bodies));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, bodies }
    }

    fn settings(&self, sampling: f64) -> Traces {
        Traces { endpoint: format!("http://{}", self.address).parse().unwrap(), sampling }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bodies.lock().unwrap().concat()
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let read = bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.clone()).unwrap());
        let resources: Vec<_> = read.flat_map(|request| request.resource_spans).collect();
        for resource in &resources {
            let attributes = text_attributes(&resource.resource.as_ref().unwrap().attributes);
            assert_eq!(attributes["service.name"], "memgate");
        }
        resources.into_iter().flat_map(|spans| spans.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

fn text_attributes(
    attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue],
) -> BTreeMap<String, String> {
    let pair = |pair: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        let value = pair.value.clone().and_then(|value| value.value);
        let Some(Any::StringValue(text)) = value else { panic!("{pair:?} is not text") };
        (pair.key.clone(), text)
    };
    attributes.iter().map(pair).collect()
}

fn state() -> State {
    let settings = Settings {
        namespace: Some("namespace-of-the-pod".to_owned()),
        ..memgate_platforms::default_settings()
    };
    let mut snapshot = state::empty(settings);
    for (kind, name, spec) in [
        ("ArkAgent", "scout", json!({"memoryRef": {"name": "notes-of-the-agent"}})),
        ("ArkMemory", "notes-of-the-agent", json!({"backend": "in-context"})),
    ] {
        let object = json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        state::add(&mut snapshot, &object).unwrap();
    }
    State::Fixed(snapshot)
}

fn pod_review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "name": "name-of-the-pod",
            "namespace": "namespace-of-the-pod",
            "userInfo": {
                "username": "mallory-the-user",
                "uid": "uid-of-the-user",
                "groups": ["wheel-the-group"],
                "extra": {"key": ["extra-of-the-user"]},
            },
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": "name-of-the-pod",
                    "labels": {"arkonis.dev/deployment": "scout"},
                    "annotations": {"note": "annotation-of-the-pod"},
                },
                "spec": {"containers": [{
                    "name": "agent",
                    "image": "image-of-the-container",
                    "env": [{"name": "NAME_OF_THE_ENV", "value": "value-of-the-env"}],
                }]},
            },
        },
    })
}

fn memory_review() -> Value {
    let mut review = pod_review();
    review["request"]["kind"] = json!({"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"});
    review["request"]["object"] = json!({
        "apiVersion": "arkonis.dev/v1alpha1",
        "kind": "ArkMemory",
        "metadata": {"name": "name-of-the-pod"},
        "spec": {"backend": "value-of-the-env"},
    });
    review
}

fn traced(target: &str, parent: &str, review: &Value) -> Vec<u8> {
    let headers = [
        ("content-type", "application/json"),
        ("traceparent", parent),
        ("tracestate", "vendor=state-of-the-caller"),
    ];
    request("POST", target, &headers, review.to_string().as_bytes())
}

#[tokio::test]
async fn spans_say_how_a_review_went_and_nothing_of_what_it_was_about() {
    let collector = Collector::start().await;
    let mut server = Running::start_with(state(), |options| options.traces = Some(collector.settings(1.0)));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = server.ask(&traced("/mutate", parent, &pod_review())).await.review();
    assert!(answer["patch"].is_string(), "{answer}");
    let answer = server.ask(&post("/validate", memory_review().to_string().as_bytes())).await.review();
    assert_eq!(answer["allowed"], false);
    let broken = pod_review().to_string().replace("object", "obj\u{1}ect");
    assert_eq!(server.ask(&post("/mutate", broken.as_bytes())).await.status, 400);
    server.stop();
    server.ended().await;

    let spans = collector.spans();
    let requests: Vec<_> = spans.iter().filter(|span| !span.attributes.is_empty()).collect();
    let attributes: Vec<_> = requests.iter().map(|span| text_attributes(&span.attributes)).collect();
    let expected = |webhook: &str, operation: &str, verdict: &str, reason: &str, group: Option<&str>| {
        let mut attributes = BTreeMap::from([
            ("memgate.webhook".to_owned(), webhook.to_owned()),
            ("memgate.operation".to_owned(), operation.to_owned()),
            ("memgate.verdict".to_owned(), verdict.to_owned()),
            ("memgate.reason".to_owned(), reason.to_owned()),
        ]);
        if let Some(group) = group {
            attributes.insert("memgate.group".to_owned(), group.to_owned());
            attributes.insert("memgate.uid".to_owned(), UID.to_owned());
        }
        attributes
    };
    assert_eq!(
        attributes,
        [
            expected("mutate", "CREATE", "allowed", "injected", Some("core")),
            expected("validate", "CREATE", "denied", "invalid", Some("arkonis.dev")),
            expected("mutate", "none", "error", "body-malformed", None),
        ]
    );
    let trace = u128::from_str_radix("4bf92f3577b34da6a3ce929d0e0e4736", 16).unwrap();
    assert_eq!(requests[0].trace_id, trace.to_be_bytes());
    let caller = u64::from_str_radix("00f067aa0ba902b7", 16).unwrap();
    assert_eq!(requests[0].parent_span_id, caller.to_be_bytes());
    assert_eq!(requests[2].status.as_ref().unwrap().code(), SpanStatus::Error);
    let parts = |request: &Span| -> Vec<String> {
        let own = |span: &&Span| span.parent_span_id == request.span_id;
        spans.iter().filter(own).map(|span| span.name.clone()).collect()
    };
    assert_eq!(parts(requests[0]), ["read", "decide", "answer"]);
    assert_eq!(parts(requests[1]), ["read", "decide", "answer"]);
    assert_eq!(parts(requests[2]), ["read"]);

    let bytes = collector.bytes();
    for secret in SECRETS {
        let sent = [pod_review().to_string(), memory_review().to_string()].concat() + "state-of-the-caller";
        assert!(sent.contains(secret) || secret == "notes-of-the-agent", "{secret} was not sent");
        let leaked = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!leaked, "{secret} was sent to the collector");
    }
}

#[tokio::test]
async fn a_caller_that_does_not_sample_is_not_traced() {
    let collector = Collector::start().await;
    let mut server = Running::start_with(state(), |options| options.traces = Some(collector.settings(1.0)));
    let not_sampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    assert_eq!(server.ask(&traced("/mutate", not_sampled, &pod_review())).await.status, 200);
    assert_eq!(server.ask(&post("/mutate", review(UID, None))).await.status, 200);
    server.stop();
    server.ended().await;
    let requests: Vec<_> = collector.spans().into_iter().filter(|span| !span.attributes.is_empty()).collect();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(text_attributes(&requests[0].attributes)["memgate.reason"], "not-ours");
}

/// An apiserver that serves the kinds of arkonis and has no object of any.
async fn empty_cluster(uri: Uri) -> Response {
    let groups = r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"arkonis.dev","versions":[{"groupVersion":"arkonis.dev/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"arkonis.dev/v1alpha1","version":"v1alpha1"}}]}"#;
    let none = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
    let missing = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
    let is_list = uri.path().split('/').count() == 5 && uri.path().starts_with("/apis/arkonis.dev/");
    let json = [("content-type", "application/json")];
    if uri.query().is_some_and(|query| query.contains("watch=")) {
        return Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>()).into_response();
    }
    match uri.path() {
        "/apis" => (json, groups).into_response(),
        _ if is_list => (json, none).into_response(),
        _ => (StatusCode::NOT_FOUND, json, missing).into_response(),
    }
}

#[tokio::test]
async fn a_lookup_is_traced_with_its_kind() {
    let collector = Collector::start().await;
    let apiserver = Router::new().fallback(empty_cluster);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, apiserver).await });
    let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
    let state = State::Cluster { client, settings: memgate_platforms::default_settings() };
    let mut server = Running::start_with(state, |options| options.traces = Some(collector.settings(1.0)));
    until("the state is read", async || server.health("/readyz").await.status == 200).await;
    let answer = server.ask(&post("/mutate", pod_review().to_string().as_bytes())).await.review();
    assert_eq!(answer["allowed"], true);
    server.stop();
    server.ended().await;
    let spans = collector.spans();
    let lookups = spans.iter().filter(|span| span.name == "lookup");
    let attributes: Vec<_> = lookups.map(|span| text_attributes(&span.attributes)).collect();
    let kinds = |kinds: &str| BTreeMap::from([("memgate.kinds".to_owned(), kinds.to_owned())]);
    assert_eq!(attributes, [kinds("ArkAgent,Namespace"), kinds("ArkonisDeployment")]);
}

/// A collector that takes connections and never answers: the queue fills, and no request waits for it.
#[tokio::test]
async fn a_collector_that_hangs_costs_spans_and_no_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
    let server = Running::start_with(state(), |options| {
        options.traces = Some(Traces { endpoint, sampling: 1.0 });
    });
    let mut connection = server.connect().await;
    let request = post("/mutate", pod_review().to_string().as_bytes());
    // Four spans each: more than wait in the queue and in one batch.
    for _ in 0..1_400 {
        connection.send(&request).await;
        assert_eq!(connection.answer().await.status, 200);
    }
    let dropped = server.metric(r#"memgate_trace_spans_total{result="dropped"}"#).await.unwrap();
    assert!(dropped.parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn a_collector_that_is_away_is_logged_once() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    serves_without_collector(&format!("http://{closed}")).await;
}

/// R16 of stress/FAULTS.md. The collector's is the only name that memgate resolves; its apiserver has an address.
#[tokio::test]
async fn without_dns_the_collector_is_logged_once() {
    serves_without_collector("http://collector.invalid:4318").await;
}

async fn serves_without_collector(endpoint: &str) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("state.yaml"), "").unwrap();
    let ca = directory.path().join("ca.crt");
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    command.arg("serve").args(OPTIONS).arg("--state").arg(directory.path()).arg("--tls-ca-out").arg(&ca);
    command.args(["--otlp-endpoint", endpoint, "--otlp-sampling", "1"]).env_clear();
    let mut program = Serving::start(&mut command);
    let health = program.address("health");
    let ca = std::fs::read_to_string(ca).unwrap();
    let mut connection = Connection::open(program.address("webhook"), &ca, &["http/1.1"]).await.unwrap();
    for batch in 1..=2 {
        connection.send(&post("/mutate", review(UID, None))).await;
        assert_eq!(connection.answer().await.status, 200);
        let failed = format!("memgate_trace_spans_total{{result=\"failed\"}} {}", 4 * batch);
        until("the batch has failed", async || plain(health, "/metrics").await.text().contains(&failed))
            .await;
    }
    // The last line that is written.
    let end = format!("kill -TERM {}", program.id());
    assert!(Command::new("sh").args(["-c", &end]).status().unwrap().success());
    program.wait_for("stopped");
    let errors =
        program.log.iter().filter(|line| line["message"] == "traces cannot be sent; they are dropped");
    assert_eq!(errors.count(), 1, "{:?}", program.log);
}

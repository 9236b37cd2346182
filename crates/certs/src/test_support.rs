//! An apiserver for unit tests, with one Secret, two webhook configurations and a Lease. It compares resourceVersions,
//! patches, and fails when a test wants it to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use kube::Client;
use serde_json::{Value, json};

use crate::{Builtin, CertPolicy, ca_bundle};
use memgate_primitives::review_path::{Phase, config_name};

/// The whole cluster.
#[derive(Clone, Default)]
pub(crate) struct StubCluster(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, Value>,
    version: u64,
    /// How many writes each path has had.
    writes: BTreeMap<String, usize>,
    /// The refused requests, by the beginning of `METHOD path`, each with its HTTP status.
    refused: Vec<(String, u16)>,
    /// The date of all answers.
    date: Option<String>,
}

/// The path of the Secret.
pub(crate) const SECRET: &str = "/api/v1/namespaces/home/secrets/memgate-ca";

/// The path of a configuration.
pub(crate) fn path(kind: Phase) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/memgate", config_name(kind))
}

/// The options of a manager in this cluster.
pub(crate) fn builtin() -> Builtin {
    Builtin {
        namespace: "home".to_owned(),
        secret: "memgate-ca".to_owned(),
        configuration: "memgate".to_owned(),
        names: vec!["memgate.home.svc".to_owned()],
        policy: CertPolicy::default(),
    }
}

impl StubCluster {
    /// A cluster with both configurations, and no Secret.
    pub(crate) fn new() -> Self {
        let cluster = Self::default();
        for kind in Phase::ALL {
            let webhooks: Vec<_> = ["a.memgate.dev", "b.memgate.dev"]
                .map(|name| json!({"name": name, "clientConfig": {"service": {"name": "memgate"}}}))
                .to_vec();
            let uid = format!("uid-{}", config_name(kind));
            let object = json!({"metadata": {"name": "memgate", "uid": uid}, "webhooks": webhooks});
            cluster.put(&path(kind), object);
        }
        cluster
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic")
    }

    /// Stores an object, as any client might.
    pub(crate) fn put(&self, path: &str, object: Value) {
        self.inner().put(path, object);
    }

    /// Deletes an object.
    pub(crate) fn remove(&self, path: &str) {
        self.inner().objects.remove(path);
    }

    /// An object.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.inner().objects.get(path).cloned()
    }

    /// Changes an object.
    pub(crate) fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(path).expect("an object");
        change(&mut object);
        self.put(path, object);
    }

    /// How many writes a path has had.
    pub(crate) fn writes(&self, path: &str) -> usize {
        self.inner().writes.get(path).copied().unwrap_or_default()
    }

    /// Refuses requests that begin so; a status of 0 allows them again.
    pub(crate) fn refuse(&self, beginning: &str, status: u16) {
        let refused = &mut self.inner().refused;
        refused.retain(|(other, _)| other != beginning);
        if status != 0 {
            refused.push((beginning.to_owned(), status));
        }
    }

    /// Sets the date of all answers.
    pub(crate) fn set_date(&self, date: Timestamp) {
        self.inner().date = DateTimePrinter::new().timestamp_to_rfc9110_string(&date).ok();
    }

    /// The certificates that an entry of a configuration trusts.
    pub(crate) fn trusted(&self, kind: Phase) -> Vec<ca_bundle::CaCert> {
        let object = self.get(&path(kind)).expect("a configuration");
        let bundle = |entry: &Value| {
            let text = entry["clientConfig"]["caBundle"].as_str().unwrap_or_default();
            ca_bundle::parse(&BASE64_STANDARD.decode(text).expect("base64"))
        };
        let [first, second] = object["webhooks"].as_array().expect("entries").as_slice() else {
            panic!("two entries")
        };
        let (first, second) = (bundle(first), bundle(second));
        assert_eq!(first, second);
        first
    }

    /// A client of it.
    pub(crate) fn client(&self) -> Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let cluster = cluster.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
                // Others get a turn between any two requests.
                tokio::task::yield_now().await;
                let query = head.uri.query().unwrap_or_default();
                if query.contains("watch=") {
                    let never = futures::stream::pending::<Result<Bytes, Infallible>>();
                    return Ok::<_, String>(Response::new(Body::from_stream(never)));
                }
                let (status, object) = cluster.inner().answer(&head.method, head.uri.path(), &body);
                let mut response = Response::builder().status(status);
                if let Some(date) = &cluster.inner().date {
                    response = response.header("date", date);
                }
                Ok(response.body(Body::from(object.to_string())).expect("a response"))
            }
        });
        Client::new(service, "default")
    }
}

impl Inner {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn answer(&mut self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
        let line = format!("{method} {path}");
        if let Some((_, status)) = self.refused.iter().find(|(beginning, _)| line.starts_with(beginning)) {
            return failure(*status);
        }
        let found = self.objects.get(path).cloned();
        let sent = || serde_json::from_slice::<Value>(body).expect("JSON");
        match (method, found) {
            (&Method::GET, Some(object)) => (200, object),
            (&Method::GET, None) if path.ends_with("configurations") => {
                let items = self.objects.iter().filter(|(other, _)| other.starts_with(path));
                let items: Vec<_> = items.map(|(_, object)| object).collect();
                (200, json!({"metadata": {"resourceVersion": self.version.to_string()}, "items": items}))
            }
            (&Method::POST, _) => self.create(path, sent()),
            (&Method::PUT, Some(object)) => {
                let sent = sent();
                if sent["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                    return failure(409);
                }
                (200, self.write(path, sent))
            }
            (&Method::PATCH, Some(mut object)) => {
                let sent = sent();
                let version = &sent["metadata"]["resourceVersion"];
                if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
                    return failure(409);
                }
                match merge(&mut object, &sent) {
                    Some(()) => (200, self.write(path, object)),
                    None => failure(422),
                }
            }
            _ => failure(404),
        }
    }

    fn create(&mut self, path: &str, object: Value) -> (u16, Value) {
        let path = format!("{path}/{}", object["metadata"]["name"].as_str().expect("a name"));
        if self.objects.contains_key(&path) { failure(409) } else { (201, self.write(&path, object)) }
    }

    fn write(&mut self, path: &str, object: Value) -> Value {
        *self.writes.entry(path.to_owned()).or_default() += 1;
        self.put(path, object)
    }
}

/// As a strategic merge patch does: entries by their names. A new entry is invalid, since only its bundle is sent.
fn merge(object: &mut Value, sent: &Value) -> Option<()> {
    for webhook in sent["webhooks"].as_array().into_iter().flatten() {
        let mut entries = object["webhooks"].as_array_mut()?.iter_mut();
        let entry = entries.find(|entry| entry["name"] == webhook["name"])?;
        entry["clientConfig"]["caBundle"] = webhook["clientConfig"]["caBundle"].clone();
    }
    for (key, value) in sent["spec"].as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    Some(())
}

fn failure(status: u16) -> (u16, Value) {
    let reason = if status == 404 { "NotFound" } else { "Refused" };
    let text = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "refused", "reason": reason,
        "code": status,
    });
    (status, text)
}

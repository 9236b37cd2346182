//! What is asked of memgate while something fails, and what counts as a good answer.

use anyhow::{Context, Result};
use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD};
use futures::future::BoxFuture;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::{
    request::{Answer, create, send},
    samples::{COMPLETE, agent, env_names, memory, pod},
    support::{control_plane::ControlPlane, load::Failure, review::review, webhook::Endpoint},
};

/// The class of a pod that was let through without its memory: what must never be.
pub(crate) const BARE: &str = "bare";

/// The class of a call to a replica that was gone, or that ended while the call was on its way.
pub(crate) const BROKEN: &str = "connection broken";

/// The class of an object that memgate denied.
pub(crate) const DENIED: &str = "denied";

/// A call of a load.
pub(crate) type Call = BoxFuture<'static, Result<(), Failure>>;

/// What is created in a dry run, and when that is good.
type Creation = (Value, fn(&Value) -> bool);

/// Puts an agent and its memory into a namespace, and returns calls of the apiserver that need
/// memgate: dry runs of pods, some of which require their memory, and of memories.
pub(crate) fn through_apiserver(
    cluster: &ControlPlane,
    namespace: &str,
) -> Result<impl Fn(u64) -> Call + Clone + Send + use<>> {
    creations(cluster, namespace, |number| match number % 4 {
        0 => (memory(&format!("more-{number}")), |memory| memory["kind"] == "ArkMemory"),
        2 => required(number),
        _ => (pod(&format!("scout-{number}"), "scout", &[]), is_complete),
    })
}

/// The same with nothing but pods that require their memory.
pub(crate) fn required_pods(
    cluster: &ControlPlane,
    namespace: &str,
) -> Result<impl Fn(u64) -> Call + Clone + Send + use<>> {
    creations(cluster, namespace, required)
}

fn required(number: u64) -> Creation {
    (pod(&format!("scout-{number}"), "scout", &[("memgate.dev/inject", "required")]), is_complete)
}

fn is_complete(pod: &Value) -> bool {
    env_names(pod) == COMPLETE
}

fn creations(
    cluster: &ControlPlane,
    namespace: &str,
    creation: fn(u64) -> Creation,
) -> Result<impl Fn(u64) -> Call + Clone + Send + use<>> {
    let client = cluster.client();
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&client, namespace, &object, ""))?.object()?;
    }
    let namespace = namespace.to_owned();
    Ok(move |number: u64| -> Call {
        let (client, namespace) = (client.clone(), namespace.clone());
        Box::pin(async move {
            let (object, is_good) = creation(number);
            let answer = create(&client, &namespace, &object, "?dryRun=All").await;
            let answer = answer.map_err(|error| Failure::new("apiserver", format!("{error:#}")))?;
            if !answer.granted() {
                return Err(Failure::new(class(answer.message()), answer.message()));
            }
            if is_good(&answer.body) { Ok(()) } else { Err(Failure::new(BARE, answer.body)) }
        })
    })
}

/// A few words for what the apiserver said of a call that failed.
fn class(message: &str) -> &'static str {
    let classes = [
        (DENIED, "denied the request"),
        ("late", "deadline exceeded"),
        ("late", "Timeout"),
        ("server error", "an error on the server"),
        // Go has many words for it: EOF, reset, broken pipe, closed idle, closed network connection.
        (BROKEN, "failed to call webhook"),
    ];
    let found = classes.into_iter().find(|(_, words)| message.contains(words));
    found.map_or("other", |(class, _)| class)
}

/// A caller who asks memgate itself, as an apiserver does, for when there is none that could.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    namespace: String,
}

impl Caller {
    /// A caller of a replica, or of whatever leads to some.
    pub(crate) fn new(cluster: &ControlPlane, endpoint: &Endpoint, namespace: &str) -> Result<Self> {
        let (url, ca) = endpoint.parts()?;
        let mut config = Config::new(url.parse().context("an endpoint has a URL")?);
        config.root_cert = Some(vec![ca]);
        // A refusal is an answer, and not to be asked for again.
        config.default_retry = false;
        let client = cluster.block_on(async { Client::try_from(config) })?;
        Ok(Self { client, namespace: namespace.to_owned() })
    }

    /// Asks about a pod of an agent; good when it gets its memory.
    pub(crate) async fn ask(&self, agent: &str) -> Result<(), Failure> {
        let answer = self.answer(agent, &[]).await;
        let answer = answer.map_err(|error| Failure::new(BROKEN, format!("{error:#}")))?;
        let response = &answer.body["response"];
        if answer.status != 200 || response["allowed"] != true {
            return Err(Failure::new("refused", format!("{}: {}", answer.status, answer.body)));
        }
        if response["patch"].is_string() { Ok(()) } else { Err(Failure::new(BARE, response)) }
    }

    /// The patch of a pod of an agent, as text; empty when there is none.
    pub(crate) async fn patch(&self, agent: &str) -> Result<String> {
        let answer = self.answer(agent, &[]).await?;
        let patch = answer.body["response"]["patch"].as_str().unwrap_or_default();
        Ok(String::from_utf8(BASE64_STANDARD.decode(patch)?)?)
    }

    /// The answer about a pod of an agent with further labels. A refusal in plain text is a string.
    pub(crate) async fn answer(&self, agent: &str, labels: &[(&str, &str)]) -> Result<Answer> {
        send(&self.client, Method::POST, "/mutate?timeout=10s", Some(&self.review(agent, labels))).await
    }

    /// The answer to any body.
    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Answer> {
        send(&self.client, method, path, Some(body)).await
    }

    fn review(&self, agent: &str, labels: &[(&str, &str)]) -> Value {
        let mut review = review(&self.namespace, &pod(agent, agent, labels));
        review["request"]["resource"] = json!({"group": "", "version": "v1", "resource": "pods"});
        review["request"]["dryRun"] = json!(true);
        review
    }
}

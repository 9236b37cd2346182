//! Ends pauses: removes the bindings of those whose time is over, and shows the others as metric and Event.
//!
//! ```text
//! apiserver ──list──▶ pauses and its time ──▶ ended? delete : metric
//!                                         └─▶ new or gone since the last round? Event
//! ```
//!
//! Each replica does this for itself, and `memgate pause` writes the same Events: a second delete and a second Event of the
//! same name do nothing. The times are those of the apiserver's clock, by which the pause was written. The account may list
//! and delete bindings of these names alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use axum::http::header::DATE;
use futures::future::try_join_all;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use k8s_openapi::jiff::fmt::rfc2822;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::logs::{LogRate, LogRateLimiter};
use crate::metrics::Metrics;
use memgate_certs::kube_api::{jitter, with_timeout};
use memgate_certs::library_error::explained;
use memgate_model::pause::{PAUSED, Pause, name};

/// The pause between two rounds: a pause ends at most so much, and the requests, later than it should.
const INTERVAL: Duration = Duration::from_secs(15);

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The rate of log lines about rounds that failed.
const FAILURE_LOG_RATE: LogRate = LogRate { burst: 1, refill: Duration::from_mins(5) };

/// The URL path of the group of bindings.
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Pauses by their namespaces and platforms.
type Pauses = BTreeMap<(Option<String>, Option<String>), Pause>;

/// Reads pauses again and again, and ends them; never ends itself.
pub(super) async fn end(client: Client, metrics: Arc<Metrics>, writes_events: bool) {
    let log_limiter = LogRateLimiter::new(FAILURE_LOG_RATE);
    let mut known = Pauses::new();
    loop {
        match round(&client, &metrics, writes_events, &known).await {
            Ok(pauses) => known = pauses,
            Err(error) => {
                if let Ok(suppressed) = log_limiter.take("pauses") {
                    let error = explained(&error);
                    tracing::warn!(
                        error,
                        suppressed,
                        "failed to read pauses: those that ended may stay in force"
                    );
                }
            }
        }
        sleep(jitter(INTERVAL)).await;
    }
}

/// Reads all pauses, removes those that have ended, and returns the others.
async fn round(
    client: &Client,
    metrics: &Metrics,
    writes_events: bool,
    known: &Pauses,
) -> kube::Result<Pauses> {
    let families = memgate_platforms::ALL.into_iter().map(|family| Some(family.name));
    let lists = [None].into_iter().chain(families).flat_map(|family| {
        ["clusterrolebindings", "rolebindings"].map(|plural| list(client, plural, name(PAUSED, family)))
    });
    let lists = try_join_all(lists).await?;
    let now = lists.iter().filter_map(|(_, now)| *now).max();
    let all = lists.into_iter().flat_map(|(pauses, _)| pauses);
    let mut pauses: Pauses =
        all.map(|pause| ((pause.namespace.clone(), pause.family.clone()), pause)).collect();
    let has_ended = |_: &_, pause: &mut Pause| now.is_some_and(|now| pause.has_ended(now));
    let mut gone = Pauses::new();
    for (place, pause) in pauses.extract_if(.., has_ended).collect::<Vec<_>>() {
        if remove(client, &pause).await? {
            gone.insert(place, pause);
        } else {
            pauses.insert(place, pause);
        }
    }
    metrics.pauses.set(pauses.values());
    // A user or another replica has ended these.
    let of_others =
        known.iter().filter(|(place, _)| !pauses.contains_key(*place) && !gone.contains_key(*place));
    let ended = gone.iter().chain(of_others).map(|(_, pause)| (pause, false));
    let is_new = |(place, pause): &(&_, &Pause)| known.get(*place).is_none_or(|known| !known.is_like(pause));
    let began = pauses.iter().filter(is_new).map(|(_, pause)| (pause, true));
    for (pause, begins) in began.chain(ended) {
        log(pause, begins);
        if writes_events {
            write_event(client, pause, begins, now.unwrap_or_default()).await;
        }
    }
    Ok(pauses)
}

/// The pauses of a name in all namespaces, and the time by the apiserver's clock.
async fn list(client: &Client, plural: &str, name: String) -> kube::Result<(Vec<Pause>, Option<Timestamp>)> {
    let path = format!("{RBAC}/{plural}?fieldSelector=metadata.name%3D{name}&resourceVersion=0");
    let request = Request::get(path).body(Body::empty()).map_err(kube::Error::HttpError)?;
    let (head, body) = with_timeout(REQUEST_TIMEOUT, answer(client, request)).await?;
    let date = head.headers.get(DATE).and_then(|date| date.to_str().ok());
    let now = date.and_then(|date| Some(rfc2822::parse(date).ok()?.timestamp()));
    let items = body.get("items").and_then(Value::as_array);
    Ok((items.into_iter().flatten().filter_map(Pause::read).collect(), now))
}

/// Removes a pause that has ended, unless it was replaced; returns whether it is gone.
async fn remove(client: &Client, pause: &Pause) -> kube::Result<bool> {
    let place = match &pause.namespace {
        Some(namespace) => format!("namespaces/{namespace}/rolebindings"),
        None => "clusterrolebindings".to_owned(),
    };
    let preconditions = json!({"uid": pause.uid, "resourceVersion": pause.resource_version});
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
    let request = Request::delete(format!("{RBAC}/{place}/{}", pause.binding()))
        .header("content-type", "application/json")
        .body(Body::from(options.to_string().into_bytes()))
        .map_err(kube::Error::HttpError)?;
    match with_timeout(REQUEST_TIMEOUT, answer(client, request)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// The head and the body of an answer without an error.
async fn answer(
    client: &Client,
    request: Request<Body>,
) -> kube::Result<(axum::http::response::Parts, Value)> {
    let (head, body) = client.send(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    if !head.status.is_success() {
        let status = serde_json::from_slice(&body).unwrap_or_default();
        return Err(kube::Error::Api(Box::new(kube::core::Status { code: head.status.as_u16(), ..status })));
    }
    Ok((head, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Writes the Event of a pause, unless it is there; one that cannot be written is lost.
async fn write_event(client: &Client, pause: &Pause, begins: bool, now: Timestamp) {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", pause.namespace_of_event());
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(pause.event(begins, now).to_string().into_bytes()));
    let written = match request {
        Ok(request) => with_timeout(REQUEST_TIMEOUT, answer(client, request)).await,
        Err(error) => Err(kube::Error::HttpError(error)),
    };
    match written {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => {
            tracing::warn!(error = explained(&error), "an Event about a pause could not be written");
        }
    }
}

fn log(pause: &Pause, begins: bool) {
    let (namespace, family) = (pause.namespace_or_all(), pause.family_or_all());
    let Pause { until, by, reason, .. } = pause;
    if begins && pause.written_end().is_none() {
        let end = pause.end().map(|end| end.to_string()).unwrap_or_default();
        tracing::warn!(
            namespace,
            family,
            until,
            end,
            by,
            reason,
            "memgate is paused, and the end cannot be read"
        );
    } else if begins {
        tracing::warn!(namespace, family, until, by, reason, "memgate is paused");
    } else {
        tracing::info!(namespace, family, until, by, reason, "a pause has ended");
    }
}

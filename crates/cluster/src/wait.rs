//! Sends dry runs of objects that memgate must refuse, once or until memgate refuses all of them.

use std::time::Duration;

use axum::http::Method;
use futures::future::join_all;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::{Answer, interpret};
use crate::probe::Probe;
use crate::request::send;
use memgate_certs::library_error::explained;
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_model::family::AggregatedServer;
use memgate_model::kind::SYSTEM_NAMESPACES;
use memgate_primitives::plain_text::plain;

/// The pause between two rounds of probes.
const PAUSE: Duration = Duration::from_secs(1);

/// A namespace in which memgate is called for pods.
///
/// # Errors
/// When it never is.
pub fn probe_namespace(name: &str) -> Result<String, String> {
    if SYSTEM_NAMESPACES.contains(&name) || name == DEFAULT_NAMESPACE {
        return Err(format!("memgate is never asked about pods of {name}; choose a namespace of agents"));
    }
    Ok(name.to_owned())
}

/// Sends all probes, again and again, until memgate answers each or `timeout` is over, and returns the
/// answers of the last round. `notify` gets each new reason for a missing one once.
pub async fn wait(
    client: &Client,
    probes: &[Probe],
    namespace: &str,
    timeout: Duration,
    notify: impl Fn(&str),
) -> Vec<Answer> {
    let deadline = Instant::now() + timeout;
    let mut notified = Vec::new();
    loop {
        let answers = send_probes(client, probes, namespace, deadline).await;
        let missing = answers.iter().filter(|answer| answer.is_missing);
        let missing: Vec<String> =
            missing.map(|Answer { check, .. }| format!("{}: {}", check.subject, check.message)).collect();
        missing.iter().filter(|line| !notified.contains(*line)).for_each(|line| notify(line));
        notified = missing;
        if all_answered(&answers) || Instant::now() + PAUSE >= deadline {
            return answers;
        }
        sleep(PAUSE).await;
    }
}

/// Sends each probe once, all at the same time, until `deadline`. Kinds that the cluster does not serve have no answer.
pub async fn send_probes(
    client: &Client,
    probes: &[Probe],
    namespace: &str,
    deadline: Instant,
) -> Vec<Answer> {
    let answers = probes.iter().map(|probe| async move {
        let answer = timeout_at(deadline, send_probe(client, probe, namespace)).await;
        let late = || Some(Answer::missing(probe, "no answer came in the time that was left"));
        answer.unwrap_or_else(|_| late())
    });
    // All at once: those that nothing answers take a webhook's whole timeout each.
    join_all(answers).await.into_iter().flatten().collect()
}

/// Whether memgate answered every probe that the cluster serves the kind of.
pub fn all_answered(answers: &[Answer]) -> bool {
    !answers.is_empty() && !answers.iter().any(|answer| answer.is_missing)
}

async fn send_probe(client: &Client, probe: &Probe, namespace: &str) -> Option<Answer> {
    if let Some(server) = probe.aggregated_server
        && let Some(answer) = reason_not_to_send(client, probe, server).await
    {
        return Some(answer);
    }
    match send(client, Method::POST, &probe.path(namespace), Some(&probe.object)).await {
        Ok(response) => interpret(probe, &response),
        Err(error) => Some(no_answer(probe, &error)),
    }
}

/// Why a probe must not be sent. An API server of the platform's own may not support dry runs: that of ark stores every
/// object. So nothing is sent where the user may not see whether there is such a server.
async fn reason_not_to_send(client: &Client, probe: &Probe, server: AggregatedServer) -> Option<Answer> {
    let AggregatedServer { api_service, help } = server;
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{api_service}");
    let response = match send(client, Method::GET, &path, None).await {
        Ok(response) => response,
        Err(error) => return Some(no_answer(probe, &error)),
    };
    match response.status {
        200 => {
            let names_a_service = response.body.pointer("/spec/service").is_some_and(Value::is_object);
            names_a_service.then(|| Answer::aggregated(probe, api_service, help))
        }
        404 => None,
        403 => Some(Answer::maybe_aggregated(probe, api_service)),
        _ => {
            let message = plain(response.message());
            Some(Answer::missing(probe, format!("the apiserver does not show its APIServices: {message}")))
        }
    }
}

fn no_answer(probe: &Probe, error: &kube::Error) -> Answer {
    Answer::missing(probe, format!("the apiserver does not answer: {}", plain(&explained(error))))
}

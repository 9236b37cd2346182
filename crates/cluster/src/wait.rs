//! Sends dry runs of objects that memgate must refuse, once or until memgate refuses all of them.

use std::time::Duration;

use axum::http::Method;
use futures::future::join_all;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use crate::check::Check;
use crate::probe::Probe;
use crate::probe_outcome::{ProbeOutcome, interpret};
use crate::request::send;
use memgate_certs::library_error::explained;
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_model::family::AggregatedServer;
use memgate_model::kind::SYSTEM_NAMESPACES;
use memgate_primitives::plain_text::plain;

/// The pause after the first round of probes; each further one is twice as long as the one before it.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// The upper bound of the pause, so that an answer is noticed soon after it comes.
const MAX_PAUSE: Duration = Duration::from_secs(3);

/// The outcome of one probe.
#[derive(Debug)]
pub struct ProbeResult {
    /// The name of the probe.
    pub name: String,
    /// The code of the finding that memgate has to report.
    pub code: &'static str,
    /// How the apiserver answered.
    pub outcome: ProbeOutcome,
}

impl ProbeResult {
    /// Whether memgate has not answered and should have.
    fn is_missing(&self) -> bool {
        use ProbeOutcome::{Forbidden, Missing, NotAsked};
        matches!(self.outcome, Forbidden(_) | Missing(_) | NotAsked)
    }

    /// The outcome in words; none for a kind that the cluster does not serve.
    pub fn check(&self) -> Option<Check> {
        const ID: &str = "answers";
        let (name, code) = (&self.name, self.code);
        Some(match &self.outcome {
            ProbeOutcome::Answered { webhook } => {
                let by = webhook.as_ref().map(|webhook| format!(" by {webhook}")).unwrap_or_default();
                Check::ok(ID, name, format!("answered{by} ({code})"))
            }
            ProbeOutcome::NotServed => return None,
            ProbeOutcome::Aggregated(server) => {
                let service = server.api_service;
                let message = format!(
                    "not asked: an API server of the platform serves it (APIService {service}) and may not call webhooks"
                );
                Check::warn(ID, name, message).help(server.help)
            }
            ProbeOutcome::MaybeAggregated(server) => {
                let service = server.api_service;
                let message = format!(
                    "not asked: you may not get the APIService {service}, which shows whether a dry run is safe"
                );
                Check::unknown(ID, name, message)
            }
            ProbeOutcome::Forbidden(why) => Check::unknown(ID, name, why.clone()),
            ProbeOutcome::NotAsked => Check::fail(ID, name, "the apiserver does not ask memgate"),
            ProbeOutcome::Missing(why) => {
                Check::fail(ID, name, why.clone()).help("memgate explain runbook/no-answer")
            }
        })
    }
}

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
/// results of the last round. `notify` gets each new reason for a missing answer once.
pub async fn wait(
    client: &Client,
    probes: &[Probe],
    namespace: &str,
    timeout: Duration,
    notify: impl Fn(&str),
) -> Vec<ProbeResult> {
    let deadline = Instant::now() + timeout;
    let mut pause = MIN_PAUSE;
    let mut notified = Vec::new();
    loop {
        let results = send_probes(client, probes, namespace, deadline).await;
        let missing = missing(&results);
        if all_answered(&results) {
            return results;
        }
        missing.iter().filter(|line| !notified.contains(*line)).for_each(|line| notify(line));
        notified = missing;
        if Instant::now() + pause >= deadline {
            return results;
        }
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Sends each probe once, all at the same time, until `deadline`.
pub async fn send_probes(
    client: &Client,
    probes: &[Probe],
    namespace: &str,
    deadline: Instant,
) -> Vec<ProbeResult> {
    let results = probes.iter().map(|probe| async move {
        let outcome = timeout_at(deadline, send_probe(client, probe, namespace)).await;
        let late = || ProbeOutcome::Missing("no answer came in the time that was left".to_owned());
        let outcome = outcome.unwrap_or_else(|_| late());
        ProbeResult { name: probe.name.clone(), code: probe.finding.code.name, outcome }
    });
    // All at once: those that nothing answers take a webhook's whole timeout each.
    join_all(results).await
}

/// Whether memgate answered every probe that the cluster serves the kind of.
pub fn all_answered(results: &[ProbeResult]) -> bool {
    !results.is_empty() && missing(results).is_empty()
}

/// One line for each probe without an answer.
fn missing(results: &[ProbeResult]) -> Vec<String> {
    let missing = results.iter().filter(|result| result.is_missing()).filter_map(ProbeResult::check);
    missing.map(|check| format!("{}: {}", check.subject, check.message)).collect()
}

async fn send_probe(client: &Client, probe: &Probe, namespace: &str) -> ProbeOutcome {
    if let Some(server) = probe.aggregated_server
        && let Some(outcome) = reason_not_to_send(client, probe, server).await
    {
        return outcome;
    }
    let response = send(client, Method::POST, &probe.path(namespace), Some(&probe.object)).await;
    match response.map(|response| interpret(probe, &response)) {
        // Only what comes with a platform can be absent.
        Ok(ProbeOutcome::NotServed) if !probe.optional => {
            ProbeOutcome::Missing("the apiserver does not serve pods: is it one?".to_owned())
        }
        Ok(outcome) => outcome,
        Err(error) => no_answer(&error),
    }
}

/// The outcome of a probe that must not be sent. An API server of the platform's own may not support dry runs: that
/// of ark stores every object. So nothing is sent where the user may not see whether there is such a server.
async fn reason_not_to_send(
    client: &Client,
    probe: &Probe,
    server: AggregatedServer,
) -> Option<ProbeOutcome> {
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}", server.api_service);
    match send(client, Method::GET, &path, None).await {
        Ok(response) if response.status == 200 => {
            let names_a_service = response.body.pointer("/spec/service").is_some_and(Value::is_object);
            names_a_service.then_some(ProbeOutcome::Aggregated(server))
        }
        Ok(response) if response.status == 404 => None,
        Ok(response) if response.status == 403 => {
            let maybe = is_group_served(client, probe.group()).await;
            Some(if maybe { ProbeOutcome::MaybeAggregated(server) } else { ProbeOutcome::NotServed })
        }
        Ok(response) => {
            let message = plain(response.message());
            Some(ProbeOutcome::Missing(format!("the apiserver does not show its APIServices: {message}")))
        }
        Err(error) => Some(no_answer(&error)),
    }
}

/// Whether the apiserver's own list of groups has this one: a request about the group itself would be passed on to the
/// platform's server. True when the list cannot be read.
async fn is_group_served(client: &Client, group: &str) -> bool {
    let groups = send(client, Method::GET, "/apis", None).await.unwrap_or_default();
    let names = groups.body.get("groups").and_then(Value::as_array);
    names.is_none_or(|groups| {
        groups.iter().any(|known| known.get("name").and_then(Value::as_str) == Some(group))
    })
}

fn no_answer(error: &kube::Error) -> ProbeOutcome {
    ProbeOutcome::Missing(format!("the apiserver does not answer: {}", plain(&explained(error))))
}

//! One page about an installation: whether it answers, what runs without memory, what was refused, who changed policies,
//! what ends soon, and what it costs.
//!
//! All requests end at one deadline. What could not be read until then, or may not be read, is named, and the rest is
//! shown. Refusals are those in the logs of the replicas and in the Events of controllers, whichever has more; the users
//! who changed policies are in the logs, and the times in `managedFields`.

mod replica_log;
mod replica_metrics;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add as _;
use std::time::Duration;

use futures::future::{join, join_all, join3};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster_state::{Agents, Fetched, Installation, elements, text};
use crate::doctor::ca_bundle::expiries;
use crate::doctor::check::{Check, CheckStatus};
use crate::doctor::missing_memory::Owned;
use crate::doctor::{DoctorOptions, Unreachable, expected, missing_memory, webhooks, workload};
use crate::pause::ListedPause;
use crate::probe_outcome::ProbeOutcome;
use crate::reader::{ClusterReader, path};
use crate::replay::{Owner, replay};
use crate::status::replica_log::{Changes, Counts, Logged};
use crate::status::replica_metrics::Metrics;
use crate::wait::{ProbeTarget, send_probes};
use memgate_install::objects::Objects;
use memgate_model::kind::{Kind, MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};

/// How long everything may take; the command has half a minute.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// How long the installation may take to read, which the rest needs.
const INSTALLATION_TIME_LIMIT: Duration = Duration::from_secs(12);

/// How long a replica has to answer through the apiserver.
const REPLICA_TIME_LIMIT: Duration = Duration::from_secs(8);

/// How many replicas are asked.
const MAX_REPLICAS: usize = 10;

/// How much is read of the end of a replica's log.
const MAX_LOG_LINES: u32 = 20_000;
const MAX_LOG_BYTES: u32 = 16 << 20;

/// For how long refusals are counted, in seconds.
const RECENT_SECONDS: i64 = 3600;

/// What ends soon, in seconds: within thirty days.
const SOON_SECONDS: i64 = 30 * 24 * 3600;

/// How long after a decision the object is stored at most, in seconds.
const STORED_WITHIN_SECONDS: i64 = 10;

/// The answers, each with the fields of the JSON form.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Whether memgate answers.
    pub replicas: Replicas,
    /// What it is lifted off.
    pub paused: Vec<ListedPause>,
    /// The owners of pods without their memory.
    pub pods_without_memory: Vec<OwnerWithoutMemory>,
    /// What was refused in the last hour, the most first.
    pub refused: Vec<Refused>,
    /// The last change of each policy and exemption, the newest first.
    pub policy_changes: Vec<PolicyChange>,
    /// What ends within thirty days, the next first.
    pub ends_soon: Vec<Ending>,
    /// What the replicas use.
    pub cost: Cost,
    /// What could not be read, by section.
    pub unknown: BTreeMap<&'static str, BTreeSet<String>>,
}

/// Whether memgate answers.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replicas {
    /// Whether a dry run was answered; none if that is unknown.
    pub answer: Option<bool>,
    /// What is wrong, causes first.
    pub failures: Vec<String>,
    /// How many are wanted.
    pub wanted: Option<i64>,
    /// How many are available.
    pub available: Option<i64>,
    /// Their versions, by themselves or by the tag of the image.
    pub versions: BTreeSet<String>,
    /// The entries that refuse requests while memgate does not answer.
    pub entries_fail_closed: usize,
    /// The entries that let requests pass then.
    pub entries_fail_open: usize,
}

/// An owner whose pods are without their memory.
#[derive(Debug, Serialize)]
pub struct OwnerWithoutMemory {
    /// Its namespace.
    pub namespace: String,
    /// `Kind/name`.
    pub owner: String,
    /// How many pods.
    pub pods: usize,
    /// Why.
    pub cause: String,
    /// The command that makes its pods anew; none if no single one does, as for a pod without a controller.
    pub restart: Option<String>,
    /// How its pods get their memory, in words and with that command.
    pub help: String,
}

/// Requests that were refused.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// The code of the first denial.
    pub code: String,
    /// The namespace; empty for objects of the cluster.
    pub namespace: String,
    /// How many requests.
    pub count: u64,
}

/// The last change of a policy or an exemption.
#[derive(Debug, Serialize)]
pub struct PolicyChange {
    /// `name` of a policy, `namespace/name` of an exemption.
    pub policy: String,
    /// Its kind.
    pub kind: &'static str,
    /// The user, if a replica logged the change.
    pub user: Option<String>,
    /// The program, as `managedFields` has it.
    pub manager: String,
    /// When.
    pub at: String,
}

/// Something that ends.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Ending {
    /// When.
    pub at: String,
    /// `certificate`, `exemption` or `promotion`.
    pub kind: &'static str,
    /// Which one.
    pub name: String,
}

/// What the replicas use that could be asked.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// How many replicas could be asked.
    pub replicas: usize,
    /// Cores of CPU since their start, on average, all together.
    pub cpu_cores: f64,
    /// Their memory.
    pub memory_bytes: f64,
    /// The time that 99 of 100 reviews stay below.
    pub p99_seconds: Option<f64>,
}

impl Status {
    /// Whether memgate does not answer.
    pub fn is_away(&self) -> bool {
        self.replicas.answer == Some(false) || !self.replicas.failures.is_empty()
    }

    fn unknown(&mut self, section: &'static str, why: impl Into<String>) {
        self.unknown.entry(section).or_default().insert(why.into());
    }
}

/// Reads everything, and answers.
///
/// # Errors
/// When the apiserver does not answer at all.
pub async fn status(client: Client, options: &DoctorOptions<'_>) -> Result<Status, Unreachable> {
    let start = Instant::now();
    let until = |limit| {
        let (client, deadline) = (client.clone(), Some(start + limit));
        ClusterReader { client, max_objects: options.max_objects, deadline }
    };
    let reader = until(INSTALLATION_TIME_LIMIT);
    let found = crate::installation::installation(&reader, options.namespace, options.configuration);
    let found = found.await.map_err(Unreachable)?;
    let (settings, expected) = expected(&found, options);
    let (reader, replicas) = (until(TIME_LIMIT), until(start.elapsed() + REPLICA_TIME_LIMIT));
    let mut probes = crate::probe::probes(&settings.families);
    probes.truncate(1);
    let target = ProbeTarget { namespace: options.dry_run_namespace, configuration: &found.name };
    let exemptions = &MEMORY_POLICY_EXEMPTION;
    let (api, plural) = (exemptions.api_version(), exemptions.plural);
    let (of_replicas, of_cluster) = Box::pin(join(
        join3(
            send_probes(&client, &probes, target, replicas.until()),
            join_all(pods(&found).map(|pod| log(&replicas, pod))),
            join_all(pods(&found).map(|pod| metrics(&replicas, pod))),
        ),
        join3(
            crate::agents::agents(&reader, settings, false),
            events(&reader),
            reader.list::<Value>(&api, "", plural, ListParams::default()),
        ),
    ))
    .await;
    let (probes, logs, metrics) = of_replicas;
    let (agents, events, exemptions) = of_cluster;
    let now = found.apiserver_time.unwrap_or_default();
    let mut status = Status::default();
    let metrics = status.known("cost", metrics);
    status.set_replicas(&found, &expected, probes.first().map(|probe| &probe.outcome), &metrics);
    status.set_cost(&metrics, now);
    status.paused = found.pauses.items().iter().map(ListedPause::from).collect();
    if let Fetched::Unknown(why) = &found.pauses {
        status.unknown("paused", why.clone());
    }
    status.set_pods(&found, &agents);
    let logs = status.known("refused", logs);
    if logs.is_empty() && !status.unknown.contains_key("refused") {
        status.unknown("refused", "no replica has a log; only Events count");
    }
    let logged = Logged::read(&logs, now - RECENT_SECONDS);
    let events = status.known("refused", [events]).into_iter().flatten().collect::<Vec<_>>();
    status.set_refused(logged.refused, &events, now - RECENT_SECONDS);
    let exemptions = status.known("policyChanges", [exemptions]).into_iter().flatten().collect::<Vec<_>>();
    let policies = found.policies.items();
    if let Fetched::Unknown(why) = &found.policies {
        status.unknown("policyChanges", why.clone());
    }
    status.set_changes(&MEMORY_POLICY, policies, &logged.changed);
    status.set_changes(&MEMORY_POLICY_EXEMPTION, &exemptions, &logged.changed);
    status.set_endings(&found, policies, &exemptions, now);
    status.sort();
    Ok(status)
}

/// The replicas that are asked.
fn pods(found: &Installation) -> impl Iterator<Item = &Value> {
    found.replicas.items().iter().take(MAX_REPLICAS)
}

/// The end of the log of a replica.
async fn log(reader: &ClusterReader, pod: &Value) -> Fetched<String> {
    let query = format!("container=memgate&tailLines={MAX_LOG_LINES}&limitBytes={MAX_LOG_BYTES}");
    let path = path("v1", text(pod, "/metadata/namespace"), "pods");
    let path = format!("{path}/{}/log?{query}", text(pod, "/metadata/name"));
    reader.text("pods/log", &path).await
}

/// The metrics of a replica, through the apiserver.
async fn metrics(reader: &ClusterReader, pod: &Value) -> Fetched<Metrics> {
    let mut ports = elements(pod, "/spec/containers").flat_map(|container| elements(container, "/ports"));
    let health = ports.find(|port| text(port, "/name") == "health");
    let port = health.and_then(|port| port.get("containerPort")?.as_i64()).unwrap_or(8081);
    let path = path("v1", text(pod, "/metadata/namespace"), "pods");
    let path = format!("{path}/{}:{port}/proxy/metrics", text(pod, "/metadata/name"));
    reader.text("pods/proxy", &path).await.map(|text| Metrics::read(&text))
}

/// The Events of controllers whose pods memgate refused.
async fn events(reader: &ClusterReader) -> Fetched<Vec<Value>> {
    let params = ListParams::default().fields("type=Warning");
    let mut found = Vec::new();
    let take = |page: Vec<Value>| {
        let is_refusal =
            |event: &Value| text(event, "/message").contains(".memgate.dev\" denied the request");
        found.extend(page.into_iter().filter(is_refusal));
        found.len() < reader.max_objects
    };
    reader.pages("events", "/api/v1/events", params, take).await.map(|_| found)
}

impl Status {
    /// What was found of the parts of a section; of the others the reason is kept.
    fn known<T>(&mut self, section: &'static str, parts: impl IntoIterator<Item = Fetched<T>>) -> Vec<T> {
        let mut known = Vec::new();
        for part in parts {
            match part {
                Fetched::Found(part) => known.push(part),
                Fetched::Absent => {}
                Fetched::Unknown(why) => self.unknown(section, why),
            }
        }
        known
    }

    fn set_replicas(
        &mut self,
        found: &Installation,
        expected: &Objects,
        probe: Option<&ProbeOutcome>,
        metrics: &[Metrics],
    ) {
        let checks = workload::checks(found).into_iter().chain(webhooks::checks(found, expected));
        let mut failures = Vec::new();
        for Check { status, subject, message, .. } in checks {
            match status {
                CheckStatus::Fail => failures.push(format!("{subject}: {message}")),
                CheckStatus::Unknown => self.unknown("replicas", message),
                CheckStatus::Ok | CheckStatus::Warn => {}
            }
        }
        let answer = match probe {
            Some(ProbeOutcome::Answered { .. }) => Some(true),
            Some(ProbeOutcome::Missing(why)) => {
                failures.push(why.clone());
                Some(false)
            }
            Some(ProbeOutcome::Forbidden(why)) => {
                self.unknown("replicas", why.clone());
                None
            }
            _ => None,
        };
        let images = found.replicas.items().iter().filter_map(|pod| workload::image(pod));
        let by_image = images.filter_map(|(_, image)| workload::version(image)).map(str::to_owned).collect();
        let versions: BTreeSet<String> = metrics.iter().filter_map(|it| it.version.clone()).collect();
        let count = |pointer| found.deployment.as_ref().found()?.pointer(pointer)?.as_i64();
        let (closed, open): (Vec<_>, Vec<_>) =
            found.all_own_entries().into_iter().partition(|entry| entry.fails_closed);
        self.replicas = Replicas {
            answer,
            failures,
            wanted: count("/spec/replicas"),
            available: found
                .deployment
                .as_ref()
                .found()
                .map(|_| count("/status/availableReplicas").unwrap_or_default()),
            versions: if versions.is_empty() { by_image } else { versions },
            entries_fail_closed: closed.len(),
            entries_fail_open: open.len(),
        };
    }

    fn set_pods(&mut self, found: &Installation, agents: &Agents) {
        for why in &agents.incomplete {
            self.unknown("podsWithoutMemory", why.clone());
        }
        let replayed = replay(&agents.pods, &agents.snapshot);
        let owners = missing_memory::owners(found, &agents.created, &replayed);
        let one = |(owner, owned): (Owner, Owned)| OwnerWithoutMemory {
            owner: format!("{}/{}", owner.kind, owner.name),
            pods: owned.pods,
            cause: owned.cause(),
            restart: owner.restart(),
            help: owned.help(&owner),
            namespace: owner.namespace,
        };
        self.pods_without_memory = owners.into_iter().map(one).collect();
    }

    /// What the logs have, or the Events where they have more: a replica that is gone took its log with it.
    fn set_refused(&mut self, logged: Counts, events: &[Value], since: i64) {
        let mut in_events = Counts::new();
        for event in events {
            let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/firstTimestamp"];
            let last = times.into_iter().find_map(|pointer| seconds(text(event, pointer)));
            let code =
                text(event, "/message").split_once("(memgate ").and_then(|(_, rest)| rest.split_once(')'));
            if let Some((code, _)) = code.filter(|_| last.is_none_or(|last| last >= since)) {
                let count =
                    ["/series/count", "/count"].into_iter().find_map(|it| event.pointer(it)?.as_u64());
                let key = (code.to_owned(), text(event, "/metadata/namespace").to_owned());
                *in_events.entry(key).or_default() += count.unwrap_or(1);
            }
        }
        let mut all = logged;
        for (key, count) in in_events {
            let known = all.entry(key).or_default();
            *known = count.max(*known);
        }
        let one = |((code, namespace), count)| Refused { code, namespace, count };
        self.refused = all.into_iter().map(one).collect();
    }

    fn set_changes(&mut self, kind: &'static Kind, objects: &[Value], logged: &Changes) {
        for object in objects {
            let entries = elements(object, "/metadata/managedFields");
            let of_spec = entries.filter(|entry| text(entry, "/subresource").is_empty());
            let last = of_spec.filter_map(|entry| Some((seconds(text(entry, "/time"))?, entry)));
            let Some((time, last)) = last.max_by_key(|(time, _)| *time) else { continue };
            let [namespace, name] =
                ["/metadata/namespace", "/metadata/name"].map(|pointer| text(object, pointer));
            let key = [kind.kind, namespace, name].map(str::to_owned);
            let user = logged.get(&key).filter(|(at, _)| *at + STORED_WITHIN_SECONDS >= time);
            let slash = if namespace.is_empty() { "" } else { "/" };
            self.policy_changes.push(PolicyChange {
                policy: format!("{namespace}{slash}{name}"),
                kind: kind.kind,
                user: user.map(|(_, user)| user.clone()),
                manager: text(last, "/manager").to_owned(),
                at: text(last, "/time").to_owned(),
            });
        }
    }

    fn set_endings(&mut self, found: &Installation, policies: &[Value], exemptions: &[Value], now: i64) {
        let entries = found.all_own_entries();
        let bundles: BTreeSet<&[u8]> =
            entries.iter().filter_map(|entry| Some(entry.client.ca_bundle.as_ref()?.0.as_slice())).collect();
        let certificates = bundles.into_iter().filter_map(|bundle| expiries(bundle).ok()).flatten();
        let certificates = certificates.map(|at| (at, "certificate", format!("a CA of {}", found.name)));
        let policies = policies.iter().filter_map(|policy| {
            let at = seconds(text(policy, "/spec/promote/at")).filter(|at| *at > now)?;
            Some((at, "promotion", text(policy, "/metadata/name").to_owned()))
        });
        let exemptions = exemptions.iter().filter_map(|exemption| {
            let at = seconds(text(exemption, "/spec/expiresAt")).filter(|at| *at > now)?;
            let [namespace, name, policy] =
                ["/metadata/namespace", "/metadata/name", "/spec/policy"].map(|it| text(exemption, it));
            Some((at, "exemption", format!("{namespace}/{name} from {policy}")))
        });
        let all = certificates.chain(policies).chain(exemptions).filter(|(at, ..)| *at < now + SOON_SECONDS);
        let ending = |(at, kind, name)| {
            let at = Timestamp::from_second(at).unwrap_or_default().to_string();
            Ending { at, kind, name }
        };
        self.ends_soon = all.map(ending).collect::<BTreeSet<_>>().into_iter().collect();
    }

    fn set_cost(&mut self, metrics: &[Metrics], now: i64) {
        self.cost = Cost {
            replicas: metrics.len(),
            cpu_cores: metrics.iter().map(|metrics| metrics.cores(now)).fold(0.0, f64::add),
            memory_bytes: metrics.iter().map(|metrics| metrics.memory).fold(0.0, f64::add),
            p99_seconds: replica_metrics::p99(metrics),
        };
        if metrics.is_empty() && !self.unknown.contains_key("cost") {
            self.unknown("cost", "no replica could be asked");
        }
    }

    fn sort(&mut self) {
        self.refused.sort_by_key(|refused| Reverse(refused.count));
        self.policy_changes.sort_by(|one, other| other.at.cmp(&one.at));
    }
}

/// A time in seconds since 1970.
fn seconds(time: &str) -> Option<i64> {
    Some(time.parse::<Timestamp>().ok()?.as_second())
}

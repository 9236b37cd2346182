//! Cases of `tests/cases` against a real apiserver that calls a real memgate.
//!
//! ```text
//! case ──isolated into namespaces of its own──▶ state, stored unasked ──▶ memgate has seen it all
//!      ──▶ its request, as a dry run ──▶ answer, warnings, audit annotations ──▶ failures
//! ```
//!
//! The states of cases in namespaces of their own are stored once, before the first request, for all
//! of them side by side. A case that has objects in a namespace that means something to a platform, or
//! in none, runs alone: nothing of the others is in the cluster meanwhile, and nothing of its own
//! afterwards. Each case is a trial.
//!
//! This program runs a part of the cases ([`Share`]); `MEMGATE_TEST_CASES=all` runs the others too. Some cannot be run
//! here at all:
//!
//! - A file `…-offline.yaml` has cases that cannot be sent to an apiserver, such as new objects with a time of their
//!   deletion, or objects that its schemas would change on the way.
//! - A policy applies to all namespaces, and some cases below `policy` need a time of their own. The module `policies`
//!   tries each rule with the example of its page. The cases of the library of policies run alone, at the time of the
//!   run ([`now`]).
//!
//! A case of a file `…-schema.yaml` describes what memgate refuses where there is no apiserver; here the apiserver
//! has to refuse it by itself.

mod isolated;
mod now;
mod stored_states;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use axum::http::Method;
use kube::Client;
use memgate_model::change::stays_what_it_is;
use memgate_model::request::Point;
use memgate_model::request::{Operation, User};
use memgate_workbench::files::casefile::compare::{CaseOutcome, failures};
use memgate_workbench::files::casefile::read::read;
use memgate_workbench::files::casefile::{self};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::GUARDED,
    releases::is_sample,
    request::{self, Answer, send},
    support::{
        audit::Annotations,
        cases::{documents, library},
        control_plane::ControlPlane,
        share::Share,
    },
};

use self::{
    isolated::{IsolatedCase, isolate},
    stored_states::StoredStates,
};

/// The number of cases that all trials have run.
static RUN: AtomicUsize = AtomicUsize::new(0);

/// One trial for each case.
///
/// # Errors
/// When a file cannot be read or is not a case file.
pub(crate) fn trials() -> Result<Vec<Trial>> {
    let all = Arc::new(all().context("failed to read tests/cases")?);
    ensure!(!all.is_empty(), "there is no case in tests/cases");
    let states = Arc::new(StoredStates::default());
    let trial = |index: usize| {
        let (all, states) = (Arc::clone(&all), Arc::clone(&states));
        let name = all[index].name();
        if all[index].alone {
            Trial::alone(name, move |fixture| run_alone(fixture, &all, &states, &all[index]))
        } else {
            Trial::new(name, move |fixture| run_sharing(fixture, &all, &states, &all[index]))
        }
    };
    // Those that run alone come first, as long as nothing of the others has to make room.
    let (alone, sharing): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|index| all[*index].alone);
    Ok(alone.into_iter().chain(sharing).map(trial).collect())
}

/// A line for the end of a run; `None` when it had no case.
pub(crate) fn summary() -> Option<String> {
    let run = RUN.load(Ordering::Relaxed);
    (run > 0).then(|| format!("{run} cases were run against the apiserver"))
}

fn all() -> Result<Vec<IsolatedCase>> {
    let mut candidates = Vec::new();
    for (file, document) in documents()? {
        let file = file.trim_end_matches(".yaml");
        if file.ends_with("-offline") || file.starts_with("policy/") {
            continue;
        }
        for value in document.as_array().context("a file is not a list of cases")? {
            let candidate = candidate(file, value.clone())?;
            if !OTHERWISE_IN_A_CLUSTER.contains(&candidate.2.name.as_str()) {
                candidates.push(candidate);
            }
        }
    }
    // A decision about files is none of a cluster.
    candidates.retain(|(_, _, case)| case.occasion.point == Point::Admission);
    for (file, case) in library()? {
        let text = |field: &str| case[field].as_str().unwrap_or_default();
        // A case of CI is there a second time, at admission.
        if text("point").is_empty() && !OF_FILES_ALONE.contains(&text("name")) {
            candidates.push(candidate(file.trim_end_matches(".yaml"), now::moved(&case)?)?);
        }
    }
    let share = if is_sample() { Share::OneOfEach } else { Share::Tenth };
    let chosen = share.or_all().of(candidates, |(file, _, case)| (file, case));
    chosen.iter().enumerate().map(|(index, (file, value, _))| isolate(file, value, index)).collect()
}

/// A case as it is in its file, and as it is read.
fn candidate(file: &str, value: Value) -> Result<(String, Value, casefile::Case)> {
    let cases = read(&value).map_err(|faults| anyhow!("{file}: {faults:?}"))?;
    Ok((file.to_owned(), value, cases.into_iter().next().context("a case is none")?))
}

/// Cases of files that a cluster sees in another way.
const OTHERWISE_IN_A_CLUSTER: [&str; 11] = [
    // The apiserver writes `runtime: go` into an agent without one.
    "accepts-a-compaction-without-a-runtime",
    "accepts-tls-without-fields",
    "warns-of-a-pair-without-a-runtime",
    // It refuses an object of the state, or the pod itself.
    "leaves-out-a-sidecar-on-windows",
    "takes-the-first-of-several-servers",
    // What the state does not hold is missing there, where files do not say.
    "accepts-every-field-of-a-query",
    "leaves-a-pod-of-linux-its-memory",
    "warns-of-a-pack-that-is-elsewhere",
    "warns-of-a-present-server-with-a-claim-for-readers",
    // The text of the message has the name of a namespace, which is another one here.
    "rejects-a-redis-secret-name-with-a-slash",
    "rejects-a-required-pod-of-ark-with-a-url-of-its-own",
];

/// Cases of the library about what files leave open: in a cluster it is there or missing, or the apiserver fills it in.
const OF_FILES_ALONE: [&str; 6] = [
    "accepts-a-service-of-its-own-at-admission",
    "does-not-deny-where-the-namespace-is-not-known-at-admission",
    "left-to-the-default-at-admission",
    "notes-a-broker-that-is-not-known-at-admission",
    "notes-a-namespace-that-is-not-known-at-admission",
    "notes-a-query-whose-config-is-not-known-at-admission",
];

/// Whether the apiserver itself has to refuse it.
fn is_for_the_schema(isolated: &IsolatedCase) -> bool {
    isolated.file.ends_with("-schema")
}

/// Whether the webhook configurations must send the request to memgate. Some objects of the core and some
/// deletions are not sent on purpose.
fn is_always_asked_about(case: &casefile::Case) -> bool {
    if only_goes(case) {
        return false;
    }
    let group = |object: &Value| object["apiVersion"].as_str().is_some_and(|version| version.contains('/'));
    let is_own = case.object.as_ref().is_some_and(|object| group(object) && object["kind"] != "Job");
    let writes = matches!(case.operation, Operation::Create | Operation::Update);
    writes && is_own && case.subresource.is_empty()
}

/// Whether the request leaves alone what an object that is being deleted means: memgate must not be asked.
fn only_goes(case: &casefile::Case) -> bool {
    let Some((object, old)) = case.object.as_ref().zip(case.old_object.as_ref()) else { return false };
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let family = memgate_platforms::validated(&memgate_platforms::ALL, group, text("kind"));
    let meanings = family.map_or(&[][..], |(family, _)| family.meanings);
    let goes = !old["metadata"]["deletionTimestamp"].is_null();
    goes && stays_what_it_is(text("kind"), meanings, &object.to_string(), &old.to_string())
}

fn run_sharing(
    fixture: &Fixture,
    all: &[IsolatedCase],
    states: &StoredStates,
    isolated: &IsolatedCase,
) -> Result<()> {
    let (cluster, memgate) = (fixture.cluster()?, fixture.memgate()?);
    states.store(cluster, memgate, all)?;
    if let Some(error) = states.error(isolated) {
        bail!("its state cannot be stored: {error}");
    }
    run(cluster, isolated)
}

fn run_alone(
    fixture: &Fixture,
    all: &[IsolatedCase],
    states: &StoredStates,
    isolated: &IsolatedCase,
) -> Result<()> {
    let (cluster, memgate) = (fixture.cluster()?, fixture.memgate()?);
    states.remove(cluster, memgate, all)?;
    let mut errors = stored_states::store_all(cluster, memgate, [isolated])?;
    let outcome = match errors.pop_first() {
        Some((_, error)) => Err(anyhow!("its state cannot be stored: {error}")),
        None => run(cluster, isolated),
    };
    stored_states::remove_all(cluster, memgate, [isolated])?;
    outcome
}

fn run(cluster: &ControlPlane, isolated: &IsolatedCase) -> Result<()> {
    RUN.fetch_add(1, Ordering::Relaxed);
    let client = match &isolated.case.user {
        Some(user) if isolated.file.starts_with("library/") => client_of(cluster, user)?,
        _ => cluster.client(),
    };
    let answer = cluster.block_on(ask(&client, isolated))?;
    if is_for_the_schema(isolated) {
        let by_itself = !answer.granted() && answer.webhook_message().is_none();
        ensure!(by_itself, "expected a refusal by the apiserver, got {} {}", answer.status, answer.message());
        return Ok(());
    }
    let annotations = cluster.annotations(&answer.audit_id)?;
    let asked = annotations.keys().any(|key| key.ends_with(".memgate.dev/reason"));
    let unexpected = !asked && is_always_asked_about(&isolated.case);
    ensure!(!unexpected, "memgate was not asked: {annotations:?}: {} {}", answer.status, answer.message());
    ensure!(!(asked && only_goes(&isolated.case)), "memgate was asked: {annotations:?}");
    let mut outcome = outcome(answer, &annotations)?;
    // Here both releases of kagent are installed.
    let is_expected =
        |code: &String| isolated.case.expect.codes.as_ref().is_none_or(|codes| codes.contains(code));
    if let Some(codes) = &mut outcome.codes {
        codes.retain(|code| code != "kagent/line-removed" || is_expected(code));
    }
    let failures = failures(&isolated.case.expect, &outcome);
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// A client that may do everything as a user of these groups.
fn client_of(cluster: &ControlPlane, user: &User) -> Result<Client> {
    let groups: Vec<&str> = user.groups.iter().map(String::as_str).chain(["system:masters"]).collect();
    let config = cluster.config(&cluster.user_kubeconfig(&user.name, &groups)?)?;
    cluster.block_on(async { Client::try_from(config).context("failed to make a client") })
}

/// Sends the request of a case as a dry run.
async fn ask(client: &Client, isolated: &IsolatedCase) -> Result<Answer> {
    let case = &isolated.case;
    let subject = case.object.as_ref().or(case.old_object.as_ref()).context("a case without an object")?;
    let namespace = case.namespace.as_deref().or_else(|| subject["metadata"]["namespace"].as_str());
    let namespace = namespace.unwrap_or_else(|| isolated.home());
    let mut object = case.object.clone();
    if let Some(object) = object.as_mut().filter(|object| object["kind"] == "Namespace") {
        // By this the apiserver knows that memgate is to be asked.
        object["metadata"]["labels"][GUARDED.0] = json!(GUARDED.1);
    }
    if case.operation == Operation::Create {
        let path = request::path(subject, namespace, None)?;
        return send(client, Method::POST, &format!("{path}?dryRun=All"), object.as_ref()).await;
    }
    let name = subject["metadata"]["name"].as_str();
    let path = request::path(subject, namespace, Some(name.context("a stored object has a name")?))?;
    let method = match case.operation {
        Operation::Update => Method::PUT,
        Operation::Delete => Method::DELETE,
        Operation::Create | Operation::Connect => bail!("CONNECT has no dry run"),
    };
    if let Some(object) = object.as_mut() {
        let stored = send(client, Method::GET, &path, None).await?.object()?;
        object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        if !object["metadata"]["deletionTimestamp"].is_null() {
            // Nothing else is accepted.
            object["metadata"]["deletionTimestamp"] = stored["metadata"]["deletionTimestamp"].clone();
        }
    }
    let subresource = match case.subresource.as_str() {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    send(client, method, &format!("{path}{subresource}?dryRun=All"), object.as_ref()).await
}

/// The result of memgate, as far as an answer of the apiserver shows it.
fn outcome(answer: Answer, annotations: &Annotations) -> Result<CaseOutcome> {
    let allowed = answer.granted();
    let message = answer.webhook_message();
    ensure!(allowed || message.is_some(), "the apiserver itself refuses it: {}", answer.message());
    let by_key = |end| annotations.iter().filter(move |(key, _)| key.ends_with(end)).map(|(_, value)| value);
    let codes = by_key(".memgate.dev/codes").flat_map(|codes| codes.split(',')).map(str::to_owned);
    let mutations =
        annotations.iter().filter(|(key, _)| key.starts_with("mutation.webhook.admission.k8s.io/"));
    let changed =
        mutations.map(|(_, value)| Ok(serde_json::from_str::<Value>(value)?["mutated"] == json!(true)));
    let changed = changed.collect::<Result<Vec<_>>>()?.contains(&true);
    Ok(CaseOutcome {
        allowed,
        message: message.unwrap_or_default().to_owned(),
        warnings: answer.warnings.clone(),
        codes: Some(codes.collect()),
        changed: Some(changed),
        after: allowed.then_some(answer.body),
    })
}

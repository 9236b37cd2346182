//! Every case of `tests/cases` against a real apiserver that asks a real memgate.
//!
//! ```text
//! case ──moved into namespaces of its own──▶ state, stored unasked ──▶ memgate has seen it all
//!      ──▶ its request, as a dry run ──▶ answer, warnings, audit annotations ──▶ judge
//! ```
//!
//! All states are stored once, before the first request, for all cases side by side. Each case is
//! a trial.
//!
//! - A case of a file `…-schema.yaml` describes what memgate refuses where there is no apiserver;
//!   here the apiserver has to refuse it by itself.
//! - A file `…-offline.yaml` holds cases that no apiserver can be asked, such as objects that are
//!   being deleted or that its schemas would change on the way. It is passed over; nothing else is.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use axum::http::Method;
use futures::{StreamExt, stream};
use kube::Client;
use memgate::{
    casefile::{
        self,
        judge::{Outcome, judge},
        read::read,
    },
    family::watched,
    manifest::{collect::collect, document::values},
    model::{request::Operation, settings::Family},
};
use serde_json::{Value, json};

use crate::{
    installed::{GUARDED, Installed},
    request::{self, Answer, send},
    support::{audit::Annotations, control_plane::ControlPlane, wait},
    world::{Case, World},
};

/// How many objects are stored at a time.
const AT_ONCE: usize = 16;

/// How many cases were run, by all trials.
static RUN: AtomicUsize = AtomicUsize::new(0);

/// A case in namespaces of its own.
struct Moved {
    file: String,
    case: casefile::Case,
    /// Instead of `team-a` and `team-b`.
    namespaces: [String; 2],
}

/// Whether the states of all cases are stored, and why the state of one is not, by trial name.
type Stage = OnceLock<Result<BTreeMap<String, String>, String>>;

/// One trial for each case.
///
/// # Errors
/// When a file cannot be read or is no case file.
pub(crate) fn cases() -> Result<Vec<Case>> {
    let all = Arc::new(all().context("failed to read tests/cases")?);
    ensure!(!all.is_empty(), "there is no case in tests/cases");
    let stage = Arc::new(Stage::new());
    let trial = |index: usize| {
        let (all, stage) = (Arc::clone(&all), Arc::clone(&stage));
        Case::new(all[index].name(), move |world| run(world, &all, &stage, &all[index]))
    };
    Ok((0..all.len()).map(trial).collect())
}

/// What to say at the end of a run; nothing when no case was part of it.
pub(crate) fn summary() -> Option<String> {
    let run = RUN.load(Ordering::Relaxed);
    (run > 0).then(|| format!("{run} cases were run against the apiserver"))
}

fn all() -> Result<Vec<Moved>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let collected = collect(&[root.display().to_string()], &mut io::empty());
    ensure!(collected.errors.is_empty(), "{:?}", collected.errors);
    let mut all = Vec::new();
    for source in collected.sources.into_iter().map(Arc::new) {
        let file = Path::new(source.name()).strip_prefix(&root)?.with_extension("").display().to_string();
        if file.ends_with("-offline") {
            continue;
        }
        let mut errors = Vec::new();
        for document in values(&source, &mut errors) {
            for value in document.value().as_array().context("a file is no list of cases")? {
                all.push(moved(&file, value, all.len())?);
            }
        }
        ensure!(errors.is_empty(), "{errors:?}");
    }
    Ok(all)
}

/// The same case with other namespaces; their names are as long as those they replace, and in the
/// same order.
fn moved(file: &str, case: &Value, number: usize) -> Result<Moved> {
    let namespaces = [format!("a-{number:04}"), format!("b-{number:04}")];
    let mut text = case.to_string().replace("team-a", &namespaces[0]).replace("team-b", &namespaces[1]);
    if case["expect"].to_string().contains("team-b") {
        // Then it matters that no other case has an object of this name.
        text = text.replace("notes", &format!("n{number:04}"));
    }
    let cases = read(&serde_json::from_str(&text)?).map_err(|faults| anyhow!("{file}: {faults:?}"))?;
    let case = cases.into_iter().next().context("a case is none")?;
    Ok(Moved { file: file.to_owned(), case, namespaces })
}

impl Moved {
    fn name(&self) -> String {
        format!("cases::{}::{}", self.file, self.case.name)
    }

    /// Whether the apiserver itself is to refuse it.
    fn is_for_the_schema(&self) -> bool {
        self.file.ends_with("-schema")
    }

    /// Whether no answer of memgate's would be a fault of its webhook configurations. Of pods and of
    /// deletions they pass over some on purpose.
    fn is_always_asked_about(&self) -> bool {
        let is_pod = self.case.object.as_ref().is_some_and(|object| object["kind"] == "Pod");
        let writes = matches!(self.case.operation, Operation::Create | Operation::Update);
        writes && !is_pod && self.case.subresource.is_empty()
    }
}

fn run(world: &World, all: &[Moved], stage: &Stage, moved: &Moved) -> Result<()> {
    let cluster = world.cluster()?;
    let memgate = world.memgate()?;
    let staged = stage.get_or_init(|| set(cluster, memgate, all).map_err(|error| format!("{error:#}")));
    let staged = staged.as_ref().map_err(|error| anyhow!("the states are not stored: {error}"))?;
    if let Some(error) = staged.get(&moved.name()) {
        bail!("its state cannot be stored: {error}");
    }
    RUN.fetch_add(1, Ordering::Relaxed);
    let answer = cluster.block_on(ask(&cluster.client(), moved))?;
    if moved.is_for_the_schema() {
        let by_itself = !answer.granted() && answer.webhook_message().is_none();
        ensure!(by_itself, "expected a refusal by the apiserver, got {} {}", answer.status, answer.message());
        return Ok(());
    }
    let annotations = cluster.annotations(&answer.audit_id)?;
    if moved.is_always_asked_about() {
        let asked = annotations.keys().any(|key| key.ends_with(".memgate.dev/reason"));
        ensure!(asked, "memgate was not asked: {annotations:?}");
    }
    let failures = judge(&moved.case.expect, &outcome(answer, &annotations)?);
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Stores the states of all cases and waits until memgate has seen them.
fn set(cluster: &ControlPlane, memgate: &Installed, all: &[Moved]) -> Result<BTreeMap<String, String>> {
    let client = memgate.stager();
    let errors = cluster.block_on(async {
        let stored = stream::iter(all).map(|moved| async {
            let error = store(&client, moved).await.err()?;
            Some((moved.name(), format!("{error:#}")))
        });
        stored.buffer_unordered(AT_ONCE).filter_map(|error| async { error }).collect().await
    });
    wait::until("memgate to know all objects", || {
        // Other trials add to them meanwhile.
        let before = cluster.block_on(stored_objects(&client))?;
        let known = memgate.known_objects()?;
        let after = cluster.block_on(stored_objects(&client))?;
        Ok((before == known && known == after).then_some(()))
    })?;
    Ok(errors)
}

async fn store(client: &Client, moved: &Moved) -> Result<()> {
    for namespace in &moved.namespaces {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {GUARDED.0: GUARDED.1}},
        });
        send(client, Method::POST, "/api/v1/namespaces", Some(&namespace)).await?.object()?;
    }
    for object in moved.case.state.iter().chain(&moved.case.old_object) {
        let metadata = &object["metadata"];
        ensure!(metadata["deletionTimestamp"].is_null(), "an object that is being deleted is for a scenario");
        let namespace = metadata["namespace"].as_str().unwrap_or(&moved.namespaces[0]);
        request::create(client, namespace, object, "").await?.object()?;
    }
    Ok(())
}

/// How many objects there are of the kinds that memgate watches.
async fn stored_objects(client: &Client) -> Result<usize> {
    let mut count = 0;
    for kind in Family::ALL.into_iter().flat_map(watched) {
        let path = format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural);
        let list = send(client, Method::GET, &path, None).await?.object()?;
        count += list["items"].as_array().map_or(0, Vec::len);
    }
    Ok(count)
}

/// Sends the request of a case as a dry run.
async fn ask(client: &Client, moved: &Moved) -> Result<Answer> {
    let case = &moved.case;
    let subject = case.object.as_ref().or(case.old_object.as_ref()).context("a case without an object")?;
    let namespace = case.namespace.as_deref().or_else(|| subject["metadata"]["namespace"].as_str());
    let namespace = namespace.unwrap_or(&moved.namespaces[0]);
    let mut object = case.object.clone();
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
    }
    let subresource = match case.subresource.as_str() {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    send(client, method, &format!("{path}{subresource}?dryRun=All"), object.as_ref()).await
}

/// What memgate did, as far as it can be told from here.
fn outcome(answer: Answer, annotations: &Annotations) -> Result<Outcome> {
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
    Ok(Outcome {
        allowed,
        message: message.unwrap_or_default().to_owned(),
        warnings: answer.warnings.clone(),
        codes: Some(codes.collect()),
        changed: Some(changed),
        after: allowed.then_some(answer.body),
    })
}

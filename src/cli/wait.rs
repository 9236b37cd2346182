//! `memgate wait`: until the live webhook answers.
//!
//! The apiserver is asked to create, as a dry run, what memgate has to refuse, until memgate refuses
//! all of it in one round. Nothing is ever stored. With `-o json` the last round goes to standard
//! output as `{"answered", "probes": [{"name", "status", "webhook", "code", "message"}]}`, where
//! the status is `answered`, `guarded` (a policy of memgate's refuses before memgate is asked, and is in
//! `message`), `not-served` or `missing`; fields are only ever added.

pub mod probe;
pub mod reading;

use std::time::Duration;

use anyhow::Context as _;
use axum::http::Method;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout_at};

use crate::cli::ExitStatus;
use crate::cli::apiserver::{ClusterArgs, ask, said};
use crate::cli::duration;
use crate::cli::entry::{entries, leaves_out};
use crate::cli::families::FamilyArgs;
use crate::cli::output::Form;
use crate::cli::terminal::Terminal;
use crate::cli::wait::probe::{Probe, probes};
use crate::cli::wait::reading::{Reading, read};
use crate::deploy::metadata::NAME;
use crate::report::plain;

/// The pause behind the first round; each one is twice as long as the one before it.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause: whoever waits wants to know soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Namespaces about whose pods memgate is never asked.
const EXEMPT: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "memgate-system"];

/// Wait until the webhook answers in a cluster
///
/// Asks the apiserver to create, as a dry run, a pod that memgate has to refuse, and a memory
/// resource of each platform that is installed, until memgate refuses all of them. So the whole way
/// is tried: registration, certificate, Service, replicas. Nothing is stored. What is still missing
/// goes to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate wait
  memgate wait --timeout 5m -n team-a
  memgate wait -o json --context staging

It takes the right to create pods, and the memory resources of the platforms, in the namespace.

Exit codes: 0 memgate answers, 1 it does not in time, 2 wrong usage or a fault.")]
pub struct Args {
    /// How long to wait, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "60s")]
    timeout: Duration,

    /// The namespace of the dry runs; without it that of the context
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,

    /// The name of the webhook configurations
    #[arg(long, value_name = "NAME", default_value = NAME)]
    webhook_configuration: String,

    /// The form of the result
    #[arg(short, long, value_name = "FORM", value_enum, default_value = "text")]
    output: Form,

    #[command(flatten)]
    families: FamilyArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A namespace in which memgate can be asked about pods.
///
/// # Errors
/// When it never is.
pub fn namespace(name: &str) -> Result<String, String> {
    if EXEMPT.contains(&name) {
        return Err(format!("memgate is never asked about pods of {name}; choose a namespace of agents"));
    }
    Ok(name.to_owned())
}

/// Runs the command.
///
/// # Errors
/// When there is no way to a cluster, or the result cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let runtime = Runtime::new().context("failed to start the runtime")?;
    let round = runtime.block_on(wait(args, terminal))?;
    runtime.shutdown_background();
    match args.output {
        Form::Json => terminal.raw(&json(&round)?)?,
        Form::Text if round.is_good() => terminal.out(round.text().as_bytes())?,
        Form::Text => {}
    }
    if round.is_good() {
        return Ok(ExitStatus::Clean);
    }
    terminal.error(&anyhow::anyhow!("memgate did not answer as it should within {:?}", args.timeout));
    Ok(ExitStatus::Denied)
}

/// Whether no entry about pods is for this namespace.
fn is_exempt(configuration: Value, namespace: &str) -> bool {
    let read = serde_json::from_value::<MutatingWebhookConfiguration>(configuration);
    let entries = read.map(|read| entries(read.webhooks.as_ref())).unwrap_or_default();
    let mut pods = entries.iter().filter(|entry| entry.asks_about_new_pods()).peekable();
    pods.peek().is_some() && pods.all(|entry| leaves_out(&entry.namespaces, namespace))
}

/// What all dry runs came to.
#[derive(Debug, Default)]
struct Round(Vec<Outcome>);

/// What one dry run came to.
#[derive(Debug)]
pub struct Outcome {
    /// The dry run.
    pub name: String,
    /// What memgate has to find.
    pub code: &'static str,
    /// What came of it.
    pub reading: Reading,
}

async fn wait(args: &Args, terminal: Terminal) -> anyhow::Result<Round> {
    let client = args.cluster.client().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    self::namespace(&namespace).map_err(|error| anyhow::anyhow!("{error} with --namespace"))?;
    let probes = probes(&args.families.chosen());
    let deadline = Instant::now() + args.timeout;
    let mut pause = FIRST_PAUSE;
    let mut told = Vec::new();
    loop {
        let round = Round(round(&client, &probes, &namespace, &args.webhook_configuration, deadline).await);
        if round.is_good() {
            return Ok(round);
        }
        let missing = round.missing();
        for line in missing.iter().filter(|line| !told.contains(*line)) {
            terminal.note(&format!("waiting: {line}"));
        }
        told = missing;
        if Instant::now() + pause >= deadline {
            return Ok(round);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Tries each of the dry runs once, until `deadline`; `name` is that of the webhook configurations.
pub async fn round(
    client: &Client,
    probes: &[Probe],
    namespace: &str,
    name: &str,
    deadline: Instant,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for probe in probes {
        let asked = timeout_at(deadline, try_once(client, probe, namespace, name)).await;
        let late = || Reading::Missing("nobody answered in the time that was left".to_owned());
        let reading = asked.unwrap_or_else(|_| late());
        outcomes.push(Outcome { name: probe.name.clone(), code: probe.finding.code.name, reading });
    }
    outcomes
}

async fn try_once(client: &Client, probe: &Probe, namespace: &str, name: &str) -> Reading {
    let answer = ask(client, Method::POST, &probe.path(namespace), Some(&probe.object)).await;
    match answer.map(|answer| read(probe, &answer)) {
        Ok(Reading::NotAsked) => Reading::Missing(not_asked(client, probe, namespace, name).await),
        // Only what comes with a platform can be absent.
        Ok(Reading::NotServed) if !probe.optional => {
            Reading::Missing("the apiserver does not serve pods: is it one?".to_owned())
        }
        Ok(reading) => reading,
        Err(error) => Reading::Missing(format!("the apiserver does not answer: {}", plain(&said(&error)))),
    }
}

/// Why an object may have been taken without a word of memgate's.
async fn not_asked(client: &Client, probe: &Probe, namespace: &str, name: &str) -> String {
    let (kind, plural) = if probe.optional {
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
    } else {
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
    };
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}");
    let answer = ask(client, Method::GET, &path, None).await.unwrap_or_default();
    match answer.status {
        404 => format!("there is no {kind} {name}: memgate is not registered"),
        200 if !probe.optional && is_exempt(answer.body, namespace) => {
            format!("the {kind} {name} leaves out the namespace {namespace}: choose another with -n")
        }
        200 => format!(
            "the {kind} {name} is there, but the apiserver does not ask memgate here: it learns of it in a \
             moment, or the configuration leaves out the namespace {namespace}, or memgate does not answer \
             and the entry lets pass"
        ),
        _ => format!("the apiserver does not ask memgate about it in the namespace {namespace}"),
    }
}

impl Round {
    /// Whether memgate said all that it has to say.
    fn is_good(&self) -> bool {
        !self.0.is_empty() && self.missing().is_empty()
    }

    /// What is missing, in a line each.
    fn missing(&self) -> Vec<String> {
        let line = |outcome: &Outcome| match &outcome.reading {
            Reading::Missing(why) | Reading::NotAllowed(why) => Some(format!("{}: {why}", outcome.name)),
            Reading::Answered { .. } | Reading::Guarded { .. } | Reading::NotServed | Reading::NotAsked => {
                None
            }
        };
        self.0.iter().filter_map(line).collect()
    }

    fn text(&self) -> String {
        let line = |outcome: &Outcome| match &outcome.reading {
            Reading::Answered { webhook } => {
                let by = webhook.as_ref().map(|webhook| format!(" by {webhook}")).unwrap_or_default();
                Some(format!("{}: answered{by} ({})\n", outcome.name, outcome.code))
            }
            Reading::Guarded { policy } => {
                Some(format!("{}: left to the policy {policy} ({})\n", outcome.name, outcome.code))
            }
            Reading::NotServed | Reading::NotAsked | Reading::NotAllowed(_) | Reading::Missing(_) => None,
        };
        self.0.iter().filter_map(line).collect()
    }
}

#[derive(Serialize)]
struct Written<'r> {
    answered: bool,
    probes: Vec<Entry<'r>>,
}

#[derive(Serialize)]
struct Entry<'r> {
    name: &'r str,
    status: &'static str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'r str>,
}

fn json(round: &Round) -> anyhow::Result<Vec<u8>> {
    let written = Written { answered: round.is_good(), probes: round.0.iter().map(entry).collect() };
    let mut bytes = serde_json::to_vec_pretty(&written).context("failed to write the result")?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn entry(outcome: &Outcome) -> Entry<'_> {
    let (status, webhook, message) = match &outcome.reading {
        Reading::Answered { webhook } => ("answered", webhook.as_deref(), None),
        Reading::Guarded { policy } => ("guarded", None, Some(policy.as_str())),
        Reading::NotServed => ("not-served", None, None),
        Reading::NotAsked => ("missing", None, None),
        Reading::NotAllowed(why) | Reading::Missing(why) => ("missing", None, Some(why.as_str())),
    };
    Entry { name: &outcome.name, status, code: outcome.code, webhook, message }
}

//! What is wrong with an installation of memgate, and with the cluster around it.
//!
//! ```text
//! cluster ──installation, agents──▶ DoctorInputs ──one function a group──▶ Checks
//! ```
//!
//! Only [`read`] sends requests; everything else is a function of its result. An object that could not be read becomes
//! a check with the status `unknown`.

pub mod ca_bundle;
pub mod difference;
pub mod entries;
pub mod inferred;
pub mod missing_memory;
pub mod paused;
pub mod platforms;
pub mod probes;
pub mod replicas;

use std::time::Duration;

use futures::future::join3;
use kube::Client;
use thiserror::Error as ThisError;
use tokio::time::Instant;

use crate::check::{Check, CheckStatus};
use crate::cluster_state::{Agents, Installation};
use crate::installation::homes;
use crate::pauses::pauses;
use crate::reader::ClusterReader;
use crate::replay::replay;
use crate::wait::{ProbeResult, send_probes};
use memgate_install::install_plan::InstallPlan;
use memgate_install::objects::Objects;
use memgate_model::settings::Settings;
use memgate_primitives::review_path::Phase;

/// How long memgate has to answer all probes.
const PROBES_TIMEOUT: Duration = Duration::from_mins(1);

/// The installation to check, and how.
#[derive(Debug)]
pub struct DoctorOptions<'a> {
    /// The namespace that memgate runs in.
    pub namespace: &'a str,
    /// The name of the webhook configurations; without it the one that the installation in the namespace has.
    pub configuration: Option<&'a str>,
    /// The namespace of the dry runs that show whether memgate answers.
    pub dry_run_namespace: &'a str,
    /// How many objects of one kind to read.
    pub max_objects: usize,
    /// How many owners of pods to list in each of two checks.
    pub max_listed: usize,
    /// The settings of the decisions; the default means those of the installation.
    pub settings: Settings,
    /// Reads the settings from the flags of memgate's Deployment; none when these are wrong.
    pub parse_flags: fn(&[&str]) -> Option<Settings>,
}

/// The apiserver does not answer, for this reason.
#[derive(Debug, ThisError)]
#[error("the apiserver does not answer: {0}")]
pub struct Unreachable(pub String);

/// The objects that were read from a cluster, and the expected ones.
#[derive(Debug)]
pub struct DoctorInputs {
    installation: Installation,
    agents: Agents,
    expected: Objects,
    probes: Vec<ProbeResult>,
    /// The checks of pods without their memory.
    pods: Vec<Check>,
}

/// Reads the cluster.
///
/// # Errors
/// When the apiserver does not answer at all.
pub async fn read(client: Client, options: &DoctorOptions<'_>) -> Result<DoctorInputs, Unreachable> {
    let reader = ClusterReader { client, max_objects: options.max_objects };
    let installation = crate::installation::installation(&reader, options.namespace, options.configuration);
    let mut installation = installation.await.map_err(Unreachable)?;
    let (settings, plan) = expected(&installation, options);
    installation.flags = inferred::flags(&plan);
    let mut probes = crate::probe::probes(&settings.families);
    probes.retain(|_| installation.exists());
    let families = settings.families.clone();
    let pauses = pauses(&reader, options.namespace, &installation.namespaces, &families);
    let (probes, agents, pauses) = join3(
        send_probes(&reader.client, &probes, options.dry_run_namespace, Instant::now() + PROBES_TIMEOUT),
        crate::agents::agents(&reader, settings),
        pauses,
    )
    .await;
    installation.pauses = pauses;
    let pods = replay(&agents.pods, &agents.snapshot);
    let checks = missing_memory::checks(&agents, &pods, options.max_listed);
    let expected = memgate_install::objects(&plan);
    Ok(DoctorInputs { installation, agents, expected, probes, pods: checks })
}

/// The settings of an installation, if none were chosen, and how it would be installed with them.
fn expected(installation: &Installation, options: &DoctorOptions<'_>) -> (Settings, InstallPlan) {
    let chosen = options.settings.clone();
    let settings = if chosen == memgate_platforms::default_settings() {
        inferred::settings(installation, options.parse_flags)
    } else {
        chosen
    };
    let plan = inferred::plan(installation, options.namespace, settings.families.clone());
    (settings, plan)
}

/// That nothing of memgate is in the namespace, and where it is instead, or how it is installed.
fn not_installed(installation: &Installation) -> Check {
    let subject = format!("Namespace {}", installation.namespace);
    let elsewhere = installation.mutating.items().iter().find_map(|one| homes(one).next());
    let help = elsewhere.map_or_else(
        || format!("{} | kubectl apply -f -", installation.manifests("--image IMAGE")),
        |home| format!("memgate doctor -n {home}"),
    );
    Check::fail("installed", subject, "memgate is not installed here").help(help)
}

/// All checks, causes before their consequences.
pub fn checks(inputs: &DoctorInputs) -> Vec<Check> {
    let DoctorInputs { installation, agents, expected, probes, pods } = inputs;
    let mut checks = if installation.exists() {
        let print = installation.manifests("--only webhooks");
        let mut checks = replicas::checks(installation);
        checks.extend(entries::checks(installation, expected, &print));
        checks.extend(ca_bundle::checks(installation));
        checks.extend(paused::checks(installation));
        // Where no replica runs or no configuration is, it is plain that none answers.
        let is_plain = checks.first().is_some_and(|first| first.status == CheckStatus::Fail)
            || Phase::ALL.into_iter().any(|call| installation.own(call).is_none());
        let answers = probes::checks(probes).into_iter();
        checks.extend(answers.filter(|check| !is_plain || check.status != CheckStatus::Fail));
        checks
    } else {
        vec![not_installed(installation)]
    };
    checks.extend(platforms::checks(installation, &agents.snapshot.settings.families));
    checks.extend(pods.iter().cloned());
    crate::check::sort(&mut checks);
    checks
}

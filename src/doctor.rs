//! What is wrong with an installation of memgate, and with the cluster around it.
//!
//! ```text
//! cluster ──installation, permissions, agents, dry runs──▶ DoctorInputs ──one function a group──▶ Checks
//! ```
//!
//! Only [`read`] sends requests; everything else is a function of its result. An object that could not be read becomes
//! a check with the status `unknown`.

pub(crate) mod ca_bundle;
pub(crate) mod capacity;
pub(crate) mod check;
pub(crate) mod expected;
pub(crate) mod inferred;
pub(crate) mod inject_label;
pub(crate) mod installations;
pub(crate) mod missing_memory;
pub(crate) mod other_webhooks;
pub(crate) mod permissions;
pub(crate) mod platforms;
pub(crate) mod probes;
pub(crate) mod review_paths;
pub(crate) mod timeouts;
pub(crate) mod webhooks;
pub(crate) mod workload;

use std::time::Duration;

use kube::Client;
use thiserror::Error as ThisError;
use tokio::time::Instant;

use crate::cluster;
use crate::cluster::cluster_state::{Agents, Installation};
use crate::cluster::pod_dry_run::{PodDryRuns, dry_run};
use crate::cluster::reader::ClusterReader;
use crate::cluster::replay::replay;
use crate::cluster::wait::{ProbeResult, ProbeTarget, send_probes};
use crate::doctor::check::Check;
use crate::doctor::expected::{InstalledAs, objects};
use memgate_model::settings::Settings;
use memgate_server::deploy::objects::Objects;

/// How long memgate has to answer all probes.
const PROBES_TIMEOUT: Duration = Duration::from_mins(1);

/// The installation to check, and how.
#[derive(Debug)]
pub(crate) struct DoctorOptions<'a> {
    /// The namespace that memgate runs in.
    pub(crate) namespace: &'a str,
    /// The name of the webhook configurations; without it the one that the installation in the namespace has.
    pub(crate) configuration: Option<&'a str>,
    /// The namespace of the dry runs that show whether memgate answers.
    pub(crate) dry_run_namespace: &'a str,
    /// How many objects of one kind to read.
    pub(crate) max_objects: usize,
    /// The settings of the decisions; the default means those of the installation.
    pub(crate) settings: Settings,
    /// Reads the settings from the flags of memgate's Deployment; none when these are wrong.
    pub(crate) parse_flags: fn(&[&str]) -> Option<Settings>,
}

/// The apiserver does not answer, for this reason.
#[derive(Debug, ThisError)]
#[error("the apiserver does not answer: {0}")]
pub(crate) struct Unreachable(pub String);

/// The objects that were read from a cluster, and the expected ones.
#[derive(Debug)]
pub(crate) struct DoctorInputs {
    installation: Installation,
    agents: Agents,
    expected: Objects,
    probes: Vec<ProbeResult>,
    dry_runs: PodDryRuns,
}

/// Reads the cluster.
///
/// # Errors
/// When the apiserver does not answer at all.
pub(crate) async fn read(client: Client, options: &DoctorOptions<'_>) -> Result<DoctorInputs, Unreachable> {
    let reader = ClusterReader { client, max_objects: options.max_objects };
    let installation = cluster::installation::installation(&reader, options.namespace, options.configuration);
    let mut installation = installation.await.map_err(Unreachable)?;
    let chosen = options.settings.clone();
    let settings = if chosen == memgate_platforms::default_settings() {
        inferred::settings(&installation, options.parse_flags)
    } else {
        chosen
    };
    let installed = InstalledAs {
        name: &installation.name,
        namespace: options.namespace,
        components: inferred::components(&installation),
        elsewhere: inferred::elsewhere(&installation, &settings.families),
    };
    let expected = objects(&installed, &settings.families);
    installation.permissions = cluster::permissions::permissions(&reader, &installation, &expected).await;
    let probes = cluster::probe::probes(&settings.families);
    let target = ProbeTarget { namespace: options.dry_run_namespace, configuration: &installation.name };
    let probes = send_probes(&reader.client, &probes, target, Instant::now() + PROBES_TIMEOUT).await;
    let agents = cluster::agents::agents(&reader, settings).await;
    let [pods, stand_ins] = [&agents.pods, &agents.stand_ins].map(|pods| replay(pods, &agents.snapshot));
    let dry_runs = dry_run(&reader.client, &pods, &stand_ins).await;
    Ok(DoctorInputs { installation, agents, expected, probes, dry_runs })
}

/// All checks. Pods without their memory are listed up to `max_listed`.
pub(crate) fn checks(inputs: &DoctorInputs, max_listed: usize) -> Vec<Check> {
    let DoctorInputs { installation, agents, expected, probes, dry_runs } = inputs;
    let pods = replay(&agents.pods, &agents.snapshot);
    let mut checks = probes::checks(probes);
    checks.extend(webhooks::checks(installation, expected));
    checks.extend(ca_bundle::checks(installation));
    checks.extend(review_paths::checks(installation));
    checks.extend(workload::checks(installation));
    checks.extend(installations::checks(installation));
    checks.push(permissions::check(installation));
    checks.extend(other_webhooks::checks(installation));
    checks.push(timeouts::check(installation, agents));
    checks.extend(platforms::checks(installation, &agents.snapshot.settings.families));
    checks.extend(inject_label::checks(installation, agents));
    checks.extend(missing_memory::checks(installation, agents, &pods, max_listed));
    checks.extend(capacity::checks(dry_runs));
    check::sort(&mut checks);
    checks
}

//! Which trials of this program a run takes: all of them, or the sample, by the version of Kubernetes.

use std::collections::BTreeSet;
use std::env;

use anyhow::{Result, ensure};

use crate::fixture::Trial;
use crate::support::release::Release;

/// The trials beside cases that `MEMGATE_TESTS=sample` runs: what is installed is accepted and serves, each kind of call
/// comes through, objects come in any order, calls survive a kill and a drain, certificates rotate, policies are in force,
/// a Role switches memgate off.
const SAMPLE: &[&str] = &[
    "certs::builtin_serves_what_the_apiserver_trusts",
    "certs::rotations_lose_no_call",
    "control_plane::reports_its_version",
    "deploy::the_off_switch_lifts_one_namespace_while_memgate_is_away",
    "deploy::conditions_are_true_and_false_and_never_fail",
    "deploy::each_component_is_accepted_strictly",
    "deploy::the_self_guard_knows_every_field",
    "deploy::the_self_guard_leaves_cabundle_alone_open",
    "doctor::finds_nothing_where_all_is_well",
    "faults::a_killed_replica_takes_only_its_own_calls_along",
    "faults::rolling_restarts_lose_no_call",
    "kubectl_output::of_a_denial_name_every_cause",
    "manifests::are_accepted",
    "manifests::let_memgate_serve",
    "order::every_order_of_agent_memory_and_workload_works",
    "pods::of_a_deployment_get_their_memory",
    "pods::that_require_memory_are_refused_without_it",
    "policies::are_in_force_as_soon_as_they_are_stored",
    "policies::write_defaults",
    "schema_parity::check_judges_as_the_apiserver_does",
];

/// What an older Kubernetes may do in another way, in the sample there.
const BY_VERSION: &[&str] = &["certs::reviews_go_to_paths_that_strangers_do_not_know"];

/// Whether only the sample is asked for.
pub(crate) fn is_sample() -> bool {
    env::var_os("MEMGATE_TESTS").is_some_and(|value| value == "sample")
}

/// Those trials that the environment asks for, and none that needs a newer Kubernetes.
pub(crate) fn of_this_run(mut trials: Vec<Trial>) -> Result<Vec<Trial>> {
    let release = Release::from_environment()?;
    if is_sample() {
        let names: BTreeSet<&str> = trials.iter().map(|trial| trial.name.as_str()).collect();
        let by_version = if release == Release::NEWEST { &[] } else { BY_VERSION };
        let sample = [SAMPLE, by_version].concat();
        let gone: Vec<_> = sample.iter().filter(|name| !names.contains(*name)).collect();
        ensure!(gone.is_empty(), "trials of the sample are gone or have other names: {gone:?}");
        trials.retain(|trial| trial.name.starts_with("cases::") || sample.contains(&&*trial.name));
    }
    let (trials, newer): (Vec<_>, Vec<_>) =
        trials.into_iter().partition(|trial| trial.since <= release.number());
    for trial in newer {
        let (major, minor) = trial.since;
        println!("{} is left out: it needs Kubernetes {major}.{minor}", trial.name);
    }
    Ok(trials)
}

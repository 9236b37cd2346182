//! The oldest Kubernetes that memgate is tested on: a short set of the trials runs there, in a copy of this program
//! with a cluster of its own. `just kubernetes 1.33` runs all of them.

use std::{
    collections::BTreeSet,
    env,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};

use crate::{
    fixture::{Fixture, Trial},
    support::release::{Release, VARIABLE},
};

/// Set for a copy of this program that is to run the short set.
const SHORT: &str = "MEMGATE_TEST_SHORT";

/// What differs from one Kubernetes to another, if anything does: what is installed is accepted, each call of each
/// family comes through, policies in CEL can be evaluated, what memgate writes is let through.
const SHORT_SET: &[&str] = &[
    "control_plane::reports_its_version",
    "manifests::are_accepted",
    "manifests::let_memgate_serve",
    "deploy::each_component_is_accepted_strictly",
    "deploy::the_self_guard_leaves_cabundle_alone_open",
    "deploy::the_self_guard_knows_every_field",
    "deploy::conditions_are_true_and_false_and_never_fail",
    "certs::builtin_serves_what_the_apiserver_trusts",
    "certs::reviews_go_to_paths_that_strangers_do_not_know",
    "cel_rules::knows_the_types_of_all_kinds",
    "cel_rules::costs_little",
    "pods::of_a_deployment_get_their_memory",
    "pods::that_require_memory_are_refused_without_it",
    "kubectl_output::of_a_denial_name_every_cause",
    "policies::are_in_force_as_soon_as_they_are_stored",
    "policies::write_defaults",
    "doctor::finds_nothing_where_all_is_well",
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("releases::the_oldest_one_passes_a_short_set", short_set)]
}

/// Those trials that the environment asks for: the short set or all, and none that needs a newer Kubernetes.
pub(crate) fn of_this_run(mut trials: Vec<Trial>) -> Result<Vec<Trial>> {
    let release = Release::from_environment()?;
    if env::var_os(SHORT).is_some() {
        let known = SHORT_SET.iter().filter(|name| trials.iter().any(|trial| trial.name == **name));
        ensure!(known.count() == SHORT_SET.len(), "a trial of the short set is gone or has another name");
        let mut topics = BTreeSet::new();
        trials.retain(|trial| {
            let first_case = topic(&trial.name).is_some_and(|topic| topics.insert(topic.to_owned()));
            first_case || SHORT_SET.contains(&&*trial.name)
        });
    }
    if release != Release::NEWEST {
        trials.retain(|trial| !trial.name.starts_with("releases::"));
    }
    let (trials, newer): (Vec<_>, Vec<_>) =
        trials.into_iter().partition(|trial| trial.since <= release.number());
    for trial in newer {
        let (major, minor) = trial.since;
        println!("{} is left out: it needs Kubernetes {major}.{minor}", trial.name);
    }
    Ok(trials)
}

/// What a case is about, of which one is enough: `ark/validate` for `cases::ark/validate-url::…`.
fn topic(name: &str) -> Option<&str> {
    let (file, _) = name.strip_prefix("cases::")?.rsplit_once("::")?;
    Some(file.split_once('-').map_or(file, |(topic, _)| topic))
}

fn short_set(_: &Fixture) -> Result<()> {
    let copy = Command::new(env::current_exe().context("this program has no path")?)
        .env(SHORT, "1")
        .env("MEMGATE_TESTS", "all")
        .env(VARIABLE, Release::OLDEST.series)
        // What it names is the newest one.
        .env_remove("KUBEBUILDER_ASSETS")
        .output()
        .context("a copy of this program does not start")?;
    let text = text(&copy);
    ensure!(copy.status.success(), "on Kubernetes {}:\n{text}", Release::OLDEST.series);
    let passed = text.matches(" ... ok").count();
    ensure!(passed >= SHORT_SET.len(), "only {passed} trials ran:\n{text}");
    Ok(())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

//! What happens around memgate that must cost nothing: replicas come and go, one is
//! killed, the apiserver is away, its store stalls.
//!
//! The functions here take how often and how long; the trials of `cases` are the short form, and
//! stress/tests/soak has the long one.

#![allow(dead_code, reason = "stress/tests/soak uses the rest")]

pub(crate) mod calls;
pub(crate) mod fleet;
pub(crate) mod replicas;
pub(crate) mod without_apiserver;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{
    fixture::{Fixture, Trial},
    installed::{install_account, install_crds},
    request::create,
    samples::{COMPLETE, INJECTED, agent, env_names, memory, pod},
    support::{
        control_plane::ControlPlane,
        load::{Failure, Load, Pace, Tally},
        wait,
    },
};

use fleet::Fleet;
use without_apiserver::{WithoutApiserver, lists};

/// A load that a busy machine still carries while other trials run.
const PACE: Pace = Pace { per_second: 40, at_once: 20 };

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("faults::a_load_counts_what_fails", load_counts),
        Trial::new("faults::rolling_restarts_lose_no_call", rolling_restarts),
        Trial::new("faults::a_killed_replica_takes_only_its_own_calls_along", killed_replica),
        Trial::new("faults::patches_of_two_versions_compose", two_versions),
        Trial::new("faults::without_the_apiserver_what_is_known_is_served", cut_off),
        Trial::new("faults::a_stall_and_a_restart_of_the_cluster_are_sat_out", away_and_back),
    ]
}

fn load_counts(_: &Fixture) -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let load = Load::start(runtime.handle(), Pace { per_second: 500, at_once: 5 }, |number| async move {
        if number.is_multiple_of(3) { Err(Failure::new("third", number)) } else { Ok(()) }
    });
    let mut sum = Tally::default();
    wait::until("a hundred calls", || {
        sum.add(load.take());
        Ok((sum.ended() >= 100).then_some(()))
    })?;
    sum.add(load.stop()?);
    ensure!(sum.failed_as("third") == sum.ended().div_ceil(3), "{sum}");
    ensure!(sum.failed() == sum.failed_as("third") && sum.all_good().is_err(), "{sum}");
    ensure!(sum.to_string().contains("third, the first: 0"), "{sum}");
    Ok(())
}

fn rolling_restarts(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let mut fleet = Fleet::start(cluster, &fixture.memgate()?.kubeconfig, 2)?;
    let tally = replicas::restarts(cluster, &mut fleet, PACE, 6, Duration::from_secs(1))?;
    tally.all_good()
}

fn killed_replica(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let mut fleet = Fleet::start(cluster, &fixture.memgate()?.kubeconfig, 2)?;
    replicas::kills(cluster, &mut fleet, PACE, 1).map(|_| ())
}

/// There is one version yet, so the other one is made up: it adds less, and notes what this one does
/// not know. What it did is completed, and then there is nothing left to do.
fn two_versions(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("mixed", &[])?;
    let client = cluster.client();
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
    }
    let inject = |pod: &Value| -> Result<Value> {
        let mut pod = cluster.block_on(create(&client, &namespace, pod, "?dryRun=All"))?.object()?;
        // What the apiserver itself adds cannot be sent to it.
        for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            pod["metadata"].as_object_mut().context("a pod has metadata")?.remove(key);
        }
        Ok(pod)
    };
    let whole = inject(&pod("scout", "scout", &[]))?;
    ensure!(env_names(&whole) == COMPLETE, "{whole}");

    let mut by_another = whole.clone();
    let env = by_another["spec"]["containers"][0]["env"].as_array_mut().context("there is env")?;
    env.retain(|variable| variable["name"] != INJECTED[2]);
    let note = json!({
        "version": "0.0.9", "family": "arkonis", "memory": "ArkMemory/notes",
        "env": {"agent": [INJECTED[0], INJECTED[1]]}, "more": {"of": [1]},
    });
    by_another["metadata"]["annotations"]["memgate.dev/injected"] = json!(note.to_string());
    let completed = inject(&by_another)?;
    let mut names = env_names(&completed);
    names.sort_unstable();
    let mut expected = COMPLETE;
    expected.sort_unstable();
    ensure!(names == expected, "{completed}");
    let again = inject(&completed)?;
    ensure!(again == completed, "the second time made {again} of {completed}");
    ensure!(inject(&whole)? == whole, "a second time changes what is whole");
    Ok(())
}

/// Nothing comes through from the apiserver, without a sign.
fn cut_off(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let isolated = WithoutApiserver::start(cluster, &fixture.memgate()?.kubeconfig)?;
    isolated.wire.cut();
    let cut = Instant::now();
    // An agent that is not known cannot be looked up: the pod's controller is to try again.
    let required = isolated.answer(cluster, "absent", &[("memgate.dev/inject", "required")])?;
    let status = &required.body["response"]["status"];
    let why = "/absent\" could not be looked up: the apiserver did not answer in time";
    let says_why = status["message"].as_str().is_some_and(|message| message.contains(why));
    ensure!(status["code"] == 503 && says_why, "{}: {}", required.status, required.body);
    isolated.serves_for(Duration::from_secs(2))?;
    // What was on its way when the wire was cut may still have come.
    let least = cut.elapsed().saturating_sub(Duration::from_secs(1));
    let age = isolated.age()?;
    ensure!(age >= least, "it says it heard something {age:?} ago, but was cut off for {least:?}");
    isolated.end()
}

fn away_and_back(_: &Fixture) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    let isolated = WithoutApiserver::start(&cluster, &install_account(&cluster)?)?;

    let stalled = cluster.stall_store()?;
    isolated.serves_for(Duration::from_secs(8))?;
    drop(stalled);
    isolated.change(&cluster, "after-a-stall")?;
    isolated.learns(&cluster, "after-a-stall", wait::TIMEOUT)?;

    cluster.restart_apiserver()?;
    isolated.change(&cluster, "after-a-restart")?;
    isolated.learns(&cluster, "after-a-restart", wait::TIMEOUT)?;
    listed_once(&cluster)?;

    // What changes meanwhile is older than all that the apiserver remembers afterwards.
    isolated.wire.hang_up();
    isolated.change(&cluster, "meanwhile")?;
    cluster.restart_apiserver()?;
    isolated.serves_for(Duration::from_secs(1))?;
    ensure!(!isolated.goes_by(&cluster, "meanwhile")?, "the wire leaks");
    isolated.wire.mend();
    isolated.learns(&cluster, "meanwhile", wait::TIMEOUT)?;
    ensure!(isolated.memgate.log().contains("the watch starts over"), "{}", isolated.memgate.log());
    listed_once(&cluster)?;
    isolated.end()
}

/// That no kind was listed again and again by the one memgate there is, since the apiserver started.
fn listed_once(cluster: &ControlPlane) -> Result<()> {
    for resource in ["arkmemories", "arkagents", "memories", "tasks"] {
        let lists = lists(cluster, resource)?;
        ensure!(lists <= 2, "{resource} were listed {lists} times");
    }
    Ok(())
}

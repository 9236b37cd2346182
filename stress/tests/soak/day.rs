//! A long time under load, while memories come and go: memory and file descriptors stay as they are.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use axum::http::Method;

use crate::{
    faults::{calls::through_apiserver, fleet::Fleet},
    replicas::{pace, start},
    request::{Answer, create, path, send},
    runs::Parameters,
    samples::memory,
    support::{
        control_plane::ControlPlane,
        load::{Failure, Load, Pace, Tally},
        process::Usage,
    },
};

/// How many of the memories that come and go are there at a time.
const LIVE_MEMORIES: u64 = 200;

/// Memory may grow by a twentieth between the middle third and the last one.
const GROWTH_DIVISOR: u64 = 20;

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    let mut fleet = start(&cluster, parameters)?;
    let calls =
        Load::start(cluster.runtime(), pace(parameters)?, through_apiserver(&cluster, &fleet.namespace)?);
    let churn = churn(&cluster, &fleet.namespace, parameters.number("churn")?);

    let (time, window) = (parameters.seconds("time")?, parameters.seconds("window")?);
    let (begin, mut sum, mut churned) = (Instant::now(), Tally::default(), Tally::default());
    let mut used = Vec::new();
    while begin.elapsed() < time {
        std::thread::sleep(window);
        let (called, usage) = (calls.take(), usage(&mut fleet)?);
        println!("{:>5.0?} {usage:?}; {called}", begin.elapsed());
        sum.add(called);
        churned.add(churn.take());
        used.push(usage);
    }
    churned.add(churn.stop()?);
    sum.add(calls.stop()?);
    println!("calls: {sum}\nchurn: {churned}");
    sum.all_good()?;
    churned.all_good()?;
    check_growth(&used)
}

/// What was used in the middle third of the time against the last one: by the median, since what an allocator holds at
/// one moment goes up and down with what has just been decided.
pub(crate) fn check_growth(used: &[Usage]) -> Result<()> {
    let third = used.len() / 3;
    ensure!(third > 0, "three windows are the least");
    let usual = |used: &[Usage]| {
        let memory = median(used.iter().map(|usage| usage.memory));
        (memory, median(used.iter().map(|usage| usage.files)))
    };
    let (middle, last) = (usual(&used[third..used.len() - third]), usual(&used[used.len() - third..]));
    println!("memory and files: {middle:?} in the middle third, {last:?} in the last one");
    ensure!(last.0 <= middle.0 + middle.0 / GROWTH_DIVISOR, "memory grows");
    ensure!(last.1 <= middle.1 + middle.1 / GROWTH_DIVISOR, "files grow");
    Ok(())
}

fn median<T: Ord + Copy + Default>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// What all replicas use together.
fn usage(fleet: &mut Fleet) -> Result<Usage> {
    let mut sum = Usage::default();
    for replica in &mut fleet.replicas {
        let usage = replica.process().usage().context("a replica is gone")?;
        sum.memory += usage.memory;
        sum.files += usage.files;
    }
    Ok(sum)
}

/// Memories that come at this rate, and go when [`LIVE_MEMORIES`] others have come.
fn churn(cluster: &ControlPlane, namespace: &str, per_minute: u32) -> Load {
    let (client, namespace) = (cluster.client(), namespace.to_owned());
    let pace = Pace { per_second: per_minute.div_ceil(60), at_once: 20 };
    Load::start(cluster.runtime(), pace, move |number| {
        let (client, namespace) = (client.clone(), namespace.clone());
        Box::pin(async move {
            let failed = |error: anyhow::Error| Failure::new("apiserver", format!("{error:#}"));
            let made = memory(&format!("churn-{number}"));
            create(&client, &namespace, &made, "").await.and_then(Answer::object).map_err(failed)?;
            let Some(old) = number.checked_sub(LIVE_MEMORIES) else { return Ok(()) };
            let old = path(&made, &namespace, Some(&format!("churn-{old}"))).map_err(failed)?;
            let gone = send(&client, Method::DELETE, &old, None).await;
            gone.and_then(Answer::object).map(|_| ()).map_err(failed)
        })
    })
}

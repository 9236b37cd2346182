//! Many of the worst inputs at once, in a memory cgroup of the size that the installation gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::caller::Caller;
use crate::input::{Call, Input};
use crate::measure::MAX_PEAK;
use crate::support::cgroup::Cgroup;
use crate::support::scratch::Scratch;
use crate::support::webhook::{Serve, Webhook};

/// The limit of the container: what `resources.limits.memory` is in deploy.
const LIMIT: u64 = 256 << 20;

/// How all of it goes.
pub(crate) struct Crowd {
    /// The bytes of each review.
    pub(crate) size: usize,
    /// How many send one at the same moment.
    pub(crate) callers: usize,
    /// How often all of them do.
    pub(crate) rounds: usize,
    /// How long a caller who hears 429 tries again.
    pub(crate) patience: Duration,
}

/// Sends all inputs at once, as often as asked, and fails when memory passes the bound.
pub(crate) fn run(crowd: &Crowd, program: &Path, state: &Value, inputs: &[Input<'_>]) -> Result<()> {
    ensure!(!inputs.is_empty(), "there is no input");
    let cgroup = Cgroup::new(LIMIT)?;
    let scratch = Scratch::new("cost-memory")?;
    let mut webhook = start(&cgroup, &scratch, program, state)?;
    for round in 0..crowd.rounds {
        let first = round * crowd.callers;
        let reviews = (first..first + crowd.callers).filter_map(|number| inputs.get(number % inputs.len()));
        let reviews = reviews.map(|input| (input.call, input.review(crowd.size))).collect();
        let statuses = send(crowd, &webhook, reviews)?;
        let (kills, log) = (cgroup.kills()?, webhook.log());
        let ended =
            || format!("the server has ended, {kills} killed by the kernel; answers {statuses:?}\n{log}");
        let peak = webhook.process().peak_memory().with_context(ended)?;
        println!(
            "round {}: answers {statuses:?}, resident memory at most {} MiB, of the cgroup {} MiB, killed {}",
            round + 1,
            peak >> 10,
            cgroup.peak()? >> 20,
            kills,
        );
    }
    ensure!(cgroup.kills()? == 0, "the kernel has killed it:\n{}", webhook.log());
    ensure!(webhook.process().exited()?.is_none(), "it has ended:\n{}", webhook.log());
    let alive = webhook.probe("/livez").map(|(status, _)| status);
    ensure!(alive == Some(200), "it is not alive: {alive:?}");
    let peak = webhook.process().peak_memory().context("the server has ended")?;
    ensure!(peak << 10 <= MAX_PEAK, "resident memory was {} MiB", peak >> 10);
    let peak = cgroup.peak()?;
    ensure!(peak <= MAX_PEAK, "the cgroup held {} MiB", peak >> 20);
    Ok(())
}

/// Starts the server as a member of the cgroup from its first page on.
fn start(cgroup: &Cgroup, scratch: &Scratch, program: &Path, state: &Value) -> Result<Webhook> {
    let joins = cgroup.program(program, scratch)?;
    let state = scratch.write("state.json", &state.to_string())?;
    let mut webhook = Serve::new(joins).arg("--state").arg(state).arg("--log").arg("error").ready()?;
    let pid = webhook.process().id().context("the server has ended")?;
    let members = fs::read_to_string(cgroup.members())?;
    ensure!(members.lines().any(|member| member == pid.to_string()), "the server is not in the cgroup");
    Ok(webhook)
}

/// How many answers there were of each status; 0 stands for none.
fn send(crowd: &Crowd, webhook: &Webhook, reviews: Vec<(Call, String)>) -> Result<BTreeMap<u16, usize>> {
    let all_are_there = Arc::new(Barrier::new(reviews.len()));
    let mut callers = Vec::new();
    for (call, review) in reviews {
        let mut caller = Caller::new(webhook.addresses().listen, webhook.ca())?;
        let (all_are_there, patience) = (Arc::clone(&all_are_there), crowd.patience);
        callers.push(thread::spawn(move || {
            all_are_there.wait();
            insist(&mut caller, call, &review, patience)
        }));
    }
    let mut statuses = BTreeMap::new();
    for caller in callers {
        let status = caller.join().map_err(|_| anyhow::anyhow!("a caller has panicked"))?;
        *statuses.entry(status).or_default() += 1;
    }
    Ok(statuses)
}

/// Sends it until it is answered otherwise than with 429, as an apiserver does.
fn insist(caller: &mut Caller, call: Call, review: &str, patience: Duration) -> u16 {
    let start = Instant::now();
    loop {
        let status = caller.exchange(call.path(), review).map_or(0, |(status, _)| status);
        if status != 429 || start.elapsed() > patience {
            return status;
        }
        thread::sleep(Duration::from_millis(500));
    }
}

//! Replicas that end, by request or without notice, while the apiserver asks them.

use std::{thread::sleep, time::Duration};

use anyhow::{Result, ensure};

use super::{
    calls::{BARE, BROKEN, through_apiserver},
    fleet::Fleet,
};
use crate::support::{
    control_plane::ControlPlane,
    load::{Load, Pace, Tally},
    wait,
};

/// So many calls use every connection that there is.
const MIN_GOOD_CALLS: usize = 50;

/// Replaces one replica after the other, so many times, with a pause after each; what became of the
/// calls meanwhile. Replicas that are to end go on serving meanwhile, as in a cluster.
pub(crate) fn restarts(
    cluster: &ControlPlane,
    fleet: &mut Fleet,
    pace: Pace,
    times: u32,
    pause: Duration,
) -> Result<Tally> {
    let calls = through_apiserver(cluster, &fleet.namespace)?;
    let load = Load::start(cluster.runtime(), pace, calls);
    for _ in 0..times {
        fleet.roll()?;
        sleep(pause);
    }
    load.stop()
}

/// Kills a replica and starts another one, so many times; what became of the calls until it was known
/// to be dead. None may get a pod without its memory, no more may break than were on their way or
/// were still sent to where nothing listens, and what is asked afterwards is answered.
pub(crate) fn kills(cluster: &ControlPlane, fleet: &mut Fleet, pace: Pace, times: u32) -> Result<Tally> {
    let calls = through_apiserver(cluster, &fleet.namespace)?;
    let mut sum = Tally::default();
    for _ in 0..times {
        let load = Load::start(cluster.runtime(), pace, calls.clone());
        some_good(&load)?;
        let before = fleet.unanswered();
        fleet.kill()?;
        let hit = load.stop()?;
        ensure!(hit.failed_as(BARE) == 0, "{hit}");
        ensure!(hit.failed() == hit.failed_as(BROKEN), "{hit}");
        let unanswered = fleet.unanswered() - before;
        let most = u64::try_from(pace.at_once)? + unanswered;
        ensure!(hit.failed() <= most, "{unanswered} connections led nowhere, but: {hit}");
        sum.add(hit);
        let load = Load::start(cluster.runtime(), pace, calls.clone());
        some_good(&load)?;
        load.stop()?.all_good()?;
        fleet.add()?;
    }
    Ok(sum)
}

/// Waits for some calls, all of them good.
fn some_good(load: &Load) -> Result<()> {
    let mut good = 0;
    wait::until("good calls", || {
        let calls = load.take();
        ensure!(calls.failed() == 0, "{calls}");
        good += calls.good();
        Ok((good >= MIN_GOOD_CALLS).then_some(()))
    })
}

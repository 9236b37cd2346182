//! Replicas that end, by request or without notice, while the apiserver asks them.

use std::{thread::sleep, time::Duration};

use anyhow::{Result, ensure};

use super::{
    calls::{BARE, BROKEN, REFUSED, through_apiserver},
    fleet::Fleet,
};
use crate::support::{
    control_plane::ControlPlane,
    load::{Load, Pace, Tally},
};

/// After so long a replica that was killed has been forgotten by everybody.
const FORGOTTEN: Duration = Duration::from_secs(1);

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

/// Kills a replica and starts another one, so many times; how many calls failed by it. None may get
/// a pod without its memory, no more may break than were on their way, and after a moment in which
/// the cluster still sends connections to where nobody is, all are well again.
pub(crate) fn kills(cluster: &ControlPlane, fleet: &mut Fleet, pace: Pace, times: u32) -> Result<Tally> {
    let calls = through_apiserver(cluster, &fleet.namespace)?;
    let load = Load::start(cluster.runtime(), pace, calls);
    let mut sum = Tally::default();
    for _ in 0..times {
        sleep(FORGOTTEN);
        load.take().all_good()?;
        fleet.kill()?;
        sleep(FORGOTTEN);
        let hit = load.take();
        ensure!(hit.failed_as(BARE) == 0, "{hit}");
        ensure!(hit.failed_as(BROKEN) <= u64::try_from(pace.at_once)?, "{hit}");
        ensure!(hit.failed() == hit.failed_as(BROKEN) + hit.failed_as(REFUSED), "{hit}");
        sum.add(hit);
        fleet.add()?;
    }
    load.stop()?.all_good()?;
    Ok(sum)
}

//! Many rolling restarts, and many killed replicas, under the load of an apiserver.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    faults::{fleet::Fleet, replicas},
    installed::{install_account, install_crds},
    runs::Parameters,
    support::{control_plane::ControlPlane, load::Pace},
};

/// The most calls at a time.
const MAX_CONCURRENT_CALLS: usize = 100;

/// R1 of stress/FAULTS.md: nothing is lost.
pub(crate) fn restarts(parameters: &Parameters) -> Result<()> {
    let (cluster, pace) = (ControlPlane::start()?, pace(parameters)?);
    let mut fleet = start(&cluster, parameters)?;
    let (times, pause) = (parameters.number("times")?, parameters.seconds("pause")?);
    let tally = replicas::restarts(&cluster, &mut fleet, pace, times, pause)?;
    println!("{times} restarts: {tally}");
    tally.all_good()?;
    let mut left = fleet.all_left()?;
    left.sort_unstable();
    let at = |index: usize| left.get(index).copied().unwrap_or_default();
    let (half, last) = (left.len() / 2, left.len().saturating_sub(1));
    println!("a replica took {:.0?} to {:.0?} to end, {:.0?} in the middle", at(0), at(last), at(half));
    Ok(())
}

/// R2 of stress/FAULTS.md: only what was on its way to the killed one is lost, and no pod goes without its memory.
pub(crate) fn kills(parameters: &Parameters) -> Result<()> {
    let (cluster, pace) = (ControlPlane::start()?, pace(parameters)?);
    let mut fleet = start(&cluster, parameters)?;
    let times = parameters.number("times")?;
    let tally = replicas::kills(&cluster, &mut fleet, pace, times)?;
    println!("calls around {times} kills: {tally}");
    println!("{} connections were sent to a replica that was gone", fleet.unanswered());
    Ok(())
}

/// Two replicas of what the parameter `memgate` names: nothing for the binary under test, a path, or
/// several with commas between, which take turns.
pub(crate) fn start(cluster: &ControlPlane, parameters: &Parameters) -> Result<Fleet> {
    install_crds(cluster)?;
    let kubeconfig = install_account(cluster)?;
    let programs = parameters.text("memgate")?.split(',').filter(|path| !path.is_empty());
    let programs: Vec<PathBuf> = programs.map(PathBuf::from).collect();
    if programs.is_empty() {
        return Fleet::start(cluster, &kubeconfig, 2);
    }
    Fleet::of(&programs, cluster, &kubeconfig, 2)
}

/// The pace that the parameter `rate` asks for.
pub(crate) fn pace(parameters: &Parameters) -> Result<Pace> {
    Ok(Pace { per_second: parameters.number("rate")?, at_once: MAX_CONCURRENT_CALLS })
}

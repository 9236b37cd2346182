//! memgate without its apiserver, for longer than it should be: what it knows is served, it
//! stays ready, says how old its knowledge is, and learns on its own when the way is there again.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{
    faults::without_apiserver::{WithoutApiserver, lists},
    installed::{install_account, install_crds},
    runs::Parameters,
    support::control_plane::ControlPlane,
};

/// How long learning may take: 75 s until a silent watch is given up, 30 s for a connection that
/// nothing answers, and the longest pause of a minute.
const LEARN_TIMEOUT: Duration = Duration::from_mins(3);

/// What a log may hold of one outage: a few lines for each of some twenty watches.
const MAX_LOG_LINES: usize = 60;

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    let isolated = WithoutApiserver::start(&cluster, &install_account(&cluster)?)?;

    let oldest = watch_age(&isolated, parameters.seconds("quiet")?)?;
    println!("nothing happens: the age is {oldest:.0?} at most");

    isolated.wire.cut();
    isolated.wire.mend();
    isolated.change(&cluster, "died-silently")?;
    let took = isolated.learns(&cluster, "died-silently", LEARN_TIMEOUT)?;
    println!("all watches died without a word: a change was learned {took:.0?} later");

    let stall = parameters.seconds("stall")?;
    let stalled = cluster.stall_store()?;
    isolated.serves_for(stall)?;
    drop(stalled);
    isolated.change(&cluster, "stalled")?;
    let took = isolated.learns(&cluster, "stalled", LEARN_TIMEOUT)?;
    println!("the store stalled for {stall:?}: all calls were good, a change was learned {took:.0?} later");

    outage(&cluster, &isolated, parameters.seconds("outage")?)?;
    println!("since the start arkmemories were listed {} times", lists(&cluster, "arkmemories")?);
    isolated.end()
}

/// Nothing comes through for so long.
fn outage(cluster: &ControlPlane, isolated: &WithoutApiserver, time: Duration) -> Result<()> {
    let before = isolated.warnings().len();
    isolated.wire.cut();
    let oldest = watch_age(isolated, time)?;
    ensure!(oldest + Duration::from_secs(2) >= time, "after {time:?} the age is only {oldest:?}");
    let (status, text) = isolated.memgate.probe("/readyz").context("memgate does not answer probes")?;
    ensure!(status == 200, "{text}");
    let warnings = isolated.warnings().split_off(before);
    ensure!(warnings.len() <= MAX_LOG_LINES, "{}", warnings.join("\n"));
    println!(
        "nothing came through for {time:?}: all calls were good, it was ready all the while, the age rose to \
         {oldest:.0?}, the log has {} warnings; /readyz:\n{}",
        warnings.len(),
        text.trim_end()
    );
    isolated.change(cluster, "cut-off")?;
    isolated.wire.mend();
    let took = isolated.learns(cluster, "cut-off", LEARN_TIMEOUT)?;
    println!(
        "a change was learned {took:.0?} after the way was there again; the age is {:.0?}",
        isolated.age()?
    );
    Ok(())
}

/// The greatest age in so long, in which every call is good and memgate is ready.
fn watch_age(isolated: &WithoutApiserver, time: Duration) -> Result<Duration> {
    let step = Duration::from_secs(1).min(time);
    let mut oldest = Duration::ZERO;
    for _ in 0..time.as_secs() {
        isolated.serves_for(step)?;
        oldest = oldest.max(isolated.age()?);
    }
    Ok(oldest)
}

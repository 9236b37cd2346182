//! A tool that keeps taking `caBundle` away, and how soon it is back.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{
    certs::installation::Installation,
    support::{certs::Authority, control_plane::ControlPlane, wait, webhook::Webhook},
};

/// How often it is taken away.
const WIPE_INTERVAL: Duration = Duration::from_secs(1);

/// Seconds from the environment, for runs longer or shorter than usual.
pub(crate) fn seconds(variable: &str, usual: u64) -> Duration {
    let seconds = env::var(variable).ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(usual))
}

/// Wipes or overwrites all entries once a second, with two replicas that repair them.
pub(crate) fn run(cluster: &ControlPlane, time: Duration) -> Result<()> {
    let installation = Installation::new(cluster, "wiped")?;
    let (mut first, second) = (installation.serve().live()?, installation.serve().live()?);
    installation.register(&first.endpoint())?;
    first.wait_until_ready()?;
    installation.wait_until_repaired()?;
    let before = writes(&first)? + writes(&second)?;
    let stranger = Authority::new("a stranger")?.pem();
    let (mut repairs, started) = (Vec::new(), Instant::now());
    while started.elapsed() < time {
        let wiped = Instant::now();
        installation
            .overwrite_bundles(Some(&stranger).filter(|_| repairs.len() % 2 == 0).map(String::as_str))?;
        installation.wait_until_repaired()?;
        repairs.push(wiped.elapsed());
        thread::sleep(WIPE_INTERVAL.saturating_sub(wiped.elapsed()));
    }
    let took = started.elapsed();
    // A write is seen in the cluster before it is counted.
    let least = 2 * u64::try_from(repairs.len())?;
    let written = wait::until("the last repairs to be counted", || {
        let written = writes(&first)? + writes(&second)? - before;
        Ok((written >= least).then_some(written))
    })?;
    repairs.sort();
    let (times, slowest) = (repairs.len(), repairs.last().context("nothing was wiped")?);
    let (middle, most) = (&repairs[times / 2], &repairs[times * 99 / 100]);
    println!(
        "{times} wipes of both in {took:.0?}: repaired in {middle:.1?} (median), {most:.1?} (99 of 100), {slowest:.1?} (slowest), \
         with {written} writes by two replicas"
    );
    installation.wait_until_asked()?;
    // Two configurations for each wipe, and now and then both replicas are equally polite.
    let most = 2 * 2 * (took.as_secs() + 1);
    ensure!(written <= most, "{written} writes for {times} wipes");
    for memgate in [&first, &second] {
        let log = memgate.log();
        ensure!(!log.contains("panicked"), "{log}");
        ensure!(memgate.probe("/readyz").is_some_and(|(status, _)| status == 200), "not ready any more");
    }
    Ok(())
}

/// How often a replica has written `caBundle`.
fn writes(memgate: &Webhook) -> Result<u64> {
    let (_, metrics) = memgate.probe("/metrics").context("there are metrics")?;
    let lines = metrics.lines().filter(|line| line.starts_with("memgate_cabundle_repairs_total{"));
    let lines = lines.filter(|line| line.contains("result=\"ok\""));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

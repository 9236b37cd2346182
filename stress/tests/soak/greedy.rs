//! A tenant writes objects whose lists say nothing, up to many megabytes, beside ordinary calls of another tenant, in the
//! memory of a small container; then the replica is killed and lists all of them: nothing ends for want of memory, and the
//! ordinary calls are about as fast as alone.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    faults::fleet::Fleet,
    hostile::{Confined, as_fast},
    replicas::pace,
    request::{Answer, create},
    runs::Parameters,
    support::{
        control_plane::ControlPlane,
        load::{Failure, Load, Pace},
    },
};

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    let Confined { cgroup, mut fleet, call, alone, .. } = Confined::start(&cluster, parameters)?;

    let elements = usize::try_from(parameters.number("elements")?)?;
    let object = greedy(elements);
    let bytes = u64::try_from(object.to_string().len())?;
    let objects = (u64::from(parameters.number("megabytes")?) << 20).div_ceil(bytes);
    println!("{objects} objects of {bytes} bytes");
    let (client, namespace) = (cluster.client(), cluster.fresh_namespace("greedy")?);
    let ordinary = Load::start(cluster.runtime(), pace(parameters)?, call.clone());
    let greedy_pace = Pace { per_second: parameters.number("writes")?, at_once: 8 };
    let writes = Load::start(cluster.runtime(), greedy_pace, move |number| {
        let (client, namespace, mut object) = (client.clone(), namespace.clone(), object.clone());
        object["metadata"] = json!({"name": format!("greedy-{number}")});
        Box::pin(async move {
            let failed = |error: anyhow::Error| Failure::new("apiserver", format!("{error:#}"));
            create(&client, &namespace, &object, "").await.and_then(Answer::object).map_err(failed)?;
            Ok(())
        })
    });
    let time = objects / u64::from(greedy_pace.per_second) + 1;
    std::thread::sleep(std::time::Duration::from_secs(time));
    let (written, beside) = (writes.stop()?, ordinary.stop()?);
    println!("written: {written}\nbeside them: {beside}");
    written.all_good()?;
    println!("at most {} KiB in all, {} killed", cgroup.peak()? >> 10, cgroup.kills()?);
    say_state(&fleet)?;

    fleet.kill()?;
    fleet.add()?;
    let again = Load::start(cluster.runtime(), pace(parameters)?, call);
    std::thread::sleep(parameters.seconds("quiet")?);
    let again = again.stop()?;
    println!("after a start with all of them: {again}");
    println!("at most {} KiB in all, {} killed", cgroup.peak()? >> 10, cgroup.kills()?);
    say_state(&fleet)?;

    ensure!(cgroup.kills()? == 0, "the memory of the container did not do");
    beside.all_good()?;
    again.all_good()?;
    as_fast(&alone, &beside)
}

/// Prints what the replica says of its state.
fn say_state(fleet: &Fleet) -> Result<()> {
    let replica = fleet.replicas.first().context("there is no replica")?;
    let text = replica.metrics()?;
    let lines = text.lines().filter(|line| {
        ["memgate_store_bytes", "memgate_store_objects"].iter().any(|it| line.starts_with(it))
    });
    lines.for_each(|line| println!("  {line}"));
    for webhook in ["mutate", "validate"] {
        println!("  /{webhook}: memgate itself took at most {} s for 99 of 100", own_p99(&text, webhook)?);
    }
    Ok(())
}

/// The upper bound of the time in which memgate answered 99 of 100 calls of a webhook since its start, as written in its
/// metrics.
fn own_p99<'t>(metrics: &'t str, webhook: &str) -> Result<&'t str> {
    let end = format!("\",webhook=\"{webhook}\"}}");
    let bucket = |line: &'t str| {
        let (bound, count) =
            line.strip_prefix("memgate_admission_duration_seconds_bucket{le=\"")?.split_once(&end)?;
        Some((bound, count.trim().parse::<u64>().ok()?))
    };
    let buckets: Vec<_> = metrics.lines().filter_map(bucket).collect();
    let (_, all) = buckets.last().context("memgate has no durations")?;
    let of_most = buckets.iter().find(|(_, count)| count * 100 >= all * 99);
    of_most.map(|(bound, _)| *bound).context("no bucket has that many calls")
}

/// An object of a watched kind with a list of so many elements that say nothing.
fn greedy(elements: usize) -> Value {
    json!({
        "apiVersion": "sympozium.ai/v1alpha1", "kind": "Agent",
        "spec": {
            "agents": {"default": {"model": "m"}},
            "authRefs": [],
            "skills": vec![json!({}); elements],
        },
    })
}

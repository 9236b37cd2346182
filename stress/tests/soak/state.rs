//! Objects in one namespace that are never deleted and change all the time: the cost of the state for memgate, and the
//! time until it is complete after a start.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    faults::calls::Caller,
    installed::{MEMGATE, install_account, install_crds, known_objects},
    many::{WRITERS, create_all},
    request::create,
    runs::Parameters,
    samples::{agent, memory},
    support::{
        control_plane::ControlPlane,
        load::{Failure, Load, Pace, Tally},
        process::Process,
        webhook::{Serve, Webhook},
    },
};

/// The goals: a share of one core; resident memory in KiB while all change, and after a start with all of them.
const CORE_SHARE: f64 = 0.1;
const PEAK_KIB: u64 = 120 << 10;
const PEAK_AT_START_KIB: u64 = 256 << 10;

/// Of those that ask about another namespace meanwhile.
const CALLS_PER_SECOND: u32 = 50;

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    let kubeconfig = install_account(&cluster)?;
    let program = parameters.text_or("memgate", MEMGATE)?;
    let serve = Serve::new(program).kubeconfig(&kubeconfig);
    let pile = Pile::new(&cluster, parameters.text("kind")?)?;
    let other = cluster.fresh_namespace("other")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &other, &object, ""))?.object()?;
    }

    let objects = parameters.number("objects")?;
    pile.grow(&cluster, 0..u64::from(objects))?;
    let mut memgate = start(&serve, objects)?;
    let changing = changes(&cluster, &pile, &mut memgate, &other, parameters)?;
    println!("calls without changes: {}\ncalls beside them:     {}", changing.quiet, changing.beside);
    println!("changes: {}", changing.changes);
    println!(
        "{:.1} % of a core for {:.0} changes a second and the calls, {:.1} % for the calls alone; peak {} MiB",
        100.0 * changing.share,
        changing.rate,
        100.0 * changing.quiet_share,
        changing.peak >> 10,
    );
    drop(memgate);

    let more = parameters.number("more")?;
    pile.grow(&cluster, objects.into()..u64::from(objects + more))?;
    let mut memgate = start(&serve, objects + more)?;
    let peak = memgate.process().peak_memory().context("memgate has ended")?;
    println!("peak after a start with {} objects: {} MiB", objects + more, peak >> 10);

    changing.quiet.all_good()?;
    changing.beside.all_good()?;
    changing.changes.all_good()?;
    ensure!(changing.share - changing.quiet_share <= CORE_SHARE, "changes cost too much");
    ensure!(changing.peak <= PEAK_KIB, "too much memory while they change");
    ensure!(peak <= PEAK_AT_START_KIB, "too much memory at a start");
    Ok(())
}

/// Starts a replica that is to know this many objects, and tells when it was ready.
fn start(serve: &Serve, objects: u32) -> Result<Webhook> {
    let begin = Instant::now();
    let mut webhook = serve.ready()?;
    let ready = begin.elapsed();
    let computed = webhook.process().cpu_time().context("memgate has ended")?;
    let known = known_objects(&webhook)?;
    println!("ready {ready:.1?} after its start, {computed:.1?} of which it computed, with {known} objects");
    ensure!(known >= objects.into(), "it is ready without knowing all");
    Ok(webhook)
}

/// What was measured while objects changed.
struct Changing {
    quiet: Tally,
    beside: Tally,
    changes: Tally,
    /// Of one core.
    share: f64,
    quiet_share: f64,
    /// Good ones a second.
    rate: f64,
    /// In KiB.
    peak: u64,
}

/// Calls about the `other` namespace, first alone, then while objects of the pile change.
fn changes(
    cluster: &ControlPlane,
    pile: &Pile,
    memgate: &mut Webhook,
    other: &str,
    parameters: &Parameters,
) -> Result<Changing> {
    let time = parameters.seconds("time")?;
    let caller = Caller::new(cluster, &memgate.endpoint(), other)?;
    let pace = Pace { per_second: CALLS_PER_SECOND, at_once: WRITERS };
    let calls = Load::start(cluster.runtime(), pace, move |_| {
        let caller = caller.clone();
        Box::pin(async move { caller.ask("scout").await })
    });
    let quiet_share = share(memgate.process(), time)?;
    let quiet = calls.take();

    let (objects, rate) = (u64::from(parameters.number("objects")?), parameters.number("rate")?);
    let writes = pile.change(cluster, objects, rate);
    let share = share(memgate.process(), time)?;
    let changes = writes.stop()?;
    let beside = calls.stop()?;
    let rate = f64::from(u32::try_from(changes.good())?) / time.as_secs_f64();
    let peak = memgate.process().peak_memory().context("memgate has ended")?;
    Ok(Changing { quiet, beside, changes, share, quiet_share, rate, peak })
}

/// What share of a core a process uses from now on for a while.
fn share(process: &Process, time: Duration) -> Result<f64> {
    let used = || process.cpu_time().context("memgate has ended");
    let (begin, before) = (Instant::now(), used()?);
    std::thread::sleep(time);
    Ok(used()?.saturating_sub(before).as_secs_f64() / begin.elapsed().as_secs_f64())
}

/// Many objects of one kind in one namespace.
struct Pile {
    namespace: String,
    object: Value,
}

impl Pile {
    fn new(cluster: &ControlPlane, kind: &str) -> Result<Self> {
        let text = "What did we discuss, and who was to do what until when? ".repeat(8);
        let object = match kind {
            "Query" => json!({
                "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query",
                "spec": {
                    "input": text, "target": {"type": "agent", "name": "scout"}, "memory": {"name": "notes"},
                },
            }),
            "Task" => json!({
                "apiVersion": "core.orka.ai/v1alpha1", "kind": "Task",
                "spec": {"type": "ai", "prompt": text, "agentRef": {"name": "scout"}},
            }),
            "AgentRun" => json!({
                "apiVersion": "sympozium.ai/v1alpha1", "kind": "AgentRun",
                "spec": {
                    "agentRef": "scout", "agentId": "primary", "sessionKey": "s", "task": text,
                    "model": {"provider": "openai", "model": "m", "authSecretRef": "keys"},
                },
            }),
            other => anyhow::bail!("kind={other} is none of Query, Task and AgentRun"),
        };
        Ok(Self { namespace: cluster.fresh_namespace("piled")?, object })
    }

    /// Makes the objects with these numbers.
    fn grow(&self, cluster: &ControlPlane, numbers: std::ops::Range<u64>) -> Result<()> {
        let (begin, count) = (Instant::now(), numbers.end - numbers.start);
        let object = |number: u64| {
            let mut object = self.object.clone();
            object["metadata"] = json!({"name": format!("piled-{number}")});
            (self.namespace.as_str(), object)
        };
        create_all(cluster, numbers.map(object))?;
        println!("{count} objects were made in {:.0?}", begin.elapsed());
        Ok(())
    }

    /// Changes one object after the other, and begins again after the last one.
    fn change(&self, cluster: &ControlPlane, objects: u64, per_second: u32) -> Load {
        let group_version_kind = (self.object["apiVersion"].as_str(), self.object["kind"].as_str());
        let (Some(api_version), Some(kind)) = group_version_kind else { unreachable!("of our own") };
        let (group, version) = api_version.split_once('/').unwrap_or_default();
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), &self.namespace, &resource);
        Load::start(cluster.runtime(), Pace { per_second, at_once: WRITERS }, move |number| {
            let api = api.clone();
            Box::pin(async move {
                let patch = Patch::Merge(json!({"metadata": {"labels": {"turn": number.to_string()}}}));
                let name = format!("piled-{}", number % objects);
                let done = api.patch_metadata(&name, &PatchParams::default(), &patch).await;
                done.map(|_| ()).map_err(|error| Failure::new("apiserver", error))
            })
        })
    }
}

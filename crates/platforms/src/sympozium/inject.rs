//! Injects the memories of an agent into its pods.
//!
//! ```text
//! pod ──find──▶ what is on: private, legacy, shared ──want──▶ variables, containers, volumes
//! ```
//!
//! Private memory is a separate service or a native sidecar. Shared memory is always a service. The older
//! memory in a ConfigMap is a volume.
//! A pod can also bring a memory server itself.

pub(super) mod find;
mod want;

use super::prelude::*;
use crate::inject::own::OwnVariables;
use crate::inject::parts::{ExistingMounts, ExistingParts};
use crate::inject::viable::Surroundings;
use crate::references::going;
use memgate_model::pod::{Mount, read_list};
use serde_json::Value;

use self::find::{PodMemories, find};
use self::want::{PACK_SIDECAR, PodContext, is_loopback};
use super::variables::PRIVATE_URL;

/// What to add to the pod; `None` if it is not an agent pod of this family.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let instance = recognise(pod)?;
    let agent = container_named(pod, AGENT_CONTAINER);
    let work = state.budget();
    let mounts = agent.map_or_else(
        || Some(ExistingMounts::default()),
        |(index, container)| ExistingMounts::read(index, container, work),
    );
    let (Some(parts), Some(mounts)) = (ExistingParts::read(pod, work), mounts) else {
        return Some(Injection::nothing(Reason::Malformed));
    };
    let injection = try_inject(pod, &parts, (agent, mounts), instance, namespace, state);
    Some(injection.unwrap_or_else(|unmet| *unmet))
}

/// The variables that a pod sets itself: in the container of the agent, and the URLs in the others. Where its memory
/// cannot be told, all are others.
pub(super) fn own_variables<'s>(
    pods: [&Pod<'_>; 2],
    found: Option<PodMemories<'s>>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> (OwnVariables, Vec<OwnVariables>) {
    let (pod, work) = (pods[0], state.budget());
    let agent = container_named(pod, AGENT_CONTAINER).zip(found.filter(PodMemories::has_memory));
    let known = agent.and_then(|((index, container), found)| {
        let mounts = ExistingMounts::read(index, container, work)?;
        Some((index, container, found, ExistingParts::read(pod, work)?, mounts))
    });
    let undeclared = || {
        let others = OwnVariables::undeclared(pod, want::URLS, None, work);
        (OwnVariables::default(), others)
    };
    let Some((index, container, found, parts, mounts)) = known else { return undeclared() };
    let around = Surroundings::of((pod, &parts), namespace, state);
    let context = PodContext { around, index, container, mounts, namespace };
    let Ok(wanted) = want::want(context, found, state) else { return undeclared() };
    let wanted = wanted.containers.first().map(|it| it.env.as_ref()).unwrap_or_default();
    let own = OwnVariables::read(index, pods, wanted, want::NAMES, None);
    let is_agent = |it| it == index;
    let mut others = OwnVariables::of_others(pod, wanted, want::URLS, None, (is_agent, work));
    others.retain(|own| !own.is_empty());
    (own, others)
}

/// The Agent of the pod, or else its AgentRun, or else the pod's controller.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let agent = recognise(pod)?;
    let run = pod.label(RUN_LABEL).unwrap_or_default();
    let known = |(kind, name)| Some(InvolvedObject::of(kind, state.peek(kind, namespace, name)?));
    let objects = [(&AGENT, agent), (&AGENT_OLD, agent), (&STATE_AGENT_RUN, run)];
    objects.into_iter().find_map(known).or_else(|| controller_of(pod, namespace))
}

/// The labels of the pods of an Agent.
pub(crate) fn labels_for_agent(kind: &Kind, _namespace: &str, name: &str) -> Option<Value> {
    let is_agent = [&AGENT, &AGENT_OLD].contains(&kind);
    is_agent.then(|| json!({COMPONENT_LABEL: AGENT_RUN_COMPONENT, INSTANCE_LABEL: name}))
}

fn try_inject<'p>(
    pod: &'p Pod<'p>,
    parts: &'p ExistingParts<'p>,
    (agent, mounts): (Option<(usize, &'p Container<'p>)>, ExistingMounts<'p>),
    instance: &str,
    namespace: &'p str,
    state: &mut StateReader<'_>,
) -> Result<Injection, Unmet> {
    let Some((index, container)) = agent else {
        let message = format!("no container named \"{AGENT_CONTAINER}\"");
        let at = Pointer::new("/spec/containers");
        return Err(unmet(Reason::NoContainer, &POD_NO_AGENT_CONTAINER, at, message));
    };
    let found = find(pod, instance, namespace, state)?;
    if !found.has_memory() {
        if found.unmet.is_empty() {
            let message = filled("Agent {} has no memory; add skill \"memory\" to it", [instance]);
            return Err(no_memory(&AGENT_WITHOUT_MEMORY, instance_label(), message));
        }
        let nothing = Injection::nothing(Reason::ReferenceMissing);
        return Err(Box::new(Injection { unmet: found.unmet, missing: found.missing, ..nothing }));
    }
    let going: Vec<Finding> = found.used().filter_map(|memory| going(memory, instance_label)).collect();
    let missing = found.missing.clone();
    let around = Surroundings::of((pod, parts), namespace, state);
    let context = PodContext { around, index, container, mounts, namespace };
    let wanted = want::want(context, found, state)?;
    let mut injection = merge(pod, wanted, state.budget(), |conflict: &Conflict<'_>| {
        let Conflict { variable, entry, .. } = conflict;
        let (kind, name) = variable.origin.resource.split_once(' ').unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let values = [&*variable.name, kind, name];
        let text = "{bare} is already set and differs from {bare} {}";
        warning(&POD_ENV_CONFLICT, entry, text, values)
            .and_elsewhere(|| origin_place(&variable.origin, &[&AGENT, &ENSEMBLE, &STATE_AGENT_RUN]))
    });
    injection.warnings.extend(going);
    Ok(Injection { missing, ..injection })
}

/// The name of the agent that a pod runs.
pub(super) fn recognise<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    instance(pod).filter(|name| !name.is_empty())
}

/// The label of an agent pod with the name of the agent, which may be empty.
pub(super) fn instance<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    let is_run = pod.label(COMPONENT_LABEL) == Some(AGENT_RUN_COMPONENT);
    pod.label(INSTANCE_LABEL).filter(|_| is_run)
}

/// The origin of an edit that comes from a field of an object, which has its current name.
fn origin(object: &Object, field: impl Into<Cow<'static, str>>) -> Origin {
    let kind = match object.kind.kind {
        "SympoziumInstance" => "Agent",
        "PersonaPack" => "Ensemble",
        kind => kind,
    };
    field_origin(&resource_name(kind, object), field)
}

/// The pointer to the label that names the agent.
fn instance_label() -> Pointer {
    label_pointer(INSTANCE_LABEL)
}

/// The file of the database.
const DATABASE: &str = "MEMORY_DB_PATH";

/// The file of the database, unless the variable names another one.
const DEFAULT_DATABASE: &str = "/data/memory.db";

/// Puts what the pod's own servers keep in the place of what its memory declares. A server is not in use while the agent
/// sets the URL of another one. Of the two pods, one is as it was sent, the other one as it will be: memgate puts back
/// what a server has lost.
pub(super) fn use_own_servers(memories: &mut [MemoryView], pods: [&Pod<'_>; 2], work: &Budget<'_>) {
    let [pod, stored] = pods;
    let url = container_named(pod, AGENT_CONTAINER).and_then(|(_, agent)| agent.variable(PRIVATE_URL));
    if url.is_some_and(|(_, entry)| entry.literal().is_some_and(|url| !is_loopback(url))) {
        return;
    }
    let inits = pods.map(|pod| own::init_containers(pod, work));
    let [sent_inits, stored_inits] = &inits;
    let Some(parts) = ExistingParts::read(stored, work) else { return };
    let is_server = |container: &Container<'_>| {
        [MEMORY_SERVER, PACK_SIDECAR].iter().any(|name| container.name.as_deref() == Some(*name))
    };
    // A server is only added to a pod without one.
    let sent = own::places(pod, sent_inits).filter(|(_, container)| is_server(container));
    let stored = own::places(stored, stored_inits).filter(|(_, container)| is_server(container));
    for ((place, _), (_, container)) in sent.zip(stored) {
        let (field, name, durable) = durable(&place, container, &parts, work);
        if durable == Some(true) {
            continue;
        }
        let is_kept_there = |view: &&mut MemoryView| view.sharing.is_none() && view.kind != SKILL_PACK.kind;
        for view in memories.iter_mut().filter(is_kept_there) {
            view.at("backend", &field);
            view.put("durable", &field, durable);
            if durable.is_none() {
                view.set_unknown("durable", Why::SetByPod(name.to_owned()));
            }
        }
    }
}

/// Whether the memory of a server outlives its pod, if that is known, with the name and the place of what tells.
fn durable(
    place: &Pointer,
    server: &Container<'_>,
    parts: &ExistingParts<'_>,
    work: &Budget<'_>,
) -> (Pointer, &'static str, Option<bool>) {
    let (field, name) = match server.variable(DATABASE) {
        Some((index, _)) => (place.key("env").index(index), DATABASE),
        None => (place.key("volumeMounts"), "volumeMounts"),
    };
    let durable = database(server).and_then(|path| match path {
        path if path.starts_with('/') => outlives(path, place, server, parts, work),
        path if path.contains(":memory:") => Some(false),
        _ => None,
    });
    (field, name, durable)
}

/// The path of a server's database, if it is known.
fn database<'c>(server: &'c Container<'_>) -> Option<&'c str> {
    let path = match server.variable(DATABASE) {
        Some((_, entry)) => entry.literal().filter(|path| !path.contains("$(")),
        None => Some("").filter(|_| server.env_from.is_none()),
    };
    path.map(|path| if path.is_empty() { DEFAULT_DATABASE } else { path })
}

/// The mount that holds this file, with its index.
fn mount_of<'m, 'p: 'm>(
    path: &str,
    mounts: impl IntoIterator<Item = &'m Mount<'p>>,
) -> Option<(usize, &'m Mount<'p>)> {
    let file = Mount { path: Some(Text(path.into())), ..Mount::default() }.clean_path();
    let holds = |of: &str| file.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mounts = mounts.into_iter().enumerate().map(|(index, mount)| (mount.clean_path(), index, mount));
    let mount = mounts.filter(|(of, ..)| holds(of)).max_by_key(|(of, ..)| of.len());
    mount.map(|(_, index, mount)| (index, mount))
}

/// Whether the volume of this file outlives the pod. Without a volume, the file goes with its container.
fn outlives(
    path: &str,
    place: &Pointer,
    server: &Container<'_>,
    parts: &ExistingParts<'_>,
    work: &Budget<'_>,
) -> Option<bool> {
    let place = Path::Known(place.as_str());
    let list = Path::Key(&place, "volumeMounts");
    let mounts: Vec<Mount<'_>> = read_list(server.volume_mounts, list, work).unwrap_or_default();
    let Some((_, mount)) = mount_of(path, &mounts) else { return Some(false) };
    let (_, volume) = parts.volume(mount.name.as_deref()?)?;
    let is_lost = volume.empty_dir.map(|_| false);
    if volume.claim.is_some() { Some(true) } else { is_lost }
}

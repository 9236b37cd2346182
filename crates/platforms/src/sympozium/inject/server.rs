//! A memory server that a pod brings itself, and where it keeps memory.

use memgate_model::memory_view::{MemoryView, Why};
use memgate_model::pod::{Container, Mount, Pod, read_list};
use memgate_model::view::Text;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::{Path, Pointer};

use super::super::api::{AGENT_CONTAINER, MEMORY_SERVER, SKILL_PACK};
use super::super::variables::PRIVATE_URL;
use super::want::{PACK_SIDECAR, is_loopback};
use crate::inject::parts::ExistingParts;
use crate::inject::{container_named, own};

/// The file of the database.
const DATABASE: &str = "MEMORY_DB_PATH";

/// The file of the database, unless the variable names another one.
const DEFAULT_DATABASE: &str = "/data/memory.db";

/// Puts what the pod's own servers keep in the place of what its memory declares. A server is not in use while the agent
/// sets the URL of another one.
pub(in super::super) fn use_own_servers(memories: &mut [MemoryView], pod: &Pod<'_>, work: &Budget<'_>) {
    let url = container_named(pod, AGENT_CONTAINER).and_then(|(_, agent)| agent.variable(PRIVATE_URL));
    if url.is_some_and(|(_, entry)| entry.literal().is_some_and(|url| !is_loopback(url))) {
        return;
    }
    let inits = own::init_containers(pod, work);
    let Some(parts) = ExistingParts::read(pod, work) else { return };
    for (place, container) in own::places(pod, &inits) {
        let is_server =
            [MEMORY_SERVER, PACK_SIDECAR].iter().any(|name| container.name.as_deref() == Some(*name));
        if !is_server {
            continue;
        }
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
    let entry = server.variable(DATABASE);
    let (field, name) = match entry {
        Some((index, _)) => (place.key("env").index(index), DATABASE),
        None => (place.key("volumeMounts"), "volumeMounts"),
    };
    let path = match entry {
        Some((_, entry)) => entry.literal().filter(|path| !path.contains("$(")),
        None => Some("").filter(|_| server.env_from.is_none()),
    };
    let durable = path.and_then(|path| match path {
        "" => outlives(DEFAULT_DATABASE, place, server, parts, work),
        path if path.starts_with('/') => outlives(path, place, server, parts, work),
        path if path.contains(":memory:") => Some(false),
        _ => None,
    });
    (field, name, durable)
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
    let file = Mount { path: Some(Text(path.into())), ..Mount::default() }.clean_path();
    let holds = |of: &str| file.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mounts = mounts.iter().map(|mount| (mount.clean_path(), mount)).filter(|(of, _)| holds(of));
    let Some((_, mount)) = mounts.max_by_key(|(of, _)| of.len()) else { return Some(false) };
    let (_, volume) = parts.volume(mount.name.as_deref()?)?;
    let is_lost = volume.empty_dir.map(|_| false);
    if volume.claim.is_some() { Some(true) } else { is_lost }
}

//! Validates the names of volumes that Sympozium reserves.

use std::sync::Arc;

use memgate_model::finding::{Finding, excerpt};
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::RESERVED_VOLUMES;
use super::super::codes::RESERVED_VOLUME;
use super::Report;

/// The message of upstream's own webhook about a reserved name, verbatim.
const RESERVED_MESSAGE: &str = "name is reserved by Sympozium (including workspace, ipc, skills, tmp, memory, \
     mcp-config, and sympozium-run-api-access)";

/// Refuses the reserved names of an AgentRun. Upstream's own webhook refuses such a run.
pub(super) fn run_findings(run: &Tree, report: Report<'_>) -> impl Iterator<Item = Finding> {
    let volumes = reserved(run, &["spec", "volumes"]).filter_map(move |(at, name)| {
        let shown = excerpt(name);
        let message =
            move |_: &Pointer| format!("AgentRun.spec.volumes[{}]: {RESERVED_MESSAGE}", quoted(&shown));
        Some(report.deny_whole(&RESERVED_VOLUME, at, message)?.fingerprint_value(name))
    });
    volumes.chain(mounts(run, report))
}

/// Warns about the reserved names of an Agent or Ensemble: each of its runs gets these volumes.
pub(super) fn warnings(object: &Tree, report: Report<'_>) -> impl Iterator<Item = Finding> {
    let volumes = reserved(object, &["spec", "volumes"]).filter_map(move |(at, name)| {
        let name = excerpt(name);
        let text = move || format!("{} is reserved by Sympozium: runs with it are refused", quoted(&name));
        report.warn(&RESERVED_VOLUME, at, text)
    });
    volumes.chain(mounts(object, report))
}

/// Warns about the reserved names of a SkillPack: it is accepted, but the runs that use it are refused.
pub(super) fn pack_findings(pack: &Tree, name: &str, report: Report<'_>) -> Vec<Finding> {
    let name: Arc<str> = excerpt(name).into();
    let reserved = reserved(pack, &["spec", "sidecar", "volumes"]).filter_map(|(at, volume)| {
        let (name, volume) = (Arc::clone(&name), excerpt(volume));
        let message = move |_: &Pointer| {
            format!("SkillPack {} sidecar volume {}: {RESERVED_MESSAGE}", quoted(&name), quoted(&volume))
        };
        report.warn_whole(&RESERVED_VOLUME, at, message)
    });
    reserved.collect()
}

fn mounts(object: &Tree, report: Report<'_>) -> impl Iterator<Item = Finding> {
    reserved(object, &["spec", "volumeMounts"]).filter_map(move |(at, name)| {
        let name = excerpt(name);
        let text = move || format!("{} is reserved by Sympozium: the mount is dropped", quoted(&name));
        report.warn(&RESERVED_VOLUME, at, text)
    })
}

/// The reserved names in a list, with their pointers.
fn reserved<'t>(
    object: &'t Tree,
    path: &'static [&'static str],
) -> impl Iterator<Item = (impl FnOnce() -> Pointer, &'t str)> {
    let entries = object.list_at(path);
    entries.iter().enumerate().filter_map(move |(index, entry)| {
        let name = entry.text_at(&["name"]).filter(|name| RESERVED_VOLUMES.contains(name))?;
        let list = move || path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
        Some((move || list().index(index).key("name"), name))
    })
}

//! Validates the names of volumes that Sympozium reserves.

use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::super::api::RESERVED_VOLUMES;
use super::super::api::agent::text_at;
use super::super::codes::RESERVED_VOLUME;
use super::warn;

/// The message of upstream's own webhook about a reserved name, verbatim.
const RESERVED_MESSAGE: &str = "name is reserved by Sympozium (including workspace, ipc, skills, tmp, memory, \
     mcp-config, and sympozium-run-api-access)";

/// Upstream's own webhook refuses such a run.
pub(super) fn run_findings(run: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = reserved(run, &["spec", "volumes"])
        .map(|(at, name)| {
            let message = format!("AgentRun.spec.volumes[{}]: {RESERVED_MESSAGE}", quoted(name));
            Finding::deny(&RESERVED_VOLUME, at, message).fingerprint_value(name)
        })
        .collect();
    findings.extend(mounts(run));
    findings
}

/// Of an Agent or Ensemble: each of its runs gets them.
pub(super) fn warnings(object: &Tree) -> Vec<Finding> {
    let volumes = reserved(object, &["spec", "volumes"]).map(|(at, name)| {
        let text = format!("{} is reserved by Sympozium: runs with it are refused", quoted(name));
        warn(&RESERVED_VOLUME, &at, &text)
    });
    volumes.chain(mounts(object)).collect()
}

/// Of a SkillPack: it is taken, and the runs that use it are refused.
pub(super) fn pack_findings(pack: &Tree, name: &str) -> Vec<Finding> {
    let finding = |(at, volume): (Pointer, &str)| {
        let message =
            format!("SkillPack {} sidecar volume {}: {RESERVED_MESSAGE}", quoted(name), quoted(volume));
        Finding::warn(&RESERVED_VOLUME, at, message)
    };
    reserved(pack, &["spec", "sidecar", "volumes"]).map(finding).collect()
}

fn mounts(object: &Tree) -> impl Iterator<Item = Finding> {
    reserved(object, &["spec", "volumeMounts"]).map(|(at, name)| {
        let text = format!("{} is reserved by Sympozium: the mount is dropped", quoted(name));
        warn(&RESERVED_VOLUME, &at, &text)
    })
}

/// The reserved names in a list, with their pointers.
fn reserved<'t>(object: &'t Tree, path: &'static [&'static str]) -> impl Iterator<Item = (Pointer, &'t str)> {
    let entries = object.at(path).map(Tree::elements).unwrap_or_default();
    let list = path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
    entries.iter().enumerate().filter_map(move |(index, entry)| {
        let name = text_at(entry, &["name"]).filter(|name| RESERVED_VOLUMES.contains(name))?;
        Some((list.index(index).key("name"), name))
    })
}

//! Recognises a harness: an agent container that runs somebody else's image.
//!
//! Upstream gives it three parts of the volume `ipc` and not the whole, since a file elsewhere in it becomes
//! an action of the control plane. It looks like any other agent otherwise, so each of its traces counts.

use std::collections::BTreeSet;

use crate::model::pod::Mount;

use super::PodContext;
use super::sidecar::{IPC, IPC_PATH};

/// The variable by which upstream tells a harness what it is.
const CONTRACT: &str = "SYMPOZIUM_HARNESS_CONTRACT_VERSION";
/// The volume in which a harness keeps its files.
const HOME: &str = "harness-home";

impl PodContext<'_> {
    /// Whether the agent's container runs a harness.
    pub(super) fn runs_harness(&self) -> bool {
        if self.container.variable(CONTRACT).is_some() || self.parts.volume(HOME).is_some() {
            return true;
        }
        // The volume of requests is known by its name, or since the agent has it at /ipc.
        let at_ipc = self.mounts.iter().filter(|mount| mount.clean_path() == IPC_PATH);
        let ipc: BTreeSet<&str> = at_ipc.filter_map(|mount| mount.name.as_deref()).chain([IPC]).collect();
        let is_ipc = |mount: &Mount<'_>| mount.name.as_deref().is_some_and(|name| ipc.contains(name));
        let mut mounts = self.mounts.iter();
        mounts.any(|mount| is_home_or_below_ipc(mount) || mount.is_partial() && is_ipc(mount))
    }
}

fn is_home_or_below_ipc(mount: &Mount<'_>) -> bool {
    let path = mount.clean_path();
    let below_ipc = path.strip_prefix(IPC_PATH).is_some_and(|rest| rest.starts_with('/'));
    below_ipc || mount.name.as_deref() == Some(HOME)
}

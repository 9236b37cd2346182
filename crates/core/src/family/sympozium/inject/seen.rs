//! What is in a pod already, as far as memory asks.

use serde_json::value::RawValue;

use crate::model::pod::{Container, EnvVar, Mount, Pod};
use crate::model::view::{Text, view};

use super::super::api::AGENT_CONTAINER;

view! {
    /// An init container, or a native sidecar.
    Init {
        /// The name.
        name: Text<'a> = "name",
    }
}

view! {
    /// A volume.
    Volume {
        /// The name.
        name: Text<'a> = "name",
        /// A claim.
        claim: Claim<'a> = "persistentVolumeClaim",
        /// A ConfigMap.
        config_map: ConfigMap<'a> = "configMap",
    }
}

view! {
    /// A volume that is a claim.
    Claim {
        /// The name of the claim.
        name: Text<'a> = "claimName",
    }
}

view! {
    /// A volume that is a ConfigMap.
    ConfigMap {
        /// The name of the ConfigMap.
        name: Text<'a> = "name",
    }
}

view! {
    /// The security context of a pod, unread.
    Security {
        /// The group of the files on its volumes.
        fs_group: &'a RawValue = "fsGroup",
        /// The user.
        run_as_user: &'a RawValue = "runAsUser",
    }
}

/// The parts of a pod, each list `None` where there is none.
pub struct Seen<'p> {
    pub(super) containers: &'p [Container<'p>],
    /// The container of the agent, with its index.
    pub(super) agent: Option<(usize, &'p Container<'p>)>,
    pub(super) init_containers: Option<Vec<Init<'p>>>,
    pub(super) volumes: Option<Vec<Volume<'p>>>,
    /// Those of the agent's container.
    pub(super) mounts: Option<Vec<Mount<'p>>>,
    pub(super) security: Option<Security<'p>>,
    pub(super) host_network: bool,
    pub(super) dns_policy: Option<&'p str>,
}

impl<'p> Seen<'p> {
    /// Reads the parts of a pod; `None` when one has a form that no pod's has.
    pub(super) fn read(pod: &'p Pod<'p>) -> Option<Self> {
        let Some(spec) = &pod.spec else { return Some(Self::empty()) };
        let containers = pod.containers();
        let agent = containers.iter().enumerate().find(|(_, c)| c.name.as_deref() == Some(AGENT_CONTAINER));
        let mounts = agent.and_then(|(_, container)| container.volume_mounts);
        Some(Self {
            containers,
            agent,
            init_containers: part(spec.init_containers).ok()?,
            volumes: part(spec.volumes).ok()?,
            mounts: part(mounts).ok()?,
            security: part(spec.security_context).ok()?,
            host_network: spec.host_network.unwrap_or(false),
            dns_policy: spec.dns_policy.as_deref(),
        })
    }

    const fn empty() -> Self {
        Self {
            containers: &[],
            agent: None,
            init_containers: None,
            volumes: None,
            mounts: None,
            security: None,
            host_network: false,
            dns_policy: None,
        }
    }

    /// Whether the pod says itself as whom its containers run, other than root.
    pub(super) fn has_user(&self) -> bool {
        let user = self.security.as_ref().and_then(|security| security.run_as_user);
        user.is_some_and(|user| user.get() != "0")
    }

    /// Whether the pod says itself whose its volumes are.
    pub(super) fn has_fs_group(&self) -> bool {
        self.security.as_ref().is_some_and(|security| security.fs_group.is_some())
    }

    /// Whether any container or init container has this name.
    pub(super) fn has_container(&self, name: &str) -> bool {
        let mut inits = self.init_containers.iter().flatten();
        inits.any(|container| container.name.as_deref() == Some(name))
            || self.containers.iter().any(|container| container.name.as_deref() == Some(name))
    }

    pub(super) fn volume(&self, name: &str) -> Option<(usize, &Volume<'p>)> {
        let mut volumes = self.volumes.iter().flatten().enumerate();
        volumes.find(|(_, volume)| volume.name.as_deref() == Some(name))
    }

    /// The agent's mount at this path.
    pub(super) fn mount(&self, path: &str) -> Option<(usize, &Mount<'p>)> {
        let mut mounts = self.mounts.iter().flatten().enumerate();
        let at = |mount: &Mount<'_>| mount.path.as_deref().map(|path| path.trim_end_matches('/').to_owned());
        mounts.find(|(_, mount)| at(mount).as_deref() == Some(path))
    }

    /// The agent's entry for a variable that counts: the last one of its name.
    pub(super) fn variable(&self, name: &str) -> Option<(usize, &'p EnvVar<'p>)> {
        self.agent?.1.variable(name)
    }
}

/// `None` where there is nothing.
fn part<'p, T: serde::Deserialize<'p>>(raw: Option<&'p RawValue>) -> serde_json::Result<Option<T>> {
    raw.map(|raw| serde_json::from_str(raw.get())).transpose()
}

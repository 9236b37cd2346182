//! The containers that memgate adds. They pass Pod Security "restricted" and have requests and limits.
//! An init container waits for memory that is a Service; the older memory is a ConfigMap that the agent has mounted.

use crate::inject::parts::{WantedPart, mounts_pointer};
use crate::inject::{field_origin, resource_name};
use crate::message::fit_names;
use crate::prelude::*;
use crate::sympozium::api::{MEMORY_SERVER, MEMORY_SERVER_PORT, private_url, shared_url};
use crate::sympozium::codes::POD_VOLUME_CONFLICT;
use crate::sympozium::variables::{LEGACY, PRIVATE_TOKEN, PRIVATE_URL};
use memgate_model::edit::{KeyRef, Origin};
use memgate_model::platform_settings::Sizes;
use serde_json::{Value, json};

use super::WantedBuilder;
use super::waits::{PRIVATE_WAIT, SHARED_WAIT};

/// The directory in which the memory server looks for requests in files.
const IPC_VARIABLE: &str = "MEMORY_IPC_DIR";

/// The initial memories of an agent, as a JSON list.
const SEEDS_VARIABLE: &str = "MEMORY_SEEDS";

/// The memory server in the pod of the agent.
pub(super) struct MemoryServer<'a> {
    pub(super) agent: &'a str,
    pub(super) image: &'a str,
    /// The command, if the SkillPack sets one.
    pub(super) command: Vec<&'a str>,
    /// The seeds of an empty database, as the value of their variable.
    pub(super) seeds: Option<String>,
    /// The Secret with the writer token, without which it refuses writes.
    pub(super) token: Option<KeyRef>,
    /// The variables from the SkillPack: names, and entries of `env`.
    pub(super) env: Vec<(&'a str, Value)>,
    /// The volume of the request files. Without it, the server accepts only HTTP.
    pub(super) ipc: Option<String>,
    pub(super) security: Value,
    pub(super) sizes: Sizes,
    /// Whether a proxy refuses HTTP requests of the kubelet, so that probes only connect.
    pub(super) probes_connect: bool,
}

impl MemoryServer<'_> {
    pub(super) fn container(&self) -> Value {
        let mut container = json!({
            "name": MEMORY_SERVER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "restartPolicy": "Always",
            "env": self.variables(),
            "resources": self.sizes,
            "securityContext": self.security,
            "volumeMounts": self.mounts(),
        });
        if let Value::Object(fields) = &mut container {
            let put = health_checked_port(MEMORY_SERVER_PORT, self.probes_connect);
            fields.extend(put.map(|(key, value)| (key.to_owned(), value)));
            if !self.command.is_empty() {
                fields.insert("command".to_owned(), json!(self.command));
            }
        }
        container
    }

    fn mounts(&self) -> Vec<Value> {
        let ipc = self.ipc.as_ref().map(|volume| json!({"name": volume, "mountPath": "/ipc"}));
        std::iter::once(json!({"name": "memory-db", "mountPath": "/data"})).chain(ipc).collect()
    }

    fn variables(&self) -> Vec<Value> {
        let mut own = vec![
            ("MEMORY_DB_PATH", "/data/memory.db".to_owned()),
            ("MEMORY_PORT", MEMORY_SERVER_PORT.to_string()),
            ("MEMORY_AGENT", self.agent.to_owned()),
        ];
        if self.ipc.is_some() {
            own.push((IPC_VARIABLE, "/ipc/tools".to_owned()));
        }
        let mut more: Vec<(&str, String)> = Vec::new();
        more.extend(self.seeds.clone().map(|seeds| (SEEDS_VARIABLE, seeds)));
        // The root file system is read-only, and SQLite sorts large results on disk.
        more.push(("SQLITE_TMPDIR", "/data".to_owned()));
        let literal = |(name, value)| (name, json!({"name": name, "value": value}));
        let token = self.token.as_ref().map(|secret| {
            (PRIVATE_TOKEN, json!({"name": PRIVATE_TOKEN, "valueFrom": {"secretKeyRef": secret}}))
        });
        let own: Vec<(&str, Value)> =
            own.into_iter().map(literal).chain(token).chain(more.into_iter().map(literal)).collect();
        // A SkillPack must not set the request directory, which a harness may not use.
        let is_own = |name: &str| name == IPC_VARIABLE || own.iter().any(|(own, _)| *own == name);
        let of_pack = self.env.iter().filter(|(name, _)| !is_own(name)).map(|(_, variable)| variable.clone());
        let of_pack: Vec<Value> = of_pack.collect();
        own.into_iter().map(|(_, variable)| variable).chain(of_pack).collect()
    }
}

impl WantedBuilder<'_, '_> {
    pub(super) fn private_service(&mut self, origin: &Origin, state: &mut StateReader<'_>) {
        let url = private_url(&self.found.instance, self.pod.namespace);
        self.private_on = true;
        self.add_variable(PRIVATE_URL, url.as_str(), origin);
        self.wait(&PRIVATE_WAIT, &url, origin, state);
    }

    pub(super) fn shared_service(&mut self, ensemble: &Object, state: &mut StateReader<'_>) {
        let url = shared_url(&ensemble.name, self.pod.namespace);
        let origin = field_origin(&resource_name("Ensemble", ensemble), "spec.sharedMemory.enabled");
        self.wait(&SHARED_WAIT, &url, &origin, state);
    }
}

/// The port of a server that answers `GET /health`, and its probes: a minute to start, then readiness
/// every ten seconds and liveness every thirty. They ask for that, or only connect.
fn health_checked_port(port: u16, connect: bool) -> [(&'static str, Value); 4] {
    let http = || json!({"path": "/health", "port": port});
    let (kind, health) = if connect { ("tcpSocket", json!({"port": port})) } else { ("httpGet", http()) };
    [
        ("ports", json!([{"name": "http", "containerPort": port}])),
        ("startupProbe", json!({kind: health, "periodSeconds": 2, "failureThreshold": 30})),
        ("readinessProbe", json!({kind: health, "periodSeconds": 10})),
        ("livenessProbe", json!({kind: health, "initialDelaySeconds": 5, "periodSeconds": 30})),
    ]
}

const LEGACY_VOLUME: &str = "memory";
const LEGACY_PATH: &str = "/memory";

impl WantedBuilder<'_, '_> {
    pub(super) fn legacy(&mut self) {
        let Some(origin) = self.legacy_origin() else { return };
        let config_map = format!("{}-memory", self.found.instance);
        if let Some(conflict) = self.volume_conflict(&config_map) {
            self.warnings.push(conflict);
            return;
        }
        self.add_variable(LEGACY, "true", &origin);
        if self.pod.around.parts.volume(LEGACY_VOLUME).is_none() {
            let tree = json!({"name": LEGACY_VOLUME, "configMap": {"name": config_map, "optional": true}});
            self.parts.volumes.push(WantedPart {
                name: LEGACY_VOLUME.to_owned(),
                tree,
                origin: origin.clone(),
            });
        }
        if self.pod.mounts.at(LEGACY_PATH).is_none() {
            let tree = json!({"name": LEGACY_VOLUME, "mountPath": LEGACY_PATH, "readOnly": true});
            self.mounts.push(WantedPart { name: LEGACY_PATH.to_owned(), tree, origin });
        }
    }

    /// The object that turns the ConfigMap on: the Agent, or the Ensemble that will make it.
    fn legacy_origin(&self) -> Option<Origin> {
        let made_by = self.found.ensemble.filter(|_| self.found.made_from.is_some());
        let (kind, object, field) = match (self.found.agent, made_by) {
            (Some(agent), _) => ("Agent", agent, "spec.memory.enabled"),
            (None, Some(ensemble)) => ("Ensemble", ensemble, "spec.agentConfigs"),
            (None, None) => return None,
        };
        self.found.legacy.then(|| field_origin(&resource_name(kind, object), field))
    }

    /// The finding about another volume or mount in place of the ConfigMap.
    fn volume_conflict(&self, config_map: &str) -> Option<Finding> {
        if let Some((index, volume)) = self.pod.around.parts.volume(LEGACY_VOLUME) {
            let config_map_name = volume.config_map.as_ref().and_then(|map| map.name.as_deref());
            if config_map_name != Some(config_map) {
                let message = fit_names([config_map], |[name]| {
                    format!(
                        "volume \"{LEGACY_VOLUME}\" should be ConfigMap {}; {LEGACY} is not set",
                        quoted(name)
                    )
                });
                let at = Pointer::new("/spec/volumes").index(index);
                return Some(Finding::warn(&POD_VOLUME_CONFLICT, at, message));
            }
        }
        let (index, mount) = self.pod.mounts.at(LEGACY_PATH)?;
        let name = mount.name.as_deref().unwrap_or_default();
        let message = fit_names([name, config_map], |[name, config_map]| {
            let (name, config_map) = (quoted(name), quoted(config_map));
            format!("{LEGACY_PATH} is volume {name} instead of ConfigMap {config_map}; {LEGACY} is not set")
        });
        let list = mounts_pointer(self.pod.index);
        (name != LEGACY_VOLUME).then(|| Finding::warn(&POD_VOLUME_CONFLICT, list.index(index), message))
    }
}

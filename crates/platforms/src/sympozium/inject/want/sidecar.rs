//! Private memory in a native sidecar: an ordinary container would keep the Job's pod alive.
//!
//! A SkillPack can set the sidecar's image, program and variables. Credentials in it are left out: one pack serves
//! many namespaces, and every user who can read pods there could read them.
//!
//! A harness is an agent container with a third-party image. Upstream gives it three directories of the volume `ipc`
//! and not the whole volume, since a file elsewhere in it triggers an action of the control plane. Apart from that it
//! looks like any other agent, so one sign of a harness is enough, in the pod or in the objects that it belongs to.

use crate::common::{POD_ARCH, POD_VOLUME_READ_ONLY};
use crate::inject::env::escape_references;
use crate::inject::parts::{WantedPart, init_containers_pointer, mounts_pointer};
use crate::inject::viable::sizes::AddedContainer;
use crate::sympozium::inject::{instance_label, origin as object_origin};
use crate::sympozium::prelude::*;
use crate::sympozium::variables::{PRIVATE_TOKEN, PRIVATE_URL};
use memgate_model::platform_settings::{Sizes, Sympozium};
use memgate_model::pod::Mount;
use memgate_primitives::credential::{is_credential_name, value_spans};
use memgate_primitives::plain_text::shown_key;
use serde_json::Value;

use super::{PodContext, WantedBuilder, part};

/// The volume of the database, and its mount path.
pub(super) const DATABASE: &str = "memory-db";
pub(super) const DATABASE_PATH: &str = "/data";
/// What follows the name of an Agent in the usual name of its claim.
pub(super) const USUAL_CLAIM: &str = "-memory-db";
/// The volume of request files, and its mount path.
const IPC: &str = "ipc";
pub(super) const IPC_PATH: &str = "/ipc";
/// The names of this volume in pods that memgate adds it to: the second one where the first cannot be written.
pub(super) const IPC_VOLUMES: [&str; 2] = [IPC, "memory-ipc"];
/// The variable with the directory of request files.
const IPC_VARIABLE: &str = "MEMORY_IPC_DIR";

impl<'s> WantedBuilder<'_, 's> {
    pub(super) fn private_sidecar_url(&mut self, origin: &Origin) {
        self.private_on = true;
        self.add_variable(PRIVATE_URL, format!("http://127.0.0.1:{MEMORY_SERVER_PORT}"), origin);
    }

    /// Whether the pod uses its node's network, which is reported: there the server is open to every client of the node,
    /// and two servers could not share the port.
    pub(super) fn is_on_host_network(&mut self, is_there: bool) -> bool {
        let is_on_node = self.pod.around.parts.host_network;
        if is_on_node {
            let message = if is_there {
                "port 8080 of the memory sidecar is the node's: all its clients reach it"
            } else {
                "no memory sidecar is added: its port 8080 would be the node's"
            };
            self.unmet.push(Finding::warn(&HOST_NETWORK_SIDECAR, "/spec/hostNetwork", message));
        }
        is_on_node
    }

    pub(super) fn private_sidecar(
        &mut self,
        pack: Option<&'s Object>,
        origin: &Origin,
        state: &mut StateReader<'s>,
    ) {
        if self.is_on_host_network(false) || self.gives_up_on_apiserver(state) || self.port_is_taken() {
            return;
        }
        let pack = pack.filter(|pack| sidecar_image(pack.tree()).is_some());
        let setting = &self.settings.resources.server;
        let of_pack = pack.map(|pack| sidecar_resources(pack.tree())).unwrap_or_default();
        let default = [["50m", "64Mi"], ["200m", "128Mi"]];
        let added = AddedContainer { name: MEMORY_SERVER, default, setting, pack: of_pack };
        let Some(sizes) = self.sizes(&added, state) else { return };
        if let Err(finding) = self.database_volume(origin, state) {
            self.unmet.push(*finding);
            return;
        }
        let ipc = self.ipc_volume(origin);
        let server = self.server((pack, sizes), ipc, origin, state);
        self.parts.init_containers.push((self.pod.around.places().front, server));
        if self.pod.is_ours(MEMORY_SERVER) {
            self.put_back(init_containers_pointer(), &format!("\"{MEMORY_SERVER}\" is lost"));
        }
        let group = self.pod.around.fs_group();
        self.parts.fs_group = group.map(|group| (group, "the memory sidecar writes to its volume"));
        self.private_sidecar_url(origin);
    }

    /// Reports nodes for which upstream may not build its memory server. Of any other image its author knows, and of one
    /// that the SkillPack names.
    pub(super) fn check_architecture(&mut self, image: &str, is_packs: impl FnOnce() -> bool) {
        if image == Sympozium::default().memory_image
            && let Some((at, architecture)) = self.pod.around.other_architecture()
            && !is_packs()
        {
            let text = "image \"{bare}\" may not exist for {value}; set sympozium.memoryImage";
            self.warnings.push(warning(&POD_ARCH, at, text, [image, &architecture]));
        }
    }

    /// Wants the volume of the database, unless the pod has it. An error if the pod has another one of this name, or if
    /// it cannot be written.
    pub(super) fn database_volume(
        &mut self,
        origin: &Origin,
        state: &mut StateReader<'s>,
    ) -> Result<(), Box<Finding>> {
        let (name, claim) = self.find_claim(state);
        let existing = self.pod.around.parts.volume(DATABASE);
        if let Some((index, volume)) = existing
            && volume.claim.as_ref().and_then(|claim| claim.name.as_deref()) != Some(&name)
        {
            return Err(Box::new(other_volume(index, &name, "no memory sidecar is added")));
        }
        if let Some(finding) = self.read_only_database(existing.map(|(index, _)| index), claim) {
            return Err(Box::new(finding));
        }
        if existing.is_none() {
            let tree = json!({"name": DATABASE, "persistentVolumeClaim": {"claimName": name}});
            self.parts.volumes.push(part(DATABASE, tree, origin));
        }
        if claim.is_none() {
            let values = [&*name, self.pod.namespace];
            self.warnings.push(warning(&CLAIM_MISSING, instance_label(), "PVC {} not found in {}", values));
        }
        Ok(())
    }

    /// The finding about a volume or claim of the database that cannot be written.
    pub(super) fn read_only_database(&self, index: Option<usize>, claim: Option<&Object>) -> Option<Finding> {
        let modes = claim.map_or(&[][..], |claim| claim.tree().list_at(&["spec", "accessModes"]));
        let is_for_readers =
            !modes.is_empty() && modes.iter().all(|mode| mode.text() == Some("ReadOnlyMany"));
        let of_volume = index.and_then(|index| self.pod.around.parts.read_only(index));
        let what = of_volume.or_else(|| is_for_readers.then_some("a claim for readers only"))?;
        let at = Pointer::new("/spec/volumes");
        let at = index.map_or_else(|| at.clone(), |index| at.index(index));
        let text = "\"memory-db\" is {bare} and cannot be written: the memory server would fail";
        let help = "use a PersistentVolumeClaim with ReadWriteOnce, and without readOnly";
        Some(warning(&POD_VOLUME_READ_ONLY, at, text, [what]).help(help))
    }

    /// The claim of the database, and its name. Upstream's documentation uses two names for it.
    pub(super) fn find_claim(&self, state: &mut StateReader<'s>) -> (String, Option<&'s Object>) {
        let names = [USUAL_CLAIM, "-memory"].map(|suffix| format!("{}{suffix}", self.found.instance));
        let mut find = |name: &String| state.get(&CLAIM, self.pod.namespace, name).found();
        let found = names.iter().find_map(|name| Some((name.clone(), Some(find(name)?))));
        let [usual, _] = names;
        found.unwrap_or((usual, None))
    }

    /// The name of the volume of request files, which the agent mounts. `None` for a harness, whose access to the
    /// volume stays unchanged, and for an agent that cannot write to it.
    pub(super) fn ipc_volume(&mut self, origin: &Origin) -> Option<String> {
        if self.is_harness() {
            let message = "the agent runs a harness, which reaches its memory over HTTP only";
            self.warnings.push(Finding::warn(&HARNESS_NO_IPC, mounts_pointer(self.pod.index), message));
            return None;
        }
        if let Some(finding) = self.agents_read_only_ipc() {
            self.warnings.push(finding);
            return None;
        }
        let parts = self.pod.around.parts;
        if let Some((_, mount)) = self.pod.mounts.at(IPC_PATH) {
            let name = mount.name.as_deref()?.to_owned();
            if parts.volume(&name).is_none() && IPC_VOLUMES.contains(&&*name) {
                self.add_ipc_volume(&name, origin);
            }
            return Some(name);
        }
        for name in IPC_VOLUMES {
            match parts.volume(name).map(|(index, _)| (index, parts.read_only(index))) {
                None => self.add_ipc_volume(name, origin),
                Some((_, None)) => {}
                Some((index, Some(what))) => {
                    let text = "\"{bare}\" is {bare} and cannot be written; it is not used for /ipc";
                    let at = Pointer::new("/spec/volumes").index(index);
                    self.warnings.push(warning(&POD_VOLUME_READ_ONLY, at, text, [name, what]));
                    continue;
                }
            }
            self.add_ipc_mount(name, origin);
            return Some(name.to_owned());
        }
        None
    }

    /// The finding about request files that the agent cannot write.
    pub(super) fn agents_read_only_ipc(&self) -> Option<Finding> {
        let mount = self.pod.mounts.at(IPC_PATH)?;
        self.pod.read_only_ipc("the agent", &mounts_pointer(self.pod.index), mount)
    }

    pub(super) fn add_ipc_volume(&mut self, name: &str, origin: &Origin) {
        let tree = json!({"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}});
        self.parts.volumes.push(part(name, tree, origin));
    }

    pub(super) fn add_ipc_mount(&mut self, name: &str, origin: &Origin) {
        self.mounts.push(part(IPC_PATH, json!({"name": name, "mountPath": IPC_PATH}), origin));
    }

    /// The initial memories of the agent, as the value of a variable.
    fn seeds(&mut self) -> Option<String> {
        /// Linux does not start a program with a variable of more than 128 KiB, name included.
        /// Source: Linux, `MAX_ARG_STRLEN`.
        const MAX_BYTES: usize = 100 << 10;
        let ensemble = self.found.ensemble?;
        let config = find_config(ensemble.tree(), self.found.config?);
        let config = config.filter(|config| !config.memory_disabled())?;
        let seeds: Vec<&str> = config.seeds().collect();
        if seeds.is_empty() {
            return None;
        }
        let value = escape_references(&json!(seeds).to_string());
        if value.len() <= MAX_BYTES {
            return Some(value);
        }
        let text = "the seeds of {} are more than 100 KiB: the memory starts without them";
        let finding = warning(&SEEDS_TOO_LARGE, instance_label(), text, [&self.found.instance]);
        let configs = Pointer::new("/spec").key(configs_field(ensemble.tree())).index(config.index);
        self.warnings.push(finding.elsewhere(ensemble, configs.key("memory").key("seeds"), "these seeds"));
        None
    }

    /// The container of the server: what upstream and the seed describe, and of the pack its image, command and variables.
    fn server(
        &mut self,
        (pack, sizes): (Option<&'s Object>, Sizes),
        ipc: Option<String>,
        origin: &Origin,
        state: &StateReader<'s>,
    ) -> WantedPart {
        let literal = |name: &str, value: &str| json!({"name": name, "value": value});
        let seeds = self.seeds();
        let of_pack = pack.and_then(|pack| sidecar_image(pack.tree()));
        let image = of_pack.unwrap_or(&self.settings.memory_image);
        if of_pack.is_none() {
            self.check_architecture(image, || false);
        }
        let command = pack.map(|pack| self.pack_command(pack)).unwrap_or_default();
        let pack_env = pack.map(|pack| self.pack_env(pack)).unwrap_or_default();
        let token = self.sidecar_reference(&pack_env, state);
        let is_literal =
            |(name, variable): &(&str, Value)| *name == PRIVATE_TOKEN && variable["value"].is_string();
        if let Some(pack) = pack.filter(|_| token.is_some() && pack_env.iter().any(is_literal)) {
            self.withhold(pack, "env", "sets MEMORY_WRITER_TOKEN without a secretKeyRef: it is not used", "");
        }
        (self.has_sidecar, self.sidecar_token) = (true, token.clone());
        let mut env = vec![
            literal("MEMORY_DB_PATH", "/data/memory.db"),
            literal("MEMORY_PORT", &MEMORY_SERVER_PORT.to_string()),
            literal("MEMORY_AGENT", &self.found.instance),
        ];
        env.extend(ipc.as_ref().map(|_| literal(IPC_VARIABLE, "/ipc/tools")));
        env.extend(token.map(|key| json!({"name": PRIVATE_TOKEN, "valueFrom": {"secretKeyRef": key}})));
        env.extend(seeds.map(|seeds| literal("MEMORY_SEEDS", &seeds)));
        // The root file system is read-only, and SQLite sorts large results on disk.
        env.push(literal("SQLITE_TMPDIR", DATABASE_PATH));
        // A SkillPack must not set the request directory, which a harness may not use.
        let is_own = |name: &str| name == IPC_VARIABLE || env.iter().any(|own| own["name"] == name);
        let of_pack = pack_env.into_iter().filter(|(name, _)| !is_own(name)).map(|(_, variable)| variable);
        let of_pack: Vec<Value> = of_pack.collect();
        env.extend(of_pack);
        let mut mounts = vec![json!({"name": DATABASE, "mountPath": DATABASE_PATH})];
        mounts.extend(ipc.map(|volume| json!({"name": volume, "mountPath": IPC_PATH})));
        // Beside some proxies, probes only connect: the proxy refuses HTTP requests of the kubelet.
        let (port, health) =
            (json!({"port": MEMORY_SERVER_PORT}), json!({"path": "/health", "port": MEMORY_SERVER_PORT}));
        let connects = self.pod.around.refuses_http_probes(MEMORY_SERVER_PORT);
        let (kind, health) = if connects { ("tcpSocket", port) } else { ("httpGet", health) };
        let mut tree = json!({
            "name": MEMORY_SERVER,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "restartPolicy": "Always",
            "ports": [{"name": "http", "containerPort": MEMORY_SERVER_PORT}],
            "env": env,
            "resources": sizes,
            "securityContext": self.pod.around.security_context(self.pod.container),
            "volumeMounts": mounts,
            "startupProbe": {kind: health, "periodSeconds": 2, "failureThreshold": 30},
            "readinessProbe": {kind: health, "periodSeconds": 10},
            "livenessProbe": {kind: health, "initialDelaySeconds": 5, "periodSeconds": 30},
        });
        if let Value::Object(fields) = &mut tree {
            fields.extend((!command.is_empty()).then(|| ("command".to_owned(), json!(command))));
        }
        let of_pack = pack.map(|pack| object_origin(pack, "spec.sidecar.image"));
        part(MEMORY_SERVER, tree, of_pack.as_ref().unwrap_or(origin))
    }

    /// The variables of the sidecar, without those whose literal value is a credential.
    fn pack_env(&mut self, pack: &'s Object) -> Vec<(&'s str, Value)> {
        let (withheld, env): (Vec<_>, Vec<_>) = sidecar_env(pack.tree()).partition(|(name, variable)| {
            variable["value"].as_str().is_some_and(|value| is_credential(name, value))
        });
        for (name, _) in withheld {
            self.withhold(pack, "env", "holds a literal credential: {bare} is not set", &shown_key(name));
        }
        env
    }

    /// The command of the sidecar; empty if it contains a credential.
    fn pack_command(&mut self, pack: &'s Object) -> Vec<&'s str> {
        let command = sidecar_command(pack.tree());
        if value_spans(&command.join(" ")).is_empty() {
            return command;
        }
        self.withhold(pack, "command", "holds a literal credential: its command is left out", "");
        Vec::new()
    }

    fn withhold(&mut self, pack: &'s Object, field: &str, why: &str, variable: &str) {
        let text = ["SkillPack \"{name}/{name}\" ", why].concat();
        let values = [&*pack.namespace, &*pack.name, variable];
        let finding = warning(&POD_PACK_CREDENTIAL, instance_label(), &text, values);
        let at = Pointer::new("/spec/sidecar").key(field);
        self.warnings.push(finding.elsewhere(pack, at, "not copied into the pod"));
    }
}

/// The variable that upstream sets in a harness.
const CONTRACT: &str = "SYMPOZIUM_HARNESS_CONTRACT_VERSION";
/// The volume in which a harness keeps its files.
const HOME: &str = "harness-home";

/// The finding about a volume of the database, of this index, that is not the claim of the agent.
pub(super) fn other_volume(index: usize, claim: &str, so: &str) -> Finding {
    let at = Pointer::new("/spec/volumes").index(index);
    warning(&POD_VOLUME_CONFLICT, at, "volume \"memory-db\" should be PVC {}; {bare}", [claim, so])
}

impl PodContext<'_> {
    /// The finding about a mount of the request files, in this list of its `owner`, that cannot be written.
    pub(super) fn read_only_ipc(
        &self,
        owner: &str,
        list: &Pointer,
        (index, mount): (usize, &Mount<'_>),
    ) -> Option<Finding> {
        let (at, what) = if mount.read_only == Some(true) {
            (list.index(index).key("readOnly"), "mounted read-only")
        } else {
            let parts = self.around.parts;
            let (index, _) = parts.volume(mount.name.as_deref()?)?;
            (Pointer::new("/spec/volumes").index(index), parts.read_only(index)?)
        };
        let message = filled("/ipc of {bare} is {bare}: its memory is there over HTTP only", [owner, what]);
        Some(Finding::warn(&POD_VOLUME_READ_ONLY, at, message))
    }

    /// Whether the agent's container runs a harness.
    pub(super) fn runs_harness(&self) -> bool {
        // The volume of request files is recognised by its name, or by a mount of the agent at /ipc.
        let is_at_ipc = |name: &str| {
            let mut at_ipc = self.mounts.iter().filter(|mount| mount.clean_path() == IPC_PATH);
            at_ipc.any(|mount| mount.name.as_deref() == Some(name))
        };
        let is_sign = |mount: &Mount<'_>| {
            let (path, name) = (mount.clean_path(), mount.name.as_deref());
            let is_below_ipc = path.strip_prefix(IPC_PATH).is_some_and(|rest| rest.starts_with('/'));
            let is_ipc = || name.is_some_and(|name| name == IPC || is_at_ipc(name));
            is_below_ipc || name == Some(HOME) || mount.is_partial() && is_ipc()
        };
        self.container.variable(CONTRACT).is_some()
            || self.around.parts.volume(HOME).is_some()
            || self.mounts.iter().any(is_sign)
    }
}

/// Whether the literal value of a variable is a credential. A value that the kubelet fills in is not one yet.
fn is_credential(name: &str, value: &str) -> bool {
    let named = is_credential_name(name) && !value.is_empty() && !value.starts_with("$(");
    named || !value_spans(value).is_empty()
}

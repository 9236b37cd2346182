//! Private memory in a native sidecar: an ordinary container would keep the Job's pod alive.
//!
//! A SkillPack can set the sidecar's image, program and variables. Credentials in it are left out: one pack serves
//! many namespaces, and every user who can read pods there could read them.
//!
//! A harness is an agent container with a third-party image. Upstream gives it three directories of the volume `ipc`
//! and not the whole volume, since a file elsewhere in it triggers an action of the control plane. Apart from that it
//! looks like any other agent, so one sign of a harness is enough, in the pod or in the objects that it belongs to.

use std::collections::BTreeSet;

use crate::common::{POD_ARCH, POD_VOLUME_READ_ONLY};
use crate::inject::parts::{WantedPart, init_containers_pointer, mounts_pointer};
use crate::inject::viable::sizes::AddedContainer;
use crate::inject::{field_origin, resource_name};
use crate::message::{fit_names, fit_texts};
use crate::prelude::*;
use crate::sympozium::api::agent::{sidecar_command, sidecar_env, sidecar_image, sidecar_resources};
use crate::sympozium::api::ensemble::{configs_field, find_config};
use crate::sympozium::api::{CLAIM, MEMORY_SERVER, MEMORY_SERVER_PORT};
use crate::sympozium::codes::{
    CLAIM_MISSING, HARNESS_NO_IPC, HOST_NETWORK_SIDECAR, POD_PACK_CREDENTIAL, POD_VOLUME_CONFLICT,
    SEEDS_TOO_LARGE,
};
use crate::sympozium::inject::instance_label;
use crate::sympozium::variables::{PRIVATE_TOKEN, PRIVATE_URL};
use memgate_model::edit::Origin;
use memgate_model::platform_settings::{Sizes, Sympozium};
use memgate_model::pod::Mount;
use memgate_primitives::credential::{is_credential_name, value_spans};
use memgate_primitives::plain_text::shown_key;
use serde_json::{Value, json};

use super::containers::MemoryServer;
use super::{PodContext, WantedBuilder};

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

/// Linux does not start a program with a variable of more than 128 KiB, name included.
/// Source: Linux, `MAX_ARG_STRLEN`.
const MAX_SEEDS_BYTES: usize = 100 << 10;

impl<'s> WantedBuilder<'_, 's> {
    pub(super) fn private_sidecar_url(&mut self, origin: &Origin) {
        self.private_on = true;
        self.add_variable(PRIVATE_URL, format!("http://127.0.0.1:{MEMORY_SERVER_PORT}"), origin);
    }

    /// Whether the pod uses its node's network, which is reported: there the server is open to every client of the node,
    /// and two servers could not share the port.
    pub(super) fn is_on_host_network(&mut self, is_there: bool) -> bool {
        if self.pod.around.parts.host_network {
            let message = if is_there {
                format!(
                    "port {MEMORY_SERVER_PORT} of the memory sidecar is the node's: all its clients reach it"
                )
            } else {
                format!("no memory sidecar is added: its port {MEMORY_SERVER_PORT} would be the node's")
            };
            let at = Pointer::new("/spec/hostNetwork");
            self.unmet.push(Finding::warn(&HOST_NETWORK_SIDECAR, at, message));
        }
        self.pod.around.parts.host_network
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
        let Some(sizes) = self.server_sizes(pack, state) else { return };
        if let Err(finding) = self.database_volume(origin, state) {
            self.unmet.push(*finding);
            return;
        }
        let ipc = self.ipc_volume(origin);
        let server = self.server_part((pack, sizes), ipc, origin, state);
        self.parts.init_containers.push((self.pod.around.places().front, server));
        if self.pod.init_containers_of_ours().iter().any(|name| name == MEMORY_SERVER) {
            self.put_back(init_containers_pointer(), &format!("\"{MEMORY_SERVER}\" is lost"));
        }
        let group = self.pod.around.fs_group();
        self.parts.fs_group = group.map(|group| (group, "the memory sidecar writes to its volume"));
        self.private_sidecar_url(origin);
    }

    /// Reports nodes for which upstream may not build its memory server. Of any other image its author knows, and of one
    /// that the SkillPack names.
    pub(super) fn check_architecture(&mut self, image: &str, is_packs: impl FnOnce() -> bool) {
        let is_upstreams = image == Sympozium::default().memory_image;
        let other = || self.pod.around.other_architecture();
        if let Some((at, architecture)) = is_upstreams.then(other).flatten()
            && !is_packs()
        {
            let message = fit_texts([&architecture], |[architecture]| {
                format!("image \"{image}\" may not exist for {architecture}; set sympozium.memoryImage")
            });
            self.warnings.push(Finding::warn(&POD_ARCH, at, message));
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
        if let Some((index, volume)) = existing {
            let claim_name = volume.claim.as_ref().and_then(|claim| claim.name.as_deref());
            if claim_name != Some(name.as_str()) {
                return Err(Box::new(other_volume(index, &name, "no memory sidecar is added")));
            }
        }
        if let Some(finding) = self.read_only_database(existing.map(|(index, _)| index), claim) {
            return Err(Box::new(finding));
        }
        if existing.is_none() {
            let tree = json!({"name": DATABASE, "persistentVolumeClaim": {"claimName": name}});
            self.parts.volumes.push(WantedPart { name: DATABASE.to_owned(), tree, origin: origin.clone() });
        }
        if claim.is_none() {
            let message = fit_names([&name, self.pod.namespace], |[claim, namespace]| {
                format!("PVC {} not found in {}", quoted(claim), quoted(namespace))
            });
            self.warnings.push(Finding::warn(&CLAIM_MISSING, instance_label(), message));
        }
        Ok(())
    }

    /// The finding about a volume or claim of the database that cannot be written.
    pub(super) fn read_only_database(&self, index: Option<usize>, claim: Option<&Object>) -> Option<Finding> {
        let modes = claim.map_or(&[][..], |claim| claim.tree().list_at(&["spec", "accessModes"]));
        let is_for_readers =
            !modes.is_empty() && modes.iter().all(|mode| mode.text() == Some("ReadOnlyMany"));
        let at_fault = match index.and_then(|index| self.pod.around.parts.read_only(index)) {
            Some(what) => what,
            None if is_for_readers => "a claim for readers only",
            None => return None,
        };
        let at = Pointer::new("/spec/volumes");
        let at = index.map_or_else(|| at.clone(), |index| at.index(index));
        let message =
            format!("\"{DATABASE}\" is {at_fault} and cannot be written: the memory server would fail");
        let finding = Finding::warn(&POD_VOLUME_READ_ONLY, at, message);
        Some(finding.help("use a PersistentVolumeClaim with ReadWriteOnce, and without readOnly"))
    }

    /// The claim of the database, and its name. Upstream's documentation uses two names for it.
    pub(super) fn find_claim(&self, state: &mut StateReader<'s>) -> (String, Option<&'s Object>) {
        let mut find = |suffix| {
            let name = format!("{}{suffix}", self.found.instance);
            match state.get(&CLAIM, self.pod.namespace, &name) {
                Lookup::Found(claim) => Some((name, Some(claim))),
                Lookup::Absent | Lookup::Unknown(()) => None,
            }
        };
        let found = find(USUAL_CLAIM).or_else(|| find("-memory"));
        found.unwrap_or_else(|| (format!("{}{USUAL_CLAIM}", self.found.instance), None))
    }

    /// The sizes of the memory server; `None` if none fit, which is reported.
    fn server_sizes(&mut self, pack: Option<&Object>, state: &mut StateReader<'s>) -> Option<Sizes> {
        let setting = &self.settings.resources.server;
        let pack = pack.map(|pack| sidecar_resources(pack.tree())).unwrap_or_default();
        let default = [["50m", "64Mi"], ["200m", "128Mi"]];
        self.sizes(&AddedContainer { name: MEMORY_SERVER, default, setting, pack }, state)
    }

    /// The name of the volume of request files, which the agent mounts. `None` for a harness, whose access to the
    /// volume stays unchanged, and for an agent that cannot write to it.
    pub(super) fn ipc_volume(&mut self, origin: &Origin) -> Option<String> {
        if self.is_harness() {
            let at = mounts_pointer(self.pod.index);
            let message = "the agent runs a harness, which reaches its memory over HTTP only";
            self.warnings.push(Finding::warn(&HARNESS_NO_IPC, at, message));
            return None;
        }
        if let Some(finding) = self.agents_read_only_ipc() {
            self.warnings.push(finding);
            return None;
        }
        let (parts, volumes) = (self.pod.around.parts, Pointer::new("/spec/volumes"));
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
                    let message =
                        format!("\"{name}\" is {what} and cannot be written; it is not used for {IPC_PATH}");
                    self.warnings.push(Finding::warn(&POD_VOLUME_READ_ONLY, volumes.index(index), message));
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
        self.parts.volumes.push(WantedPart { name: name.to_owned(), tree, origin: origin.clone() });
    }

    pub(super) fn add_ipc_mount(&mut self, name: &str, origin: &Origin) {
        let tree = json!({"name": name, "mountPath": IPC_PATH});
        self.mounts.push(WantedPart { name: IPC_PATH.to_owned(), tree, origin: origin.clone() });
    }

    /// The initial memories of the agent, as the value of a variable. Every `$` is doubled, since the kubelet expands
    /// `$(NAME)` and `$$`.
    fn seeds(&mut self) -> Option<String> {
        let ensemble = self.found.ensemble?;
        let config = find_config(ensemble.tree(), self.found.config?);
        let config = config.filter(|config| !config.memory_disabled())?;
        let seeds: Vec<&str> = config.seeds().collect();
        if seeds.is_empty() {
            return None;
        }
        let value = json!(seeds).to_string().replace('$', "$$");
        if value.len() <= MAX_SEEDS_BYTES {
            return Some(value);
        }
        let message = fit_names([&self.found.instance], |[agent]| {
            format!("the seeds of {} are more than 100 KiB: the memory starts without them", quoted(agent))
        });
        let configs = Pointer::new("/spec").key(configs_field(ensemble.tree())).index(config.index);
        let finding = Finding::warn(&SEEDS_TOO_LARGE, instance_label(), message);
        self.warnings.push(finding.elsewhere(ensemble, configs.key("memory").key("seeds"), "these seeds"));
        None
    }

    fn server_part(
        &mut self,
        (pack, sizes): (Option<&'s Object>, Sizes),
        ipc: Option<String>,
        origin: &Origin,
        state: &StateReader<'s>,
    ) -> WantedPart {
        let seeds = self.seeds();
        let image = pack.and_then(|pack| sidecar_image(pack.tree()));
        if image.is_none() {
            let image = self.settings.memory_image.clone();
            self.check_architecture(&image, || false);
        }
        let command = pack.map(|pack| self.pack_command(pack)).unwrap_or_default();
        let env = pack.map(|pack| self.pack_env(pack)).unwrap_or_default();
        let token = self.sidecar_reference(&env, state);
        let is_literal =
            |(name, variable): &(&str, Value)| *name == PRIVATE_TOKEN && variable["value"].is_string();
        if let Some(pack) = pack.filter(|_| token.is_some() && env.iter().any(is_literal)) {
            let why = |_: &str| format!("sets {PRIVATE_TOKEN} without a secretKeyRef: it is not used");
            self.withhold(pack, "env", "", why);
        }
        (self.has_sidecar, self.sidecar_token) = (true, token.clone());
        let server = MemoryServer {
            agent: &self.found.instance,
            image: image.unwrap_or(&self.settings.memory_image),
            command,
            seeds,
            token,
            env,
            ipc,
            security: self.pod.around.security_context(self.pod.container),
            sizes,
            probes_connect: self.pod.around.refuses_http_probes(MEMORY_SERVER_PORT),
        };
        let from_pack =
            pack.map(|pack| field_origin(&resource_name("SkillPack", pack), "spec.sidecar.image"));
        WantedPart {
            name: MEMORY_SERVER.to_owned(),
            tree: server.container(),
            origin: from_pack.unwrap_or_else(|| origin.clone()),
        }
    }

    /// The variables of the sidecar, without those whose literal value is a credential.
    pub(super) fn pack_env(&mut self, pack: &'s Object) -> Vec<(&'s str, Value)> {
        let (withheld, env): (Vec<_>, Vec<_>) = sidecar_env(pack.tree()).partition(|(name, variable)| {
            variable["value"].as_str().is_some_and(|value| is_credential(name, value))
        });
        for (name, _) in withheld {
            let why = |name: &str| format!("holds a literal credential: {name} is not set");
            self.withhold(pack, "env", name, why);
        }
        env
    }

    /// The command of the sidecar; empty if it contains a credential.
    pub(super) fn pack_command(&mut self, pack: &'s Object) -> Vec<&'s str> {
        let command = sidecar_command(pack.tree());
        if value_spans(&command.join(" ")).is_empty() {
            return command;
        }
        let why = |_: &str| "holds a literal credential: its command is left out".to_owned();
        self.withhold(pack, "command", "", why);
        Vec::new()
    }

    fn withhold(&mut self, pack: &'s Object, field: &str, variable: &str, why: impl Fn(&str) -> String) {
        let names = [&*pack.namespace, &*pack.name];
        let variable = shown_key(variable);
        let message = fit_names(names, |[namespace, pack]| {
            format!("SkillPack {} {}", quoted(&format!("{namespace}/{pack}")), why(&variable))
        });
        let at = Pointer::new("/spec/sidecar").key(field);
        let finding = Finding::warn(&POD_PACK_CREDENTIAL, instance_label(), message);
        self.warnings.push(finding.elsewhere(pack, at, "not copied into the pod"));
    }
}

/// The variable that upstream sets in a harness.
const CONTRACT: &str = "SYMPOZIUM_HARNESS_CONTRACT_VERSION";
/// The volume in which a harness keeps its files.
const HOME: &str = "harness-home";

/// The finding about a volume of the database, of this index, that is not the claim of the agent.
pub(super) fn other_volume(index: usize, claim: &str, so: &str) -> Finding {
    let message =
        fit_names([claim], |[claim]| format!("volume \"{DATABASE}\" should be PVC {}; {so}", quoted(claim)));
    Finding::warn(&POD_VOLUME_CONFLICT, Pointer::new("/spec/volumes").index(index), message)
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
        let message = format!("{IPC_PATH} of {owner} is {what}: its memory is there over HTTP only");
        Some(Finding::warn(&POD_VOLUME_READ_ONLY, at, message))
    }

    /// Whether the agent's container runs a harness.
    pub(super) fn runs_harness(&self) -> bool {
        if self.container.variable(CONTRACT).is_some() || self.around.parts.volume(HOME).is_some() {
            return true;
        }
        // The volume of request files is recognised by its name, or by the agent's mount at /ipc.
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

/// Whether the literal value of a variable is a credential. A value that the kubelet fills in is not one yet.
fn is_credential(name: &str, value: &str) -> bool {
    let named = is_credential_name(name) && !value.is_empty() && !value.starts_with("$(");
    named || !value_spans(value).is_empty()
}

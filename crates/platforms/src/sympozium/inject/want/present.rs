//! A memory server that is in the pod already. What another webhook took away from one that memgate added is put back,
//! as memgate would add it today.

use std::mem::take;

use crate::common::{POD_PART_LOST, POD_SIDECAR_BLOCKS, POD_VOLUME_READ_ONLY, PUT_BACK};
use crate::inject::parts::{WantedPart, add_mounts, init_containers_pointer};
use crate::inject::viable::ports::Listener;
use crate::inject::viable::present::PresentServer;
use crate::sympozium::inject::{database, mount_of};
use crate::sympozium::lookup;
use crate::sympozium::prelude::*;
use crate::sympozium::variables::PRIVATE_URL;
use memgate_model::edit::Value;
use memgate_model::platform_settings::MIN_SIDECAR_VERSION;
use memgate_model::pod::read;

use super::sidecar::{DATABASE, DATABASE_PATH, IPC_PATH, IPC_VOLUMES, USUAL_CLAIM, other_volume};
use super::{PACK_SIDECAR, PodContext, WantedBuilder, is_local, part};

/// The variable with the port of a server.
const PORT: &str = "MEMORY_PORT";

/// Where a part that is put back comes from.
const DROPPED: &str = "put back, since another webhook dropped it";

/// The memory servers that the pod has, at most one of each name, the one that memgate added first.
pub(super) fn servers<'p>(context: &PodContext<'p>, work: &Budget<'_>) -> Vec<PresentServer<'p>> {
    let mut servers = context.around.servers([MEMORY_SERVER, PACK_SIDECAR], work);
    for server in &mut servers {
        server.is_ours = context.is_ours(server.name());
    }
    servers.sort_by_key(|server| !server.is_ours);
    servers
}

impl<'s> WantedBuilder<'_, 's> {
    /// Adds the URL of a sidecar that is already in the pod, and puts back what it lost.
    pub(super) fn private_sidecar_present(&mut self, origin: &Origin, state: &mut StateReader<'s>) {
        (self.has_sidecar, self.sidecar_token) = (true, self.present_reference(state));
        let server = self.pod.around.parts.container(MEMORY_SERVER);
        let image = server.and_then(|server| read::<Text<'_>>(server.image)).unwrap_or_default();
        let namespace = self.pod.namespace;
        self.check_architecture(&image, || {
            let pack = lookup::memory_pack(namespace, state).found();
            pack.is_some_and(|pack| sidecar_image(pack.tree()) == Some(&image))
        });
        let servers = take(&mut self.servers);
        let is_ours = servers.first().is_some_and(|server| server.is_ours);
        if let Some(server) = servers.first().filter(|_| !self.clashes) {
            self.mend(server, origin, state);
        }
        let has_url = self.existing.get(PRIVATE_URL).is_some();
        // With its URL, a server of the user's own is there as he wants it.
        let on_node = (is_ours || !has_url) && self.is_on_host_network(is_ours);
        if has_url || !(on_node || self.clashes) {
            self.private_sidecar_url(origin);
        }
    }

    /// Reports another container on the port of the server that the agent will use.
    pub(super) fn check_port(&mut self) {
        let servers = take(&mut self.servers);
        if let Some(server) = servers.first().filter(|_| self.found.private.is_some()) {
            let own = server.container.variable(PORT).map(|(_, entry)| entry.literal());
            let is_other = own.is_some_and(|port| port != Some(&MEMORY_SERVER_PORT.to_string()));
            let (container, after) = (Some(server.container), server.after());
            let listener = Listener { port: MEMORY_SERVER_PORT, container, after };
            self.clashes = is_local(self) && !is_other && self.clashes(listener);
        }
        self.servers = servers;
    }

    /// Reports the servers that keep the pod from starting, or from ending.
    pub(super) fn check_restart_policies(&mut self, state: &StateReader<'s>) {
        let servers = take(&mut self.servers);
        let is_dropped = state.settings().drops_sidecars();
        let spec = self.pod.around.pod.spec.as_ref();
        let policy = spec.and_then(|spec| spec.restart_policy.as_deref());
        let is_run = matches!(policy, Some("Never" | "OnFailure"));
        for server in &servers {
            let name = server.name();
            let at = server.place.key("restartPolicy");
            if server.blocks() && server.is_ours && !is_dropped && !self.clashes {
                let op = if server.container.restart_policy.is_some() { Op::Replace } else { Op::Add };
                let value = Value::Text("Always".to_owned());
                self.parts.mended.push(Edit { op, pointer: at.clone(), value, origins: vec![dropped()] });
                self.put_back(at, &format!("\"{name}\" lost restartPolicy: Always"));
            } else if server.blocks() {
                let message =
                    format!("\"{name}\" never ends without restartPolicy: Always, so the pod never starts");
                self.unmet.push(Finding::warn(&POD_SIDECAR_BLOCKS, at, message).help("set it"));
            } else if server.init.is_none() && name == MEMORY_SERVER && is_run {
                let message = format!("\"{name}\" never ends, so the run never completes");
                let finding = Finding::warn(&POD_SIDECAR_BLOCKS, server.place.clone(), message);
                let help = "make it an init container with restartPolicy: Always";
                self.warnings.push(finding.help(help));
            }
        }
        self.servers = servers;
    }

    /// Whether this apiserver would make the pod wait forever for a sidecar, which is reported.
    pub(super) fn gives_up_on_apiserver(&mut self, state: &StateReader<'s>) -> bool {
        let is_dropped = state.settings().drops_sidecars();
        if is_dropped {
            let (major, minor) = MIN_SIDECAR_VERSION;
            let message = format!(
                "this apiserver is older than {major}.{minor} and would drop restartPolicy: Always, without which \
                 \"{MEMORY_SERVER}\" never ends; no sidecar is added"
            );
            let finding = Finding::warn(&POD_SIDECAR_BLOCKS, init_containers_pointer(), message);
            self.unmet.push(finding.help("use service mode"));
        }
        is_dropped
    }

    /// Whether another container listens on the port of a sidecar that would be added.
    pub(super) fn port_is_taken(&mut self) -> bool {
        let after = self.pod.around.places().front;
        self.clashes(Listener { port: MEMORY_SERVER_PORT, container: None, after })
    }

    fn clashes(&mut self, server: Listener<'_>) -> bool {
        let Some((finding, is_certain)) = self.pod.around.port_clash(server) else { return false };
        if is_certain { &mut self.unmet } else { &mut self.warnings }.push(finding);
        is_certain
    }

    /// Puts back the mounts and volumes that a server lost.
    fn mend(&mut self, server: &PresentServer<'_>, origin: &Origin, state: &mut StateReader<'s>) {
        let Some(mounts) = &server.mounts else { return };
        let wanted = self.parts.volumes.len();
        let mut dropped_mounts: Vec<WantedPart> =
            self.lost_database(server, origin, state).into_iter().collect();
        dropped_mounts.extend(self.lost_ipc(server, origin));
        let volumes = self.parts.volumes.split_off(wanted);
        let list = server.place.key("volumeMounts");
        for mount in &mut dropped_mounts {
            mount.origin = dropped();
            self.put_back(list.clone(), &format!("\"{}\" lost its mount {}", server.name(), mount.name));
        }
        for volume in volumes {
            // A volume that is lost with its mount has one cause.
            let is_its = |mount: &WantedPart| mount.tree.get("name").is_some_and(|name| *name == volume.name);
            if !dropped_mounts.iter().any(is_its) {
                let part = format!("\"{}\" lost its volume \"{}\"", server.name(), volume.name);
                self.put_back(Pointer::new("/spec/volumes"), &part);
            }
            self.parts.restored.push(WantedPart { origin: dropped(), ..volume });
        }
        self.parts.mended.extend(add_mounts(&list, mounts, dropped_mounts));
    }

    /// The mount of the database, if it is lost. Wants its volume if that is.
    fn lost_database(
        &mut self,
        server: &PresentServer<'_>,
        origin: &Origin,
        state: &mut StateReader<'s>,
    ) -> Option<WantedPart> {
        let path = database(server.container).filter(|path| path.starts_with('/'))?;
        let list = server.place.key("volumeMounts");
        if let Some((index, mount)) = mount_of(path, server.mounts.as_ref()?.iter()) {
            let is_own = mount.name.as_deref() == Some(DATABASE);
            if mount.read_only == Some(true) && (is_own || server.is_ours) {
                let message = format!("\"{}\" cannot write to its database", server.name());
                let at = list.index(index).key("readOnly");
                let finding = Finding::warn(&POD_VOLUME_READ_ONLY, at, message);
                self.unmet.push(finding.help("mount it without readOnly"));
            } else if is_own {
                let finding = self.present_database(server, origin, state);
                self.unmet.extend(finding);
            }
            return None;
        }
        if !server.is_ours {
            return None;
        }
        let holds = path.strip_prefix(DATABASE_PATH).is_some_and(|rest| rest.starts_with('/'));
        if holds && self.database_volume(origin, state).is_ok() {
            let tree = json!({"name": DATABASE, "mountPath": DATABASE_PATH});
            return Some(part(DATABASE_PATH, tree, origin));
        }
        let message =
            format!("\"{}\" lost its mount /data: its database would be lost with the pod", server.name());
        let finding = Finding::warn(&POD_PART_LOST, list, message);
        self.unmet.push(finding.help(format!("mount a PersistentVolumeClaim for {}", quoted_text(path))));
        None
    }

    /// The finding about a volume of the database that is another one, or that cannot be written. Puts back a lost one.
    fn present_database(
        &mut self,
        server: &PresentServer<'_>,
        origin: &Origin,
        state: &mut StateReader<'s>,
    ) -> Option<Finding> {
        let Some((index, volume)) = self.pod.around.parts.volume(DATABASE) else {
            return server.is_ours.then(|| self.database_volume(origin, state).err()).flatten().map(|it| *it);
        };
        let claim = volume.claim.as_ref().and_then(|claim| claim.name.as_deref());
        // The usual claim is not looked up.
        if server.is_ours && claim.and_then(|it| it.strip_prefix(&*self.found.instance)) != Some(USUAL_CLAIM)
        {
            let (name, _) = self.find_claim(state);
            if claim != Some(&name) {
                let so = format!("\"{}\" does not have the database of the agent", server.name());
                return Some(other_volume(index, &name, &so));
            }
        }
        let claim = claim.and_then(|claim| state.peek(&CLAIM, self.pod.namespace, claim));
        self.read_only_database(Some(index), claim)
    }

    /// The server's mount of the request files, if it is lost. Wants the agent's mount of the same volume if that is lost.
    fn lost_ipc(&mut self, server: &PresentServer<'_>, origin: &Origin) -> Option<WantedPart> {
        if self.is_harness() {
            return None;
        }
        let Some((index, mount)) = server.mounts.as_ref()?.at(IPC_PATH) else {
            let volume = if server.is_ours { self.ipc_volume(origin) } else { None };
            return Some(part(IPC_PATH, json!({"name": volume?, "mountPath": IPC_PATH}), origin));
        };
        if server.is_ours {
            let (owner, list) = (format!("\"{}\"", server.name()), server.place.key("volumeMounts"));
            let of_server = || self.pod.read_only_ipc(&owner, &list, (index, mount));
            let finding = self.agents_read_only_ipc().or_else(of_server);
            self.warnings.extend(finding);
        }
        let name = mount.name.as_deref()?;
        let parts = self.pod.around.parts;
        let volume = parts.volume(name);
        if volume.is_none() && server.is_ours && IPC_VOLUMES.contains(&name) {
            self.add_ipc_volume(name, origin);
        } else if volume.is_none_or(|(index, _)| parts.read_only(index).is_some()) {
            return None;
        }
        if self.pod.mounts.at(IPC_PATH).is_none() && !mount.is_partial() {
            self.add_ipc_mount(name, origin);
        }
        None
    }

    pub(super) fn put_back(&mut self, at: Pointer, lost: &str) {
        let finding = Finding::warn(&POD_PART_LOST, at, format!("{lost}: {PUT_BACK}"));
        self.warnings.push(Finding { severity: Severity::Note, ..finding });
    }
}

fn dropped() -> Origin {
    Origin { resource: "".into(), field: "".into(), rule: DROPPED }
}

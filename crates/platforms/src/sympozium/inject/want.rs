//! The parts that a pod should have for its memories.
//!
//! Private memory is a separate service or a native sidecar ([`sidecar`]): the pod's content decides, then annotations,
//! then settings. Shared memory is always a service. The older memory in a ConfigMap is a volume ([`legacy`]).

mod legacy;
mod present;
mod sidecar;
mod tokens;
mod waits;

use crate::inject::env::{ExistingEnv, Variable};
use crate::inject::own::MemoryVariableNames;
use crate::inject::parts::{ExistingMounts, WantedPart, WantedParts, pull_secrets};
use crate::inject::viable::Surroundings;
use crate::inject::viable::present::PresentServer;
use crate::sympozium::FAMILY;
use crate::sympozium::lookup::{self, PackMode};
use crate::sympozium::prelude::*;
use crate::sympozium::validate::skill_pack_missing;
use crate::sympozium::variables::{
    AUTO_STORE, INSTANCE, OF_MEMORY, PRIVATE_URL, SHARED_URL, shared_variables,
};
use memgate_model::injection::Item;
use memgate_model::platform_settings::{MemoryMode, Sympozium};
use serde_json::Value;

use self::waits::{PRIVATE_WAIT, SHARED_WAIT};
use super::find::PodMemories;
use super::{instance_label, origin};

/// The prefixes of all variables.
const PREFIXES: [&str; 3] = [INSTANCE, "MEMORY_", "WORKFLOW_"];

/// The names of all variables.
pub(super) const NAMES: MemoryVariableNames<'static> =
    MemoryVariableNames { prefixes: &PREFIXES, names: &OF_MEMORY, open: None };

/// The names of those that say where memory is.
pub(super) const URLS: MemoryVariableNames<'static> =
    MemoryVariableNames { prefixes: &PREFIXES, names: &[PRIVATE_URL, SHARED_URL], open: None };

/// A pod, and the container of the agent in it.
pub(super) struct PodContext<'p> {
    /// The pod, its lists, and what surrounds them.
    pub(super) around: Surroundings<'p>,
    /// The index of the agent's container.
    pub(super) index: usize,
    pub(super) container: &'p Container<'p>,
    pub(super) mounts: ExistingMounts<'p>,
    pub(super) namespace: &'p str,
}

impl PodContext<'_> {
    /// Whether the annotation of the pod says that memgate added the init container of this name.
    fn is_ours(&self, name: &str) -> bool {
        marker::added(self.around.pod, &FAMILY).contains(&Item::InitContainer(name.to_owned()))
    }
}

/// Returns the parts that the pod should have.
pub(super) fn want<'p, 's>(
    pod: PodContext<'p>,
    found: PodMemories<'s>,
    state: &mut StateReader<'s>,
) -> Result<WantedByPod<'p>, Unmet> {
    let servers = present::servers(&pod, state.budget());
    let mut builder = WantedBuilder::new(pod, found, servers, &state.settings().sympozium);
    builder.check_port();
    builder.check_restart_policies(state);
    builder.legacy();
    builder.private(state)?;
    builder.shared(state);
    builder.tokens(state);
    builder.pull_secrets(state.budget());
    Ok(builder.wanted())
}

/// Collects the wanted parts.
struct WantedBuilder<'p, 's> {
    pod: PodContext<'p>,
    existing: ExistingEnv<'p>,
    found: PodMemories<'s>,
    /// The memory servers that the pod has already, the one that memgate added first.
    servers: Vec<PresentServer<'p>>,
    /// Whether another container listens on the port of the first one: nothing of it is put back then.
    clashes: bool,
    /// Whether the agent gets its private memory, without a conflict.
    private_on: bool,
    /// All variables for the memory, in order.
    variables: Vec<Variable<'static>>,
    parts: WantedParts,
    /// Mounts of the agent, named by their path.
    mounts: Vec<WantedPart>,
    unmet: Vec<Finding>,
    warnings: Vec<Finding>,
    /// Warnings about writer tokens, without which memory can still be read.
    token_findings: Vec<Finding>,
    /// The place and the text of the warning about waits without a network.
    no_network: Option<(Pointer, String)>,
    /// Whether the server of the private memory is in the pod, and the Secret of its token.
    has_sidecar: bool,
    sidecar_token: Option<KeyRef>,
    /// What the settings say of added containers.
    settings: &'s Sympozium,
}

impl<'p, 's> WantedBuilder<'p, 's> {
    fn new(
        pod: PodContext<'p>,
        mut found: PodMemories<'s>,
        servers: Vec<PresentServer<'p>>,
        settings: &'s Sympozium,
    ) -> Self {
        let unmet = std::mem::take(&mut found.unmet);
        let existing = ExistingEnv::read(pod.container, &PREFIXES);
        let keeps_sidecar = servers.first().is_some_and(|server| server.is_ours && server.init.is_some());
        Self {
            pod,
            existing,
            found,
            servers,
            clashes: false,
            private_on: false,
            variables: Vec::new(),
            parts: WantedParts { keeps_sidecar, ..WantedParts::default() },
            mounts: Vec::new(),
            unmet,
            warnings: Vec::new(),
            token_findings: Vec::new(),
            no_network: None,
            has_sidecar: false,
            sidecar_token: None,
            settings,
        }
    }

    /// Returns all collected parts. Findings in `unmet` refuse a pod that requires its memory.
    fn wanted(mut self) -> WantedByPod<'p> {
        let memory = self.memory_names();
        let conflict = !(self.unmet.is_empty() && self.warnings.is_empty());
        self.warnings.append(&mut self.token_findings);
        self.report_no_network();
        let mut env: Vec<Variable<'p>> = self.instance_name().into_iter().collect();
        env.extend(std::mem::take(&mut self.variables).into_iter().map(|variable| {
            if URLS.names.contains(&&*variable.name) { variable.address() } else { variable }
        }));
        let PodContext { around, index, container, mounts, .. } = self.pod;
        let agent = WantedByContainer::variables(index, container, self.existing, env);
        let agent = WantedByContainer { mounts: (self.mounts, mounts), ..agent };
        WantedByPod {
            memory,
            containers: vec![agent],
            parts: Some((self.parts, around)),
            host_network_dns: Some(&HOST_NETWORK_DNS),
            conflict,
            unmet: self.unmet,
            warnings: self.warnings,
        }
    }

    /// The variable with the agent's name, which is added only together with other variables.
    fn instance_name(&self) -> Option<Variable<'static>> {
        let of_first = &self.variables.first()?.origin.resource;
        let of_agent = self.found.agent.map(|agent| origin(agent, "metadata.name"));
        let origin = of_agent.unwrap_or_else(|| field_origin(of_first, "metadata.name"));
        Some(Variable::literal(INSTANCE, self.found.instance.as_str(), origin).only_with_others())
    }

    fn memory_names(&self) -> Vec<String> {
        let has_own = self.found.private.is_some() || self.found.legacy.is_some();
        let agent = has_own.then(|| format!("Agent/{}", self.found.instance));
        let ensemble = self.found.ensemble.filter(|_| self.found.shared);
        agent.into_iter().chain(ensemble.map(|ensemble| format!("Ensemble/{}", ensemble.name))).collect()
    }

    /// Adds the private memory of this agent.
    fn private(&mut self, state: &mut StateReader<'s>) -> Result<(), Unmet> {
        let Some((object, field)) = self.found.private.clone() else { return Ok(()) };
        let origin = origin(object, field);
        if is_local(self) && !self.servers.is_empty() {
            self.private_sidecar_present(&origin, state);
            return Ok(());
        }
        match private_mode(self, state) {
            PackMode::Service => {
                let url = private_url(&self.found.instance, self.pod.namespace);
                self.private_on = true;
                self.add_variable(PRIVATE_URL, url.as_str(), &origin);
                self.wait(&PRIVATE_WAIT, &url, &origin, state);
            }
            PackMode::Sidecar(pack) => self.private_sidecar(pack, &origin, state),
            PackMode::Unknown => {
                let object = ["SkillPack", self.pod.namespace, MEMORY_SKILL];
                return Err(lookup_failed(&LOOKUP_FAILED, instance_label(), object, state));
            }
        }
        Ok(())
    }

    /// Adds the shared memory of the Ensemble.
    fn shared(&mut self, state: &mut StateReader<'s>) {
        let ensemble = self.found.ensemble.filter(|_| self.found.shared);
        let variables = ensemble.map(|it| shared_variables(it, self.pod.namespace, self.found.config));
        self.variables.extend(variables.into_iter().flatten());
        // The last variable of private memory comes after those of shared memory.
        if let Some((object, field)) = self.found.auto_store_off.filter(|_| self.private_on) {
            self.add_variable(AUTO_STORE, "false", &origin(object, field));
        }
        let Some(ensemble) = ensemble else { return };
        if self.found.config.is_none() && has_access_rules(ensemble.tree()) {
            let text = "Agent {} has no label sympozium.ai/agent-config: its shared memory is read-only";
            let finding = warning(&CONFIG_UNKNOWN, instance_label(), text, [&self.found.instance]);
            let rules = Pointer::new("/spec/sharedMemory/accessRules");
            self.warnings.push(finding.elsewhere(ensemble, rules, "because of these rules"));
        }
        let url = shared_url(&ensemble.name, self.pod.namespace);
        self.wait(&SHARED_WAIT, &url, &origin(ensemble, "spec.sharedMemory.enabled"), state);
    }

    /// Adds the Secrets with which the images of added containers are pulled.
    fn pull_secrets(&mut self, work: &Budget<'_>) {
        if !self.parts.init_containers.is_empty() && !self.settings.image_pull_secrets.is_empty() {
            let origin = Origin { resource: "".into(), field: "".into(), rule: "sympozium.imagePullSecrets" };
            let names = &self.settings.image_pull_secrets;
            self.parts.pull_secrets = pull_secrets(self.pod.around.pod, names, &origin, work);
        }
    }

    fn add_variable(&mut self, name: &'static str, value: impl Into<String>, origin: &Origin) {
        self.variables.push(Variable::literal(name, value, origin.clone()));
    }

    /// The pointer to the agent's entry for a variable, or else to the list.
    fn env_entry(&self, name: &str) -> Pointer {
        let list = env::pointer(self.pod.index);
        self.existing.get(name).map_or_else(|| list.clone(), |(index, _)| list.index(index))
    }
}

/// Upstream's name for the sidecar of a SkillPack.
pub(super) const PACK_SIDECAR: &str = "skill-memory";

/// Whether the agent has the URL of a server in its pod, or none.
fn is_local(builder: &WantedBuilder<'_, '_>) -> bool {
    let url = builder.existing.get(PRIVATE_URL).map(|(_, entry)| entry);
    url.is_none_or(|entry| entry.literal().is_some_and(is_loopback))
}

/// A container, volume or mount to be added.
fn part(name: &str, tree: Value, origin: &Origin) -> WantedPart {
    WantedPart { name: name.to_owned(), tree, origin: origin.clone() }
}

/// Where the private memory runs.
fn private_mode<'s>(builder: &mut WantedBuilder<'_, 's>, state: &mut StateReader<'s>) -> PackMode<'s> {
    if let Some((_, entry)) = builder.existing.get(PRIVATE_URL) {
        // The URL of a sidecar that memgate added, without the sidecar.
        if entry.literal().is_some_and(is_loopback) && builder.pod.is_ours(MEMORY_SERVER) {
            return lookup::pack_mode(MemoryMode::Sidecar, builder.pod.namespace, state);
        }
        if requested_mode(builder) == Some("sidecar") {
            let message = "sidecar mode ignored: MEMORY_SERVER_URL is already set";
            let at = builder.env_entry(PRIVATE_URL);
            builder.warnings.push(Finding::warn(&SIDECAR_MODE_IGNORED, at, message));
        }
        return PackMode::Service;
    }
    let chosen = requested_by_annotation(builder).unwrap_or_else(|| state.settings().sympozium.memory_mode);
    let mode = lookup::pack_mode(chosen, builder.pod.namespace, state);
    if matches!(mode, PackMode::Sidecar(None)) && chosen != MemoryMode::Sidecar {
        builder.warnings.push(skill_pack_missing(builder.pod.namespace, instance_label()));
    }
    mode
}

/// Whether a URL points at the pod itself.
pub(super) fn is_loopback(url: &str) -> bool {
    let host = Endpoint::parse(url).host.to_ascii_lowercase();
    let is_v4 = || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    host == "localhost" || host == "::1" || is_v4()
}

/// The value of the mode annotation of the pod, or else of the Agent.
fn requested_mode<'a>(builder: &'a WantedBuilder<'_, '_>) -> Option<&'a str> {
    let agent_annotation =
        || builder.found.agent?.tree().text_at(&["metadata", "annotations", MODE_ANNOTATION]);
    builder.pod.around.pod.annotation(MODE_ANNOTATION).or_else(agent_annotation)
}

/// The mode that an annotation requests; an unsupported value only warns.
fn requested_by_annotation(builder: &mut WantedBuilder<'_, '_>) -> Option<MemoryMode> {
    let value = requested_mode(builder)?;
    if let Some(mode) = lookup::asked_mode(value) {
        return Some(mode);
    }
    let text = "unsupported value {text}; use \"service\" or \"sidecar\"";
    let agent = builder.found.agent.filter(|_| builder.pod.around.pod.annotation(MODE_ANNOTATION).is_none());
    let warning = match agent {
        Some(agent) => {
            let text = ["annotation memgate.dev/memory-mode of Agent {}: ", text].concat();
            let warning = warning(&MEMORY_MODE_UNKNOWN, instance_label(), &text, [&*agent.name, value]);
            warning.elsewhere(agent, annotation_pointer(MODE_ANNOTATION), "the annotation of the Agent")
        }
        None => {
            let text = ["annotation memgate.dev/memory-mode: ", text].concat();
            warning(&MEMORY_MODE_UNKNOWN, annotation_pointer(MODE_ANNOTATION), &text, [value])
        }
    };
    builder.warnings.push(warning);
    None
}

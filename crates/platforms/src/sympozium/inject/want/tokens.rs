//! The writer tokens. A memory server refuses writes without its token, which is in a Secret that Sympozium makes. Pods
//! get references to these Secrets, never values.
//!
//! Whether a server asks for its token is seldom known. A reference that is optional suits every server: without its
//! Secret the pod starts, and can only read from a server that asks for the token.

use std::collections::BTreeMap;

use crate::inject::env::Variable;
use crate::inject::own;
use crate::message::fit_names;
use crate::prelude::*;
use crate::sympozium::api::{
    ACCESSES, AGENT_CONTAINER, AGENT_OLD, CONFIG_LABEL, ENSEMBLE_OLD, MEMORY_SERVER, MEMORY_SERVER_PORT,
    PACK_LABEL, PERSONA_LABEL, ROLE_LABEL, TOKEN_KEY, private_server, shared_server, token_secret,
};
use crate::sympozium::codes::{
    POD_TOKEN_EXPOSED, POD_TOKEN_HARNESS, POD_TOKEN_LITERAL, POD_TOKEN_READ_ONLY, WRITER_TOKEN_MISSING,
};
use crate::sympozium::variables::{
    ACCESS, ADMIN_TOKEN, PRIVATE_TOKEN, PRIVATE_URL, SHARED_TOKEN, SHARED_URL,
};
use crate::workloads::DEPLOYMENT;
use memgate_model::edit::{EnvSource, KeyRef, Origin};
use memgate_model::kind::SECRET;
use memgate_model::platform_settings::WriterTokens;
use memgate_model::pod::{self, Container, EnvVarView, Mount, NamedView, visit_elements};
use memgate_model::view::{Text, view};
use memgate_primitives::pointer::Path;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{PACK_SIDECAR, WantedBuilder};

view! {
    /// An entry of `envFrom`.
    EnvFromView {
        /// A Secret of which every key becomes a variable.
        secret: NamedView<'a> = "secretRef",
    }

    /// The source of a volume that is a Secret.
    SecretVolumeView {
        /// The name of the Secret.
        name: Text<'a> = "secretName",
    }

    /// The source of a volume that joins several.
    ProjectedVolumeView {
        /// The sources, unread.
        sources: &'a RawValue = "sources",
    }

    /// One of those.
    ProjectedSourceView {
        /// A Secret.
        secret: NamedView<'a> = "secret",
    }
}

/// The writer token of one memory server.
struct Token {
    /// The variable in the agent.
    variable: &'static str,
    /// The variable with the URL of the server.
    url: &'static str,
    /// The name of the Agent or Ensemble.
    owner: String,
    /// The name of the server's Deployment and Service.
    server: String,
}

/// What the Deployment of a server says of its token.
enum DeploymentToken<'s> {
    Secret(KeyRef),
    Literal(&'s Object),
}

impl<'s> WantedBuilder<'_, 's> {
    /// Adds the references to the writer tokens of the agent, after all other variables.
    pub(super) fn tokens(&mut self, state: &mut StateReader<'s>) {
        let agent = self.found.instance.clone();
        let private =
            Token { variable: PRIVATE_TOKEN, url: PRIVATE_URL, server: private_server(&agent), owner: agent };
        let shared = self.found.ensemble.filter(|_| self.found.shared).map(|ensemble| Token {
            variable: SHARED_TOKEN,
            url: SHARED_URL,
            server: shared_server(&ensemble.name),
            owner: ensemble.name.to_string(),
        });
        let mut secrets = Vec::new();
        for token in [Some(private), shared].into_iter().flatten() {
            secrets.push((token_secret(&token.server), token.owner.clone()));
            let reference = self.token(&token, state);
            secrets.extend(reference.map(|reference| (reference.name, token.owner)));
        }
        self.check_own_tokens();
        self.check_other_containers(&secrets, state.budget());
    }

    /// Adds one token, unless the agent must not or need not have it. Returns its Secret, if that is known.
    fn token(&mut self, token: &Token, state: &mut StateReader<'s>) -> Option<KeyRef> {
        let url = self.variables.iter().find(|variable| variable.name == token.url)?;
        let origin = url.origin.clone();
        let existing = self.existing.get(token.variable).map(|(_, entry)| entry);
        let reference = self.reference(token, state)?;
        let is_left_out = || self.must_not_have(token) || !self.reaches(token, state);
        if existing.is_some_and(is_clear_text) || existing.is_none() && is_left_out() {
            return Some(reference);
        }
        self.check_secret(&reference, existing, token.variable, state);
        self.variables.push(variable(token.variable, reference.clone(), origin));
        Some(reference)
    }

    /// The Secret with the token of a server. `None` if the server has none in a Secret, and if no pod gets one.
    fn reference(&mut self, token: &Token, state: &StateReader<'s>) -> Option<KeyRef> {
        if self.has_sidecar && token.variable == PRIVATE_TOKEN {
            return self.sidecar_token.clone();
        }
        let setting = state.settings().sympozium.writer_tokens;
        if setting == WriterTokens::Auto {
            match self.of_deployment(token, state) {
                Some(DeploymentToken::Secret(reference)) => return Some(reference),
                Some(DeploymentToken::Literal(deployment)) => {
                    let finding =
                        Finding::warn(&POD_TOKEN_LITERAL, Pointer::root(), clear_text(PRIVATE_TOKEN));
                    let at = Pointer::new("/spec/template/spec/containers");
                    self.token_findings.push(finding.elsewhere(deployment, at, "the server's token"));
                    return None;
                }
                None => {}
            }
        }
        default_reference(&token.server, setting)
    }

    /// The reference that a sidecar and its agent get: that of the SkillPack, else the usual one.
    pub(super) fn sidecar_reference(&self, env: &[(&str, Value)], state: &StateReader<'s>) -> Option<KeyRef> {
        let setting = state.settings().sympozium.writer_tokens;
        let usual = default_reference(&private_server(&self.found.instance), setting)?;
        if self.found.agent.is_some_and(|agent| *agent.kind == AGENT_OLD) || self.has_old_labels() {
            return None;
        }
        let of_pack = env.iter().rev().find(|(name, _)| *name == PRIVATE_TOKEN).and_then(|(_, variable)| {
            let reference = variable.pointer("/valueFrom/secretKeyRef")?;
            let text = |field: &str| Some(reference.get(field)?.as_str()?.to_owned());
            let optional = reference.get("optional").and_then(Value::as_bool).or(usual.optional);
            Some(KeyRef { name: text("name")?, key: text("key")?.into(), optional })
        });
        Some(of_pack.unwrap_or(usual))
    }

    /// The reference of a memory server that is in the pod already, else the usual one as an optional one; `None` for a
    /// literal there.
    pub(super) fn present_reference(&self, state: &StateReader<'s>) -> Option<KeyRef> {
        let setting = state.settings().sympozium.writer_tokens;
        let usual = default_reference(&private_server(&self.found.instance), setting)?;
        let server = self.servers.first().map(|server| server.container);
        let Some((_, entry)) = server.and_then(|server| server.variable(PRIVATE_TOKEN)) else {
            // Of a server without a token, which may be an older one, Sympozium may make no Secret.
            return Some(KeyRef { optional: Some(true), ..usual });
        };
        let from = entry.reference().secret_key_ref?;
        let text = |text: Option<Text<'_>>| Some(text?.0.into_owned());
        Some(KeyRef { name: text(from.name)?, key: text(from.key)?.into(), optional: from.optional })
    }

    /// What the Deployment of a server says, if it is known. One without the variable, or with an empty one, says
    /// nothing: Sympozium's controller adds it.
    fn of_deployment(&self, token: &Token, state: &StateReader<'s>) -> Option<DeploymentToken<'s>> {
        let deployment = state.peek(&DEPLOYMENT, self.pod.namespace, &token.server)?;
        let containers = deployment.tree().at(&["spec", "template", "spec", "containers"])?.elements();
        let server = containers.iter().find(|it| it.text_at(&["name"]) == Some(MEMORY_SERVER))?;
        let mut env = server.list_at(&["env"]).iter().rev();
        let entry = env.find(|entry| entry.text_at(&["name"]) == Some(PRIVATE_TOKEN))?;
        let Some(from) = entry.get("valueFrom") else {
            let is_set = entry.text_at(&["value"]).is_some_and(|value| !value.is_empty());
            return is_set.then_some(DeploymentToken::Literal(deployment));
        };
        let text = |field| Some(from.text_at(&["secretKeyRef", field])?.to_owned());
        Some(DeploymentToken::Secret(KeyRef {
            name: text("name")?,
            key: text("key")?.into(),
            optional: None,
        }))
    }

    /// Whether the agent must not have a token: it runs a third-party image, its server is older than tokens, or it may
    /// only read.
    fn must_not_have(&self, token: &Token) -> bool {
        let is_old = |object: Option<&Object>, old: &Kind| object.is_some_and(|object| *object.kind == *old);
        let is_shared = token.variable == SHARED_TOKEN;
        self.is_harness()
            || self.has_old_labels()
            || is_old(self.found.agent, &AGENT_OLD)
            || is_shared && (is_old(self.found.ensemble, &ENSEMBLE_OLD) || !self.may_write())
    }

    pub(super) fn is_harness(&self) -> bool {
        self.found.harness || self.pod.runs_harness()
    }

    /// Whether the pod has labels of releases before 0.10 and none of later ones.
    fn has_old_labels(&self) -> bool {
        let has = |key: &&str| self.pod.around.pod.label(key).is_some();
        [PACK_LABEL, PERSONA_LABEL].iter().any(has) && ![CONFIG_LABEL, ROLE_LABEL].iter().any(has)
    }

    /// Whether the agent may write to the shared memory, by its access rule and by the variable that it has.
    fn may_write(&self) -> bool {
        let existing = self.existing.get(ACCESS).map(|(_, entry)| entry);
        !self.is_read_only() && existing.is_none_or(|entry| entry.literal() == Some(ACCESSES[0]))
    }

    fn is_read_only(&self) -> bool {
        let access = self.variables.iter().find(|variable| variable.name == ACCESS);
        access.is_some_and(|access| access.source != EnvSource::Value(ACCESSES[0].to_owned()))
    }

    /// Whether the agent's URL leads to the server: memgate adds it, or the pod names this very Service of which the
    /// Deployment is known to ask for the token. A token must not travel to another URL.
    fn reaches(&self, token: &Token, state: &StateReader<'s>) -> bool {
        let Some((_, entry)) = self.existing.get(token.url) else { return true };
        let is_service = || {
            let host = entry.literal()?.strip_prefix("http://")?;
            let host = host.strip_suffix('/').unwrap_or(host);
            let rest = host.strip_suffix(&format!(":{MEMORY_SERVER_PORT}"))?.strip_prefix(&token.server)?;
            let service = format!(".{}.svc", self.pod.namespace);
            let whole = format!("{service}.{}", state.cluster_domain());
            let namespace = service.strip_suffix(".svc").unwrap_or_default();
            Some(["", namespace, &service, &whole].contains(&rest))
        };
        is_service() == Some(true)
            && matches!(self.of_deployment(token, state), Some(DeploymentToken::Secret(_)))
    }

    /// Warns about a Secret without which the pod does not start, if Secrets are known.
    fn check_secret(
        &mut self,
        reference: &KeyRef,
        existing: Option<&EnvVarView<'_>>,
        variable: &str,
        state: &mut StateReader<'s>,
    ) {
        let optional = match existing {
            None => reference.optional,
            Some(entry) => {
                let is_same = |from: &pod::KeyRefView<'_>| from.name.as_deref() == Some(&reference.name);
                let Some(from) = entry.reference().secret_key_ref.filter(is_same) else { return };
                from.optional
            }
        };
        let namespace = self.pod.namespace;
        let lookup = state.quietly(|state| state.get(&SECRET, namespace, &reference.name));
        if optional == Some(true) || lookup != Lookup::Absent {
            return;
        }
        let message = fit_names([&reference.name], |[secret]| {
            format!("Secret {} not found; the pod waits until Sympozium makes it", quoted(secret))
        });
        let at = self.env_entry(variable);
        self.token_findings.push(Finding::warn(&WRITER_TOKEN_MISSING, at, message));
    }

    /// Reports tokens that the agent has itself and should not have, or not in this form.
    fn check_own_tokens(&mut self) {
        let mut findings = Vec::new();
        for name in [PRIVATE_TOKEN, SHARED_TOKEN] {
            let Some((_, entry)) = self.existing.get(name) else { continue };
            if entry.literal() == Some("") {
                continue;
            }
            let mut warn = |code, message: String| {
                findings.push(Finding::warn(code, self.env_entry(name), message));
            };
            if is_clear_text(entry) {
                warn(&POD_TOKEN_LITERAL, clear_text(name));
            }
            if self.is_harness() {
                warn(
                    &POD_TOKEN_HARNESS,
                    "the agent runs a harness and holds the memory writer token".to_owned(),
                );
            }
            if let Some(config) = self.found.config.filter(|_| name == SHARED_TOKEN && self.is_read_only()) {
                let message = fit_names([config], |[config]| {
                    format!(
                        "config {} is read-only, but the pod holds the shared writer token",
                        quoted(config)
                    )
                });
                warn(&POD_TOKEN_READ_ONLY, message);
            }
        }
        if self.existing.get(ADMIN_TOKEN).is_some_and(|(_, entry)| entry.literal() != Some("")) {
            let message = format!("{ADMIN_TOKEN} must not be in container \"{AGENT_CONTAINER}\"");
            findings.push(Finding::warn(&POD_TOKEN_LITERAL, self.env_entry(ADMIN_TOKEN), message));
        }
        self.token_findings.extend(findings);
    }

    /// Reports the other containers that have a token, once each: a program there could write in the agent's name.
    fn check_other_containers(&mut self, secrets: &[(String, String)], work: &Budget<'_>) {
        let inits = own::init_containers(self.pod.around.pod, work);
        let servers = [AGENT_CONTAINER, MEMORY_SERVER, PACK_SIDECAR];
        let volumes = self.volumes(secrets);
        let mut findings = Vec::new();
        for (place, container) in own::places(self.pod.around.pod, &inits) {
            let name = container.name.as_deref().unwrap_or_default();
            if servers.contains(&name) {
                continue;
            }
            let Some((at, owner)) = token_of(&place, container, secrets, &volumes, work) else { continue };
            let owner = owner.unwrap_or(&self.found.instance);
            let message = fit_names([name, owner], |[name, owner]| {
                format!("container {} holds the memory writer token of {}", quoted(name), quoted(owner))
            });
            findings.push(Finding::warn(&POD_TOKEN_EXPOSED, at, message));
            work.finding();
        }
        self.token_findings.extend(findings);
    }

    /// The volumes that hold one of these Secrets: by name, with the index and the owner of the token.
    fn volumes<'o>(&self, secrets: &'o [(String, String)]) -> BTreeMap<&str, (usize, &'o str)> {
        let holds = |volume: &crate::inject::parts::Volume<'_>| {
            let secret = pod::read::<SecretVolumeView<'_>>(volume.secret).and_then(|secret| secret.name);
            if let Some(owner) = secret.and_then(|name| owner_of(&name.0, secrets)) {
                return Some(owner);
            }
            let mut found = None;
            let sources = pod::read::<ProjectedVolumeView<'_>>(volume.projected)?.sources;
            visit_elements(sources, |source: ProjectedSourceView<'_>| {
                let name = source.secret.and_then(|secret| secret.name);
                found = found.or_else(|| owner_of(&name?.0, secrets));
            })?;
            found
        };
        let volumes = self.pod.around.parts.volumes().enumerate();
        let named =
            volumes.filter_map(|(index, volume)| Some((volume.name.as_deref()?, (index, holds(volume)?))));
        named.collect()
    }
}

/// The reference by the name that Sympozium gives to the Secret.
fn default_reference(server: &str, setting: WriterTokens) -> Option<KeyRef> {
    let optional = (setting == WriterTokens::Auto).then_some(true);
    let reference = || KeyRef { name: token_secret(server), key: TOKEN_KEY.into(), optional };
    (setting != WriterTokens::Never).then(reference)
}

fn variable(name: &'static str, reference: KeyRef, origin: Origin) -> Variable<'static> {
    Variable::new(name, EnvSource::Secret(reference), origin).ignoring_optional()
}

/// Whether a variable has its token as a literal. One that the kubelet expands has not.
fn is_clear_text(entry: &EnvVarView<'_>) -> bool {
    entry.literal().is_some_and(|text| !text.is_empty() && !text.starts_with("$("))
}

fn clear_text(variable: &str) -> String {
    format!("{variable} holds a token in clear text; use a secretKeyRef")
}

fn owner_of<'o>(secret: &str, secrets: &'o [(String, String)]) -> Option<&'o str> {
    secrets.iter().find(|(name, _)| name == secret).map(|(_, owner)| owner.as_str())
}

/// The place where a container has a token, and the owner of the token if its Secret is named.
fn token_of<'o>(
    place: &Pointer,
    container: &Container<'_>,
    secrets: &'o [(String, String)],
    volumes: &BTreeMap<&str, (usize, &'o str)>,
    work: &Budget<'_>,
) -> Option<(Pointer, Option<&'o str>)> {
    for (index, entry) in container.env.as_deref().unwrap_or_default().iter().enumerate() {
        let key = entry.reference().secret_key_ref;
        let owner = key.and_then(|key| owner_of(key.name.as_deref()?, secrets));
        let is_named = || [PRIVATE_TOKEN, SHARED_TOKEN].map(Some).contains(&entry.name.as_deref());
        if owner.is_some() || is_named() && entry.literal() != Some("") {
            return Some((place.key("env").index(index), owner));
        }
    }
    let (mut at, mut owner, mut index) = (None, None, 0);
    let _ = visit_elements(container.env_from, |entry: EnvFromView<'_>| {
        let name = entry.secret.and_then(|secret| secret.name);
        if let (None, Some(found)) = (owner, name.and_then(|name| owner_of(&name.0, secrets))) {
            (at, owner) = (Some(index), Some(found));
        }
        index += 1;
    });
    if let Some(index) = at {
        return Some((place.key("envFrom").index(index), owner));
    }
    if volumes.is_empty() {
        return None;
    }
    let place = Path::Known(place.as_str());
    let list = Path::Key(&place, "volumeMounts");
    let mounts: Vec<Mount<'_>> = pod::read_list(container.volume_mounts, list, work).unwrap_or_default();
    let found = mounts.iter().filter_map(|mount| volumes.get(mount.name.as_deref()?));
    let (index, owner) = found.min_by_key(|(index, _)| *index)?;
    Some((Pointer::new("/spec/volumes").index(*index), Some(owner)))
}

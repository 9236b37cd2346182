//! The writer tokens. A memory server refuses writes without its token, which is in a Secret that Sympozium makes. Pods
//! get references to these Secrets, never values.
//!
//! Whether a server asks for its token is seldom known. A reference that is optional suits every server: without its
//! Secret the pod starts, and can only read from a server that asks for the token.

use crate::inject::env::Variable;
use crate::inject::viable::{at, elements, json};
use crate::sympozium::prelude::*;
use crate::sympozium::variables::{
    ACCESS, ADMIN_TOKEN, PRIVATE_TOKEN, PRIVATE_URL, SHARED_TOKEN, SHARED_URL,
};
use crate::workloads::DEPLOYMENT;
use memgate_model::platform_settings::WriterTokens;
use memgate_model::pod::{self, EnvVarView, Mount};

use super::{PACK_SIDECAR, WantedBuilder};

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

/// Secrets with tokens, each with the Agent or Ensemble of its server.
type Secrets = [(String, String)];

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
        let source = EnvSource::Secret(reference.clone());
        self.variables.push(Variable::new(token.variable, source, origin).ignoring_optional());
        Some(reference)
    }

    /// The Secret with the token of a server. `None` if the server has none in a Secret, and if no pod gets one.
    fn reference(&mut self, token: &Token, state: &StateReader<'s>) -> Option<KeyRef> {
        if self.has_sidecar && token.variable == PRIVATE_TOKEN {
            return self.sidecar_token.clone();
        }
        let setting = state.settings().sympozium.writer_tokens;
        match self.of_deployment(token, state).filter(|_| setting == WriterTokens::Auto) {
            Some(Ok(reference)) => Some(reference),
            Some(Err(deployment)) => {
                let finding = warning(&POD_TOKEN_LITERAL, Pointer::root(), CLEAR_TEXT, [PRIVATE_TOKEN]);
                let at = Pointer::new("/spec/template/spec/containers");
                self.token_findings.push(finding.elsewhere(deployment, at, "the server's token"));
                None
            }
            None => default_reference(&token.server, setting),
        }
    }

    /// The reference that a sidecar and its agent get: that of the SkillPack, else the usual one.
    pub(super) fn sidecar_reference(&self, env: &[(&str, Json)], state: &StateReader<'s>) -> Option<KeyRef> {
        let setting = state.settings().sympozium.writer_tokens;
        let usual = default_reference(&private_server(&self.found.instance), setting)?;
        if self.found.agent.is_some_and(|agent| *agent.kind == AGENT_OLD) || self.has_old_labels() {
            return None;
        }
        let of_pack = env.iter().rev().find(|(name, _)| *name == PRIVATE_TOKEN).and_then(|(_, variable)| {
            let reference = variable.pointer("/valueFrom/secretKeyRef")?;
            let optional = reference.get("optional").and_then(Json::as_bool).or(usual.optional);
            key_ref(|field| reference.get(field)?.as_str(), optional)
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
        key_ref(|field| if field == "name" { &from.name } else { &from.key }.as_deref(), from.optional)
    }

    /// The reference in the Deployment of a server, if that is known, or the Deployment if it has a literal. One without
    /// the variable, or with an empty one, says nothing: Sympozium's controller adds it.
    fn of_deployment(&self, token: &Token, state: &StateReader<'s>) -> Option<Result<KeyRef, &'s Object>> {
        let deployment = state.peek(&DEPLOYMENT, self.pod.namespace, &token.server)?;
        let containers = deployment.tree().list_at(&["spec", "template", "spec", "containers"]);
        let server = containers.iter().find(|it| it.text_at(&["name"]) == Some(MEMORY_SERVER))?;
        let mut env = server.list_at(&["env"]).iter().rev();
        let entry = env.find(|entry| entry.text_at(&["name"]) == Some(PRIVATE_TOKEN))?;
        let Some(from) = entry.get("valueFrom") else {
            return entry.filled_at(&["value"]).map(|_| Err(deployment));
        };
        key_ref(|field| from.text_at(&["secretKeyRef", field]), None).map(Ok)
    }

    /// Whether the agent must not have a token: it runs a third-party image, its server is older than tokens, or it may
    /// only read.
    fn must_not_have(&self, token: &Token) -> bool {
        let is_old = |object: Option<&Object>, old: &Kind| object.is_some_and(|object| *object.kind == *old);
        let existing = self.existing.get(ACCESS).map(|(_, entry)| entry);
        let may_write =
            || !self.is_read_only() && existing.is_none_or(|entry| entry.literal() == Some(ACCESSES[0]));
        self.is_harness()
            || self.has_old_labels()
            || is_old(self.found.agent, &AGENT_OLD)
            || token.variable == SHARED_TOKEN && (is_old(self.found.ensemble, &ENSEMBLE_OLD) || !may_write())
    }

    pub(super) fn is_harness(&self) -> bool {
        self.found.harness || self.pod.runs_harness()
    }

    /// Whether the pod has labels of releases before 0.10 and none of later ones.
    fn has_old_labels(&self) -> bool {
        let has = |key: &&str| self.pod.around.pod.label(key).is_some();
        [PACK_LABEL, PERSONA_LABEL].iter().any(has) && ![CONFIG_LABEL, ROLE_LABEL].iter().any(has)
    }

    /// Whether the access rule of the agent forbids it to write to the shared memory.
    fn is_read_only(&self) -> bool {
        let access = self.variables.iter().find(|variable| variable.name == ACCESS);
        access.is_some_and(|access| access.literal_value() != Some(ACCESSES[0]))
    }

    /// Whether the agent's URL leads to the server: memgate adds it, or the pod names this very Service of which the
    /// Deployment is known to ask for the token. A token must not travel to another URL.
    fn reaches(&self, token: &Token, state: &StateReader<'s>) -> bool {
        let Some((_, entry)) = self.existing.get(token.url) else { return true };
        let namespace = self.pod.namespace;
        let service = format!(".{namespace}.svc");
        let hosts =
            ["", &format!(".{namespace}"), &service, &format!("{service}.{}", state.cluster_domain())];
        let is_service = |host: &str| {
            let url = format!("http://{}{host}:{MEMORY_SERVER_PORT}", token.server);
            entry.literal().is_some_and(|it| it.strip_suffix('/').unwrap_or(it) == url)
        };
        hosts.into_iter().any(is_service) && matches!(self.of_deployment(token, state), Some(Ok(_)))
    }

    /// Warns about a Secret without which the pod does not start, if Secrets are known.
    fn check_secret(
        &mut self,
        reference: &KeyRef,
        existing: Option<&EnvVarView<'_>>,
        variable: &str,
        state: &mut StateReader<'s>,
    ) {
        let optional = match existing.map(|entry| entry.reference().secret_key_ref) {
            None => reference.optional,
            Some(Some(from)) if from.name.as_deref() == Some(&reference.name) => from.optional,
            Some(_) => return,
        };
        let namespace = self.pod.namespace;
        let lookup = state.quietly(|state| state.get(&SECRET, namespace, &reference.name));
        if optional != Some(true) && lookup == Lookup::Absent {
            let text = "Secret {} not found; the pod waits until Sympozium makes it";
            let at = self.env_entry(variable);
            self.token_findings.push(warning(&WRITER_TOKEN_MISSING, at, text, [&reference.name]));
        }
    }

    /// Reports tokens that the agent has itself and should not have, or not in this form.
    fn check_own_tokens(&mut self) {
        let mut found: Vec<(&'static Code, &'static str, String)> = Vec::new();
        let existing = |name| self.existing.get(name).map(|(_, entry)| entry);
        for name in [PRIVATE_TOKEN, SHARED_TOKEN] {
            let Some(entry) = existing(name).filter(|entry| entry.literal() != Some("")) else { continue };
            if is_clear_text(entry) {
                found.push((&POD_TOKEN_LITERAL, name, filled(CLEAR_TEXT, [name])));
            }
            if self.is_harness() {
                let message = "the agent runs a harness and holds the memory writer token";
                found.push((&POD_TOKEN_HARNESS, name, message.to_owned()));
            }
            if let Some(config) = self.found.config.filter(|_| name == SHARED_TOKEN && self.is_read_only()) {
                let text = "config {} is read-only, but the pod holds the shared writer token";
                found.push((&POD_TOKEN_READ_ONLY, name, filled(text, [config])));
            }
        }
        if existing(ADMIN_TOKEN).is_some_and(|entry| entry.literal() != Some("")) {
            let message = "MEMORY_ADMIN_TOKEN must not be in container \"agent\"";
            found.push((&POD_TOKEN_LITERAL, ADMIN_TOKEN, message.to_owned()));
        }
        let findings = found.into_iter();
        let findings =
            findings.map(|(code, name, message)| Finding::warn(code, self.env_entry(name), message));
        let findings: Vec<Finding> = findings.collect();
        self.token_findings.extend(findings);
    }

    /// Reports the other containers that have a token, once each: a program there could write in the agent's name.
    fn check_other_containers(&mut self, secrets: &Secrets, work: &Budget<'_>) {
        let inits = own::init_containers(self.pod.around.pod, work);
        let servers = [AGENT_CONTAINER, MEMORY_SERVER, PACK_SIDECAR];
        let volumes = self.pod.around.parts.volumes().enumerate();
        let held = volumes.filter_map(|(index, volume)| {
            let source = json(volume.secret.or(volume.projected));
            let of_secret = owner_of(at(&source, "/secretName").as_str(), secrets);
            let owner = of_secret.or_else(|| Some(first_source(at(&source, "/sources"), secrets)?.1));
            Some((volume.name.as_deref()?, (index, owner?)))
        });
        let held: BTreeMap<&str, (usize, &str)> = held.collect();
        let mut findings = Vec::new();
        for (place, container) in own::places(self.pod.around.pod, &inits) {
            let name = container.name.as_deref().unwrap_or_default();
            if servers.contains(&name) {
                continue;
            }
            let found = of_variables(&place, container, secrets).or_else(|| {
                let place = Path::Known(place.as_str());
                let list = Path::Key(&place, "volumeMounts");
                let mounts = container.volume_mounts.filter(|_| !held.is_empty());
                let mounts: Vec<Mount<'_>> = pod::read_list(mounts, list, work)?;
                let found = mounts.iter().filter_map(|mount| held.get(mount.name.as_deref()?));
                let (index, owner) = found.min_by_key(|(index, _)| *index)?;
                Some((Pointer::new("/spec/volumes").index(*index), Some(*owner)))
            });
            if let Some((at, owner)) = found {
                let text = "container {} holds the memory writer token of {}";
                let values = [name, owner.unwrap_or(&self.found.instance)];
                findings.push(warning(&POD_TOKEN_EXPOSED, at, text, values));
                work.finding();
            }
        }
        self.token_findings.extend(findings);
    }
}

const CLEAR_TEXT: &str = "{bare} holds a token in clear text; use a secretKeyRef";

/// The reference by the name that Sympozium gives to the Secret.
fn default_reference(server: &str, setting: WriterTokens) -> Option<KeyRef> {
    let optional = (setting == WriterTokens::Auto).then_some(true);
    let reference = || KeyRef { name: token_secret(server), key: TOKEN_KEY.into(), optional };
    (setting != WriterTokens::Never).then(reference)
}

/// A reference with these fields `name` and `key`.
fn key_ref<'f>(field: impl Fn(&'static str) -> Option<&'f str>, optional: Option<bool>) -> Option<KeyRef> {
    Some(KeyRef { name: field("name")?.to_owned(), key: field("key")?.to_owned().into(), optional })
}

/// Whether a variable has its token as a literal. One that the kubelet expands has not.
fn is_clear_text(entry: &EnvVarView<'_>) -> bool {
    entry.literal().is_some_and(|text| !text.is_empty() && !text.starts_with("$("))
}

fn owner_of<'o>(secret: Option<&str>, secrets: &'o Secrets) -> Option<&'o str> {
    secrets.iter().find(|(name, _)| Some(&**name) == secret).map(|(_, owner)| owner.as_str())
}

/// The first of these Secrets in a list of sources: its index, and the owner of the token.
fn first_source<'o>(list: &Json, secrets: &'o Secrets) -> Option<(usize, &'o str)> {
    let owner = |source: &Json| {
        let names = ["/secretRef/name", "/secret/name"].into_iter().map(|kind| at(source, kind).as_str());
        names.flatten().find_map(|name| owner_of(Some(name), secrets))
    };
    elements(list).iter().enumerate().find_map(|(index, source)| Some((index, owner(source)?)))
}

/// The place where a container has a token as a variable, and the owner of the token if its Secret is named.
fn of_variables<'o>(
    place: &Pointer,
    container: &Container<'_>,
    secrets: &'o Secrets,
) -> Option<(Pointer, Option<&'o str>)> {
    for (index, entry) in container.env.iter().flatten().enumerate() {
        let owner = entry.reference().secret_key_ref.and_then(|key| owner_of(key.name.as_deref(), secrets));
        let is_named = || [PRIVATE_TOKEN, SHARED_TOKEN].map(Some).contains(&entry.name.as_deref());
        if owner.is_some() || is_named() && entry.literal() != Some("") {
            return Some((place.key("env").index(index), owner));
        }
    }
    let (index, owner) = first_source(&json(container.env_from), secrets)?;
    Some((place.key("envFrom").index(index), Some(owner)))
}

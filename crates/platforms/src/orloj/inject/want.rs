//! The variables that an agent's container should have.

use crate::inject::env::{ExistingEnv, Variable, escape_references};
use crate::inject::own::MemoryVariableNames;
use crate::orloj::claim;
use crate::orloj::endpoint;
use crate::orloj::namespace::{self, NamespacedName, Resolved, SecretReference, may_hand_out, not_shared};
use crate::orloj::prelude::*;
use memgate_model::platform_settings::Orloj;

use super::find::{GrantedMemory, ambiguous};

const REF: &str = "ORLOJ_MEMORY_REF";
const NAMESPACE: &str = "ORLOJ_MEMORY_NAMESPACE";
pub(crate) const PROVIDER: &str = "ORLOJ_MEMORY_PROVIDER";
const TYPE: &str = "ORLOJ_MEMORY_TYPE";
const ALLOW: &str = "ORLOJ_MEMORY_ALLOW";
pub(crate) const PASSWORD: &str = "ORLOJ_MEMORY_PASSWORD";
pub(crate) const TOKEN: &str = "ORLOJ_MEMORY_TOKEN";
pub(crate) const DSN: &str = "ORLOJ_MEMORY_DSN";
pub(crate) const ENDPOINT: &str = "ORLOJ_MEMORY_ENDPOINT";
pub(crate) const EMBEDDING_URL: &str = "ORLOJ_MEMORY_EMBEDDING_URL";
pub(crate) const EMBEDDING_MODEL: &str = "ORLOJ_MEMORY_EMBEDDING_MODEL";
pub(crate) const EMBEDDING_API_KEY: &str = "ORLOJ_MEMORY_EMBEDDING_API_KEY";

/// The prefix of all variables. Variables of the pod without it are skipped.
const PREFIX: &str = "ORLOJ_MEMORY_";

/// The names of all variables.
pub(super) const NAMES: MemoryVariableNames<'static> = MemoryVariableNames {
    prefixes: &[PREFIX],
    names: &[
        REF, NAMESPACE, PROVIDER, TYPE, ALLOW, PASSWORD, TOKEN, DSN, ENDPOINT, EMBEDDING_URL,
        EMBEDDING_MODEL, EMBEDDING_API_KEY,
    ],
    open: None,
};

/// What the agent's container should have, and warnings about what is omitted.
pub(super) fn want<'p>(
    (index, container): (usize, &'p Container<'p>),
    found: &GrantedMemory<'_>,
    pod_namespace: &str,
    state: &mut StateReader<'_>,
) -> (WantedByPod<'p>, Vec<Finding>) {
    let memory = Memory::read(found.memory.tree());
    // A Memory whose provider has the wrong type gets no connection variables, like an in-memory one.
    let provider = memory.provider.clone().unwrap_or(Provider::InMemory);
    let existing = ExistingEnv::read(container, &[PREFIX]);
    let settings = &state.settings().orloj;
    let mut variables = MemoryVariables::new(found.memory, pod_namespace, settings, env::pointer(index));
    variables.kept = SECRETS.into_iter().filter(|name| existing.get(name).is_some()).collect();
    variables.add_identity(found, &memory, &provider);
    if provider != Provider::InMemory {
        variables.add_connection(&memory, &provider, found.memory, &existing);
    }
    if provider == Provider::Pgvector {
        variables.add_embeddings(&memory, found.memory, state);
    }
    let memory = vec![format!("Memory/{}", found.memory.name)];
    let containers = vec![WantedByContainer::variables(index, container, existing, variables.variables)];
    (WantedByPod { memory, containers, unmet: variables.unmet, ..WantedByPod::default() }, variables.omitted)
}

/// Collects variables that come from one object at a time.
struct MemoryVariables<'p> {
    pod_namespace: &'p str,
    settings: &'p Orloj,
    /// The pointer of the findings.
    pointer: Pointer,
    /// The object that the next variables come from.
    resource: Arc<str>,
    variables: Vec<Variable<'static>>,
    omitted: Vec<Finding>,
    /// Findings about Secrets that an operator has to share first. They refuse a pod that requires its memory.
    unmet: Vec<Finding>,
    /// The variables for Secrets that the pod sets itself, without a Secret.
    kept: Vec<&'static str>,
}

/// The variables whose value can come from a Secret.
const SECRETS: [&str; 5] = [PASSWORD, TOKEN, DSN, ENDPOINT, EMBEDDING_API_KEY];

impl<'p> MemoryVariables<'p> {
    fn new(memory: &Object, pod_namespace: &'p str, settings: &'p Orloj, pointer: Pointer) -> Self {
        let resource = resource_name("Memory", memory);
        let (variables, omitted, unmet) = (Vec::new(), Vec::new(), Vec::new());
        Self { pod_namespace, settings, pointer, resource, variables, omitted, unmet, kept: Vec::new() }
    }

    fn add(&mut self, name: &'static str, source: EnvSource, of: &'static str) {
        let variable = Variable::new(name, source, field_origin(&self.resource, of));
        let is_address = [DSN, ENDPOINT, EMBEDDING_URL].contains(&name);
        self.variables.push(if is_address { variable.address() } else { variable });
    }

    fn literal(&mut self, name: &'static str, text: &str, field: &'static str) {
        self.add(name, EnvSource::Value(escape_references(text)), field);
    }

    fn omit(&mut self, code: &'static Code, message: String, because_of: impl FnOnce() -> Elsewhere) {
        let finding = Finding::warn(code, self.pointer.clone(), message);
        self.omitted.push(finding.and_elsewhere(|| Some(because_of())));
    }

    /// Adds variables 1 to 5: which memory, and which operations are allowed on it.
    fn add_identity(&mut self, found: &GrantedMemory<'_>, memory: &Memory<'_>, provider: &Provider) {
        self.literal(REF, &found.memory.name, "metadata.name");
        let target = claim::annotated(found.memory.tree()).is_some();
        let field =
            if target { "metadata.annotations[orloj.dev/target-namespace]" } else { "metadata.namespace" };
        self.literal(NAMESPACE, namespace::object_namespace(found.memory), field);
        self.literal(PROVIDER, provider.name(), "spec.provider");
        if let Some(purpose) = memory.purpose {
            self.literal(TYPE, purpose, "spec.type");
        }
        let memory = std::mem::replace(&mut self.resource, resource_name("Agent", found.agent));
        self.literal(ALLOW, &found.operations.join(","), "spec.memory.allow");
        self.resource = memory;
    }

    /// Adds variables 6 and 7: where the memory is, and the credential for it.
    fn add_connection(
        &mut self,
        memory: &Memory<'_>,
        provider: &Provider,
        object: &Object,
        existing: &ExistingEnv<'_>,
    ) {
        let pgvector = *provider == Provider::Pgvector;
        let (credential, address) = if pgvector { (PASSWORD, DSN) } else { (TOKEN, ENDPOINT) };
        let has_credential = memory
            .secret_ref
            .is_some_and(|text| self.add_secret(credential, text, object, "spec.auth.secretRef"));
        if let Some(text) = memory.endpoint_secret_ref {
            self.add_secret(address, text, object, "spec.endpoint_secret_ref");
            return;
        }
        let Some(text) = memory.endpoint else { return };
        if let Some(what) = endpoint::withheld(text, pgvector) {
            let home = namespace::object_namespace(object);
            let text = "endpoint of Memory {/} holds {bare} and is not copied into the pod";
            let message = filled(text, [home, &object.name, what]);
            let here = || Elsewhere::of(object, Pointer::new("/spec/endpoint"), NOT_INJECTED);
            self.omit(&POD_ENDPOINT_WITHHELD, message, here);
            return;
        }
        match endpoint::password_position(text).filter(|_| pgvector && has_credential) {
            // A password that the pod sets itself would come after the connection string that refers to it, or would
            // have another value.
            Some(_) if existing.get(PASSWORD).is_some() && existing.get(DSN).is_none() => {}
            Some(password_position) => self.add_dsn(text, password_position),
            None if *provider == Provider::Http => {
                self.literal(ENDPOINT, text.trim_end_matches('/'), "spec.endpoint");
            }
            None => self.literal(address, text, "spec.endpoint"),
        }
    }

    /// Adds a connection string. The kubelet inserts the password, so the pod never contains it.
    fn add_dsn(&mut self, text: &str, password_position: usize) {
        let (user, host) = text.split_at(password_position);
        let value = format!("{}:$({PASSWORD}){}", escape_references(user), escape_references(host));
        self.add(DSN, EnvSource::Value(value), "spec.endpoint");
    }

    /// Adds variables 8 to 10: the embeddings API. Without the ModelEndpoint they are left out.
    fn add_embeddings(&mut self, memory: &Memory<'_>, object: &Object, state: &mut StateReader<'_>) {
        let Some(text) = memory.embedding_model else { return };
        let reference = NamespacedName::read(text, namespace::object_namespace(object));
        let object = match namespace::resolve(&MODEL_ENDPOINT, reference.namespace, reference.name, state) {
            Resolved::Found(object) => object,
            Resolved::Ambiguous(claims) => {
                let (home, name) = (reference.namespace, reference.name);
                self.omitted.push(ambiguous(&MODEL_ENDPOINT, home, name, &claims, self.pointer.clone()));
                return;
            }
            Resolved::Absent | Resolved::Unknown => return,
        };
        self.resource = resource_name("ModelEndpoint", object);
        let endpoint = ModelEndpoint::read(object.tree());
        if let Some(url) = embedding_url(&endpoint) {
            self.literal(EMBEDDING_URL, url, "spec.base_url");
        }
        if let Some(model) = endpoint.default_model {
            self.literal(EMBEDDING_MODEL, model, "spec.default_model");
        }
        if let Some(text) = endpoint.secret_ref {
            self.add_secret(EMBEDDING_API_KEY, text, object, "spec.auth.secretRef");
        }
    }

    /// Adds a reference to a Secret, and returns whether the pod can have it. A pod cannot refer to a Secret of
    /// another namespace, and an object of another namespace may give it Secrets of its own namespace only if the
    /// settings share them.
    fn add_secret(&mut self, name: &'static str, text: &str, object: &Object, field: &'static str) -> bool {
        let reference = SecretReference::read(text, namespace::object_namespace(object));
        let secret = reference.secret;
        if !reference.is_valid_key_ref() {
            return false;
        }
        let named_here = || Elsewhere::of(object, Pointer::of_field(field), "the Secret is named here");
        if secret.namespace != self.pod_namespace {
            let names = [secret.namespace, secret.name, self.pod_namespace];
            let message = filled("Secret {/} is not in the pod's namespace {}", names);
            self.omit(&POD_SECRET_NAMESPACE, message, named_here);
            return false;
        }
        if !may_hand_out(secret, &object.namespace, self.settings) {
            if !self.kept.contains(&name) {
                let resource = [object.kind.kind, &object.namespace, &object.name];
                let finding = not_shared(secret, resource, self.pointer.clone(), self.settings);
                self.unmet.push(finding.and_elsewhere(|| Some(named_here())));
            }
            return false;
        }
        // Credentials may exist only in Orloj's store; a missing Secret must not stop the task.
        let key = KeyRef {
            name: secret.name.to_owned(),
            key: reference.key().to_owned().into(),
            optional: Some(true),
        };
        self.add(name, EnvSource::Secret(key), field);
        true
    }
}

/// The URL of the embeddings API, if it is known and may be copied.
fn embedding_url<'t>(endpoint: &ModelEndpoint<'t>) -> Option<&'t str> {
    let url = match (endpoint.base_url, endpoint.provider.as_str()) {
        (Some(url), _) => url,
        (None, "openai") => OPENAI_URL,
        (None, _) => return None,
    };
    endpoint::withheld(url, false).is_none().then(|| url.trim_end_matches('/'))
}

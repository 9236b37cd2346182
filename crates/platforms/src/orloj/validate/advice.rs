//! Warnings about a Memory that is valid, but probably does not work as intended.

use crate::endpoint_view::ambiguous_host;
use crate::orloj::claim::{self, DEFAULT};
use crate::orloj::endpoint;
use crate::orloj::namespace::{
    self, NamespacedName, SecretReference, is_in_job_namespace, may_hand_out, not_shared,
};
use crate::orloj::prelude::*;
use memgate_model::platform_settings::Orloj;

use super::memory::{has_endpoint, is_valid_reference, unusable_endpoint};

const ENDPOINT: &str = "/spec/endpoint";
const ENDPOINT_SECRET: &str = "/spec/endpoint_secret_ref";
const EMBEDDING_MODEL: &str = "/spec/embedding_model";
const AUTH_SECRET: &str = "/spec/auth/secretRef";

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let memory = Memory::read(subject.object);
    let mut findings: Vec<Finding> = provider_unknown(&memory).into_iter().collect();
    findings.extend(missing_with_custom_provider(&memory, subject.object));
    findings.extend(exclusive(&memory));
    findings.extend(ignored_fields(&memory));
    findings.extend(ignored_auth(&memory));
    findings.extend(inline_credential(&memory));
    findings.extend(key_suffixes(&memory));
    findings.extend(foreign_secrets(&memory, subject, &state.settings().orloj));
    if let Some(endpoint) = memory.effective_endpoint() {
        findings.extend(cleartext_token(&memory, endpoint, subject.namespace));
        findings.extend(loopback_host(&memory, endpoint));
        let is_reported =
            unusable_endpoint(&memory, endpoint).is_some() || endpoint::contains_password(endpoint);
        findings.extend(ambiguous_host(endpoint, ENDPOINT).filter(|_| !is_reported));
        findings.extend(shared_table(&memory, subject, state));
    }
    findings.extend(embedding(&memory, subject, state));
    findings
}

/// An unknown provider only warns, since custom builds of Orloj register more providers.
fn provider_unknown(memory: &Memory<'_>) -> Option<Finding> {
    let Some(Provider::Custom(name)) = &memory.provider else { return None };
    let hint = match intended_provider(name) {
        Some(meant) => format!("; did you mean \"{meant}\"?"),
        None => "; use \"in-memory\", \"pgvector\" or \"http\"".to_owned(),
    };
    let text = "spec.provider: unsupported memory provider {text}{bare}";
    Some(warning(&PROVIDER_UNKNOWN, "/spec/provider", text, [name, &hint]))
}

/// The provider that a wrong name probably means.
fn intended_provider(name: &str) -> Option<&'static str> {
    /// The largest edit distance of a suggestion.
    const MAX_EDITS: usize = 2;
    const PROVIDER_NAMES: [(&str, &str); 4] =
        [("in-memory", "in-memory"), ("memory", "in-memory"), ("pgvector", "pgvector"), ("http", "http")];
    match name {
        "postgres" | "postgresql" | "postgre" | "pg" | "pgsql" | "pg-vector" | "pg_vector" => {
            return Some("pgvector");
        }
        "inmemory" | "in_memory" | "mem" | "local" => return Some("in-memory"),
        "https" | "rest" => return Some("http"),
        // Comparing long names is expensive, and a long name cannot be near any of these.
        long if long.len() > 64 => return None,
        _ => {}
    }
    let distances = PROVIDER_NAMES.map(|(known, meant)| (strsim::osa_distance(name, known), meant));
    distances.into_iter().filter(|(distance, _)| *distance <= MAX_EDITS).min().map(|(_, meant)| meant)
}

/// Warns about missing fields that custom providers probably need. memgate does not know these providers, so it
/// does not deny.
fn missing_with_custom_provider(memory: &Memory<'_>, object: &Tree) -> Vec<Finding> {
    let Some(Provider::Custom(name)) = &memory.provider else { return Vec::new() };
    let mut findings = Vec::new();
    if !has_endpoint(memory, object) {
        let message = "spec.endpoint is empty; cloud-hosted memory providers need a URL there";
        findings.push(Finding::warn(&CUSTOM_ENDPOINT_MISSING, ENDPOINT, message));
    }
    if is_vector_database(name) && memory.embedding_model.is_none() {
        let message =
            "spec.embedding_model is empty; vector providers need the name of a ModelEndpoint there";
        findings.push(Finding::warn(&CUSTOM_EMBEDDING_MISSING, EMBEDDING_MODEL, message));
    }
    findings
}

fn is_vector_database(provider: &str) -> bool {
    const NAMES: [&str; 9] = [
        "pinecone", "qdrant", "weaviate", "milvus", "chroma", "chromadb", "lancedb", "elasticsearch",
        "opensearch",
    ];
    NAMES.contains(&provider) || intended_provider(provider) == Some("pgvector")
}

fn exclusive(memory: &Memory<'_>) -> Option<Finding> {
    memory.endpoint.and(memory.endpoint_secret_ref)?;
    let message = "spec.endpoint and spec.endpoint_secret_ref are mutually exclusive; the secret wins";
    let finding = Finding::warn(&ENDPOINT_EXCLUSIVE, ENDPOINT_SECRET, message);
    Some(finding.related(Pointer::new(ENDPOINT), "never read"))
}

fn ignored_fields(memory: &Memory<'_>) -> Vec<Finding> {
    let fields = [(ENDPOINT, memory.endpoint), (ENDPOINT_SECRET, memory.endpoint_secret_ref)];
    let set =
        fields.into_iter().filter(|(_, text)| memory.has_provider(&Provider::InMemory) && text.is_some());
    let finding = |(pointer, _)| {
        let field = Pointer::new(pointer).field();
        Finding::warn(&FIELD_IGNORED, pointer, format!("{field} has no effect with provider in-memory"))
    };
    set.map(finding).collect()
}

fn ignored_auth(memory: &Memory<'_>) -> Option<Finding> {
    memory.secret_ref?;
    let reason = match memory.provider.as_ref()? {
        Provider::InMemory => " with provider in-memory",
        Provider::Pgvector if endpoint::password_position(memory.effective_endpoint()?).is_none() => {
            ": spec.endpoint needs a user without a password"
        }
        Provider::Pgvector | Provider::Http | Provider::Custom(_) => return None,
    };
    Some(Finding::warn(&AUTH_IGNORED, AUTH_SECRET, format!("spec.auth.secretRef has no effect{reason}")))
}

fn inline_credential(memory: &Memory<'_>) -> Option<Finding> {
    let message = "spec.endpoint contains a password in clear text; use endpoint_secret_ref";
    memory
        .endpoint
        .filter(|text| endpoint::contains_password(text))
        .map(|_| Finding::warn(&INLINE_CREDENTIAL, ENDPOINT, message))
}

fn key_suffixes(memory: &Memory<'_>) -> Vec<Finding> {
    let fields = [(AUTH_SECRET, memory.secret_ref), (ENDPOINT_SECRET, memory.endpoint_secret_ref)];
    let finding = |(pointer, text): (&str, Option<&str>)| {
        let text = text.filter(|text| SecretReference::read(text, DEFAULT).names_key())?;
        let field = Pointer::new(pointer).field();
        let template =
            "{bare}: Orloj takes {text} for the whole name of a Secret; only memgate reads a key in it";
        Some(warning(&SECRET_KEY_SUFFIX, pointer, template, [&field, text]))
    };
    fields.into_iter().filter_map(finding).collect()
}

/// Warns about Secrets of a job namespace that pods there do not get from this Memory. The in-memory provider does
/// not use Secrets.
fn foreign_secrets(memory: &Memory<'_>, subject: &Subject<'_>, settings: &Orloj) -> Vec<Finding> {
    let fields = [(AUTH_SECRET, memory.secret_ref), (ENDPOINT_SECRET, memory.endpoint_secret_ref)];
    let home = claim::effective(subject.object, subject.namespace);
    let fields = fields.into_iter().filter(|_| !memory.has_provider(&Provider::InMemory));
    let finding = |(pointer, text): (&str, Option<&str>)| {
        let reference = SecretReference::read(text?, home);
        let secret = reference.secret;
        let foreign = reference.is_valid_key_ref()
            && is_in_job_namespace(secret, settings)
            && !may_hand_out(secret, subject.namespace, settings);
        let resource = [MEMORY.kind, subject.namespace, subject.name];
        foreign.then(|| not_shared(secret, resource, Pointer::new(pointer), settings))
    };
    fields.filter_map(finding).collect()
}

fn cleartext_token(memory: &Memory<'_>, endpoint: &str, namespace: &str) -> Option<Finding> {
    memory.secret_ref?;
    let travels = memory.has_provider(&Provider::Http)
        && Endpoint::parse(endpoint).is_http()
        && Endpoint::parse(endpoint).has_scheme("http")
        && !endpoint::is_in_cluster(endpoint, namespace);
    let message = "spec.endpoint: bearer token would travel over plain http";
    travels.then(|| Finding::warn(&CLEARTEXT_TOKEN, ENDPOINT, message))
}

fn loopback_host(memory: &Memory<'_>, endpoint: &str) -> Option<Finding> {
    let itself = memory.has_provider(&Provider::Pgvector)
        && endpoint::is_postgres(endpoint)
        && endpoint::is_loopback(endpoint);
    let message = "spec.endpoint: loopback host is the worker itself";
    itself.then(|| Finding::warn(&PGVECTOR_LOOPBACK, ENDPOINT, message))
}

/// Finds pgvector Memories by their database.
static BY_DATABASE: Index = Index {
    place: 3,
    keys: |memory| database(&Memory::read(memory.tree())).map(Cow::Owned).into_iter().collect(),
};

/// The key of the database that a pgvector Memory uses, if its endpoint names one.
fn database(memory: &Memory<'_>) -> Option<String> {
    let endpoint = memory.effective_endpoint().filter(|_| memory.has_provider(&Provider::Pgvector))?;
    endpoint::database(endpoint)
}

/// Warns about Memories that share a table: every pgvector Memory uses the table `orloj_memory` of its database.
/// Source: OrlojHQ/orloj, the pgvector backend.
fn shared_table(memory: &Memory<'_>, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let itself = (subject.namespace, subject.name);
    let namespace = (!state.names_others()).then_some(subject.namespace);
    let mut others = state.indexed_in(&MEMORY, (&BY_DATABASE, &database(memory)?), namespace);
    let other = others.find(|other| (&*other.namespace, &*other.name) != itself)?;
    let text = "spec.endpoint: shares table orloj_memory with Memory {name}/{name}";
    let finding = warning(&SHARED_TABLE, ENDPOINT, text, [&other.namespace, &other.name]);
    Some(finding.elsewhere(other, Pointer::new(ENDPOINT), "the same database"))
}

/// Checks that the ModelEndpoint can embed. Orloj resolves it for every provider.
fn embedding(memory: &Memory<'_>, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let text = memory.embedding_model.filter(|text| is_valid_reference(text))?;
    let reference = NamespacedName::read(text, claim::effective(subject.object, subject.namespace));
    let found = namespace::find_for(
        (subject.object, subject.namespace),
        &MODEL_ENDPOINT,
        (reference.namespace, reference.name),
        state,
    );
    let endpoint = found.found()?;
    let (field, reason) = no_embeddings(&ModelEndpoint::read(endpoint.tree()))?;
    let template = "spec.embedding_model: model endpoint {} cannot serve embeddings: {bare}";
    let finding = warning(&EMBEDDING_UNUSABLE, EMBEDDING_MODEL, template, [text, &reason]);
    Some(finding.elsewhere(endpoint, Pointer::new(field), "because of this"))
}

/// Why a ModelEndpoint cannot make embeddings, with the field.
fn no_embeddings(endpoint: &ModelEndpoint<'_>) -> Option<(&'static str, String)> {
    const PROVIDER: &str = "/spec/provider";
    if endpoint.default_model.is_none() {
        return Some(("/spec/default_model", "default_model is empty".to_owned()));
    }
    let provider = endpoint.provider.as_str();
    let (field, url) = match (endpoint.base_url, provider) {
        (Some(url), _) => ("/spec/base_url", url),
        (None, "anthropic" | "bedrock") => {
            return Some((PROVIDER, format!("provider \"{provider}\" has no embeddings API")));
        }
        (None, "ollama") => (PROVIDER, OLLAMA_URL),
        (None, _) => return None,
    };
    endpoint::is_loopback(url).then(|| (field, "base_url is a loopback address".to_owned()))
}

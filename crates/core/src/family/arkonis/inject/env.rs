//! The variables that a memory wants in its agent's container, and how they compare with those
//! that are there.

use std::sync::Arc;

use crate::model::edit::{EnvSource, EnvVar, Origin, SecretKeyRef, ValueFrom};
use crate::model::pod;
use crate::model::snapshot::Object;

use super::super::api::{
    API_KEY_KEY, Backend, COLLECTION_DEFAULT, Dialect, EMBEDDING_PROVIDER_DEFAULT, Embedding, Memory,
    REDIS_URL_KEY, Redis, VectorStore,
};

const BACKEND: &str = "AGENT_MEMORY_BACKEND";
const REDIS_URL: &str = "AGENT_MEMORY_REDIS_URL";
const REDIS_TTL: &str = "AGENT_MEMORY_REDIS_TTL";
const REDIS_MAX_ENTRIES: &str = "AGENT_MEMORY_REDIS_MAX_ENTRIES";
const PROVIDER: &str = "AGENT_MEMORY_VECTOR_STORE_PROVIDER";
const ENDPOINT: &str = "AGENT_MEMORY_VECTOR_STORE_ENDPOINT";
const COLLECTION: &str = "AGENT_MEMORY_VECTOR_STORE_COLLECTION";
const API_KEY: &str = "AGENT_MEMORY_VECTOR_STORE_API_KEY";
const VECTOR_TTL: &str = "AGENT_MEMORY_VECTOR_STORE_TTL";
const VECTOR_URL: &str = "AGENT_VECTOR_STORE_URL";
const EMBEDDING_MODEL: &str = "AGENT_EMBEDDING_MODEL";
const EMBEDDING_PROVIDER: &str = "AGENT_EMBEDDING_PROVIDER";

/// The variables that say something about memory, in their order; the last three are the
/// successor's own.
const NAMES: [&str; 12] = [
    BACKEND,
    REDIS_URL,
    REDIS_TTL,
    REDIS_MAX_ENTRIES,
    PROVIDER,
    ENDPOINT,
    COLLECTION,
    API_KEY,
    VECTOR_TTL,
    VECTOR_URL,
    EMBEDDING_MODEL,
    EMBEDDING_PROVIDER,
];
const SUCCESSOR_NAMES: usize = 3;

/// What all [`NAMES`] start with: most variables of a pod are told apart by it.
const COMMON_START: &str = "AGENT_";

/// A variable that the memory wants, and the field that it comes from.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) source: EnvSource,
    field: &'static str,
    /// Whether an empty literal is as good: what the operator writes for an empty collection.
    or_empty: bool,
}

impl Variable {
    fn literal_of(name: &'static str, value: impl Into<String>, field: &'static str) -> Self {
        Self { name, source: EnvSource::Value(value.into()), field, or_empty: false }
    }

    fn secret(name: &'static str, secret: &str, key: &'static str, field: &'static str) -> Self {
        let secret_key_ref = SecretKeyRef { name: secret.to_owned(), key: key.into(), optional: None };
        Self { name, source: EnvSource::ValueFrom(ValueFrom { secret_key_ref }), field, or_empty: false }
    }

    /// The literal; empty for a reference.
    pub(super) fn literal(&self) -> &str {
        match &self.source {
            EnvSource::Value(value) => value,
            EnvSource::ValueFrom(_) | EnvSource::ConfigMap(_) => "",
        }
    }

    pub(super) fn env_var(&self) -> EnvVar {
        EnvVar { name: self.name.into(), source: self.source.clone() }
    }

    /// The origin, given the memory as `Kind namespace/name`.
    pub(super) fn origin(&self, memory: &Arc<str>) -> Origin {
        Origin { resource: Arc::clone(memory), field: self.field.into(), rule: "" }
    }

    fn equals(&self, existing: &pod::EnvVar<'_>) -> bool {
        match &self.source {
            EnvSource::Value(wanted) => {
                let same = |literal: &str| literal == wanted || (self.or_empty && literal.is_empty());
                existing.literal().is_some_and(same)
            }
            EnvSource::ValueFrom(ValueFrom { secret_key_ref }) => existing
                .secret_key_ref()
                .is_some_and(|(name, key)| name == secret_key_ref.name && key == secret_key_ref.key),
            EnvSource::ConfigMap(_) => false,
        }
    }
}

/// The variables that a valid memory wants, in their order.
pub(super) fn wanted(dialect: &Dialect, memory: &Object) -> Vec<Variable> {
    let memory = Memory::read(dialect, &memory.tree);
    let Some(backend) = memory.backend() else { return Vec::new() };
    let mut wanted = vec![Variable::literal_of(BACKEND, backend.name(), "spec.backend")];
    match (backend, &memory.redis, &memory.vector_store) {
        (Backend::Redis, Some(redis), _) => redis_variables(redis, &mut wanted),
        (Backend::VectorStore, _, Some(store)) => {
            vector_store_variables(store, &mut wanted);
            if dialect.successor {
                successor_variables(store, memory.embedding.as_ref(), &mut wanted);
            }
        }
        _ => {}
    }
    wanted
}

fn redis_variables(redis: &Redis<'_>, wanted: &mut Vec<Variable>) {
    let secret = redis.secret_name.unwrap_or_default();
    wanted.push(Variable::secret(REDIS_URL, secret, REDIS_URL_KEY, "spec.redis.secretRef.name"));
    let numbers = [
        (REDIS_TTL, redis.ttl(), "spec.redis.ttlSeconds"),
        (REDIS_MAX_ENTRIES, redis.max(), "spec.redis.maxEntries"),
    ];
    for (name, number, field) in numbers {
        wanted.extend(number.map(|number| Variable::literal_of(name, number.to_string(), field)));
    }
}

fn vector_store_variables(store: &VectorStore<'_>, wanted: &mut Vec<Variable>) {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    wanted.push(Variable::literal_of(PROVIDER, text(store.provider), "spec.vectorStore.provider"));
    wanted.push(Variable::literal_of(ENDPOINT, text(store.endpoint), "spec.vectorStore.endpoint"));
    let name = collection(store);
    let variable = Variable::literal_of(COLLECTION, name, "spec.vectorStore.collection");
    wanted.push(Variable { or_empty: store.collection == Some(""), ..variable });
    wanted.extend(
        store
            .secret_name
            .map(|secret| Variable::secret(API_KEY, secret, API_KEY_KEY, "spec.vectorStore.secretRef.name")),
    );
    let ttl = store.ttl().map(|ttl| ttl.to_string());
    wanted.extend(ttl.map(|ttl| Variable::literal_of(VECTOR_TTL, ttl, "spec.vectorStore.ttlSeconds")));
}

fn collection<'t>(store: &VectorStore<'t>) -> &'t str {
    store.collection.filter(|name| !name.is_empty()).unwrap_or(COLLECTION_DEFAULT)
}

fn successor_variables(
    store: &VectorStore<'_>,
    embedding: Option<&Embedding<'_>>,
    wanted: &mut Vec<Variable>,
) {
    wanted.push(Variable::literal_of(VECTOR_URL, vector_url(store), "spec.vectorStore.endpoint"));
    let Some(embedding) = embedding else { return };
    let model = embedding.model.unwrap_or_default();
    wanted.push(Variable::literal_of(EMBEDDING_MODEL, model, "spec.embedding.model"));
    let provider = match embedding.provider {
        None | Some(EMBEDDING_PROVIDER_DEFAULT) => provider_of_model(model),
        Some(provider) => provider,
    };
    wanted.push(Variable::literal_of(EMBEDDING_PROVIDER, provider, "spec.embedding.provider"));
}

/// `provider://endpoint without its scheme/collection`; the endpoint of pgvector is a connection
/// string and stays as it is.
fn vector_url(store: &VectorStore<'_>) -> String {
    let (provider, endpoint) = (store.provider.unwrap_or_default(), store.endpoint.unwrap_or_default());
    if provider == "pgvector" {
        return endpoint.to_owned();
    }
    let without_scheme = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    format!("{provider}://{without_scheme}/{}", collection(store))
}

/// How kubeswarm resolves `auto`, from the name of the model.
fn provider_of_model(model: &str) -> &'static str {
    if model.starts_with("text-multilingual-embedding-") {
        "google"
    } else if model.starts_with("voyage-") {
        "voyageai"
    } else {
        "openai"
    }
}

/// Whether a value holds `$(NAME)`, which the kubelet resolves only from entries before it.
pub(super) fn refers_to_others(dialect: &Dialect, memory: &Object) -> bool {
    let memory = Memory::read(dialect, &memory.tree);
    let texts = memory.vector_store.as_ref().map(|store| [store.endpoint, store.collection]);
    let mut texts = texts.into_iter().flatten().flatten();
    memory.backend() == Some(Backend::VectorStore) && texts.any(|text| text.contains("$("))
}

/// How the variables of a container compare with the wanted ones. Indexes are those of the last
/// entry of a name, which is the one that counts.
#[derive(Debug, Default)]
pub(super) struct Compared<'p> {
    /// Another backend: its index, the wanted variable, and its literal (`None` for a reference).
    pub(super) other_backend: Option<(usize, Variable, Option<&'p str>)>,
    pub(super) missing: Vec<Variable>,
    pub(super) different: Vec<(usize, &'static str)>,
    pub(super) unwanted: Vec<(usize, &'static str)>,
}

pub(super) fn compare<'p>(
    existing: &'p [pod::EnvVar<'_>],
    wanted: &[Variable],
    dialect: &Dialect,
) -> Compared<'p> {
    let own = if dialect.successor { NAMES.len() } else { NAMES.len() - SUCCESSOR_NAMES };
    let last = last_entries(existing);
    let mut compared = Compared::default();
    for (name, index) in NAMES.into_iter().zip(last).take(own) {
        let variable = wanted.iter().find(|variable| variable.name == name);
        let entry = index.and_then(|index| Some((index, existing.get(index)?)));
        match (variable, entry) {
            (None, None) => {}
            (None, Some((index, _))) => compared.unwanted.push((index, name)),
            (Some(variable), None) => compared.missing.push(variable.clone()),
            (Some(variable), Some((_, entry))) if variable.equals(entry) => {}
            (Some(variable), Some((index, entry))) if name == BACKEND => {
                let literal = entry.literal();
                compared.other_backend = Some((index, variable.clone(), literal));
            }
            (Some(_), Some((index, _))) => compared.different.push((index, name)),
        }
    }
    compared
}

/// For each of [`NAMES`] the index of its last entry. One look at each entry, however many.
fn last_entries(existing: &[pod::EnvVar<'_>]) -> [Option<usize>; NAMES.len()] {
    let mut last = [None; NAMES.len()];
    for (index, entry) in existing.iter().enumerate() {
        let name = entry.name.as_deref().filter(|name| name.starts_with(COMMON_START));
        let known = name.and_then(|name| NAMES.iter().position(|known| *known == name));
        if let Some(slot) = known.and_then(|known| last.get_mut(known)) {
            *slot = Some(index);
        }
    }
    last
}

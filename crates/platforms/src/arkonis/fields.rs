//! The fields of a memory, one row each: all code of the family about a field is made from its row.

use crate::fields::{Backend, Memory, MemoryField, MemoryFields};
use memgate_model::edge::Key;

use super::codes::{
    BACKEND_REQUIRED, BACKEND_UNKNOWN, ENDPOINT_REQUIRED, MEMORY_BACKEND_UNKNOWN, NUMBER_NEGATIVE,
    PROVIDER_REQUIRED, PROVIDER_UNKNOWN, REDIS_REQUIRED, REDIS_SECRET_REQUIRED, SECRET_NAME_INVALID,
    VECTOR_SECRET_NAME, VECTOR_STORE_REQUIRED,
};

/// The names of the backends.
const BACKENDS: [&str; 3] = [IN_CONTEXT.name, REDIS.name, VECTOR_STORE.name];

/// Where memory is kept.
pub(crate) const BACKEND: MemoryField = MemoryField::text("/spec/backend")
    .values(&BACKENDS, &[], Some(&BACKEND_UNKNOWN))
    .synonym("memory", IN_CONTEXT.name)
    .required(&BACKEND_REQUIRED)
    .variable("AGENT_MEMORY_BACKEND");

/// The same in settings.
pub(crate) const SETTINGS_BACKEND: MemoryField =
    MemoryField::text("/spec/memoryBackend").values(&BACKENDS, &[], Some(&MEMORY_BACKEND_UNKNOWN));

/// The Secret with the URL of Redis.
pub(crate) const REDIS_SECRET: MemoryField =
    MemoryField::secret_name("/spec/redis/secretRef/name", Key::Fixed("REDIS_URL"))
        .required(&REDIS_SECRET_REQUIRED)
        .view("endpoint")
        .variable("AGENT_MEMORY_REDIS_URL");

/// Seconds until Redis drops an entry.
const REDIS_TTL: MemoryField = MemoryField::number("/spec/redis/ttlSeconds", 3600, "no expiry")
    .view("ttlSeconds")
    .variable("AGENT_MEMORY_REDIS_TTL");

/// The number of entries in Redis.
pub(crate) const MAX_ENTRIES: MemoryField = MemoryField::number("/spec/redis/maxEntries", 0, "unlimited")
    .view("maxEntries")
    .variable("AGENT_MEMORY_REDIS_MAX_ENTRIES");

/// The vector database.
pub(crate) const PROVIDER: MemoryField = MemoryField::text("/spec/vectorStore/provider")
    .values(&["qdrant", "pinecone", "weaviate"], &[], Some(&PROVIDER_UNKNOWN))
    .required(&PROVIDER_REQUIRED)
    .view("provider")
    .variable("AGENT_MEMORY_VECTOR_STORE_PROVIDER");

/// The same in the successor.
const SWARM_PROVIDER: MemoryField =
    PROVIDER.values(&["qdrant", PGVECTOR], &["pinecone", "weaviate"], Some(&PROVIDER_UNKNOWN));

/// The provider whose address is a connection string.
pub(crate) const PGVECTOR: &str = "pgvector";

/// The base URL of the vector database.
pub(crate) const ENDPOINT: MemoryField = MemoryField::text("/spec/vectorStore/endpoint")
    .required(&ENDPOINT_REQUIRED)
    .view("endpoint")
    .variable("AGENT_MEMORY_VECTOR_STORE_ENDPOINT");

/// The collection in the vector database.
pub(crate) const COLLECTION: MemoryField = MemoryField::text("/spec/vectorStore/collection")
    .default(COLLECTION_DEFAULT)
    .view("collection")
    .variable("AGENT_MEMORY_VECTOR_STORE_COLLECTION");

/// The collection if none is given.
pub(crate) const COLLECTION_DEFAULT: &str = "agent-memories";

/// The Secret with the API key of the vector database.
pub(crate) const VECTOR_SECRET: MemoryField =
    MemoryField::optional_secret_name("/spec/vectorStore/secretRef/name", Key::Fixed("VECTOR_STORE_API_KEY"))
        .required(&VECTOR_SECRET_NAME)
        .variable("AGENT_MEMORY_VECTOR_STORE_API_KEY");

/// Seconds until the vector database drops an entry.
pub(crate) const VECTOR_TTL: MemoryField =
    MemoryField::number("/spec/vectorStore/ttlSeconds", 0, "no expiry")
        .view("ttlSeconds")
        .variable("AGENT_MEMORY_VECTOR_STORE_TTL");

/// The URL that the successor's program makes of the endpoint.
pub(crate) const VECTOR_URL: MemoryField =
    MemoryField::text(ENDPOINT.path).read_as(vector_url).variable("AGENT_VECTOR_STORE_URL");

/// The successor's embedding model.
pub(crate) const EMBEDDING_MODEL: MemoryField =
    MemoryField::text("/spec/embedding/model").view("embedding.model").variable("AGENT_EMBEDDING_MODEL");

/// The provider of the embedding model.
pub(crate) const EMBEDDING_PROVIDER: MemoryField = MemoryField::text("/spec/embedding/provider")
    .values(&[OF_MODEL, "openai"], &["google", "voyageai"], None)
    .default(OF_MODEL)
    .read_as(embedding_provider)
    .view("embedding.provider")
    .variable("AGENT_EMBEDDING_PROVIDER");

/// The embedding provider if none is given: the name of the model decides.
const OF_MODEL: &str = "auto";

/// The Secret with the API key of the embedding provider.
pub(crate) const EMBEDDING_SECRET: MemoryField =
    MemoryField::optional_secret_name("/spec/embedding/apiKeyRef/name", Key::Beside("key"));

/// Within one task's context window only.
pub(crate) const IN_CONTEXT: Backend = Backend { name: "in-context", section: None, fields: &[] };

/// In Redis.
pub(crate) const REDIS: Backend = Backend {
    name: "redis",
    section: Some(("/spec/redis", &REDIS_REQUIRED)),
    fields: &[REDIS_SECRET, REDIS_TTL, MAX_ENTRIES],
};

/// In a vector database.
pub(crate) const VECTOR_STORE: Backend = Backend {
    name: "vector-store",
    section: Some(("/spec/vectorStore", &VECTOR_STORE_REQUIRED)),
    fields: &[PROVIDER, ENDPOINT, COLLECTION, VECTOR_SECRET, VECTOR_TTL],
};

/// The same in the successor.
pub(crate) const SWARM_VECTOR_STORE: Backend = Backend {
    fields: &[
        SWARM_PROVIDER, ENDPOINT, COLLECTION, VECTOR_SECRET, VECTOR_TTL, VECTOR_URL, EMBEDDING_MODEL,
        EMBEDDING_PROVIDER, EMBEDDING_SECRET,
    ],
    ..VECTOR_STORE
};

/// The fields of a memory.
pub(crate) static ARK_FIELDS: MemoryFields = MemoryFields {
    backend: BACKEND,
    backends: &[IN_CONTEXT, REDIS, VECTOR_STORE],
    empty_names: false,
    secret_name_invalid: &SECRET_NAME_INVALID,
    negative: &NUMBER_NEGATIVE,
};

/// The same in the successor.
pub(crate) static SWARM_FIELDS: MemoryFields =
    MemoryFields { backends: &[IN_CONTEXT, REDIS, SWARM_VECTOR_STORE], empty_names: true, ..ARK_FIELDS };

/// The variables about memory, in order; only the successor has the last three.
pub(crate) static VARIABLES: [&str; 12] = [
    BACKEND.variable, REDIS_SECRET.variable, REDIS_TTL.variable, MAX_ENTRIES.variable, PROVIDER.variable,
    ENDPOINT.variable, COLLECTION.variable, VECTOR_SECRET.variable, VECTOR_TTL.variable, VECTOR_URL.variable,
    EMBEDDING_MODEL.variable, EMBEDDING_PROVIDER.variable,
];

/// The URL `PROVIDER://ENDPOINT/COLLECTION`, without the endpoint's own scheme. The endpoint of pgvector is
/// a connection string and is used unchanged. `None` without a vector store.
fn vector_url(memory: &Memory<'_>) -> Option<String> {
    memory.at(ENDPOINT.section)?;
    let text = |field| memory.text_or_default(field).unwrap_or_default();
    let [provider, endpoint, collection] = [&PROVIDER, &ENDPOINT, &COLLECTION].map(text);
    if provider == PGVECTOR {
        return Some(endpoint.to_owned());
    }
    let without_scheme = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    Some(format!("{provider}://{without_scheme}/{collection}"))
}

/// The embedding provider; without one that is named, the one that kubeswarm chooses from the name of the model.
fn embedding_provider(memory: &Memory<'_>) -> Option<String> {
    let of_model = |model: &str| {
        if model.starts_with("text-multilingual-embedding-") {
            "google"
        } else if model.starts_with("voyage-") {
            "voyageai"
        } else {
            "openai"
        }
    };
    let provider = match memory.text(&EMBEDDING_PROVIDER) {
        None | Some(OF_MODEL) => memory.text(&EMBEDDING_MODEL).map(of_model),
        provider => provider,
    };
    provider.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_every_variable_in_order() {
        let rows = [&BACKEND].into_iter().chain(SWARM_FIELDS.all());
        let of_rows: Vec<&str> = rows.map(|row| row.variable).filter(|name| !name.is_empty()).collect();
        assert_eq!(of_rows, VARIABLES);
    }
}

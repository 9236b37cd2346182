//! Warnings about a memory resource that works, but probably not as intended.

use crate::arkonis::api::{Backend, Dialect, Memory, Redis, VectorStore};
use crate::arkonis::codes::{
    COLLECTION_EMPTY, ENDPOINT_CREDENTIALS, ENDPOINT_NOT_URL, HOSTED_WITHOUT_SECRET, NUMBER_NEGATIVE,
    SECTION_UNUSED,
};
use crate::endpoint_view::ambiguous_host;
use crate::prelude::*;
use crate::url::Endpoint;

use super::memory::for_backend;

/// The domains of hosted vector databases, which require an API key.
/// Source: the endpoints that Pinecone, Qdrant Cloud and Weaviate Cloud hand out.
const HOSTED_SUFFIXES: [&str; 4] =
    [".pinecone.io", ".cloud.qdrant.io", ".weaviate.cloud", ".weaviate.network"];

/// Warnings that need only the object.
pub(super) fn findings(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    let memory = Memory::read(dialect, object);
    let mut findings = Vec::new();
    if !dialect.successor {
        findings.extend(unused_sections(&memory));
    }
    findings.extend(memory.vector_store.as_ref().and_then(credentials));
    match (memory.backend(), &memory.redis, &memory.vector_store) {
        (Some(Backend::Redis), Some(redis), _) => findings.extend(redis_in_use(redis)),
        (Some(Backend::VectorStore), _, Some(store)) => {
            findings.extend(vector_store_in_use(dialect, store));
        }
        _ => {}
    }
    findings
}

fn unused_sections(memory: &Memory<'_>) -> Vec<Finding> {
    let Some(backend) = memory.backend() else { return Vec::new() };
    let sections = [("redis", memory.redis.is_some()), ("vectorStore", memory.vector_store.is_some())];
    let unused = sections.into_iter().filter(|(name, present)| *present && backend.section() != Some(*name));
    let finding = |(name, _)| {
        let message = format!("spec.{name} is ignored when backend is \"{}\"", backend.name());
        for_backend(Finding::warn(&SECTION_UNUSED, Pointer::new("/spec").key(name), message))
    };
    unused.map(finding).collect()
}

/// Warns about credentials in an endpoint. An unused section counts too, since its credentials are also
/// stored in plain text.
fn credentials(store: &VectorStore<'_>) -> Option<Finding> {
    let message = "spec.vectorStore.endpoint contains credentials; use secretRef";
    let pointer = Pointer::new("/spec/vectorStore/endpoint");
    Endpoint::parse(store.endpoint?).userinfo.then(|| Finding::warn(&ENDPOINT_CREDENTIALS, pointer, message))
}

fn redis_in_use(redis: &Redis<'_>) -> Vec<Finding> {
    let numbers =
        [("ttlSeconds", redis.ttl_seconds, "no expiry"), ("maxEntries", redis.max_entries, "unlimited")];
    let findings =
        numbers.into_iter().filter_map(|(field, number, meaning)| negative("redis", field, number, meaning));
    findings.collect()
}

fn vector_store_in_use(dialect: &Dialect, store: &VectorStore<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        negative("vectorStore", "ttlSeconds", store.ttl_seconds, "no expiry").into_iter().collect();
    let not_url = not_url(dialect, store);
    let ambiguous = || ambiguous_host(store.endpoint?, "/spec/vectorStore/endpoint");
    findings.extend(not_url.or_else(ambiguous));
    findings.extend(hosted_without_secret(store));
    if store.collection == Some("") {
        let message = "spec.vectorStore.collection is empty; leave it out to get \"agent-memories\"";
        findings.push(Finding::warn(
            &COLLECTION_EMPTY,
            Pointer::new("/spec/vectorStore/collection"),
            message,
        ));
    }
    findings
}

fn negative(section: &str, field: &str, number: Option<i64>, meaning: &str) -> Option<Finding> {
    let pointer = Pointer::new("/spec").key(section).key(field);
    let message = format!("{} is negative and means {meaning}; write 0", pointer.field());
    number.filter(|number| *number < 0).map(|_| Finding::warn(&NUMBER_NEGATIVE, pointer, message))
}

/// Warns about an endpoint that is not a URL. An endpoint with `$(NAME)` is skipped, since only the kubelet
/// resolves it. The successor also accepts a bare `host:port`, and a connection string for pgvector.
fn not_url(dialect: &Dialect, store: &VectorStore<'_>) -> Option<Finding> {
    let text = store.endpoint.filter(|text| !text.trim().is_empty() && !text.contains("$("))?;
    let endpoint = Endpoint::parse(text);
    let bare = endpoint.scheme.is_none() && endpoint.has_host();
    let fine = endpoint.is_http() || (dialect.successor && (bare || store.provider == Some("pgvector")));
    let message = "spec.vectorStore.endpoint should be an http(s) base URL, such as http://qdrant:6333";
    (!fine).then(|| Finding::warn(&ENDPOINT_NOT_URL, Pointer::new("/spec/vectorStore/endpoint"), message))
}

fn hosted_without_secret(store: &VectorStore<'_>) -> Option<Finding> {
    let hosted_endpoint =
        store.endpoint.is_some_and(|text| Endpoint::parse(text).host_ends_with(&HOSTED_SUFFIXES));
    let hosted = store.provider == Some("pinecone") || hosted_endpoint;
    let message =
        "spec.vectorStore.secretRef is required for hosted providers: they refuse requests without a key";
    let pointer = Pointer::new("/spec/vectorStore/secretRef");
    (hosted && !store.has_secret_ref).then(|| Finding::warn(&HOSTED_WITHOUT_SECRET, pointer, message))
}

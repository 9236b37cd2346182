//! Warnings about a memory resource that works, but probably not as intended.

use crate::arkonis::prelude::*;
use crate::endpoint_view::ambiguous_host;

use super::memory::because_of_backend;

/// The domains of hosted vector databases, which require an API key.
/// Source: the endpoints that Pinecone, Qdrant Cloud and Weaviate Cloud hand out.
const HOSTED_SUFFIXES: [&str; 4] =
    [".pinecone.io", ".cloud.qdrant.io", ".weaviate.cloud", ".weaviate.network"];

/// Warnings that need only the object.
pub(super) fn findings(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    let memory = Memory::read(dialect, object);
    let mut findings = negative_numbers(&memory);
    if !dialect.successor {
        findings.extend(unused_sections(&memory));
    }
    findings.extend(memory.text(ENDPOINT).and_then(credentials));
    if memory.backend() == Some(Backend::VectorStore) && memory.has(VECTOR_STORE) {
        findings.extend(vector_store_in_use(dialect, &memory));
    }
    findings
}

fn negative_numbers(memory: &Memory<'_>) -> Vec<Finding> {
    let numbers: &[(Field, &str)] = match memory.backend() {
        Some(Backend::Redis) => &[(REDIS_TTL.0, "no expiry"), (MAX_ENTRIES.0, "unlimited")],
        Some(Backend::VectorStore) => &[(VECTOR_TTL.0, "no expiry")],
        Some(Backend::InContext) | None => &[],
    };
    let finding = |(field, zero): &(Field, &str)| {
        memory.at(field)?.integer().filter(|number| *number < 0)?;
        let message = format!("{} is negative and means {zero}; write 0", field.join("."));
        Some(Finding::warn(&NUMBER_NEGATIVE, *field, message))
    };
    numbers.iter().filter_map(finding).collect()
}

fn unused_sections(memory: &Memory<'_>) -> Vec<Finding> {
    let chosen = memory.backend().map_or("", Backend::name);
    let unused = memory.unused_sections().map(|(section, _)| {
        let message = format!("{} is ignored when backend is \"{chosen}\"", section.join("."));
        because_of_backend(Finding::warn(&SECTION_UNUSED, section, message))
    });
    unused.collect()
}

/// Warns about credentials in an endpoint. An unused section counts too, since its credentials are also
/// stored in plain text.
fn credentials(endpoint: &str) -> Option<Finding> {
    let message = "spec.vectorStore.endpoint contains credentials; use secretRef";
    let finding = || Finding::warn(&ENDPOINT_CREDENTIALS, ENDPOINT, message);
    Endpoint::parse(endpoint).userinfo.map(|_| finding())
}

fn vector_store_in_use(dialect: &Dialect, memory: &Memory<'_>) -> Vec<Finding> {
    let text = memory.text(ENDPOINT);
    let not_url = || not_url(text?, dialect.successor, memory.text(PROVIDER) == Some(PGVECTOR));
    let ambiguous = || ambiguous_host(text?, ENDPOINT);
    let empty = || {
        let message =
            format!("{} is empty; leave it out to get \"{COLLECTION_DEFAULT}\"", COLLECTION.join("."));
        Finding::warn(&COLLECTION_EMPTY, COLLECTION, message)
    };
    let collection = (memory.text(COLLECTION) == Some("")).then(empty);
    let endpoint = not_url().or_else(ambiguous);
    endpoint.into_iter().chain(hosted_without_secret(memory)).chain(collection).collect()
}

/// Warns about an endpoint that is not a URL. An endpoint with `$(NAME)` is skipped, since only the kubelet
/// resolves it. The successor also accepts a bare `host:port`, and a connection string for pgvector.
fn not_url(text: &str, of_successor: bool, of_pgvector: bool) -> Option<Finding> {
    let endpoint = Endpoint::parse(text);
    let bare = endpoint.scheme.is_none() && endpoint.has_host();
    let fine = endpoint.is_http() || (of_successor && (bare || of_pgvector));
    let is_skipped = text.trim().is_empty() || text.contains("$(");
    let message = "spec.vectorStore.endpoint should be an http(s) base URL, such as http://qdrant:6333";
    (!fine && !is_skipped).then(|| Finding::warn(&ENDPOINT_NOT_URL, ENDPOINT, message))
}

fn hosted_without_secret(memory: &Memory<'_>) -> Option<Finding> {
    let is_hosted = |text| Endpoint::parse(text).host_ends_with(&HOSTED_SUFFIXES);
    let hosted = memory.text(PROVIDER) == Some("pinecone") || memory.text(ENDPOINT).is_some_and(is_hosted);
    let message =
        "spec.vectorStore.secretRef is required for hosted providers: they refuse requests without a key";
    let finding = || Finding::warn(&HOSTED_WITHOUT_SECRET, VECTOR_SECRET_REF, message);
    (hosted && memory.at(VECTOR_SECRET_REF).is_none()).then(finding)
}

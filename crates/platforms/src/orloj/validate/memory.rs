//! The rules that deny a Memory.

use crate::orloj::claim::DEFAULT;
use crate::orloj::endpoint;
use crate::orloj::namespace::{NamespacedName, SecretReference};
use crate::orloj::prelude::*;

use super::fingerprint_of;

const ENDPOINT: &str = "/spec/endpoint";

pub(super) fn findings(object: &Tree) -> Vec<Finding> {
    let memory = Memory::read(object);
    let mut findings: Vec<Finding> = missing_endpoint(&memory, object).into_iter().collect();
    findings.extend(missing_embedding(&memory));
    findings.extend(memory.effective_endpoint().and_then(|endpoint| unusable_endpoint(&memory, endpoint)));
    findings.extend(invalid_references(&memory));
    findings
}

/// Whether a reference can be looked up; other findings cover invalid ones.
pub(super) fn is_valid_reference(text: &str) -> bool {
    NamespacedName::read(text, DEFAULT).is_valid()
}

/// Whether a Memory has an endpoint, or a Secret that holds it.
pub(super) fn has_endpoint(memory: &Memory<'_>, object: &Tree) -> bool {
    // A reference of the wrong type has its own finding and still counts as an endpoint.
    let reference = object.at(&["spec", "endpoint_secret_ref"]);
    let has_reference =
        reference.is_some_and(|reference| reference.text().is_none_or(|text| !text.trim().is_empty()));
    memory.endpoint.is_some() || has_reference
}

fn missing_endpoint(memory: &Memory<'_>, object: &Tree) -> Option<Finding> {
    if has_endpoint(memory, object) {
        return None;
    }
    let (code, message) = match memory.provider {
        Some(Provider::Http) => (&HTTP_ENDPOINT_REQUIRED, "http memory provider requires spec.endpoint"),
        Some(Provider::Pgvector) => (
            &PGVECTOR_ENDPOINT_REQUIRED,
            "pgvector memory provider requires spec.endpoint (postgres connection string)",
        ),
        Some(Provider::InMemory | Provider::Custom(_)) | None => return None,
    };
    Some(of_endpoint(memory, code, message))
}

fn of_endpoint(memory: &Memory<'_>, code: &'static Code, message: impl Into<String>) -> Finding {
    let finding = for_provider(Finding::deny(code, Pointer::new(ENDPOINT), message));
    finding.fingerprint_value(endpoint_fingerprint_value(memory))
}

fn missing_embedding(memory: &Memory<'_>) -> Option<Finding> {
    let missing = memory.has_provider(&Provider::Pgvector) && memory.embedding_model.is_none();
    let message = "pgvector memory provider requires spec.embedding_model (reference to a ModelEndpoint)";
    let pointer = Pointer::new("/spec/embedding_model");
    missing.then(|| {
        for_provider(Finding::deny(&PGVECTOR_EMBEDDING_REQUIRED, pointer, message))
            .fingerprint_value(fingerprint_of([memory.provider_text]))
    })
}

/// The denial of an endpoint that the provider cannot use.
pub(super) fn unusable_endpoint(memory: &Memory<'_>, endpoint: &str) -> Option<Finding> {
    let (code, message) = match memory.provider.as_ref()? {
        Provider::Http if !Endpoint::parse(endpoint).is_http() => {
            (&HTTP_ENDPOINT_INVALID, "spec.endpoint must be an http or https URL with a host".to_owned())
        }
        Provider::Http => (&HTTP_ENDPOINT_BLOCKED, blocked_message(endpoint)?),
        Provider::Pgvector if !endpoint::is_connection_string(endpoint) => (
            &PGVECTOR_ENDPOINT_INVALID,
            "spec.endpoint must be a postgres:// or postgresql:// URL or a key=value connection string"
                .to_owned(),
        ),
        Provider::Pgvector | Provider::InMemory | Provider::Custom(_) => return None,
    };
    Some(of_endpoint(memory, code, message))
}

fn blocked_message(endpoint: &str) -> Option<String> {
    let (class, host) = endpoint::blocked_address(endpoint)?;
    Some(format!("spec.endpoint: {class} address {host} is not allowed"))
}

fn invalid_references(memory: &Memory<'_>) -> Vec<Finding> {
    let secret = |text: &str| SecretReference::read(text, DEFAULT).secret.is_valid();
    let references = [
        ("/spec/auth/secretRef", memory.secret_ref, memory.secret_ref.is_none_or(secret)),
        (
            "/spec/endpoint_secret_ref",
            memory.endpoint_secret_ref,
            memory.endpoint_secret_ref.is_none_or(secret),
        ),
        (
            "/spec/embedding_model",
            memory.embedding_model,
            memory.embedding_model.is_none_or(is_valid_reference),
        ),
    ];
    let finding = |(pointer, text, _): (&str, Option<&str>, bool)| {
        let pointer = Pointer::new(pointer);
        let message = format!("{}: must be <name> or <namespace>/<name>", pointer.field());
        Finding::deny(&REF_INVALID, pointer, message).fingerprint_value(fingerprint_of([text]))
    };
    references.into_iter().filter(|(.., possible)| !possible).map(finding).collect()
}

/// Relates a finding to the provider that causes it.
fn for_provider(finding: Finding) -> Finding {
    finding.related(Pointer::new("/spec/provider"), "because of this provider")
}

/// The fingerprint value of findings about the endpoint.
fn endpoint_fingerprint_value(memory: &Memory<'_>) -> String {
    fingerprint_of([memory.provider_text, memory.endpoint, memory.endpoint_secret_ref])
}

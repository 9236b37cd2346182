//! The view of a Memory. In-memory has neither endpoint nor credentials, whatever stands there.

use crate::family::endpoint_view;
use crate::model::memory_view::{
    EndpointSource, EndpointView, InlineView, MemoryView, ReferenceView, Role, SecretView, Why,
};
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::FAMILY;
use super::super::api::{MEMORY, MODEL_ENDPOINT, Memory, Provider};
use super::super::endpoint::contains_password;
use super::super::namespace::{self, NamespacedName, SecretReference};
use super::set_orloj_namespace;

const PROVIDER: &str = "/spec/provider";
const ENDPOINT: &str = "/spec/endpoint";
const ENDPOINT_SECRET: &str = "/spec/endpoint_secret_ref";
const AUTH_SECRET: &str = "/spec/auth/secretRef";
const EMBEDDING_MODEL: &str = "/spec/embedding_model";

/// The view of a Memory of the state.
pub(super) fn view_of(memory: &Object, state: &mut StateReader<'_>) -> MemoryView {
    view(&memory.tree, (&memory.namespace, &memory.name), state).labelled(&memory.tree)
}

/// The view of a Memory of this Kubernetes namespace and name.
pub(super) fn view(
    object: &Tree,
    (namespace, name): (&str, &str),
    state: &mut StateReader<'_>,
) -> MemoryView {
    let memory = Memory::read(object);
    let home = namespace::effective(object, namespace);
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, MEMORY.kind, namespace, name);
    set_orloj_namespace(&mut view, home);
    view.backend = memory.provider.as_ref().map(|provider| provider.name().to_owned());
    view.provider.clone_from(&view.backend);
    view.durable = memory.provider.as_ref().and_then(durable);
    note_fields(&mut view, &memory);
    if !memory.has_provider(&Provider::InMemory) {
        view.endpoint = endpoint(&memory, namespace, state);
        view.secrets = secrets(&memory, home);
    }
    let password = memory.endpoint.filter(|text| contains_password(text));
    view.inline.extend(password.map(|text| InlineView::new(Pointer::new(ENDPOINT), text)));
    view.references.extend(embeddings(&memory, home, state));
    view
}

/// Whether memory outlives its process, as far as that is known of a provider.
const fn durable(provider: &Provider) -> Option<bool> {
    match provider {
        Provider::InMemory => Some(false),
        Provider::Pgvector => Some(true),
        Provider::Http | Provider::Custom(_) => None,
    }
}

/// Where the fields stand.
fn note_fields(view: &mut MemoryView, memory: &Memory<'_>) {
    let endpoint = if memory.endpoint_secret_ref.is_some() { ENDPOINT_SECRET } else { ENDPOINT };
    for (path, pointer) in [
        ("backend", PROVIDER),
        ("durable", PROVIDER),
        ("provider", PROVIDER),
        ("endpoint", endpoint),
        ("secrets", AUTH_SECRET),
        ("inline", ENDPOINT),
        ("references", EMBEDDING_MODEL),
    ] {
        view.at(path, Pointer::new(pointer));
    }
}

/// The endpoint. Where a Secret holds one, the other is never read.
fn endpoint(memory: &Memory<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<EndpointView> {
    if memory.endpoint_secret_ref.is_some() {
        return Some(EndpointView::unknown(EndpointSource::Secret, Why::EndpointInSecret));
    }
    Some(endpoint_view::parse(EndpointSource::Literal, memory.endpoint?, namespace, state))
}

/// The Secrets, by Orloj namespace. What no Secret can be called refers to none.
fn secrets(memory: &Memory<'_>, home: &str) -> Vec<SecretView> {
    let fields = [(AUTH_SECRET, memory.secret_ref), (ENDPOINT_SECRET, memory.endpoint_secret_ref)];
    let secret = |(field, text): (&str, Option<&str>)| {
        let reference = SecretReference::read(text?, home);
        let NamespacedName { namespace, name } = reference.secret;
        let view = SecretView {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            key: Some(reference.key().to_owned()),
            field: Pointer::new(field),
        };
        reference.secret.is_valid().then_some(view)
    };
    fields.into_iter().filter_map(secret).collect()
}

/// The reference to the ModelEndpoint, which Orloj resolves whatever the provider is.
fn embeddings(memory: &Memory<'_>, home: &str, state: &mut StateReader<'_>) -> Option<ReferenceView> {
    let reference = NamespacedName::read(memory.embedding_model?, home);
    let NamespacedName { namespace, name } = reference;
    if !reference.is_valid() {
        return None;
    }
    let lookup = namespace::find(&MODEL_ENDPOINT, namespace, name, state);
    Some(ReferenceView::new(&MODEL_ENDPOINT, (namespace, name), Pointer::new(EMBEDDING_MODEL), lookup))
}

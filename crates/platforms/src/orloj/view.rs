//! The views of the family's objects, for rules of policies.

use super::prelude::*;
use crate::endpoint_view;
use crate::inject::own::OwnReading;
use crate::inject::own_memory::{OwnRow, OwnRules, Reads, has_credential, view_of_pod};
use memgate_model::memory_view::{OperationView, qualified};

use super::FAMILY;
use super::claim::{self, TARGET_NAMESPACE};
use super::endpoint::contains_password;
use super::inject::{memory_of, own_variables, want};
use super::namespace::{self, NamespacedName, SecretReference};

/// The path of views that holds the Orloj namespace of an object.
pub(crate) const NAMESPACE_PATH: &str = "orlojNamespace";

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 2] = [(&MEMORY, Role::Memory), (&VALIDATED_AGENT, Role::Referrer)];

/// What the views hold.
pub(crate) static TABLES: [ViewTable; 2] = [
    ViewTable {
        paths: &[
            "backend", "provider", "durable", "endpoint", "inline", "embedding", "secrets", "references",
            NAMESPACE_PATH,
        ],
        backends: &[
            ("durable", &["in-memory", "pgvector"]),
            ("endpoint", &["!in-memory"]),
            ("secrets", &["!in-memory"]),
        ],
        sure: &["backend", "provider"],
        ..ViewTable::new(Role::Memory, &[&MEMORY])
    },
    ViewTable {
        paths: &["operations", "references", NAMESPACE_PATH],
        values: &[("operations[]", &["read", "write", "search", "list", "ingest"])],
        ..ViewTable::new(Role::Referrer, &[&VALIDATED_AGENT])
    },
];

/// The view of an object of the family's own kinds. An Agent has a view only if it has `spec.memory`.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    if *subject.kind == MEMORY {
        Some(of_memory(subject.object, (subject.namespace, subject.name), state))
    } else if *subject.kind == VALIDATED_AGENT {
        of_agent(subject, state)
    } else {
        None
    }
}

/// The view of an agent pod.
pub(crate) fn view_pod(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let declared = memory_of(pods[0], namespace, state)?.ok().map(|memory| of_stored(memory, state));
    let own_namespace = declared.as_ref().and_then(|memory| memory.own_namespace.clone());
    let (own, others) = own_variables(pods, namespace, state);
    let rules = OwnRules { use_own: &use_own, has_credential: contains_password, also: |_, _, _| {} };
    let view = view_of_pod((FAMILY.name, namespace), declared.as_ref(), (own, &others), &rules, state);
    Some(MemoryView { own_namespace, ..view })
}

const TOKEN: OwnRow = (want::TOKEN, "secrets", Reads::CredentialFor(AUTH_SECRET));
const PASSWORD: OwnRow = (want::PASSWORD, "secrets", Reads::CredentialFor(AUTH_SECRET));

const EMBEDDING_KEY: OwnRow = (want::EMBEDDING_API_KEY, "secrets", Reads::CredentialFor(EMBEDDING_MODEL));

/// At another address there may be another provider.
const OF_EMBEDDING: [OwnRow; 3] = [
    (want::EMBEDDING_MODEL, "embedding.model", Reads::Text),
    (want::EMBEDDING_URL, "embedding.provider", Reads::Nothing),
    EMBEDDING_KEY,
];

/// Puts what the pod itself sets in the place of what its Memory declares. Of another provider, only the pod's own
/// variables count. Returns the variables that may name the endpoint: those of each provider where it is unknown. A
/// provider of a custom build may use any that the pod sets.
fn use_own(
    view: &mut MemoryView,
    own: OwnReading<'_>,
    state: &mut StateReader<'_>,
) -> &'static [&'static str] {
    let set = own.get(want::PROVIDER);
    if let Some(set) = set {
        let named = |text: &str| Provider::parse(Some(text.trim()).filter(|text| !text.is_empty()));
        for path in ["backend", "provider"] {
            set.set_value(view, path, |text| Some(named(text).name().to_owned()));
        }
        set.decide(view, "durable");
        view.set("durable", set.text.as_deref().and_then(|text| durable(&named(text))));
    }
    let provider = view.text("provider").map(|name| Provider::parse(Some(name)));
    let (credentials, addresses): (&[OwnRow], &[&str]) = match provider {
        Some(Provider::InMemory) => (&[], &[]),
        Some(Provider::Pgvector) => (&[PASSWORD], &[want::DSN]),
        Some(Provider::Custom(_)) if own.iter().any(|(name, _)| name == want::DSN) => {
            (&[TOKEN, PASSWORD], &[want::ENDPOINT, want::DSN])
        }
        Some(Provider::Http | Provider::Custom(_)) => (&[TOKEN], &[want::ENDPOINT]),
        None => (&[TOKEN, PASSWORD], &[want::ENDPOINT, want::DSN]),
    };
    if let Some(set) = set {
        // Another provider may read what memgate adds for the declared one.
        if !addresses.iter().any(|name| own.is_as_declared(name)) {
            view.at("endpoint", &set.field);
            view.secrets.retain(|it| it.field.as_str() != ENDPOINT_SECRET);
            view.endpoint = None;
        }
        if !credentials.iter().any(|(name, ..)| own.is_as_declared(name)) {
            view.at("secrets", &set.field);
            view.secrets.retain(|it| it.field.as_str() != AUTH_SECRET);
        }
        view.at("inline", &set.field);
        view.inline.clear();
        if set.text.is_none() {
            view.set_unknown("secrets", set.why());
            view.set_unknown("inline", set.why());
            view.endpoint = Some(EndpointView::unknown(EndpointSource::Literal, set.why()));
        }
    }
    let makes_vectors = matches!(provider, Some(Provider::Pgvector) | None);
    use_own_embedding(view, own, makes_vectors, state);
    own.set_rows(view, credentials);
    if addresses.iter().any(|name| own.get(name).is_some()) {
        view.secrets.retain(|secret| secret.field.as_str() != ENDPOINT_SECRET);
    }
    addresses
}

/// Puts the embeddings that the pod itself sets in the place of those of its Memory. Of a ModelEndpoint that is not known,
/// what the pod does not set stays unknown. Where the provider does not make vectors, what `envFrom` may set is not read.
fn use_own_embedding(
    view: &mut MemoryView,
    own: OwnReading<'_>,
    makes_vectors: bool,
    state: &mut StateReader<'_>,
) {
    let set = |name: &str| own.get(name).filter(|set| makes_vectors || !set.is_env_from());
    let is_set = OF_EMBEDDING.iter().any(|(name, ..)| set(name).is_some());
    if let Some(why) = view.unknown_at("embedding").filter(|_| is_set).cloned() {
        view.clear(&["embedding"]);
        for path in ["embedding.model", "embedding.provider"] {
            view.set_unknown(path, why.clone());
        }
    }
    for (name, path, reads) in OF_EMBEDDING {
        if let Some(set) = set(name) {
            set.set_row(view, path, reads);
        }
    }
    let Some(set) = set(want::EMBEDDING_URL) else { return };
    set.set_endpoint(view, "embedding.endpoint", has_credential, state);
    if view.embedding_endpoint.is_none() {
        let default = endpoint_view::parse(EndpointSource::Derived, OPENAI_URL, &view.namespace, state);
        view.embedding_endpoint = Some(default);
    }
}

/// Sets the Orloj namespace of an object.
fn set_orloj_namespace(view: &mut MemoryView, namespace: &str) {
    view.own_namespace = Some((NAMESPACE_PATH, namespace.to_owned()));
    view.at(NAMESPACE_PATH, Pointer::new("/metadata/annotations").key(TARGET_NAMESPACE));
}

/// The view of an Agent; `None` without `spec.memory`.
fn of_agent(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let object = subject.object;
    let claim = object.at(&["spec", "memory"]).filter(|claim| claim.is_object())?;
    let mut view = MemoryView::new(FAMILY.name, Role::Referrer, AGENT.kind, subject.namespace, subject.name);
    let home = claim::effective(object, subject.namespace);
    set_orloj_namespace(&mut view, home);
    let (reference, list) = (Pointer::new("/spec/memory/ref"), Pointer::new("/spec/memory/allow"));
    view.operations = claim.get("allow").and_then(|allow| operations(allow, &list));
    view.at("operations", list);
    view.at("references", &reference);
    if let Some(name) = claimed_memory(object) {
        let lookup = namespace::find_for((object, subject.namespace), &MEMORY, (home, name), state);
        if let Lookup::Found(memory) = lookup {
            view.sources = vec![SourceView { view: of_stored(memory, state), field: reference.clone() }];
        }
        view.references.push(ReferenceView::new(&MEMORY, (home, name), reference, lookup));
    }
    Some(view)
}

/// The operations that a list grants, each once; `None` for a value that is not a list.
fn operations(allow: &Tree, list: &Pointer) -> Option<Vec<OperationView>> {
    let Tree::List(entries) = allow else { return None };
    let mut operations: Vec<OperationView> = Vec::with_capacity(OPERATIONS.len());
    for (index, entry) in entries.iter().enumerate() {
        let operation = operation(entry);
        if let Some(name) = operation.filter(|name| operations.iter().all(|known| known.name != *name)) {
            operations.push(OperationView { name: name.to_owned(), field: list.index(index) });
        }
    }
    Some(operations)
}

const PROVIDER: &str = "/spec/provider";
const ENDPOINT: &str = "/spec/endpoint";
const ENDPOINT_SECRET: &str = "/spec/endpoint_secret_ref";
const AUTH_SECRET: &str = "/spec/auth/secretRef";
const EMBEDDING_MODEL: &str = "/spec/embedding_model";
const BASE_URL: &str = "/spec/base_url";

/// The view of a Memory of the state.
fn of_stored(memory: &Object, state: &mut StateReader<'_>) -> MemoryView {
    of_memory(memory.tree(), (&memory.namespace, &memory.name), state).labelled(memory.tree())
}

/// The view of a Memory of this Kubernetes namespace and name.
fn of_memory(object: &Tree, (namespace, name): (&str, &str), state: &mut StateReader<'_>) -> MemoryView {
    let memory = Memory::read(object);
    let home = claim::effective(object, namespace);
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, MEMORY.kind, namespace, name);
    set_orloj_namespace(&mut view, home);
    note_fields(&mut view, &memory);
    for path in ["backend", "provider"] {
        view.put(path, PROVIDER, memory.provider.as_ref().map(Provider::name));
    }
    view.put("durable", PROVIDER, memory.provider.as_ref().and_then(durable));
    if !memory.has_provider(&Provider::InMemory) {
        view.endpoint = endpoint(&memory, namespace, state);
        view.secrets = secrets(&memory, home);
    }
    let password = memory.endpoint.filter(|text| contains_password(text));
    view.inline.extend(password.map(|text| InlineView::new(Pointer::new(ENDPOINT), text)));
    add_embedding(&mut view, &memory, (object, namespace), state);
    view
}

/// Whether memory outlives its process, if that is known for the provider.
const fn durable(provider: &Provider) -> Option<bool> {
    match provider {
        Provider::InMemory => Some(false),
        Provider::Pgvector => Some(true),
        Provider::Http | Provider::Custom(_) => None,
    }
}

/// Sets the places of the fields.
fn note_fields(view: &mut MemoryView, memory: &Memory<'_>) {
    let endpoint = if memory.endpoint_secret_ref.is_some() { ENDPOINT_SECRET } else { ENDPOINT };
    view.at_all([
        ("endpoint", endpoint),
        ("secrets", AUTH_SECRET),
        ("inline", ENDPOINT),
        ("embedding", EMBEDDING_MODEL),
        ("references", EMBEDDING_MODEL),
    ]);
}

/// The endpoint. A Secret that holds one wins over the literal.
fn endpoint(memory: &Memory<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<EndpointView> {
    if let Some(secret) = memory.endpoint_secret_ref {
        return Some(EndpointView::in_object(EndpointSource::Secret, (secret, "")));
    }
    Some(endpoint_view::parse(EndpointSource::Literal, memory.endpoint?, namespace, state))
}

/// The Secrets, by Orloj namespace. A reference with an invalid name is left out.
fn secrets(memory: &Memory<'_>, home: &str) -> Vec<SecretView> {
    let fields = [(AUTH_SECRET, memory.secret_ref), (ENDPOINT_SECRET, memory.endpoint_secret_ref)];
    fields.into_iter().filter_map(|(field, text)| secret(field, text?, home)).collect()
}

/// The Secret of a reference, for this field of the Memory.
fn secret(field: &str, text: &str, home: &str) -> Option<SecretView> {
    let reference = SecretReference::read(text, home);
    let NamespacedName { namespace, name } = reference.secret;
    let view = SecretView::new((namespace, name), Some(reference.key()), Pointer::new(field));
    reference.secret.is_valid().then_some(view)
}

/// Adds the ModelEndpoint, which Orloj resolves whatever the provider is: the reference, the model and the address that it
/// names, and the Secret of the address. It is another object, so their place is the field that names it.
fn add_embedding(
    view: &mut MemoryView,
    memory: &Memory<'_>,
    (object, kubernetes): (&Tree, &str),
    state: &mut StateReader<'_>,
) {
    let home = claim::effective(object, kubernetes);
    let reference = memory.embedding_model.map(|text| NamespacedName::read(text, home));
    let Some(reference) = reference.filter(NamespacedName::is_valid) else { return };
    let NamespacedName { namespace, name } = reference;
    let lookup = namespace::find_for((object, kubernetes), &MODEL_ENDPOINT, (namespace, name), state);
    let field = Pointer::new(EMBEDDING_MODEL);
    view.references.push(ReferenceView::new(&MODEL_ENDPOINT, (namespace, name), field, lookup));
    for (path, field) in [
        ("embedding", "/spec"),
        ("embedding.endpoint", BASE_URL),
        ("embedding.model", "/spec/default_model"),
        ("embedding.provider", PROVIDER),
    ] {
        view.set_origin(path, &MODEL_ENDPOINT, field);
    }
    if let Lookup::Found(object) = lookup {
        view.reads_elsewhere = *object.namespace != *view.namespace;
        let endpoint = ModelEndpoint::read(object.tree());
        let (from, url) = match endpoint.base_url {
            Some(url) => (EndpointSource::Literal, url),
            None => (EndpointSource::Derived, endpoint.default_url()),
        };
        view.embedding_endpoint = Some(endpoint_view::parse(from, url, &view.namespace, state));
        let key = endpoint.secret_ref.filter(|_| !memory.has_provider(&Provider::InMemory));
        let key = key.and_then(|text| secret(EMBEDDING_MODEL, text, namespace::object_namespace(object)));
        view.secrets.extend(key.map(|it| it.from(&MODEL_ENDPOINT, AUTH_SECRET)));
        let inline = inline_credential(url, Pointer::new(EMBEDDING_MODEL));
        view.inline.extend(inline.map(|it| it.from(&MODEL_ENDPOINT, BASE_URL)));
        view.set("embedding", Some(ViewValue::Object));
        view.set("embedding.model", endpoint.default_model);
        view.set("embedding.provider", Some(endpoint.provider));
    } else {
        let title = format!("{} {}", MODEL_ENDPOINT.kind, quoted(&qualified(namespace, name)));
        let why = Why::Object(title.clone());
        view.set_unknown("embedding", why.clone());
        view.embedding_endpoint = Some(EndpointView::unknown(EndpointSource::Derived, why).of(&title));
    }
}

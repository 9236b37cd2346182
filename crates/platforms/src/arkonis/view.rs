//! The views of the family's objects, for rules of policies.

use crate::endpoint_view;
use crate::inject::own::{OwnReading, OwnVariable};
use crate::inject::own_memory::{OwnRow, OwnRules, Reads, has_credential, view_of_pod};
use crate::url::inline_credential;
use memgate_model::family::Subject;
use memgate_model::kind::Kind;
use memgate_model::memory_view::{
    EndpointSource, EndpointView, MemoryView, ReferenceView, Role, SecretView, SourceView, ViewValue, Why,
};
use memgate_model::object::{Lookup, Object};
use memgate_model::pod::Pod;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::FAMILY;
use super::api::{
    AGENTOPS, ARKONIS, ARKONIS_OLD, Backend, COLLECTION_DEFAULT, Dialect, KUBESWARM, Memory,
    REDIS_TTL_DEFAULT, memory_name, memory_ref_pointer, settings_names, settings_pointer,
};
use super::inject::is_agent_pod;
use super::inject::{is_successor, memory_of, own_variables, want};
use super::validate::{Role as KindRole, role};

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 8] = [
    (&ARKONIS.memory, Role::Memory),
    (&ARKONIS.agent, Role::Referrer),
    (&ARKONIS_OLD.memory, Role::Memory),
    (&ARKONIS_OLD.agent, Role::Referrer),
    (&KUBESWARM.memory, Role::Memory),
    (&KUBESWARM.agent, Role::Referrer),
    (&AGENTOPS.memory, Role::Memory),
    (&AGENTOPS.agent, Role::Referrer),
];

/// The view of an object of the family's own kinds.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let Subject { namespace, name, object, .. } = subject;
    match role(subject.kind)? {
        (dialect, KindRole::Memory) => Some(of_memory(dialect, object, (namespace, name), state)),
        (dialect, KindRole::Agent) => Some(of_agent(dialect, subject, state)),
        (_, KindRole::Settings) => None,
    }
}

/// The view of an agent pod.
pub(crate) fn view_pod(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    if !is_agent_pod(pods[0]) {
        return None;
    }
    let found = memory_of(pods[0], namespace, state).and_then(Result::ok);
    let declared = found.map(|(dialect, memory)| of_stored(dialect, memory, state));
    let (own, others) = own_variables(pods, found, state.budget());
    let is_successor = found.is_none_or(|(dialect, _)| is_successor(pods[0], dialect));
    let use_own = |view: &mut MemoryView, own: OwnReading<'_>| use_own(view, own, is_successor);
    let rules = OwnRules { use_own: &use_own, has_credential, also: use_own_url };
    Some(view_of_pod((FAMILY.name, namespace), declared.as_ref(), (own, &others), &rules, state))
}

/// The limits of Redis, which are none without a variable.
const OF_REDIS: [OwnRow; 2] =
    [(want::REDIS_TTL, "ttlSeconds", Reads::Limit), (want::REDIS_MAX_ENTRIES, "maxEntries", Reads::Limit)];

/// What is read of a vector store, and of a store that is not known.
const OF_STORE: [OwnRow; 5] = [
    (want::PROVIDER, "provider", Reads::Text),
    (want::COLLECTION, "collection", Reads::TextOr(COLLECTION_DEFAULT)),
    (want::EMBEDDING_MODEL, "embedding.model", Reads::Text),
    (want::EMBEDDING_PROVIDER, "embedding.provider", Reads::Text),
    (want::API_KEY, "secrets", Reads::CredentialFor("/spec/vectorStore/secretRef/name")),
];

/// The backend, if it is one of the platform's.
fn backend(view: &MemoryView) -> Option<Backend> {
    view.text("backend").and_then(Backend::from_name)
}

/// Puts what the pod itself sets in the place of what its memory declares. Of another backend, only the pod's own
/// variables count, and a limit without a variable is none. Returns the variables that name the endpoint: the program may
/// use any of them, and those of each backend where the backend is unknown.
fn use_own(view: &mut MemoryView, own: OwnReading<'_>, is_successor: bool) -> &'static [&'static str] {
    const OF_SECTION: [&str; 8] =
        ["provider", "endpoint", "ttlSeconds", "maxEntries", "embedding", "collection", "secrets", "inline"];
    if let Some(set) = own.get(want::BACKEND) {
        view.clear(&OF_SECTION);
        view.clear(&["embedding.model", "embedding.provider"]);
        (view.endpoint, view.secrets, view.inline) = (None, Vec::new(), Vec::new());
        set.set_value(view, "backend", |text| Some(text.to_owned()));
        let backend = backend(view);
        set.set_value(view, "durable", |_| backend.map(|it| it != Backend::InContext));
        for path in OF_SECTION {
            view.at(path, &set.field);
            if backend.is_none() {
                view.set_unknown(path, set.why());
            }
        }
        match backend {
            None => view.endpoint = Some(EndpointView::unknown(EndpointSource::Literal, set.why())),
            Some(Backend::InContext) => {}
            Some(Backend::Redis) => {
                view.set("ttlSeconds", Some(0_i64));
                view.set("maxEntries", Some(0_i64));
            }
            Some(Backend::VectorStore) => {
                view.set("ttlSeconds", Some(0_i64));
                view.set("collection", Some(COLLECTION_DEFAULT));
            }
        }
    }
    match backend(view) {
        Some(Backend::Redis) => {
            if let Some(set) = own.get(want::REDIS_URL) {
                // The URL has its own credential.
                view.secrets.clear();
                set.decide(view, "secrets");
            }
            own.set_rows(view, &OF_REDIS);
            &[want::REDIS_URL]
        }
        Some(Backend::VectorStore) => {
            own.set_rows(view, &OF_STORE);
            own.set_rows(view, &[(want::VECTOR_TTL, "ttlSeconds", Reads::Limit)]);
            if is_successor { &[want::ENDPOINT, want::VECTOR_URL] } else { &[want::ENDPOINT] }
        }
        Some(Backend::InContext) => &[],
        None => {
            own.set_rows(view, &OF_STORE);
            &[want::REDIS_URL, want::ENDPOINT, want::VECTOR_URL]
        }
    }
}

/// Reads the provider and the collection of the successor's URL: `qdrant://HOST/COLLECTION`, or a connection string.
fn use_own_url(name: &str, set: &OwnVariable, view: &mut MemoryView) {
    let is_empty = set.text.as_deref().is_some_and(|text| text.trim().is_empty());
    if name != want::VECTOR_URL || is_empty {
        return;
    }
    let is_of_postgres = |scheme: &str| ["postgres", "postgresql"].contains(&scheme);
    let provider = |text: &str| {
        let scheme = text.split_once("://")?.0.trim().to_ascii_lowercase();
        Some(if is_of_postgres(&scheme) { PGVECTOR.to_owned() } else { scheme })
    };
    set.set_value(view, "provider", provider);
    set.set_value(view, "collection", |text| {
        let path = text.split_once("://")?.1.split(['?', '#']).next()?.split_once(['/', '\\']);
        let name = path.map_or("", |(_, path)| path);
        Some(if name.trim().is_empty() { COLLECTION_DEFAULT } else { name }.to_owned())
    });
    if view.text("provider") == Some(PGVECTOR) {
        // Its path is a database.
        view.set("collection", None::<String>);
    }
}

/// The view of an agent. A reference without a name refers to nothing.
fn of_agent(dialect: &'static Dialect, subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let Subject { namespace, name, object, .. } = *subject;
    let mut view = MemoryView::new(FAMILY.name, Role::Referrer, dialect.agent.kind, namespace, name);
    let claim = memory_ref_pointer(dialect);
    if let Some(name) = memory_name(dialect, object).filter(|name| !name.is_empty()) {
        let (field, lookup) = (claim.key("name"), state.get(&dialect.memory, namespace, name));
        if let Lookup::Found(memory) = lookup {
            view.sources = vec![SourceView { view: of_stored(dialect, memory, state), field: field.clone() }];
        }
        view.references.push(ReferenceView::new(&dialect.memory, (namespace, name), field, lookup));
    }
    for (index, name) in settings_names(dialect, object) {
        let lookup = state.get(&dialect.settings, namespace, name);
        let field = settings_pointer(index);
        view.references.push(ReferenceView::new(&dialect.settings, (namespace, name), field, lookup));
    }
    view.at("references", claim);
    view
}

/// The provider whose address is a connection string.
const PGVECTOR: &str = "pgvector";

const BACKEND: &str = "/spec/backend";
const REDIS_SECRET: &str = "/spec/redis/secretRef";
const VECTOR_SECRET: &str = "/spec/vectorStore/secretRef";
const ENDPOINT: &str = "/spec/vectorStore/endpoint";

/// The view of a memory resource of the state.
fn of_stored(dialect: &Dialect, memory: &Object, state: &mut StateReader<'_>) -> MemoryView {
    of_memory(dialect, memory.tree(), (&memory.namespace, &memory.name), state).labelled(memory.tree())
}

/// The view of a memory resource of this namespace and name.
fn of_memory(
    dialect: &Dialect,
    object: &Tree,
    (namespace, name): (&str, &str),
    state: &mut StateReader<'_>,
) -> MemoryView {
    let memory = Memory::read(dialect, object);
    let backend = memory.backend();
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, dialect.memory.kind, namespace, name);
    let endpoint = memory.vector_store.as_ref().and_then(|store| store.endpoint);
    view.inline =
        endpoint.and_then(|text| inline_credential(text, Pointer::new(ENDPOINT))).into_iter().collect();
    note_fields(&mut view, backend);
    view.put("backend", BACKEND, memory.backend_name);
    view.put("durable", BACKEND, memory.backend_name.map(|_| backend != Some(Backend::InContext)));
    match (backend, &memory.redis, &memory.vector_store) {
        (Some(Backend::Redis), Some(_), _) => add_redis(&mut view, object),
        (Some(Backend::VectorStore), _, Some(store)) => {
            view.set("provider", store.provider);
            view.endpoint = endpoint
                .filter(|text| !text.trim().is_empty())
                .map(|text| endpoint_view::parse(EndpointSource::Literal, text, namespace, state));
            add_vector_store(&mut view, object);
        }
        _ => {}
    }
    if dialect.successor && backend == Some(Backend::VectorStore) {
        add_embedding(&mut view, &memory);
    }
    add_secrets(&mut view, &memory, object);
    view
}

fn add_embedding(view: &mut MemoryView, memory: &Memory<'_>) {
    view.at_all([
        ("embedding", "/spec/embedding"),
        ("embedding.model", "/spec/embedding/model"),
        ("embedding.provider", "/spec/embedding/provider"),
    ]);
    if let Some(embedding) = &memory.embedding {
        view.set("embedding", Some(ViewValue::Object));
        view.set("embedding.model", embedding.model);
        view.set("embedding.provider", embedding.resolved_provider());
    }
}

/// Sets the places of the fields: where they are, or where they would be with this backend.
fn note_fields(view: &mut MemoryView, backend: Option<Backend>) {
    let [endpoint, secrets, ttl] = match backend {
        Some(Backend::Redis) => [REDIS_SECRET, REDIS_SECRET, "/spec/redis/ttlSeconds"],
        Some(Backend::VectorStore) => [ENDPOINT, VECTOR_SECRET, "/spec/vectorStore/ttlSeconds"],
        Some(Backend::InContext) | None => [BACKEND, BACKEND, BACKEND],
    };
    view.at_all([
        ("provider", "/spec/vectorStore/provider"),
        ("endpoint", endpoint),
        ("ttlSeconds", ttl),
        ("maxEntries", "/spec/redis/maxEntries"),
        ("collection", "/spec/vectorStore/collection"),
        ("secrets", secrets),
        ("inline", ENDPOINT),
    ]);
}

fn add_redis(view: &mut MemoryView, object: &Tree) {
    view.set("ttlSeconds", number(object, &["spec", "redis", "ttlSeconds"], REDIS_TTL_DEFAULT));
    view.set("maxEntries", number(object, &["spec", "redis", "maxEntries"], 0));
}

fn add_vector_store(view: &mut MemoryView, object: &Tree) {
    view.set("ttlSeconds", number(object, &["spec", "vectorStore", "ttlSeconds"], 0));
    let collection = match object.at(&["spec", "vectorStore", "collection"]) {
        None => Some(COLLECTION_DEFAULT),
        Some(collection) => {
            collection.text().map(|text| if text.trim().is_empty() { COLLECTION_DEFAULT } else { text })
        }
    };
    view.set("collection", collection);
}

/// A number with a default. A negative number counts as 0; `None` for a value that is not a number.
fn number(object: &Tree, path: &[&str], default: i64) -> Option<i64> {
    object.at(path).map_or(Some(default), |number| number.integer().map(|number| number.max(0)))
}

/// Adds the Secrets in use. The Secret of Redis also contains its endpoint.
fn add_secrets(view: &mut MemoryView, memory: &Memory<'_>, object: &Tree) {
    let field = view.pointer("secrets").key("name");
    if let Some((name, key)) = memory.secret().filter(|(name, _)| !name.is_empty()) {
        add_secret(view, name, Some(key), field);
        if memory.backend() == Some(Backend::Redis) {
            let unknown = EndpointView::unknown(EndpointSource::Secret, Why::EndpointInSecret);
            view.endpoint = Some(unknown.of(&format!("{name}/{key}")));
        }
    }
    let key_ref = object.at(&["spec", "embedding", "apiKeyRef"]);
    let key_ref = key_ref.filter(|_| memory.backend() == Some(Backend::VectorStore));
    let text = |field| key_ref?.get(field)?.text().filter(|text| !text.is_empty());
    if let Some(name) = text("name") {
        add_secret(view, name, text("key"), Pointer::new("/spec/embedding/apiKeyRef/name"));
    }
}

fn add_secret(view: &mut MemoryView, name: &str, key: Option<&str>, field: Pointer) {
    view.secrets.push(SecretView::new((&view.namespace, name), key, field));
}

//! The views of the family's objects, for rules of policies.

use super::prelude::*;
use crate::endpoint_view;
use crate::inject::own::{OwnReading, OwnVariable};
use crate::inject::own_memory::{OwnRow, OwnRules, Reads, has_credential, view_of_pod};

use super::FAMILY;
use super::edges::{REDIS_KEY, VECTOR_KEY};
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

/// What the views hold.
pub(crate) static TABLES: [ViewTable; 2] = [
    ViewTable {
        paths: &[
            "backend", "durable", "provider", "endpoint", "ttlSeconds", "maxEntries", "collection",
            "secrets", "embedding.model", "embedding.provider", "inline",
        ],
        backends: &[
            ("embedding", &["SwarmMemory/vector-store"]),
            ("provider", &["vector-store"]),
            ("endpoint", &["redis", "vector-store"]),
            ("ttlSeconds", &["redis", "vector-store"]),
            ("maxEntries", &["redis"]),
            ("collection", &["vector-store"]),
            ("secrets", &["redis", "vector-store"]),
        ],
        values: &[
            ("backend", &["in-context", "redis", "vector-store"]),
            ("provider", &["qdrant", "pinecone", "weaviate", "pgvector"]),
            ("embedding.provider", &["openai", "google", "voyageai"]),
        ],
        sure: &["backend", "durable", "ttlSeconds", "maxEntries", "collection"],
        ..ViewTable::new(
            Role::Memory,
            &[&ARKONIS.memory, &ARKONIS_OLD.memory, &AGENTOPS.memory, &KUBESWARM.memory],
        )
    },
    ViewTable {
        paths: &["references"],
        ..ViewTable::new(
            Role::Referrer,
            &[&ARKONIS.agent, &ARKONIS_OLD.agent, &AGENTOPS.agent, &KUBESWARM.agent],
        )
    },
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
    let use_own = |view: &mut MemoryView, own: OwnReading<'_>, _: &mut StateReader<'_>| {
        use_own(view, own, is_successor)
    };
    let rules = OwnRules { use_own: &use_own, has_credential, also: use_own_url };
    Some(view_of_pod((FAMILY.name, namespace), declared.as_ref(), (own, &others), &rules, state))
}

/// The variables besides those of the endpoint, as programs read them.
const OF_REDIS: [OwnRow; 2] =
    [(want::REDIS_TTL, "ttlSeconds", Reads::Limit), (want::MAX_ENTRIES, "maxEntries", Reads::Limit)];
const OF_VECTOR_STORE: [OwnRow; 6] = [
    (want::PROVIDER, "provider", Reads::Text),
    (want::COLLECTION, "collection", Reads::TextOr(COLLECTION_DEFAULT)),
    (want::API_KEY, "secrets", Reads::CredentialFor("/spec/vectorStore/secretRef/name")),
    (want::VECTOR_TTL, "ttlSeconds", Reads::Limit),
    (want::EMBEDDING_MODEL, "embedding.model", Reads::Text),
    (want::EMBEDDING_PROVIDER, "embedding.provider", Reads::Text),
];

/// The backend, if it is one of the platform's.
fn backend(view: &MemoryView) -> Option<Backend> {
    view.text("backend").and_then(Backend::named)
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
            Some(backend) => set_without_variables(view, backend),
        }
    }
    let backend = backend(view);
    if backend == Some(Backend::Redis)
        && let Some(set) = own.get(want::REDIS_URL)
    {
        // The URL has its own credential.
        view.secrets.clear();
        set.decide(view, "secrets");
    }
    for row in rows(backend.unwrap_or(Backend::VectorStore)) {
        // The limit may be that of another backend.
        if backend.is_some() || row.0 != want::VECTOR_TTL {
            own.set_rows(view, &[*row]);
        }
    }
    match backend {
        Some(Backend::InContext) => &[],
        Some(Backend::Redis) => &[want::REDIS_URL],
        Some(Backend::VectorStore) if is_successor => &[want::ENDPOINT, want::VECTOR_URL],
        Some(Backend::VectorStore) => &[want::ENDPOINT],
        None => &[want::REDIS_URL, want::ENDPOINT, want::VECTOR_URL],
    }
}

const fn rows(backend: Backend) -> &'static [OwnRow] {
    match backend {
        Backend::InContext => &[],
        Backend::Redis => &OF_REDIS,
        Backend::VectorStore => &OF_VECTOR_STORE,
    }
}

/// Sets what the program reads without a variable.
fn set_without_variables(view: &mut MemoryView, backend: Backend) {
    for (_, path, reads) in rows(backend) {
        match reads {
            Reads::Limit => view.set(path, Some(0_i64)),
            Reads::TextOr(default) => view.set(path, Some(*default)),
            Reads::Text | Reads::Nothing | Reads::CredentialFor(_) => {}
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
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, dialect.memory.kind, namespace, name);
    let endpoint = memory.text(ENDPOINT);
    view.inline = endpoint.and_then(|text| inline_credential(text, ENDPOINT.into())).into_iter().collect();
    view.at("inline", ENDPOINT);
    // What several backends have is at the backend's name, unless the backend is one of them.
    view.at_all([
        ("endpoint", "/spec/backend"),
        ("secrets", "/spec/backend"),
        ("ttlSeconds", "/spec/backend"),
        ("maxEntries", "/spec/redis/maxEntries"),
        ("provider", "/spec/vectorStore/provider"),
        ("collection", "/spec/vectorStore/collection"),
    ]);
    let (name, backend) = (memory.text(BACKEND), memory.backend());
    match backend {
        Some(Backend::Redis) => add_redis(&mut view, &memory),
        Some(Backend::VectorStore) => add_vector_store(&mut view, dialect, &memory),
        Some(Backend::InContext) | None => {}
    }
    view.put("backend", BACKEND, name);
    view.put("durable", BACKEND, name.map(|_| backend != Some(Backend::InContext)));
    if backend == Some(Backend::VectorStore) {
        let endpoint = endpoint.filter(|text| !text.trim().is_empty());
        let parse = |text| endpoint_view::parse(EndpointSource::Literal, text, namespace, state);
        view.endpoint = endpoint.map(parse);
    }
    view
}

fn add_redis(view: &mut MemoryView, memory: &Memory<'_>) {
    view.at_all([
        ("endpoint", "/spec/redis/secretRef"),
        ("secrets", "/spec/redis/secretRef"),
        ("ttlSeconds", "/spec/redis/ttlSeconds"),
    ]);
    if !memory.has(REDIS) {
        return;
    }
    add_number(view, "ttlSeconds", memory, REDIS_TTL);
    add_number(view, "maxEntries", memory, MAX_ENTRIES);
    add_secret(view, memory, REDIS_SECRET, Some(REDIS_KEY));
    // The Secret also contains the endpoint.
    if let Some(secret) = view.secrets.first() {
        let named = (&*secret.name, secret.key.as_deref().unwrap_or_default());
        view.endpoint = Some(EndpointView::in_object(EndpointSource::Secret, named));
    }
}

fn add_vector_store(view: &mut MemoryView, dialect: &Dialect, memory: &Memory<'_>) {
    view.at_all([
        ("endpoint", "/spec/vectorStore/endpoint"),
        ("secrets", "/spec/vectorStore/secretRef"),
        ("ttlSeconds", "/spec/vectorStore/ttlSeconds"),
    ]);
    if dialect.successor {
        view.at_all([
            ("embedding", "/spec/embedding"),
            ("embedding.model", "/spec/embedding/model"),
            ("embedding.provider", "/spec/embedding/provider"),
        ]);
    }
    if memory.has(VECTOR_STORE) {
        view.set("provider", memory.text(PROVIDER));
        let collection = memory.at(COLLECTION).map_or(Some(""), Tree::text);
        view.set(
            "collection",
            collection.map(|text| if text.trim().is_empty() { COLLECTION_DEFAULT } else { text }),
        );
        add_secret(view, memory, VECTOR_SECRET, Some(VECTOR_KEY));
        add_number(view, "ttlSeconds", memory, VECTOR_TTL);
    }
    if dialect.successor && memory.has(EMBEDDING) {
        view.set("embedding", Some(ViewValue::Object));
        view.set("embedding.model", memory.text(EMBEDDING_MODEL));
        view.set("embedding.provider", memory.embedding_provider());
        let key = memory.at(&["spec", "embedding", "apiKeyRef", "key"]).and_then(Tree::text);
        add_secret(view, memory, EMBEDDING_SECRET, key.filter(|key| !key.is_empty()));
    }
}

/// Adds a number; none of another type.
fn add_number(view: &mut MemoryView, path: &'static str, memory: &Memory<'_>, field: (Field, i64)) {
    let is_number = memory.at(field.0).is_none_or(|value| value.integer().is_some());
    view.set(path, is_number.then(|| memory.number(field)));
}

/// Adds the Secret that a field names.
fn add_secret(view: &mut MemoryView, memory: &Memory<'_>, field: Field, key: Option<&str>) {
    let name = memory.secret(field).filter(|name| !name.is_empty());
    let secret = name.map(|name| SecretView::new((&view.namespace, name), key, field.into()));
    view.secrets.extend(secret);
}

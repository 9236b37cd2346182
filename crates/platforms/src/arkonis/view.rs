//! The views of the family's objects, for rules of policies.

use crate::endpoint_view;
use crate::fields::Backend;
use crate::inject::own::{OwnReading, OwnVariable};
use crate::inject::own_memory::{OwnRules, Reads, has_credential, view_of_pod};
use crate::url::inline_credential;
use memgate_model::family::Subject;
use memgate_model::kind::Kind;
use memgate_model::memory_view::{
    EndpointSource, EndpointView, MemoryView, ReferenceView, Role, SourceView, Why,
};
use memgate_model::object::{Lookup, Object};
use memgate_model::pod::Pod;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::view_table::ViewTable;

use super::FAMILY;
use super::api::{
    AGENTOPS, ARKONIS, ARKONIS_OLD, Dialect, KUBESWARM, memory_name, memory_ref_pointer, settings_names,
    settings_pointer,
};
use super::fields::{
    BACKEND, COLLECTION_DEFAULT, ENDPOINT, IN_CONTEXT, PGVECTOR, REDIS, REDIS_SECRET, SWARM_FIELDS,
    SWARM_VECTOR_STORE, VECTOR_STORE, VECTOR_TTL, VECTOR_URL,
};
use super::inject::is_agent_pod;
use super::inject::{is_successor, memory_of, own_variables};
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
        unknown: &["endpoint"],
        values: &[
            ("backend", &["in-context", "redis", "vector-store"]),
            ("durable", &["in-context/false", "redis/true", "vector-store/true"]),
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
        unknown: &["references"],
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

/// The backend, if it is one of the platform's.
fn backend(view: &MemoryView) -> Option<&'static Backend> {
    view.text("backend").and_then(|name| SWARM_FIELDS.named(name))
}

/// Puts what the pod itself sets in the place of what its memory declares. Of another backend, only the pod's own
/// variables count, and a limit without a variable is none. Returns the variables that name the endpoint: the program may
/// use any of them, and those of each backend where the backend is unknown.
fn use_own(view: &mut MemoryView, own: OwnReading<'_>, is_successor: bool) -> &'static [&'static str] {
    const OF_SECTION: [&str; 8] =
        ["provider", "endpoint", "ttlSeconds", "maxEntries", "embedding", "collection", "secrets", "inline"];
    if let Some(set) = own.get(BACKEND.variable) {
        view.clear(&OF_SECTION);
        view.clear(&["embedding.model", "embedding.provider"]);
        (view.endpoint, view.secrets, view.inline) = (None, Vec::new(), Vec::new());
        set.set_value(view, "backend", |text| Some(text.to_owned()));
        let backend = backend(view);
        set.set_value(view, "durable", |_| backend.map(|it| *it != IN_CONTEXT));
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
    if backend == Some(&REDIS)
        && let Some(set) = own.get(REDIS_SECRET.variable)
    {
        // The URL has its own credential.
        view.secrets.clear();
        set.decide(view, "secrets");
    }
    for row in backend.unwrap_or(&SWARM_VECTOR_STORE).own_rows() {
        // The limit may be that of another backend.
        if backend.is_some() || row.0 != VECTOR_TTL.variable {
            own.set_rows(view, &[row]);
        }
    }
    match backend {
        Some(backend) if *backend == REDIS => &[REDIS_SECRET.variable],
        Some(backend) if *backend != VECTOR_STORE => &[],
        Some(_) if is_successor => &[ENDPOINT.variable, VECTOR_URL.variable],
        Some(_) => &[ENDPOINT.variable],
        None => &[REDIS_SECRET.variable, ENDPOINT.variable, VECTOR_URL.variable],
    }
}

/// Sets what the program reads without a variable.
fn set_without_variables(view: &mut MemoryView, backend: &Backend) {
    for (_, path, reads) in backend.own_rows() {
        match reads {
            Reads::Limit => view.set(path, Some(0_i64)),
            Reads::TextOr(default) => view.set(path, Some(default)),
            Reads::Text | Reads::Nothing | Reads::CredentialFor(_) => {}
        }
    }
}

/// Reads the provider and the collection of the successor's URL: `qdrant://HOST/COLLECTION`, or a connection string.
fn use_own_url(name: &str, set: &OwnVariable, view: &mut MemoryView) {
    let is_empty = set.text.as_deref().is_some_and(|text| text.trim().is_empty());
    if name != VECTOR_URL.variable || is_empty {
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
    let memory = dialect.fields.of(object);
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, dialect.memory.kind, namespace, name);
    let endpoint = memory.text(&ENDPOINT);
    view.inline = endpoint.and_then(|text| inline_credential(text, ENDPOINT.pointer())).into_iter().collect();
    view.at("inline", ENDPOINT.path);
    memory.add_to(&mut view);
    let (name, backend) = (memory.text(&BACKEND), memory.backend());
    view.put("backend", BACKEND.path, name);
    view.put("durable", BACKEND.path, name.map(|_| backend != Some(&IN_CONTEXT)));
    if backend == Some(&VECTOR_STORE) {
        let endpoint = endpoint.filter(|text| !text.trim().is_empty());
        let parse = |text| endpoint_view::parse(EndpointSource::Literal, text, namespace, state);
        view.endpoint = endpoint.map(parse);
    }
    // The Secret of Redis also contains its endpoint.
    if let (true, [secret, ..]) = (backend == Some(&REDIS), &*view.secrets) {
        let of = format!("{}/{}", secret.name, secret.key.as_deref().unwrap_or_default());
        let unknown = EndpointView::unknown(EndpointSource::Secret, Why::EndpointInSecret);
        view.endpoint = Some(unknown.of(&of));
    }
    view
}

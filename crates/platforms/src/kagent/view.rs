//! The views of the family's objects, for rules of policies.
//!
//! kagent's own database keeps memories. Most other values are those of the embedder, to which the text of each memory
//! is sent. It is another object, so their place is the field that names it.

use super::prelude::*;
use crate::endpoint_view;
use memgate_model::memory_view::qualified;
use memgate_primitives::credential::is_credential_name;

use super::FAMILY;
use super::block::{self, Block, Part, TTL_DAYS_DEFAULT, pointer};
use super::embedder::{Destination, Embedder};

/// The kinds that have a view. An Agent of 1.x declares memory if its harness is inline.
pub(crate) static VIEWED: [(&Kind, Role); 6] = [
    (&AGENT, Role::Memory),
    (&SANDBOX_AGENT, Role::Memory),
    (&MEMORY, Role::Memory),
    (&HARNESS, Role::Memory),
    (&NEWER_AGENT, Role::Referrer),
    (&NEWER_AGENT, Role::Memory),
];

/// What the views hold.
pub(crate) static TABLES: [ViewTable; 5] = [
    of_own_database(&[&AGENT, &SANDBOX_AGENT]),
    of_own_database(&[&HARNESS]),
    of_own_database(&[&NEWER_AGENT]),
    ViewTable { paths: &["references"], ..ViewTable::new(Role::Referrer, &[&NEWER_AGENT]) },
    ViewTable {
        paths: &["backend", "durable", "provider", "endpoint", "inline", "secrets"],
        values: &[("backend", &["pinecone"]), ("durable", &["true"]), ("provider", &["Pinecone"])],
        sure: &["backend", "durable", "provider"],
        ..ViewTable::new(Role::Memory, &[&MEMORY])
    },
];

/// What the views of memory in kagent's own database hold.
const fn of_own_database(kinds: &'static [&'static Kind]) -> ViewTable {
    ViewTable {
        paths: &[
            "backend", "durable", "ttlSeconds", "provider", "endpoint", "embedding", "secrets", "inline",
            "references",
        ],
        values: &[("backend", &["postgres"]), ("durable", &["true"])],
        sure: &["backend", "durable", "ttlSeconds"],
        derived: &["backend"],
        ..ViewTable::new(Role::Memory, kinds)
    }
}

/// The view of an object of the family's own kinds.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let Subject { kind, object, namespace, name, .. } = *subject;
    if *kind == MEMORY {
        return Some(of_memory(subject, state));
    }
    let mut view = match Block::of(kind, object) {
        Some(block) if block.is_ignored => return None,
        Some(block) => of_block((kind, namespace, name), object, &block, state),
        None => of_referrer(subject, state)?,
    };
    if *kind == NEWER_AGENT {
        add_template(&mut view, object, state);
    }
    Some(view)
}

fn new_view((kind, namespace, name): (&Kind, &str, &str), role: Role, object: &Tree) -> MemoryView {
    MemoryView::new(FAMILY.name, role, kind.kind, namespace, name).labelled(object)
}

/// Adds a reference to an object of the same namespace.
fn add_reference<'s>(
    view: &mut MemoryView,
    kind: &'static Kind,
    (name, field): (&str, Pointer),
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    let lookup = state.get(kind, &view.namespace, name);
    view.references.push(ReferenceView::new(kind, (&view.namespace, name), field, lookup));
    lookup
}

/// The view of an Agent of 1.x that names its Harness, with the memory of that Harness.
fn of_referrer(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let Subject { kind, object, namespace, name, .. } = *subject;
    let harness = block::harness(object).filter(|_| *kind == NEWER_AGENT);
    let Some(Part::Named { name: named, path }) = harness else { return None };
    let mut view = new_view((kind, namespace, name), Role::Referrer, object);
    let field = pointer(path);
    view.at("references", field.clone());
    if is_dns_subdomain(named)
        && let Lookup::Found(harness) = add_reference(&mut view, &HARNESS, (named, field.clone()), state)
        && let Some(block) = Block::of(&HARNESS, harness.tree())
    {
        let source = of_block((&HARNESS, namespace, named), harness.tree(), &block, state);
        view.sources = vec![SourceView { view: source, field }];
    }
    Some(view)
}

/// The view of an object by its memory section.
fn of_block(
    identity: (&Kind, &str, &str),
    object: &Tree,
    block: &Block<'_>,
    state: &mut StateReader<'_>,
) -> MemoryView {
    /// In seconds.
    const DAY: i64 = 86_400;
    let mut view = new_view(identity, Role::Memory, object);
    let (section, embedder) = (block.pointer(), block.reference_pointer());
    view.put("backend", &section, Some("postgres"));
    view.put("durable", &section, Some(true));
    let days = block.ttl_days().filter(|days| *days > 0).unwrap_or(TTL_DAYS_DEFAULT);
    view.put("ttlSeconds", section.key("ttlDays"), Some(days.saturating_mul(DAY)));
    for path in ["provider", "endpoint", "embedding", "secrets", "inline", "references"] {
        view.at(path, &embedder);
    }
    if let Some(name) = block.embedder() {
        let is_absent = state.get(block.line.model_config(), &view.namespace, name) == Lookup::Absent;
        let line = if is_absent && is_moved(identity.0, object) { block.line.other() } else { block.line };
        add_embedder(&mut view, line, (name, embedder), state);
    }
    add_summarizer(&mut view, identity.0, object, state);
    view
}

/// Adds the ModelConfig that summarises old events of a session.
fn add_summarizer(view: &mut MemoryView, kind: &Kind, object: &Tree, state: &mut StateReader<'_>) {
    let line = Line::of(kind);
    let reference: &[&str] = match line {
        Line::Older => &["summarizer", "modelConfig"],
        Line::Newer => &["summarizer", "modelConfigRef", "name"],
    };
    let Some([_, compaction]) = block::places(kind) else { return };
    let path = [compaction, reference].concat();
    if let Some(name) = object.text_at(&path).filter(|name| is_dns_subdomain(name)) {
        add_reference(view, line.model_config(), (name, pointer(&path)), state);
    }
}

/// Adds the AgentTemplate of an Agent of 1.x.
fn add_template(view: &mut MemoryView, agent: &Tree, state: &mut StateReader<'_>) {
    if let Some(Part::Named { name, path }) = block::template(agent)
        && is_dns_subdomain(name)
    {
        add_reference(view, &AGENT_TEMPLATE, (name, pointer(path)), state);
    }
}

/// The view of a Memory, which names an index of Pinecone.
fn of_memory(subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let (object, home) = (subject.object, subject.namespace);
    let mut view = new_view((&MEMORY, home, subject.name), Role::Memory, object);
    view.put("backend", "/spec/provider", Some("pinecone"));
    view.put("durable", "/spec/provider", Some(true));
    view.put("provider", "/spec/provider", Some("Pinecone"));
    view.at("endpoint", "/spec/pinecone/indexHost");
    view.at("secrets", "/spec/apiKeySecretRef");
    view.at("inline", "/spec/pinecone/indexHost");
    if let Some(host) = object.filled_at(&["spec", "pinecone", "indexHost"]) {
        view.endpoint = Some(endpoint_view::parse(EndpointSource::Literal, host, home, state));
        view.inline.extend(inline_credential(host, Pointer::new("/spec/pinecone/indexHost")));
    }
    let named = object.filled_at(&["spec", "apiKeySecretRef"]);
    let named = named.map(|text| text.split_once('/').unwrap_or((home, text)));
    let key = object.filled_at(&["spec", "apiKeySecretKey"]);
    view.secrets.extend(named.map(|it| SecretView::new(it, key, Pointer::new("/spec/apiKeySecretRef"))));
    view
}

/// The fields of a ModelConfig.
const PROVIDER: &str = "/spec/provider";
const API_KEY: &[&str] = &["spec", "apiKeySecret"];
const CA_CERT: &[&str] = &["spec", "tls", "caCertSecretRef"];
const TOKEN: &[&str] = &["spec", "azureOpenAI", "azureAdToken"];
const HEADERS: &[&str] = &["spec", "defaultHeaders"];

/// The paths of a view, besides the endpoint, whose values are unknown without the embedder.
const PATHS: [&str; 4] = ["provider", "embedding", "secrets", "inline"];

/// Adds the embedder of this name, which this field contains.
fn add_embedder(
    view: &mut MemoryView,
    line: Line,
    (name, field): (&str, Pointer),
    state: &mut StateReader<'_>,
) {
    let kind = line.model_config();
    let lookup = add_reference(view, kind, (name, field.clone()), state);
    for path in ["provider", "endpoint", "embedding"] {
        view.set_origin(path, kind, PROVIDER);
    }
    view.set_origin("secrets", kind, pointer(API_KEY));
    view.set_origin("inline", kind, "/spec");
    let Lookup::Found(found) = lookup else {
        let title = format!("{} {}", kind.kind, quoted(&qualified(&view.namespace, name)));
        let why = Why::Object(title);
        for path in PATHS {
            view.set_unknown(path, why.clone());
        }
        view.endpoint = Some(EndpointView::unknown(EndpointSource::Derived, why).of(name));
        view.embedding_endpoint.clone_from(&view.endpoint);
        return;
    };
    let embedder = Embedder::new(line, found.tree());
    let endpoint = match embedder.endpoint() {
        Some(Destination::Written(path, _) | Destination::ConfigMap { path, .. }) => pointer(path),
        Some(Destination::Derived(_)) | None => Pointer::new(PROVIDER),
    };
    view.set_origin("endpoint", kind, &endpoint);
    view.set_origin("embedding.endpoint", kind, endpoint);
    view.set_origin("embedding.model", kind, pointer(embedder.model_path()));
    view.set("embedding", Some(ViewValue::Object));
    view.set("embedding.model", embedder.model());
    view.set("embedding.provider", Some(embedder.provider()));
    view.set("provider", Some(embedder.provider()));
    add_endpoint(view, &embedder, (kind, &field), state);
    view.embedding_endpoint.clone_from(&view.endpoint);
    add_credentials(view, found.tree(), (kind, &field));
}

fn add_endpoint(
    view: &mut MemoryView,
    embedder: &Embedder<'_>,
    (kind, field): (&'static Kind, &Pointer),
    state: &mut StateReader<'_>,
) {
    let (source, text) = match embedder.endpoint() {
        None => return,
        Some(Destination::Derived(url)) => (EndpointSource::Derived, url),
        Some(Destination::Written(path, text)) => {
            view.inline.extend(inline_credential(text, field.clone()).map(|it| it.from(kind, pointer(path))));
            // kagent itself adds the scheme for Ollama.
            let lacks_scheme = embedder.provider() == "Ollama" && !text.contains("://");
            let url = if lacks_scheme { format!("http://{text}").into() } else { text.into() };
            (EndpointSource::Literal, url)
        }
        Some(Destination::ConfigMap { name, key, .. }) => {
            view.endpoint = Some(EndpointView::in_object(EndpointSource::ConfigMap, (name, key)));
            return;
        }
    };
    view.endpoint = Some(endpoint_view::parse(source, &text, &view.namespace, state));
}

/// Adds the Secrets that a ModelConfig names, and its credentials in clear text.
fn add_credentials(view: &mut MemoryView, model_config: &Tree, (kind, field): (&'static Kind, &Pointer)) {
    for (path, key) in
        [(API_KEY, ["spec", "apiKeySecretKey"].as_slice()), (CA_CERT, &["spec", "tls", "caCertSecretKey"])]
    {
        if let Some(name) = model_config.filled_at(path) {
            let secret = SecretView::new((&view.namespace, name), model_config.filled_at(key), field.clone());
            view.secrets.push(secret.from(kind, pointer(path)));
        }
    }
    let inline = |value: &str, path: &[&str]| InlineView::new(field.clone(), value).from(kind, pointer(path));
    let token = model_config.filled_at(TOKEN);
    view.inline.extend(token.map(|token| inline(token, TOKEN)));
    // All headers have the same place, so one of them is enough.
    let mut headers = model_config.at(HEADERS).into_iter().flat_map(Tree::keys);
    let credential = headers.find(|name| is_credential_name(name));
    view.inline.extend(credential.map(|name| inline(name, HEADERS)));
}

//! The views of the family's objects, for rules of policies.

mod endpoint;

use super::prelude::*;
use crate::endpoint_view;
use crate::inject::own::{OwnReading, OwnVariables, distinct};
use crate::inject::own_memory::has_credential;

use super::FAMILY;
use super::durable;
use super::inject::{self, is_user, memory_of, own_variables, written_address};
use super::value;
use super::value::{EffectiveValue, ValueOrSource, ValueSource};

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 3] =
    [(&MEMORY, Role::Memory), (&QUERY, Role::Referrer), (&ARK_CONFIG, Role::Referrer)];

/// What the views hold.
pub(crate) static TABLES: [ViewTable; 3] = [
    ViewTable {
        paths: &["backend", "endpoint", "secrets", "durable", "inline", "references"],
        values: &[("backend", &["http"])],
        sure: &["backend"],
        derived: &["backend"],
        ..ViewTable::new(Role::Memory, &[&MEMORY])
    },
    ViewTable { paths: &["ttlSeconds", "references"], ..ViewTable::new(Role::Referrer, &[&QUERY]) },
    ViewTable { paths: &["ttlSeconds"], ..ViewTable::new(Role::Referrer, &[&ARK_CONFIG]) },
];

/// The view of an object of the family's own kinds. An ArkConfig has one if the platform reads it.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    if *subject.kind == MEMORY {
        Some(of_memory(subject.object, (subject.namespace, subject.name), state))
    } else if *subject.kind == QUERY {
        Some(of_query(subject, state))
    } else if *subject.kind == ARK_CONFIG && subject.name == DEFAULT {
        let mut view = MemoryView::new(FAMILY.name, Role::Referrer, ARK_CONFIG.kind, "", DEFAULT);
        value::add_ttl_of_config(&mut view, subject.object);
        Some(view)
    } else {
        None
    }
}

/// The view of a pod that opts in.
pub(crate) fn view_pod(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let found = memory_of(pods[0], namespace, state)?.into_iter().next();
    let mut declared = found.map(|(home, memory)| of_stored(memory, home, state));
    if let Some(memory) = &mut declared {
        if let Some(url) = written_address(pods[0], namespace, state) {
            use_written(memory, &url, state);
        }
        memory.at("durable", annotation_pointer(MEMORY_ANNOTATION));
    }
    let own = own_variables(pods, namespace, state);
    let is_used = own.is_empty() || own.iter().any(OwnVariables::is_empty);
    let mut sources: Vec<MemoryView> = declared.clone().filter(|_| is_used).into_iter().collect();
    for (own, reading) in distinct(&own, &declared, state.budget()) {
        let mut source = declared.clone().unwrap_or_else(|| own.undeclared_view(FAMILY.name, namespace));
        source.set("backend", Some(BACKEND));
        use_own(&mut source, reading, state);
        sources.push(source);
    }
    if sources.is_empty() && !is_user(pods[0], namespace) {
        return None;
    }
    let mut view = MemoryView::of_pod(FAMILY.name, namespace, sources);
    for own in own.into_iter().filter(|_| declared.is_some()) {
        own.add_to(&mut view);
    }
    Some(view)
}

/// Puts the address that memgate writes into the pod in the place of what the Memory declares, where it is another one: the
/// platform resolved it, and it may be stale.
fn use_written(view: &mut MemoryView, url: &str, state: &mut StateReader<'_>) {
    let from = view.endpoint.as_ref().map_or(EndpointSource::Literal, |endpoint| endpoint.from);
    let written = endpoint_view::parse(from, url, &view.namespace, state);
    let known = view.endpoint.as_ref().filter(|endpoint| endpoint.unknown.is_none());
    let host = |endpoint: &EndpointView| endpoint.hosts.first().map(|host| host.host.clone());
    if known.and_then(host) != host(&written) {
        durable::use_url(view, Some(url), Why::Serving, state);
        view.endpoint = Some(written);
    }
}

/// Puts what a container itself sets in the place of what its Memory declares.
fn use_own(view: &mut MemoryView, own: OwnReading<'_>, state: &mut StateReader<'_>) {
    if let Some(set) = own.get(inject::URL) {
        set.set_endpoint(view, "endpoint", has_credential, state);
        view.at("durable", &set.field);
        durable::use_url(view, set.text.as_deref(), set.why(), state);
    }
    for (name, set) in own.iter() {
        if name.starts_with(inject::HEADER_PREFIX) && (set.replaces_secret || set.text.is_none()) {
            set.decide(view, "secrets");
            view.inline.extend(set.text.as_ref().map(|text| InlineView::new(set.field.clone(), text)));
        }
    }
}

/// The only backend: in the platform, memory is always a service.
const BACKEND: &str = "http";

/// The view of a stored Memory, which was looked up in this namespace.
fn of_stored(memory: &Object, namespace: &str, state: &mut StateReader<'_>) -> MemoryView {
    of_memory(memory.tree(), (namespace, &memory.name), state).labelled(memory.tree())
}

/// The view of a Memory with this namespace and name.
fn of_memory(object: &Tree, (namespace, name): (&str, &str), state: &mut StateReader<'_>) -> MemoryView {
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, MEMORY.kind, namespace, name);
    view.has_fixed_name = name == DEFAULT;
    let place = Pointer::new("/spec/address");
    view.put("backend", &place, Some(BACKEND));
    view.at("inline", &place);
    view.at("secrets", place.key("valueFrom").key("secretKeyRef"));
    view.at("references", place.key("valueFrom").key("serviceRef"));
    let address = object.at(&["spec", "address"]).map(ValueOrSource::read_address);
    let value = address.as_ref().map_or(EffectiveValue::Nothing, ValueOrSource::effective);
    endpoint::add(&mut view, value, &place, state);
    durable::add(&mut view, value, &place, state);
    match value {
        EffectiveValue::Literal(literal) => {
            let url = literal.text().and_then(|text| inline_credential(text, place.key("value")));
            view.inline.extend(url);
        }
        EffectiveValue::Source(source) => add_secret(&mut view, &source, &place),
        EffectiveValue::Nothing => {}
    }
    let headers = object.list_at(&["spec", "headers"]);
    let list = Pointer::new("/spec/headers");
    for (index, header) in headers.iter().enumerate() {
        if let Some(value) = header.get("value") {
            let name = header.text_at(&["name"]).unwrap_or_default();
            add_header(&mut view, name, value, || list.index(index).key("value"));
        }
    }
    view
}

/// Adds the Secret of a header, or the credential in its literal. The literal counts even if a source overrides it,
/// since it is stored in clear text.
fn add_header(view: &mut MemoryView, name: &str, value: &Tree, place: impl Fn() -> Pointer) {
    let value = ValueOrSource::read_header(value);
    if let Some(text) = value.literal.and_then(Tree::text).filter(|_| is_credential_header(name)) {
        view.inline.push(InlineView::new(place().key("value"), &format!("{name}: {text}")));
    }
    if let EffectiveValue::Source(source) = value.effective() {
        add_secret(view, &source, &place());
    }
}

/// Adds the Secret of a value at this place, if the value comes from one.
fn add_secret(view: &mut MemoryView, source: &ValueSource<'_>, place: &Pointer) {
    let Some(name) = source.text("name").filter(|_| source.field == "secretKeyRef") else { return };
    let field = place.key("valueFrom").key(source.field).key("name");
    view.secrets.push(SecretView::new((&view.namespace, name), source.text("key"), field));
}

/// The view of a Query. The default Memory has already been written into it.
fn of_query(subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let mut view = MemoryView::new(FAMILY.name, Role::Referrer, QUERY.kind, subject.namespace, subject.name);
    let place = Pointer::new("/spec/memory");
    view.at("references", &place);
    value::add_ttl_of_query(&mut view, subject.object, state);
    let Some((home, name)) = memory_ref(subject) else { return view };
    let (lookup, field) = (state.get_if_known(&MEMORY, home, name), place.key("name"));
    if let Lookup::Found(memory) = lookup {
        view.sources = vec![SourceView { view: of_stored(memory, home, state), field: field.clone() }];
    }
    let named = (endpoint::home(home, subject.namespace, lookup, state), name);
    view.references.push(ReferenceView::new(&MEMORY, named, field, lookup));
    view
}

/// The namespace and the name of the Memory; `None` if one of them has the wrong type or the name is missing.
fn memory_ref<'t>(subject: &Subject<'t>) -> Option<(&'t str, &'t str)> {
    let reference = subject.object.at(&["spec", "memory"])?;
    let name = reference.get("name")?.text().filter(|name| !name.is_empty())?;
    let home = match reference.get("namespace") {
        None => subject.namespace,
        Some(namespace) => match namespace.text()? {
            "" => subject.namespace,
            namespace => namespace,
        },
    };
    Some((home, name))
}

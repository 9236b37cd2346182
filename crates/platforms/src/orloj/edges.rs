//! What the objects of this family refer to.

use super::prelude::*;
use memgate_model::edge::{Edge, Form, Home, Key, Named, Site, Wanted, memory_used};

use super::claim;
use super::namespace::{self, NamespacedName, SecretReference};
use super::validate::memories;

const NO_MEMORY: &str = "Orloj cannot use this Memory without it";

static EITHER_SECRET: [&Kind; 2] = [&SECRET, &OWN_SECRET];

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 6] = [
    Edge::new(&[&AGENT], "/spec/memory/ref", &[&MEMORY])
        .in_home(Home::InText(own_name))
        .of_memory()
        .only_if(|site, _| !site.text.trim().contains(|c: char| c == '/' || c.is_whitespace()))
        .where_it_matters(counts)
        .found_by(in_orloj)
        .warns(&AGENT_MEMORY_MISSING, ""),
    Edge::new(&[&MEMORY], "/spec/embedding_model", &[&MODEL_ENDPOINT])
        .in_home(Home::InText(any_name))
        .of_form(Form::Part)
        .only_if(|site, _| NamespacedName::read(site.text, claim::DEFAULT).is_valid())
        .where_it_matters(counts)
        .found_by(in_orloj)
        .serving_memory()
        .warns(&EMBEDDING_MISSING, "it is the name of a ModelEndpoint, not of a model"),
    secret(&[&MEMORY], "/spec/auth/secretRef").only_if(is_read).where_it_matters(counts),
    secret(&[&MEMORY], "/spec/endpoint_secret_ref").only_if(is_read).where_it_matters(counts),
    secret(&[&MODEL_ENDPOINT], "/spec/auth/secretRef")
        .only_if(|site, _| is_reference(site))
        .where_it_matters(|endpoint, state| {
            counts(endpoint, state) && memories(endpoint, state).next().is_some()
        }),
    Edge::new(&[], "/metadata/labels/orloj.dev~1agent", &[&AGENT]).of_form(Form::Made).of_memory(),
];

const fn secret(from: &'static [&'static Kind], path: &'static str) -> Edge {
    Edge::new(from, path, &EITHER_SECRET)
        .in_home(Home::InText(secret_name))
        .of_form(Form::Part)
        .found_by(of_either_kind)
        .warns(&SECRET_MISSING, NO_MEMORY)
        .with_key(Key::InText, &SECRET_KEY_MISSING)
}

/// Whether an object counts where its names are looked up. If not, what exists there is unknown to it.
fn counts(subject: &Subject<'_>, state: &mut StateReader<'_>) -> bool {
    claim::counts(subject.object, subject.namespace, state.settings())
}

/// Whether the provider of a Memory reads Secrets.
fn is_read(site: &Site<'_, Tree>, memory: &Tree) -> bool {
    !Memory::read(memory).has_provider(&Provider::InMemory) && is_reference(site)
}

fn is_reference(site: &Site<'_, Tree>) -> bool {
    SecretReference::read(site.text, claim::DEFAULT).secret.is_valid()
}

fn own_name<'t>(text: &'t str, object: &'t Tree, namespace: &'t str) -> Named<'t> {
    Named { namespace: claim::effective(object, namespace), name: text.trim(), key: None }
}

fn any_name<'t>(text: &'t str, object: &'t Tree, namespace: &'t str) -> Named<'t> {
    let NamespacedName { namespace, name } = NamespacedName::read(text, claim::effective(object, namespace));
    Named { namespace, name, key: None }
}

fn secret_name<'t>(text: &'t str, object: &'t Tree, namespace: &'t str) -> Named<'t> {
    let reference = SecretReference::read(text, claim::effective(object, namespace));
    let NamespacedName { namespace, name } = reference.secret;
    Named { namespace, name, key: Some(reference.key()) }
}

fn in_orloj<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let Wanted { edge, named, .. } = wanted;
    edge.to.first().map_or(Lookup::Absent, |kind| namespace::find(kind, named.namespace, named.name, state))
}

/// A Secret of the core, or one of Orloj itself. One of either kind makes it known what a namespace has.
fn of_either_kind<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let Named { namespace, name, .. } = wanted.named;
    match (wanted.get(&SECRET, state), state.peek(&OWN_SECRET, namespace, name)) {
        (_, Some(own)) => Lookup::Found(own),
        (Lookup::Unknown(()), None) if state.holds_one_in(&OWN_SECRET, namespace) => Lookup::Absent,
        (of_core, None) => of_core,
    }
}

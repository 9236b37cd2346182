//! What the objects of this family refer to.

use std::ptr;

use memgate_model::edge::{Edge, Form, Home, Key, Named, Site};
use memgate_model::kind::SERVICE;
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;

use crate::references::{CONFIG_MAPS, SECRETS};

use super::api::{ARK_CONFIG, MEMORIES, MEMORY, QUERY};
use super::codes::{
    CONFIG_MEMORY_MISSING, MEMORY_CONFIGMAP_KEY_MISSING, MEMORY_CONFIGMAP_MISSING, MEMORY_SECRET_KEY_MISSING,
    MEMORY_SECRET_MISSING, MEMORY_SERVICE_MISSING, QUERY_MEMORY_MISSING,
};
use super::value::{EffectiveValue, ValueOrSource};

const NO_ADDRESS: &str = "without it the Memory has no address, and each Query of it fails";
const NO_HEADER: &str = "without it each Query of this Memory fails";

/// The rows.
pub(crate) static EDGES: [Edge; 8] = [
    Edge::new(&[&QUERY], "/spec/memory/name", &[&MEMORY])
        .in_home(Home::Beside("namespace"))
        .of_memory()
        .where_known()
        .only_if(|site, _| site.holder.get("namespace").is_none_or(|namespace| namespace.text().is_some()))
        .warns(&QUERY_MEMORY_MISSING, "the Query fails without it"),
    Edge::new(&[&ARK_CONFIG], "/spec/defaultMemory/name", &[&MEMORY])
        .found_by(in_any_namespace)
        .warns(&CONFIG_MEMORY_MISSING, "Queries without spec.memory have no memory"),
    secret("/spec/address/valueFrom/secretKeyRef/name", NO_ADDRESS).only_if(is_address),
    config_map("/spec/address/valueFrom/configMapKeyRef/name", NO_ADDRESS).only_if(is_address),
    Edge::new(&[&MEMORY], "/spec/address/valueFrom/serviceRef/name", &[&SERVICE])
        .in_home(Home::Beside("namespace"))
        .only_if(is_address)
        .warns(&MEMORY_SERVICE_MISSING, NO_ADDRESS),
    secret("/spec/headers/*/value/valueFrom/secretKeyRef/name", NO_HEADER).only_if(is_in_header),
    config_map("/spec/headers/*/value/valueFrom/configMapKeyRef/name", NO_HEADER).only_if(is_in_header),
    Edge::new(&[], "/metadata/annotations/memgate.dev~1ark-memory", &[&MEMORY])
        .in_home(Home::InText(of_annotation))
        .of_form(Form::Part)
        .of_memory(),
];

const fn secret(path: &'static str, effect: &'static str) -> Edge {
    Edge::new(&MEMORIES, path, &SECRETS)
        .warns(&MEMORY_SECRET_MISSING, effect)
        .with_key(Key::Beside("key"), &MEMORY_SECRET_KEY_MISSING)
}

const fn config_map(path: &'static str, effect: &'static str) -> Edge {
    Edge::new(&MEMORIES, path, &CONFIG_MAPS)
        .warns(&MEMORY_CONFIGMAP_MISSING, effect)
        .with_key(Key::Beside("key"), &MEMORY_CONFIGMAP_KEY_MISSING)
}

/// Whether the address comes from this source.
fn is_address(site: &Site<'_, Tree>, memory: &Tree) -> bool {
    memory
        .at(&["spec", "address"])
        .is_some_and(|address| is_effective(&ValueOrSource::read_address(address), site))
}

/// Whether the value of a header comes from this source.
fn is_in_header(site: &Site<'_, Tree>, _memory: &Tree) -> bool {
    let value = site.element.and_then(|header| header.get("value"));
    value.is_some_and(|value| is_effective(&ValueOrSource::read_header(value), site))
}

fn is_effective(value: &ValueOrSource<'_>, site: &Site<'_, Tree>) -> bool {
    matches!(value.effective(), EffectiveValue::Source(source) if ptr::eq(source.tree, site.holder))
}

/// The Memory of an annotation: `name` or `namespace/name`.
fn of_annotation<'t>(text: &'t str, _pod: &'t Tree, namespace: &'t str) -> Named<'t> {
    let text = text.trim();
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
    Named { namespace, name, key: None }
}

/// A Memory of this name in whatever namespace: each Query uses the one of its own.
fn in_any_namespace<'s>(
    edge: &Edge,
    named: &Named<'_>,
    _config: &Tree,
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    let find = |kind| state.peek(kind, state.elsewhere(kind, "", named.name)?, named.name);
    let found = edge.to.iter().find_map(|kind| find(kind));
    let is_known = edge.to.iter().any(|kind| state.is_known(kind));
    found.map_or(if is_known { Lookup::Absent } else { Lookup::Unknown(()) }, Lookup::Found)
}

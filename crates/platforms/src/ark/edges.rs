//! What the objects of this family refer to.

use std::ptr;

use super::prelude::*;
use memgate_model::edge::{Edge, Form, Home, Key, Named, Site, Wanted, known_if, memory_used};

use crate::references::{CONFIG_MAPS, SECRETS};

use super::service::{port_by_name, ports};
use super::value::{EffectiveValue, ValueOrSource};

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 8] = [
    Edge::new(&[&QUERY], "/spec/memory/name", &[&MEMORY])
        .in_home(Home::Beside("namespace"))
        .of_memory()
        .where_known()
        .or_else(&["spec", "memory"], DEFAULT)
        .only_if(|site, _| site.holder.get("namespace").is_none_or(|namespace| namespace.text().is_some()))
        .warns(&QUERY_MEMORY_MISSING, ""),
    Edge::new(&[&ARK_CONFIG], "/spec/defaultMemory/name", &[&MEMORY])
        .found_by(in_any_namespace)
        .warns(&CONFIG_MEMORY_MISSING, "Queries without spec.memory have no memory"),
    secret("/spec/address/valueFrom/secretKeyRef/name").only_if(is_address),
    config_map("/spec/address/valueFrom/configMapKeyRef/name").only_if(is_address),
    Edge::new(&[&MEMORY], "/spec/address/valueFrom/serviceRef/name", &[&SERVICE])
        .in_home(Home::Beside("namespace"))
        .only_if(is_address)
        .warns(&MEMORY_SERVICE_MISSING, "")
        .with_key(Key::Port("port", has_port), &MEMORY_PORT_UNKNOWN),
    secret("/spec/headers/*/value/valueFrom/secretKeyRef/name").only_if(is_in_header),
    config_map("/spec/headers/*/value/valueFrom/configMapKeyRef/name").only_if(is_in_header),
    Edge::new(&[], "/metadata/annotations/memgate.dev~1ark-memory", &[&MEMORY])
        .in_home(Home::InText(of_annotation))
        .of_form(Form::Part)
        .of_memory(),
];

const fn secret(path: &'static str) -> Edge {
    Edge::new(&MEMORIES, path, &SECRETS)
        .warns(&MEMORY_SECRET_MISSING, "")
        .with_key(Key::Beside("key"), &MEMORY_SECRET_KEY_MISSING)
}

const fn config_map(path: &'static str) -> Edge {
    Edge::new(&MEMORIES, path, &CONFIG_MAPS)
        .warns(&MEMORY_CONFIGMAP_MISSING, "")
        .with_key(Key::Beside("key"), &MEMORY_CONFIGMAP_KEY_MISSING)
}

fn has_port(service: &Object, name: &str) -> bool {
    port_by_name(&ports(service.tree()), name).is_some()
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
fn in_any_namespace<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let name = wanted.named.name;
    let found = state.elsewhere(&MEMORY, "", name).and_then(|home| state.peek(&MEMORY, home, name));
    // In a cluster the Memory of each namespace may come later.
    known_if(state.of_files() && state.is_known(&MEMORY), found.map_or(Lookup::Absent, Lookup::Found))
}

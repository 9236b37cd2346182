//! Lists whose elements must differ: sets, and maps by some of their fields.
//! Source: k8s.io/apiextensions-apiserver, `schema/listtype`.

use crate::crd::{ListType, SchemaNode};
use crate::node::identity;
use crate::place::Place;
use crate::violation::{Rule, Violations};
use memgate_primitives::members::ByKey;

/// Notes every element that occurred before.
pub(super) fn check<'d>(here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Violations<'d>) {
    if !schema.tells_apart {
        return;
    }
    for (key, value) in here.value.fields() {
        if let Some(schema) = schema.object.field(key) {
            check(&here.key(key, value, None), schema, found);
        }
    }
    match &schema.list.list_type {
        ListType::Atomic => {}
        ListType::Set => report_repeated(here, None, found),
        ListType::Map(keys) => check_map(here, keys, found),
    }
    let Some(items) = schema.list.items.as_deref().filter(|items| items.tells_apart) else { return };
    for (index, element) in here.value.elements().iter().enumerate() {
        if found.is_over() {
            return;
        }
        check(&here.index(index, element, None), items, found);
    }
}

fn check_map<'d>(here: &Place<'_, 'd>, keys: &'d [String], found: &mut Violations<'d>) {
    let mut elements = here.value.elements().iter().enumerate();
    match elements.find(|(_, element)| !element.is_null() && element.type_name() != "object") {
        Some((index, element)) => found.push(&here.index(index, element, None), Rule::NoMapElement),
        None => report_repeated(here, Some(keys), found),
    }
}

/// Reports the second of equal elements, and no third.
fn report_repeated<'d>(here: &Place<'_, 'd>, keys: Option<&'d [String]>, found: &mut Violations<'d>) {
    let mut counts: ByKey<_, usize> = ByKey::default();
    for (index, element) in here.value.elements().iter().enumerate() {
        let count = counts.or_default(identity(element, keys));
        *count += 1;
        if *count == 2 {
            found.push(&here.index(index, element, None), Rule::Duplicate(keys));
        }
        if found.is_over() {
            return;
        }
    }
}

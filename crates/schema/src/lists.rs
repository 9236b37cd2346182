//! Lists whose elements must differ: sets, and maps by some of their fields.
//! Source: k8s.io/apiextensions-apiserver, `schema/listtype`.

use crate::breach::Breaches;
use crate::crd::{ListType, SchemaNode};
use crate::equal::Known;
use crate::place::{Place, Step};
use crate::rule::Rule;

/// Notes every element that occurred before.
pub(super) fn check<'d>(here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Breaches<'d>) {
    if !schema.tells_apart {
        return;
    }
    for (key, value) in here.value.fields() {
        if let Some(schema) = schema.object.field(key) {
            check(&here.below(Step::Key(key), value, None), schema, found);
        }
    }
    match &schema.list.list_type {
        ListType::Atomic => {}
        ListType::Set => report_repeated(here, None, found),
        ListType::Map(keys) => check_map(here, keys, found),
    }
    let Some(items) = schema.list.items.as_deref().filter(|items| items.tells_apart) else { return };
    for (index, element) in here.value.elements().enumerate() {
        if found.is_over() {
            return;
        }
        check(&here.below(Step::Index(index), element, None), items, found);
    }
}

fn check_map<'d>(here: &Place<'_, 'd>, keys: &'d [String], found: &mut Breaches<'d>) {
    let mut elements = here.value.elements().enumerate();
    match elements.find(|(_, element)| !element.is_null() && !element.is_map()) {
        Some((index, element)) => {
            found.push(&here.below(Step::Index(index), element, None), Rule::NoMapElement);
        }
        None => report_repeated(here, Some(keys), found),
    }
}

/// Reports the second of equal elements, and no third.
fn report_repeated<'d>(here: &Place<'_, 'd>, keys: Option<&'d [String]>, found: &mut Breaches<'d>) {
    let mut known = Known::by(keys);
    for (index, element) in here.value.elements().enumerate() {
        match known.get_mut(element) {
            None => known.insert(element, 1_usize),
            Some(times) => {
                *times += 1;
                if *times == 2 {
                    found.push(&here.below(Step::Index(index), element, None), Rule::Duplicate(keys));
                }
            }
        }
        if found.is_over() {
            return;
        }
    }
}

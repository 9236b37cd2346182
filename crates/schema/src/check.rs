//! The walk through an object and its schema.
//! Source: k8s.io/kube-openapi, `validation/validate`, and for `stored` k8s.io/apiextensions-apiserver,
//! `apiserver/validation/ratcheting.go`.

use crate::crd::{JsonTypes, ListRules, ListType, ObjectRules, SchemaNode};
use crate::node::{Node, identity};
use crate::place::Place;
use crate::scalar;
use crate::violation::{Rule, Violations};
use memgate_primitives::members::{ByKey, Members};
use memgate_primitives::pointer::Path;

/// Checks one value; the recursion is bounded by the depth of the schema. What the stored object has too,
/// in the same place and with the same content, is marked.
pub(super) fn check<'d>(here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Violations<'d>) {
    let value = here.value;
    if value.is_null() && (schema.nullable || schema.types == JsonTypes::Any) {
        if !schema.allowed.is_empty() {
            found.push(here, Rule::Unsupported(&schema.allowed));
        }
        return;
    }
    if let Some(rule) = scalar::wrong_type(value, schema) {
        return found.push(here, rule);
    }
    let own = match value {
        Node::Text(text) => scalar::text(text, schema),
        Node::Number(number) => scalar::number(number, schema),
        _ => None,
    };
    let is_allowed =
        || schema.allowed.is_empty() || schema.allowed.iter().any(|allowed| value.equals(allowed));
    if let Some(rule) = own {
        found.push(here, rule);
    } else if !is_allowed() {
        found.push(here, Rule::Unsupported(&schema.allowed));
    } else if let Some(rule) = wrong_alternative(value, schema) {
        found.push(here, rule);
    }
    for alternative in &schema.all_of {
        check(here, alternative, found);
    }
    match value {
        Node::List(elements) => check_list(here, elements, &schema.list, found),
        Node::Map(fields) => check_object(here, fields.len(), &schema.object, found),
        Node::Null | Node::Boolean(_) | Node::Number(_) | Node::Text(_) | Node::Raw(_) => {}
    }
}

/// What is wrong with the choices that a schema offers.
fn wrong_alternative<'d>(value: &'d Node<'d>, schema: &'d SchemaNode) -> Option<Rule<'d>> {
    let holds = |alternative: &&'d SchemaNode| {
        let mut found = Violations::whether_any();
        check(&Place::root(value, None), alternative, &mut found);
        found.is_empty()
    };
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(|alternative| holds(&alternative)) {
        return Some(Rule::AnyOf);
    }
    if !schema.one_of.is_empty() {
        let valid = schema.one_of.iter().filter(holds).count();
        if valid != 1 {
            return Some(Rule::OneOf(valid));
        }
    }
    let forbidden = schema.not.as_deref().is_some_and(|not| holds(&not));
    forbidden.then_some(Rule::Not)
}

fn check_list<'d>(
    here: &Place<'_, 'd>,
    elements: &'d [Node<'d>],
    rules: &'d ListRules,
    found: &mut Violations<'d>,
) {
    let count = elements.len();
    let too_few = rules.min.filter(|min| (count as u64) < *min);
    let too_many = rules.max.filter(|max| count as u64 > *max);
    if let Some(min) = too_few {
        found.push(here, Rule::TooFew { count, min });
    } else if let Some(max) = too_many {
        found.push(here, Rule::TooMany { count, max });
    } else if rules.unique && has_duplicates(elements) {
        found.push(here, Rule::HasDuplicates);
    }
    let Some(items) = &rules.items else { return };
    let old = OldElements::of(here, rules);
    let (before, mut known) = (found.len(), None);
    for (index, element) in elements.iter().enumerate() {
        if found.is_over() {
            return;
        }
        // Where one element is wrong, many may be.
        if known.is_none() && found.len() > before {
            known = Some(here.path.pointer());
        }
        let list = known.as_ref().map_or(here.path, |known| Path::Known(known.as_str()));
        check(&here.index(index, element, old.get(element)).along(Path::Index(&list, index)), items, found);
    }
}

/// The elements of the stored list. One is found by its keys; in a list without keys none is.
pub(super) struct OldElements<'d> {
    keys: Option<&'d [String]>,
    elements: ByKey<Vec<Option<&'d Node<'d>>>, &'d Node<'d>>,
}

impl<'d> OldElements<'d> {
    pub(super) fn of(list: &Place<'_, 'd>, rules: &'d ListRules) -> Self {
        let keys = match &rules.list_type {
            ListType::Map(keys) => Some(keys.as_slice()),
            ListType::Atomic | ListType::Set => None,
        };
        let old = list.old.filter(|_| keys.is_some()).map_or(&[][..], Node::elements);
        Self { keys, elements: old.iter().map(|element| (identity(element, keys), element)).collect() }
    }

    pub(super) fn get(&self, element: &'d Node<'d>) -> Option<&'d Node<'d>> {
        if self.elements.is_empty() {
            None
        } else {
            self.elements.get(&identity(element, self.keys)).copied()
        }
    }
}

fn has_duplicates(elements: &[Node<'_>]) -> bool {
    let mut known = Members::default();
    elements.iter().any(|element| !known.insert(element))
}

fn check_object<'d>(here: &Place<'_, 'd>, count: usize, rules: &'d ObjectRules, found: &mut Violations<'d>) {
    if let Some(min) = rules.min.filter(|min| (count as u64) < *min) {
        found.push(here, Rule::TooFew { count, min });
    } else if let Some(max) = rules.max.filter(|max| count as u64 > *max) {
        found.push(here, Rule::TooMany { count, max });
    }
    for (key, value) in here.value.fields() {
        if found.is_over() {
            return;
        }
        if let Some(schema) = rules.field(key) {
            check(&here.key(key, value, here.old.and_then(|old| old.get(key))), schema, found);
        }
    }
    let embedded: &[&str] = if rules.embedded { &["apiVersion", "kind"] } else { &[] };
    let required = rules.required.iter().map(String::as_str).chain(embedded.iter().copied());
    for name in required {
        if here.value.get(name).is_none() {
            let from = found.len();
            found.push(here, Rule::Required(name, ""));
            // Labels change the whole object; what it lacks is the same.
            if let Some(old) = here.old.filter(|_| here.is_root()) {
                found.mark_all(from, old.get(name).is_none());
            }
        }
    }
}

/// Notes every element that occurred before in a list whose elements must differ: a set, or a map by some of their fields.
/// Source: k8s.io/apiextensions-apiserver, `schema/listtype`.
pub(super) fn lists<'d>(here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Violations<'d>) {
    if !schema.tells_apart {
        return;
    }
    for (key, value) in here.value.fields() {
        if let Some(schema) = schema.object.field(key) {
            lists(&here.key(key, value, None), schema, found);
        }
    }
    match &schema.list.list_type {
        ListType::Atomic => {}
        ListType::Set => report_repeated(here, None, found),
        ListType::Map(keys) => check_map_elements(here, keys, found),
    }
    let Some(items) = schema.list.items.as_deref().filter(|items| items.tells_apart) else { return };
    for (index, element) in here.value.elements().iter().enumerate() {
        if found.is_over() {
            return;
        }
        lists(&here.index(index, element, None), items, found);
    }
}

fn check_map_elements<'d>(here: &Place<'_, 'd>, keys: &'d [String], found: &mut Violations<'d>) {
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
        let count = counts.entry(identity(element, keys)).or_default();
        *count += 1;
        if *count == 2 {
            found.push(&here.index(index, element, None), Rule::Duplicate(keys));
        }
        if found.is_over() {
            return;
        }
    }
}

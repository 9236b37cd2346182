//! The walk through an object and its schema.
//! Source: k8s.io/kube-openapi, `validation/validate`, and for `stored` k8s.io/apiextensions-apiserver,
//! `apiserver/validation/ratcheting.go`.

use crate::breach::Breaches;
use crate::crd::{JsonTypes, ListRules, ListType, ObjectRules, SchemaNode};
use crate::cursor::{Content, Cursor, Fields};
use crate::equal::{Known, equals};
use crate::place::{Place, Step};
use crate::rule::Rule;
use crate::scalar;

/// Checks one value; the recursion is bounded by the depth of the schema. What the stored object has too,
/// in the same place and with the same content, is marked.
pub(super) fn check<'d>(here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Breaches<'d>) {
    let value = here.value;
    if value.is_null() && (schema.nullable || schema.types == JsonTypes::Any) {
        if !schema.allowed.is_empty() {
            found.push(here, Rule::Unsupported(&schema.allowed));
        }
        return;
    }
    let content = value.content();
    if let Some(rule) = scalar::wrong_type(&content, schema) {
        return found.push(here, rule);
    }
    let own = match &content {
        Content::Text(text) => scalar::text(text, schema),
        Content::Number(number) => scalar::number(number, schema),
        _ => None,
    };
    let is_allowed =
        || schema.allowed.is_empty() || schema.allowed.iter().any(|allowed| equals(value, allowed));
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
    match content {
        Content::List => check_list(here, &schema.list, found),
        Content::Map => check_object(here, &schema.object, found),
        Content::Null | Content::Boolean(_) | Content::Number(_) | Content::Text(_) => {}
    }
}

/// What is wrong with the choices that a schema offers.
fn wrong_alternative<'d>(value: Cursor<'d>, schema: &'d SchemaNode) -> Option<Rule<'d>> {
    let holds = |alternative: &&'d SchemaNode| {
        let mut found = Breaches::whether_any(value);
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

fn check_list<'d>(here: &Place<'_, 'd>, rules: &'d ListRules, found: &mut Breaches<'d>) {
    let count = here.value.count();
    let too_few = rules.min.filter(|min| (count as u64) < *min);
    let too_many = rules.max.filter(|max| count as u64 > *max);
    if let Some(min) = too_few {
        found.push(here, Rule::TooFew { count, min, what: "items" });
    } else if let Some(max) = too_many {
        found.push(here, Rule::TooMany { count, max });
    } else if rules.unique && has_duplicates(here.value) {
        found.push(here, Rule::HasDuplicates);
    }
    let Some(items) = &rules.items else { return };
    let mut old = stored(here.old, &rules.list_type);
    for (index, element) in here.value.elements().enumerate() {
        if found.is_over() {
            return;
        }
        let old = old.as_mut().and_then(|old| old.get_mut(element).copied());
        check(&here.below(Step::Index(index), element, old), items, found);
    }
}

fn has_duplicates(list: Cursor<'_>) -> bool {
    let mut known = Known::by(None);
    list.elements().any(|element| {
        let is_known = known.get_mut(element).is_some();
        known.insert(element, ());
        is_known
    })
}

/// The elements of the stored list by their keys; of a list without keys none is known again.
fn stored<'d>(old: Option<Cursor<'d>>, list_type: &'d ListType) -> Option<Known<'d, Cursor<'d>>> {
    let ListType::Map(keys) = list_type else { return None };
    let mut known = Known::by(Some(keys));
    old?.elements().for_each(|element| known.insert(element, element));
    Some(known)
}

fn check_object<'d>(here: &Place<'_, 'd>, rules: &'d ObjectRules, found: &mut Breaches<'d>) {
    let count = here.value.count();
    if let Some(min) = rules.min.filter(|min| (count as u64) < *min) {
        found.push(here, Rule::TooFew { count, min, what: "properties" });
    } else if let Some(max) = rules.max.filter(|max| count as u64 > *max) {
        found.push(here, Rule::TooMany { count, max });
    }
    let old = here.old.map(Fields::of);
    for (key, value) in here.value.fields() {
        if found.is_over() {
            return;
        }
        if let Some(schema) = rules.field(key) {
            let old = old.as_ref().and_then(|old| old.get(key));
            check(&here.below(Step::Key(key), value, old), schema, found);
        }
    }
    let embedded: &[&str] = if rules.embedded { &["apiVersion", "kind"] } else { &[] };
    let required = rules.required.iter().map(String::as_str).chain(embedded.iter().copied());
    for name in required {
        if here.value.get(name).is_none() {
            found.push(here, Rule::Required(name, ""));
        }
    }
}

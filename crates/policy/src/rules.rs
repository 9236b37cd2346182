//! The typed rules: what each reads from a policy, and how it judges a view.
//!
//! A rule sees views only. It does not know families, requests or the state, so it cannot fail, and it has the same
//! result everywhere.

mod allowed;
mod any_of;
mod bounds;
mod check;
mod checks;
mod contradictions;
mod endpoint;
mod environment;
mod fields;
mod host_glob;
mod images;
mod immutable;
mod labels;
mod limits;
mod references;
mod secrets;
mod tenancy;
pub(crate) mod when;
mod words;

use memgate_model::memory_view::Role;
use memgate_model::typed_rule::{RuleRoles, TypedRule};

use memgate_model::finding::Cause;
use memgate_model::page::Page;
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::reader::{Fields, Reader, one_of};

/// The type that holds other rules.
const ANY_OF: &str = "anyOf";

/// The fields of a rule besides the typed one.
pub(crate) const FIELDS: [&str; 11] = [
    "id", "roles", "when", "during", "action", "message", "hint", "docs", "severity", "onUnknown",
    "exemptable",
];

/// A type of rules.
#[derive(Debug)]
pub struct RuleType {
    /// The field of a rule that holds it.
    pub name: &'static str,
    /// The roles of the objects that it judges by themselves. Where `memory` is among them, all others are
    /// judged by the memory that they use.
    pub natural: &'static [Role],
    /// The page about it, in Markdown.
    pub page: Page,
    /// Reads one; `None` if it has faults, which the reader has noted.
    pub(super) read: fn(&Reader<'_>) -> Option<Box<dyn TypedRule>>,
}

/// A row of the table of types.
macro_rules! rule_type {
    ($name:literal, $roles:expr, $read:path) => {
        RuleType {
            name: $name,
            natural: &$roles,
            page: Page(|| crate::PAGES.page(concat!("rules/", $name, ".md"))),
            read: $read,
        }
    };
}

/// All types, in the order of the documentation.
pub static TYPES: [RuleType; 17] = [
    rule_type!("backends", [Role::Memory], allowed::backends),
    rule_type!("providers", [Role::Memory], allowed::providers),
    rule_type!("endpoint", [Role::Memory], endpoint::read),
    rule_type!("secrets", [Role::Memory, Role::Referrer], secrets::read),
    rule_type!("retention", [Role::Memory, Role::Referrer], bounds::retention),
    rule_type!("capacity", [Role::Memory], bounds::capacity),
    rule_type!("tenancy", [Role::Memory], tenancy::read),
    rule_type!("references", [Role::Memory, Role::Referrer], references::read),
    rule_type!("images", [Role::Pod, Role::Memory], images::read),
    rule_type!("limits", [Role::Pod], limits::read),
    rule_type!("operations", [Role::Referrer], allowed::operations),
    rule_type!("environment", [Role::Pod], environment::read),
    rule_type!("sharing", [Role::Memory], allowed::sharing),
    rule_type!("immutable", [Role::Memory, Role::Referrer], immutable::read),
    rule_type!("labels", [Role::Memory, Role::Referrer, Role::Pod], labels::read),
    rule_type!("fields", [Role::Memory, Role::Referrer, Role::Pod], fields::read),
    rule_type!("anyOf", [Role::Memory, Role::Referrer, Role::Pod], any_of::read),
];

impl RuleType {
    /// The roles of a rule of this type: they may depend on what it asks for.
    pub fn roles(&self, check: &dyn TypedRule) -> RuleRoles {
        check.roles().unwrap_or_else(|| {
            let others = Role::ALL.into_iter().filter(|role| !self.natural.contains(role));
            let by_sources = others.filter(|_| self.natural.contains(&Role::Memory)).collect();
            RuleRoles { default: self.natural.to_vec(), own: self.natural.to_vec(), by_sources }
        })
    }
}

/// The type of this name.
pub fn find(name: &str) -> Option<&'static RuleType> {
    TYPES.iter().find(|rule| rule.name == name)
}

/// The typed rule: the one field that is not among these others. Inside `anyOf` there are no others.
pub(super) fn typed(
    fields: &Fields<'_>,
    others: &[&str],
) -> Option<(&'static RuleType, Option<Box<dyn TypedRule>>)> {
    let mut found: Vec<&RuleType> = Vec::new();
    let mut is_misspelt = false;
    let is_alternative = others.is_empty();
    for name in fields.names().filter(|name| !others.contains(name)) {
        match find(name) {
            Some(rule) if is_alternative && rule.name == ANY_OF => {
                is_misspelt = true;
                fields.fault(name, Cause::Invalid, "must not stand inside anyOf");
            }
            Some(rule) => found.push(rule),
            None if is_alternative && FIELDS.contains(&name) => {
                is_misspelt = true;
                fields.fault_at_key(name, "is about the rule as a whole; write it beside anyOf");
            }
            None => {
                is_misspelt = true;
                unknown_field(fields, name, is_alternative);
            }
        }
    }
    let names: Vec<&str> = TYPES.iter().map(|rule| rule.name).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !is_alternative || *name != ANY_OF).collect();
    match found.as_slice() {
        [] if is_misspelt => None,
        [] => {
            fields.fault_here(Cause::Required, &format!("has no rule; use {}", one_of(&names)));
            None
        }
        [one] => Some((one, (one.read)(&fields.get(one.name)?))),
        [_, others @ ..] => {
            for other in others {
                let message = if is_alternative {
                    "a rule has one type; give this one an entry of its own"
                } else {
                    "a rule has one type; give this one an id of its own"
                };
                fields.fault(other.name, Cause::Invalid, message);
            }
            None
        }
    }
}

fn unknown_field(fields: &Fields<'_>, name: &str, is_alternative: bool) {
    let types = TYPES.iter().map(|rule| rule.name).filter(|name| !is_alternative || *name != ANY_OF);
    let known = types.chain(FIELDS.into_iter().filter(|_| !is_alternative));
    let message = match name {
        "on" | "true" => "unknown field; use roles (YAML 1.1 reads on as true)".to_owned(),
        "expression" => "is reserved for a later version; use a typed rule".to_owned(),
        _ => {
            let hint = match nearest(name, known.clone()) {
                None => format!("; use {}", one_of(&known.collect::<Vec<_>>())),
                near => did_you_mean(near),
            };
            format!("unknown field {}{hint}", quoted_key(name))
        }
    };
    fields.fault_at_key(name, &message);
}

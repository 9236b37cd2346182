//! The typed rules: what each reads from a policy, and how it judges a view.
//!
//! A rule sees views only. It does not know families, requests or the state, so it cannot fail, and it has the same
//! result everywhere.

mod backends;
mod bounds;
mod capacity;
mod endpoint;
mod environment;
mod host_glob;
mod images;
mod immutable;
mod labels;
mod limits;
mod operations;
mod providers;
mod references;
mod retention;
mod secrets;
mod sharing;
mod tenancy;
mod words;

use memgate_model::memory_view::Role;
use memgate_model::typed_rule::TypedRule;

use super::reader::Reader;

/// A type of rules.
#[derive(Debug)]
pub struct RuleType {
    /// The field of a rule that holds it.
    pub name: &'static str,
    /// The roles of the objects that it judges by themselves. Where `memory` is among them, all others are
    /// judged by the memory that they use.
    pub natural: &'static [Role],
    /// The paths of views that it judges, one of which a platform must have for the rule to apply; empty for a rule
    /// that applies to every platform.
    pub judges: &'static [&'static str],
    /// The page about it, in Markdown.
    pub page: &'static str,
    /// Reads one; `None` if it has faults, which the reader has noted.
    pub(super) read: fn(&Reader<'_>) -> Option<Box<dyn TypedRule>>,
}

/// A row of the table of types.
macro_rules! rule_type {
    ($name:literal, $roles:expr, $judges:expr, $module:ident) => {
        RuleType {
            name: $name,
            natural: &$roles,
            judges: &$judges,
            page: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/pages/rules/", $name, ".md")),
            read: $module::read,
        }
    };
}

/// All types, in the order of the documentation.
pub static TYPES: [RuleType; 15] = [
    rule_type!("backends", [Role::Memory], [], backends),
    rule_type!("providers", [Role::Memory], ["provider"], providers),
    rule_type!("endpoint", [Role::Memory], [], endpoint),
    rule_type!("secrets", [Role::Memory, Role::Referrer], [], secrets),
    rule_type!("retention", [Role::Memory, Role::Referrer], ["ttlSeconds"], retention),
    rule_type!("capacity", [Role::Memory], ["maxEntries", "storageBytes"], capacity),
    rule_type!("tenancy", [Role::Memory], [], tenancy),
    rule_type!("references", [Role::Memory, Role::Referrer], [], references),
    rule_type!("images", [Role::Pod, Role::Memory], ["containers"], images),
    rule_type!("limits", [Role::Pod], ["containers"], limits),
    rule_type!("operations", [Role::Referrer], ["operations"], operations),
    rule_type!("environment", [Role::Pod], [], environment),
    rule_type!("sharing", [Role::Memory], ["sharing"], sharing),
    rule_type!("immutable", [Role::Memory, Role::Referrer], [], immutable),
    rule_type!("labels", [Role::Memory, Role::Referrer, Role::Pod], [], labels),
];

/// The type of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static RuleType> {
    TYPES.iter().find(|rule| rule.name == name)
}

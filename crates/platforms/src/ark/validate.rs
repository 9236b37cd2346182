//! Validates a Memory, a Query or the ArkConfig.
//!
//! The platform accepts these objects unchecked and at best reports errors in a status. Validation never
//! refuses an object that works: if an object has several values, rules that deny apply only to the value
//! that the platform uses.

mod address;
mod header;
mod query;
mod ratchet;
mod reference;
mod schema;
mod service;
mod ttl;
mod usage;

use memgate_model::family::Subject;
use memgate_model::finding::{Code, Finding};
use memgate_model::object::is_deleting;
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::api::{ARK_CONFIG, DEFAULT, MEMORY, QUERY};
use super::codes::{
    CONFIG_DEFAULT_MEMORY_NAME, CONFIG_DEFAULT_MEMORY_NAMESPACE, CONFIG_NAME, CONFIG_QUERY_TTL,
    CONFIG_QUERY_TTL_SHORT,
};

pub(crate) use self::schema::tolerates;

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        let deletes_memory = *subject.kind == MEMORY && !is_deleting(subject.object);
        return if deletes_memory { usage::deleted(subject, state) } else { Vec::new() };
    }
    let mut findings = Vec::new();
    if *subject.kind == MEMORY {
        findings.extend(address::findings(subject, state));
        header::findings(subject, state, &mut findings);
    } else if *subject.kind == QUERY {
        findings.extend(query::findings(subject, state));
    } else if *subject.kind == ARK_CONFIG {
        findings.extend(config(subject.object, state.budget()));
    }
    findings.extend(schema::misspellings(subject.kind, subject.object, state.budget()));
    ratchet::apply(subject, findings)
}

/// A denial within the budget.
fn denial(
    work: &Budget<'_>,
    code: &'static Code,
    pointer: Pointer,
    message: impl Fn() -> String + Send + Sync + 'static,
) -> Finding {
    Finding::deny_within(work, code, pointer, move |_| message())
}

/// Validates an ArkConfig: its name, the default TTL and the default Memory of Queries.
fn config(object: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    let mut findings = schema::wrong_types(&ARK_CONFIG, object, work);
    findings.extend(config_name(object));
    if let Some(ttl) = object.text_at(&["spec", "queryTTL"]) {
        const POINTER: &str = "/spec/queryTTL";
        findings.extend(match ttl::nanoseconds(ttl) {
            Err(instead) => {
                Some(ttl::not_a_duration(work, &CONFIG_QUERY_TTL, POINTER, (ttl, instead), "720h"))
            }
            Ok(..=0) => {
                let shown = quoted(ttl);
                let message = move || format!("spec.queryTTL must be a positive duration, not {shown}");
                Some(denial(work, &CONFIG_QUERY_TTL, Pointer::new(POINTER), message))
            }
            Ok(nanoseconds) => ttl::too_short((ttl, nanoseconds), &CONFIG_QUERY_TTL_SHORT, POINTER),
        });
    }
    let Some(memory) = object.at(&["spec", "defaultMemory"]).filter(|memory| memory.is_object()) else {
        return findings;
    };
    let here = Pointer::new("/spec/defaultMemory");
    if memory.get("name").is_none_or(|name| name.text() == Some("")) {
        let message = "spec.defaultMemory.name is required when spec.defaultMemory is set";
        findings.push(denial(work, &CONFIG_DEFAULT_MEMORY_NAME, here.key("name"), || message.to_owned()));
    }
    if memory.text_at(&["namespace"]).is_some_and(|namespace| !namespace.is_empty()) {
        let message =
            "spec.defaultMemory.namespace must be empty: each Query uses the Memory of its own namespace";
        findings.push(denial(work, &CONFIG_DEFAULT_MEMORY_NAMESPACE, here.key("namespace"), || {
            message.to_owned()
        }));
    }
    findings
}

/// Warns about an ArkConfig of another name than `default`, which the platform does not read.
fn config_name(object: &Tree) -> Option<Finding> {
    let metadata = object.get("metadata")?;
    let name = match metadata.get("name") {
        Some(name) => name.text()?,
        None => metadata.get("generateName").and(Some(""))?,
    };
    let message = format!("ARK reads only the ArkConfig named \"default\", not {}", quoted(name));
    (name != DEFAULT).then(|| Finding::warn(&CONFIG_NAME, Pointer::new("/metadata/name"), message))
}

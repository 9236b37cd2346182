//! What is wrong with a Memory, a Query or the ArkConfig.
//!
//! The platform checks none of this when it is stored, and says it in a status at best. What it
//! works with is never refused: where several values are given, only the one that it takes is judged
//! by the rules that deny.

mod address;
mod config;
mod header;
mod query;
mod ratchet;
mod reference;
mod schema;
mod service;
mod usage;

use std::collections::BTreeSet;

use crate::model::family::Subject;
use crate::model::finding::{Code, Finding};
use crate::model::object::is_deleting;
use crate::model::pointer::Pointer;
use crate::model::request::Operation;
use crate::model::state_reader::StateReader;

use super::api::{ARK_CONFIG, MEMORY, QUERY};

/// Everything that is wrong with the subject, in no particular order.
#[must_use]
pub fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        let deletes_memory = *subject.kind == MEMORY && !is_deleting(subject.object);
        return if deletes_memory { usage::deleted(subject, state) } else { Vec::new() };
    }
    let mut findings = Vec::new();
    if *subject.kind == MEMORY {
        findings.extend(address::findings(subject, state));
        findings.extend(header::findings(subject, state));
    } else if *subject.kind == QUERY {
        findings.extend(query::findings(subject, state));
    } else if *subject.kind == ARK_CONFIG {
        findings.extend(config::findings(subject.object));
    }
    // Where a rule speaks of a place, its words are better than those of the schema.
    let reported: BTreeSet<Pointer> = findings.iter().map(|finding| finding.pointer.clone()).collect();
    let schema = schema::findings(subject.kind, subject.object).into_iter();
    findings.extend(schema.filter(|finding| !reported.contains(&finding.pointer)));
    ratchet::apply(subject, findings)
}

/// A finding that refuses, with its place in front: a refusal is often read without the object.
fn denial(code: &'static Code, pointer: Pointer, message: &str) -> Finding {
    let field = pointer.field();
    let text = if message.starts_with(&field) { message.to_owned() } else { format!("{field}: {message}") };
    Finding::deny(code, pointer, text)
}

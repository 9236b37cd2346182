//! Validates the headers of a Memory. Findings never show the value of a header.

use std::collections::BTreeSet;

use crate::model::family::Subject;
use crate::model::finding::Finding;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::api::is_credential_header;
use super::super::codes::{
    HEADER_DUPLICATE, HEADER_IGNORED, HEADER_INLINE_SECRET, HEADER_NAME, HEADER_SOURCE, HEADER_SOURCES,
    HEADER_VALUE_CHARS, HEADER_VALUE_EXCLUSIVE, HEADER_VALUE_REQUIRED,
};
use super::super::value::{EffectiveValue, ValueOrSource};
use super::denial;
use super::reference::{self, ReferenceLocation, without_quotes};

/// Headers that Go's client sets itself. Source: Go, net/http, Request.Write.
const CLIENT_HEADERS: [&str; 4] = ["Host", "Content-Length", "Transfer-Encoding", "Trailer"];

/// The characters, besides letters and digits, that a header name can contain. Source: RFC 9110, 5.6.2.
const HEADER_NAME_MARKS: &str = "!#$%&'*+-.^_`|~";

/// The header that is being validated.
#[derive(Clone, Copy)]
struct CheckedHeader<'t> {
    /// The name; empty if it is absent or not a string.
    name: &'t str,
    tree: &'t Tree,
    pointer: &'t Pointer,
    /// The start of messages.
    prefix: &'t str,
}

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let headers = subject.object.at(&["spec", "headers"]).map(Tree::elements).unwrap_or_default();
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for (index, tree) in headers.iter().enumerate().filter(|(_, tree)| tree.is_object()) {
        let name = tree.get("name").and_then(Tree::text).unwrap_or_default();
        let (pointer, prefix) = (Pointer::new("/spec/headers").index(index), format!("headers[{index}]: "));
        let header = CheckedHeader { name, tree, pointer: &pointer, prefix: &prefix };
        findings.extend(self::name(header));
        let lower_case = name.to_ascii_lowercase();
        if !names.insert(lower_case) && !name.is_empty() {
            let message = format!("duplicate header name: {}", without_quotes(name));
            findings.push(Finding::warn(&HEADER_DUPLICATE, pointer.key("name"), message));
        }
        findings.extend(value(header, subject.namespace, state));
    }
    findings
}

fn name(header: CheckedHeader<'_>) -> Option<Finding> {
    let (name, prefix) = (header.name, header.prefix);
    let pointer = header.pointer.key("name");
    if header.tree.get("name").is_some_and(|name| name.text().is_none()) {
        return None;
    }
    if name.is_empty() {
        return Some(denial(&HEADER_NAME, pointer, &format!("{prefix}name is required")));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || HEADER_NAME_MARKS.as_bytes().contains(&byte))
    {
        return Some(denial(&HEADER_NAME, pointer, &format!("{prefix}invalid header name")));
    }
    let message = format!("{prefix}{name} is ignored by the client");
    let set_by_client = CLIENT_HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name));
    set_by_client.then(|| Finding::warn(&HEADER_IGNORED, pointer, message))
}

fn value(header: CheckedHeader<'_>, namespace: &str, state: &mut StateReader<'_>) -> Vec<Finding> {
    let pointer = header.pointer.key("value");
    let Some(value) = header.tree.get("value") else { return vec![required(header, pointer)] };
    if !value.is_object() {
        return Vec::new();
    }
    let choice = ValueOrSource::read_header(value);
    let mut findings: Vec<Finding> = exactly_one(header, &choice).into_iter().collect();
    match choice.effective() {
        EffectiveValue::Literal(literal) => findings.extend(self::literal(header, literal)),
        EffectiveValue::Source(source) => {
            let pointer = pointer.key("valueFrom").key(source.field);
            let location = ReferenceLocation { pointer: &pointer, prefix: header.prefix, namespace };
            findings.extend(reference::findings(&source, location, state));
        }
        EffectiveValue::Nothing => {}
    }
    findings
}

fn required(header: CheckedHeader<'_>, pointer: Pointer) -> Finding {
    let message = format!("{}must specify either value or valueFrom", header.prefix);
    denial(&HEADER_VALUE_REQUIRED, pointer, &message)
}

/// Checks that the header has exactly one value.
fn exactly_one(header: CheckedHeader<'_>, choice: &ValueOrSource<'_>) -> Option<Finding> {
    let pointer = header.pointer.key("value");
    let Some(value_from) = choice.value_from else {
        return choice.literal.is_none().then(|| required(header, pointer));
    };
    let prefix = header.prefix;
    if let Some(literal) = choice.literal {
        literal.text()?;
        let used =
            if let EffectiveValue::Source(source) = choice.effective() { source.field } else { "value" };
        let message = format!("{prefix}cannot specify both value and valueFrom; ARK uses {used}");
        return Some(Finding::warn(&HEADER_VALUE_EXCLUSIVE, pointer, message));
    }
    let pointer = pointer.key("valueFrom");
    let message = format!("{prefix}valueFrom must specify exactly one source");
    match choice.sources.as_slice() {
        _ if !value_from.is_object() => None,
        [] => Some(denial(&HEADER_SOURCE, pointer, &message)),
        [_] => None,
        [first, ..] => {
            let message = format!("{message}; ARK uses {}", first.field);
            Some(Finding::warn(&HEADER_SOURCES, pointer, message))
        }
    }
}

fn literal(header: CheckedHeader<'_>, literal: &Tree) -> Vec<Finding> {
    let pointer = header.pointer.key("value").key("value");
    let mut findings = Vec::new();
    let Some(text) = literal.text() else { return findings };
    if text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        let message = format!("{}invalid header value", header.prefix);
        findings.push(denial(&HEADER_VALUE_CHARS, pointer.clone(), &message));
    }
    if is_credential_header(header.name) {
        let message = format!("{}literal credential; use secretKeyRef", header.prefix);
        findings.push(Finding::warn(&HEADER_INLINE_SECRET, pointer, message));
    }
    findings
}

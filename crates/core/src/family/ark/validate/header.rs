//! What is wrong with the headers of a Memory. The value of a header is never shown.

use std::collections::BTreeSet;

use crate::model::family::Subject;
use crate::model::finding::Finding;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::codes::{
    HEADER_DUPLICATE, HEADER_IGNORED, HEADER_INLINE_SECRET, HEADER_NAME, HEADER_SOURCE, HEADER_SOURCES,
    HEADER_VALUE_CHARS, HEADER_VALUE_EXCLUSIVE, HEADER_VALUE_REQUIRED,
};
use super::super::value::{Given, Taken};
use super::denial;
use super::reference::{self, Place, shown};

/// Headers whose value is a credential.
const CREDENTIALS: [&str; 5] =
    ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"];

/// Headers that Go's client sets itself. Source: Go, net/http, Request.Write.
const IGNORED: [&str; 4] = ["Host", "Content-Length", "Transfer-Encoding", "Trailer"];

/// The characters besides letters and digits that a header name can have. Source: RFC 9110, 5.6.2.
const TOKEN_MARKS: &str = "!#$%&'*+-.^_`|~";

/// One header under judgement.
#[derive(Clone, Copy)]
struct Header<'t> {
    /// The name; empty when there is none, or it is no string.
    name: &'t str,
    tree: &'t Tree,
    pointer: &'t Pointer,
    /// What messages begin with.
    prefix: &'t str,
}

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let headers = subject.object.at(&["spec", "headers"]).map(Tree::elements).unwrap_or_default();
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for (index, tree) in headers.iter().enumerate().filter(|(_, tree)| tree.is_object()) {
        let name = tree.get("name").and_then(Tree::text).unwrap_or_default();
        let (pointer, prefix) = (Pointer::new("/spec/headers").index(index), format!("headers[{index}]: "));
        let header = Header { name, tree, pointer: &pointer, prefix: &prefix };
        findings.extend(self::name(header));
        let folded = name.to_ascii_lowercase();
        if !names.insert(folded) && !name.is_empty() {
            let message = format!("duplicate header name: {}", shown(name));
            findings.push(Finding::warn(&HEADER_DUPLICATE, pointer.key("name"), message));
        }
        findings.extend(value(header, subject.namespace, state));
    }
    findings
}

fn name(header: Header<'_>) -> Option<Finding> {
    let (name, prefix) = (header.name, header.prefix);
    let pointer = header.pointer.key("name");
    if header.tree.get("name").is_some_and(|name| name.text().is_none()) {
        return None;
    }
    if name.is_empty() {
        return Some(denial(&HEADER_NAME, pointer, &format!("{prefix}name is required")));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || TOKEN_MARKS.as_bytes().contains(&byte)) {
        return Some(denial(&HEADER_NAME, pointer, &format!("{prefix}invalid header name")));
    }
    let message = format!("{prefix}{name} is ignored by the client");
    is_one_of(name, &IGNORED).then(|| Finding::warn(&HEADER_IGNORED, pointer, message))
}

fn value(header: Header<'_>, namespace: &str, state: &mut StateReader<'_>) -> Vec<Finding> {
    let pointer = header.pointer.key("value");
    let Some(value) = header.tree.get("value") else { return vec![required(header, pointer)] };
    if !value.is_object() {
        return Vec::new();
    }
    let given = Given::header(value);
    let mut findings: Vec<Finding> = choice(header, &given).into_iter().collect();
    match given.taken() {
        Taken::Literal(literal) => findings.extend(self::literal(header, literal)),
        Taken::Source(source) => {
            let pointer = pointer.key("valueFrom").key(source.field);
            let place = Place { pointer: &pointer, prefix: header.prefix, namespace };
            findings.extend(reference::findings(&source, place, state));
        }
        Taken::Nothing => {}
    }
    findings
}

fn required(header: Header<'_>, pointer: Pointer) -> Finding {
    let message = format!("{}must specify either value or valueFrom", header.prefix);
    denial(&HEADER_VALUE_REQUIRED, pointer, &message)
}

/// Whether exactly one thing is given.
fn choice(header: Header<'_>, given: &Given<'_>) -> Option<Finding> {
    let pointer = header.pointer.key("value");
    let Some(value_from) = given.value_from else {
        return given.literal.is_none().then(|| required(header, pointer));
    };
    let prefix = header.prefix;
    if let Some(literal) = given.literal {
        literal.text()?;
        let used = if let Taken::Source(source) = given.taken() { source.field } else { "value" };
        let message = format!("{prefix}cannot specify both value and valueFrom; ARK uses {used}");
        return Some(Finding::warn(&HEADER_VALUE_EXCLUSIVE, pointer, message));
    }
    let pointer = pointer.key("valueFrom");
    let message = format!("{prefix}valueFrom must specify exactly one source");
    match given.sources.as_slice() {
        _ if !value_from.is_object() => None,
        [] => Some(denial(&HEADER_SOURCE, pointer, &message)),
        [_] => None,
        [first, ..] => {
            let message = format!("{message}; ARK uses {}", first.field);
            Some(Finding::warn(&HEADER_SOURCES, pointer, message))
        }
    }
}

fn literal(header: Header<'_>, literal: &Tree) -> Vec<Finding> {
    let pointer = header.pointer.key("value").key("value");
    let mut findings = Vec::new();
    let Some(text) = literal.text() else { return findings };
    if text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        let message = format!("{}invalid header value", header.prefix);
        findings.push(denial(&HEADER_VALUE_CHARS, pointer.clone(), &message).sensitive());
    }
    if is_one_of(header.name, &CREDENTIALS) {
        let message = format!("{}literal credential; use secretKeyRef", header.prefix);
        findings.push(Finding::warn(&HEADER_INLINE_SECRET, pointer, message).sensitive());
    }
    findings
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

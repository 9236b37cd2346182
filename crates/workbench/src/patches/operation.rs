//! The operations of a JSON Patch (RFC 6902).
//!
//! The value of an operation is judged in an object that has nothing else; so is a field to which one is moved. What an
//! operation removes or compares, it does not set: kustomize itself fails if that is not there.

use serde_json::{Map, Value};

use super::{Judge, Part, Shown};
use crate::objects::{Filled, put_in_at, with_words};
use crate::origins::spot::Spots;
use crate::patches::target::Target;
use crate::report::ObjectRef;
use memgate_manifest::document::Document;
use memgate_manifest::later::is_filled_in_later;
use memgate_model::decision::NotShown;
use memgate_model::finding::{Cause, Finding};
use memgate_platforms::common::PATCH_INVALID;
use memgate_primitives::fix::Fix;
use memgate_primitives::plain_text::{quoted, quoted_key};
use memgate_primitives::pointer::{Pointer, list_index};
use memgate_primitives::suggest::{did_you_mean, nearest, only_nearest};
use std::collections::BTreeSet;

/// The operations that have a value, and the others.
const WITH_VALUE: [&str; 2] = ["add", "replace"];
const OTHERS: [&str; 4] = ["test", "remove", "move", "copy"];

/// The most names in a path that is followed.
const MAX_DEPTH: usize = 32;

/// The largest index of a list at which a value is judged; one behind it is judged as the first.
const MAX_INDEX: usize = 64;

/// How many operations with findings are kept before the findings that are reported are selected.
const MAX_KEPT: usize = 500;

/// The place that an operation names.
struct Site<'o> {
    path: &'o str,
    /// The value that comes there, if it is in the operation.
    value: Option<&'o Value>,
    /// Whether the operation sets anything there.
    is_set: bool,
}

fn site(operation: &Value) -> Option<Site<'_>> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let op = text("op").unwrap_or_default();
    let value = operation.get("value").filter(|_| WITH_VALUE.contains(&op));
    Some(Site { path: text("path")?, value, is_set: !["test", "remove"].contains(&op) })
}

impl Judge<'_> {
    /// Judges the values of the operations in a document, and the fields that they name.
    pub(super) fn operations(&mut self, filled: &Filled, target: &Target, shown: Shown<'_>) {
        let document = &filled.document;
        let (start, mut is_first) = (self.found.decided.len(), true);
        for (index, operation) in document.value().as_array().into_iter().flatten().enumerate() {
            if self.found.decided.len() > start + MAX_KEPT {
                self.keep_first(start);
            }
            let here = Pointer::root().index(index);
            let found = site(operation).and_then(|site| self.of_site(filled, &site, (&here, target), shown));
            let Some((findings, spots)) = found else { continue };
            if is_first || !findings.0.is_empty() {
                self.add(document, target.named(), findings, spots, Some(filled).filter(|_| is_first));
            }
            is_first = false;
        }
    }

    fn of_site(
        &self,
        Filled { document, later, by, .. }: &Filled,
        site: &Site<'_>,
        (here, target): (&Pointer, &Target),
        shown: Shown<'_>,
    ) -> Option<((Vec<Finding>, NotShown), Spots)> {
        let written = Pointer::new(site.path);
        if !site.path.is_empty() && !site.path.starts_with('/')
            || written.tokens().any(|token| is_filled_in_later(&token))
        {
            return None;
        }
        let (at, value) = made(&written, site.value.cloned().unwrap_or_default())?;
        let (path, value_at) = (here.key("path"), here.key("value"));
        let below = |place: &Pointer| {
            place.as_str().strip_prefix(value_at.as_str()).map(|it| at.join(&Pointer::new(it)))
        };
        let unknown: BTreeSet<Pointer> = later.unknown.range(value_at.clone()..).map_while(below).collect();
        let part = Part { target, value, later: Some(&unknown) };
        let (findings, not_shown) = self.judged(&part)?;
        let (mut kept, mut spots) = (Vec::new(), Spots::default());
        spots.insert(Pointer::root(), shown.spot(document, path.clone()));
        for finding in findings.into_iter().filter(|_| site.is_set) {
            let place = finding.pointer.as_str();
            let rest =
                place.strip_prefix(at.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let is_above =
                at.as_str().strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            let (finding, spot) = match rest {
                Some(rest) if !(rest.is_empty() && (finding.at_key || site.value.is_none())) => {
                    let place = value_at.join(&Pointer::new(rest));
                    let finding = if later.known.contains(&place) {
                        let put_in =
                            by.iter().flat_map(|by| put_in_at(document.place(), by, &place, &finding));
                        let put_in: Vec<_> = put_in.collect();
                        with_words(finding.fix(None), &put_in)
                    } else {
                        finding
                    };
                    (finding, shown.spot(document, place))
                }
                _ if is_above && !is_of_index(&finding, &at) => {
                    (at_path(finding, &written), shown.spot(document, path.clone()))
                }
                _ => continue,
            };
            spots.insert(finding.pointer.clone(), spot);
            kept.push(finding);
        }
        Some(((kept, not_shown), spots))
    }

    /// Reports operations that kustomize cannot carry out, whatever the object is.
    pub(super) fn form(&mut self, document: &Document, object_ref: ObjectRef, shown: Shown<'_>) {
        let (mut found, mut spots) = (Vec::new(), Spots::default());
        for (index, operation) in document.value().as_array().into_iter().flatten().enumerate() {
            let faults = operation.as_object().map(|it| faults(it, &Pointer::root().index(index)));
            for mut finding in faults.into_iter().flatten() {
                let at = finding.pointer.clone();
                let written = document.value().pointer(at.as_str());
                written
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .clone_into(&mut finding.fingerprint_value);
                spots.insert(at.clone(), shown.spot(document, at));
                found.push(finding);
            }
        }
        if !found.is_empty() {
            let start = self.found.decided.len();
            let found = (found, NotShown::default());
            self.add(document, (object_ref, true), found, spots, None);
            self.keep_first(start);
        }
    }
}

/// Whether a finding is that a list is not an object: a number in a path may be a key.
fn is_of_index(finding: &Finding, at: &Pointer) -> bool {
    let token = at.tokens().nth(finding.pointer.tokens().count());
    finding.cause == Cause::TypeInvalid && token.is_some_and(|token| list_index(&token).is_some())
}

/// A finding about a field that a path names, as one about the path.
fn at_path(finding: Finding, path: &Pointer) -> Finding {
    let fix = match finding.details().fix.clone() {
        Some(Fix::Rename(name)) if finding.at_key => {
            let depth = finding.pointer.tokens().count();
            let tokens = path.tokens().enumerate();
            let renamed = tokens.fold(Pointer::root(), |path, (index, token)| {
                path.key(if index + 1 == depth { &name } else { &token })
            });
            Some(Fix::Text(renamed.as_str().to_owned()))
        }
        _ => None,
    };
    Finding { at_key: false, ..finding }.fix(fix)
}

/// What is wrong with an operation.
fn faults(operation: &Map<String, Value>, here: &Pointer) -> Vec<Finding> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let deny = |field: &str, message: String| Finding::deny(&PATCH_INVALID, here.key(field), message);
    let all = || WITH_VALUE.into_iter().chain(OTHERS);
    let is_known = |op: &str| all().any(|known| known == op);
    let (op, mut found) = (text("op"), Vec::new());
    match op {
        Some(op) if is_known(op) || is_filled_in_later(op) => {}
        Some(op) => {
            let meant = did_you_mean(nearest(op, all()));
            let finding = deny("op", format!("{} is not an operation of JSON Patch{meant}", quoted_key(op)));
            let help = format!("write one of {}", all().collect::<Vec<_>>().join(", "));
            let fix = only_nearest(op, all()).map(|meant| Fix::Text(meant.to_owned()));
            found.push(finding.help(help).fix(fix));
        }
        None => found.push(deny("op", "this operation of a JSON Patch has no op".to_owned())),
    }
    let needs_from = op.is_some_and(|op| ["move", "copy"].contains(&op));
    let needs_value = op.is_some_and(|op| WITH_VALUE.contains(&op));
    for field in ["path", "from"].into_iter().filter(|field| *field == "path" || needs_from) {
        match text(field) {
            None => found.push(deny(field, format!("this operation of a JSON Patch has no {field}"))),
            Some(path) if path.is_empty() || path.starts_with('/') || is_filled_in_later(path) => {}
            Some(path) => {
                let finding = deny(field, format!("the path {} must begin with a slash", quoted(path)));
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_~".contains(&byte);
                let is_plain = path.bytes().all(is_plain);
                found.push(finding.fix(is_plain.then(|| Fix::Text(format!("/{path}")))));
            }
        }
    }
    if needs_value && !operation.contains_key("value") {
        found.push(deny("value", "this operation of a JSON Patch has no value".to_owned()));
    }
    found
}

/// The object in which only a value is, and where it is there.
fn made(path: &Pointer, value: Value) -> Option<(Pointer, Value)> {
    let tokens: Vec<_> = path.tokens().take(MAX_DEPTH + 1).collect();
    if tokens.len() > MAX_DEPTH {
        return None;
    }
    let index = |token: &str| match token {
        "-" => Some(0),
        token => list_index(token).map(|index| if index > MAX_INDEX { 0 } else { index }),
    };
    let at = tokens.iter().fold(Pointer::root(), |at, token| match index(token) {
        Some(index) => at.index(index),
        None => at.key(token),
    });
    let object = tokens.iter().rev().fold(value, |value, token| match index(token) {
        Some(index) => {
            let mut list = vec![Value::Null; index];
            list.push(value);
            Value::Array(list)
        }
        None => Value::Object(Map::from_iter([(token.to_string(), value)])),
    });
    Some((at, object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_stands_in_an_object() {
        for (path, at, object) in [
            ("/spec/a~1b", "/spec/a~1b", json!({"spec": {"a/b": 5}})),
            ("/spec/list/-", "/spec/list/0", json!({"spec": {"list": [5]}})),
            ("/spec/list/1/x", "/spec/list/1/x", json!({"spec": {"list": [null, {"x": 5}]}})),
            ("/spec/list/999", "/spec/list/0", json!({"spec": {"list": [5]}})),
            ("", "", json!(5)),
        ] {
            assert_eq!(made(&Pointer::new(path), json!(5)), Some((Pointer::new(at), object)), "{path}");
        }
        assert_eq!(made(&Pointer::new("/a".repeat(100_000)), json!(5)), None);
    }

    #[test]
    fn says_what_no_object_makes_right() {
        let messages = |operation: Value| -> Vec<(String, Option<Fix>)> {
            let faults = faults(operation.as_object().expect("an object"), &Pointer::root());
            let field = |it: &Finding| it.pointer.as_str().trim_start_matches('/').to_owned();
            faults.iter().map(|it| (field(it), it.details().fix.clone())).collect()
        };
        let text = |fix: &str| Some(Fix::Text(fix.to_owned()));
        for (operation, expected) in [
            (json!({"op": "remove", "path": "/a"}), vec![]),
            (json!({"op": "test", "path": ""}), vec![]),
            (json!({"op": "replcae", "path": "/a", "value": 1}), vec![("op", text("replace"))]),
            (json!({"op": "add", "path": "spec/a", "value": 1}), vec![("path", text("/spec/a"))]),
            (json!({"op": "add", "path": "/a"}), vec![("value", None)]),
            (json!({"op": "move", "path": "/a"}), vec![("from", None)]),
            (json!({}), vec![("op", None), ("path", None)]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(field, fix)| (field.to_owned(), fix)).collect();
            assert_eq!(messages(operation.clone()), expected, "{operation}");
        }
    }
}

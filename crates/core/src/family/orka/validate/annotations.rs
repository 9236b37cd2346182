//! The annotations of memgate on an Agent, a Task or a Namespace.

use crate::family::suggest::{did_you_mean, nearest};
use crate::model::finding::Finding;
use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::super::api::{ANNOTATIONS, annotation};
use super::super::codes::{ANNOTATION_MAX_CHARS_TINY, ANNOTATION_NO_EFFECT, ANNOTATION_UNKNOWN};
use super::super::setting::{HEADER_BYTES, NO_ROOM, Setting, Value};
use super::at;

/// What is wrong with them; `in_vain` on an object whose worker has no memory section.
pub(super) fn findings(object: &Tree, in_vain: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for setting in Setting::ALL {
        if let Some(value) = annotation(object, setting.annotation()) {
            findings.extend(known(setting, value));
            if in_vain {
                let message = "has no effect: memory context exists only for Tasks of type ai";
                let pointer = pointer(setting.annotation());
                let message = at(&pointer, message);
                findings.push(Finding::warn(&ANNOTATION_NO_EFFECT, pointer, message).at_key());
            }
        }
    }
    findings.extend(unknown_keys(object).map(unknown));
    findings
}

/// Where an annotation stands.
pub(super) fn pointer(key: &str) -> Pointer {
    Pointer::new("/metadata/annotations").key(key)
}

fn known(setting: Setting, text: &str) -> Option<Finding> {
    let pointer = pointer(setting.annotation());
    match setting.of_text(text) {
        Err(message) => {
            let message = at(&pointer, &message);
            Some(Finding::deny(setting.annotation_code(), pointer, message).fingerprint_value(text))
        }
        Ok(Value::Bound(number)) if setting == Setting::MaxChars && number <= HEADER_BYTES => {
            let message = at(&pointer, NO_ROOM);
            Some(Finding::warn(&ANNOTATION_MAX_CHARS_TINY, pointer, message))
        }
        Ok(_) => None,
    }
}

fn unknown_keys(object: &Tree) -> impl Iterator<Item = &str> {
    let entries = match object.at(&["metadata", "annotations"]) {
        Some(Tree::Texts(entries, _)) => entries.as_slice(),
        _ => &[],
    };
    let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().filter(|key| key.starts_with(ANNOTATIONS) && Setting::of_annotation(key).is_none())
}

fn unknown(key: &str) -> Finding {
    let pointer = pointer(key);
    let meant = nearest(key, Setting::ALL.map(Setting::annotation));
    let message = at(&pointer, &format!("unknown annotation{}", did_you_mean(meant)));
    Finding::warn(&ANNOTATION_UNKNOWN, pointer, message).at_key()
}

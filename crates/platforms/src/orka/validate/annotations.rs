//! Validates memgate's annotations on an Agent, a Task or a Namespace.

use crate::inject::annotation_pointer;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::super::api::{ANNOTATION_PREFIX, annotation};
use super::super::codes::{ANNOTATION_MAX_CHARS_TINY, ANNOTATION_NO_EFFECT, ANNOTATION_UNKNOWN};
use super::super::setting::{NO_ROOM_MESSAGE, SECTION_HEADER_BYTES, Setting, SettingValue};
use super::with_field;

/// All findings about the annotations; `no_effect` is set for an object that no worker of an AI Task reads.
pub(super) fn findings(object: &Tree, no_effect: bool, work: &Budget<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for setting in Setting::ALL {
        if let Some(value) = annotation(object, setting.annotation()) {
            findings.extend(check_value(setting, value));
            if no_effect {
                let pointer = annotation_pointer(setting.annotation());
                let message = "has no effect: memory context exists only for Tasks of type ai";
                let message = with_field(&pointer, message);
                findings.push(Finding::warn(&ANNOTATION_NO_EFFECT, pointer, message).at_key());
            }
        }
    }
    findings.extend(unknown_keys(object).into_iter().map(|key| unknown_key(key, work)));
    findings
}

fn check_value(setting: Setting, text: &str) -> Option<Finding> {
    let pointer = annotation_pointer(setting.annotation());
    match setting.parse_annotation(text) {
        Err(message) => {
            let message = with_field(&pointer, &message);
            Some(Finding::deny(setting.annotation_code(), pointer, message).fingerprint_value(text))
        }
        Ok(SettingValue::Bound(number)) if setting == Setting::MaxChars && number <= SECTION_HEADER_BYTES => {
            let message = with_field(&pointer, NO_ROOM_MESSAGE);
            Some(Finding::warn(&ANNOTATION_MAX_CHARS_TINY, pointer, message))
        }
        Ok(_) => None,
    }
}

/// The unknown keys with the prefix of this family, in order, each once.
fn unknown_keys(object: &Tree) -> Vec<&str> {
    let annotations = object.at(&["metadata", "annotations"]).into_iter();
    let is_unknown =
        |key: &&str| key.starts_with(ANNOTATION_PREFIX) && Setting::from_annotation(key).is_none();
    let mut keys: Vec<&str> = annotations.flat_map(Tree::keys).filter(is_unknown).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn unknown_key(key: &str, work: &Budget<'_>) -> Finding {
    let at = annotation_pointer(key);
    let key = excerpt(key);
    let message = move |at: &Pointer| {
        let meant = nearest(&key, Setting::ALL.map(Setting::annotation));
        with_field(at, &format!("unknown annotation{}", did_you_mean(meant)))
    };
    Finding::warn_within(work, &ANNOTATION_UNKNOWN, at, message).at_key()
}

//! Identifies a finding over time: the fingerprint stays the same in the next run, after lines have moved and files were
//! renamed, and in the next release of memgate.
//!
//! It is made from the code, the object (group, kind, namespace and name, without the version), its set of files and the pointer, but not
//! from line, file and message.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ring::digest::{Context, SHA256};

use crate::report::{InputError, ObjectRef};
use memgate_primitives::pointer::Pointer;

/// The bytes of the hash that are kept: with a million findings two collide in one of 37 million runs.
const BYTES: usize = 8;

/// The fingerprint of a finding, in hexadecimal. Two findings with one code at one place of one object have the
/// same fingerprint; [`Counter`] numbers them.
pub fn of(code: &str, object_ref: &ObjectRef, pointer: &Pointer) -> String {
    let ObjectRef { kind, namespace, name, set, .. } = object_ref;
    let mut parts = vec![code, object_ref.group(), kind, namespace, name, pointer.as_str()];
    // Sets are judged apart: a finding of one says nothing about another.
    parts.extend(Some(set.as_str()).filter(|set| !set.is_empty()));
    hash(&parts)
}

/// The fingerprint of an error of an input. It is made from the file, since an error has no object.
pub fn of_error(error: &InputError<'_>) -> String {
    hash(&[error.code(), error.file.unwrap_or_default(), &error.message])
}

fn hash(parts: &[&str]) -> String {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        // With its length, so that parts cannot run into each other.
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finish();
    hash.as_ref().iter().take(BYTES).fold(String::with_capacity(2 * BYTES), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// Numbers findings with the same fingerprint, in the order of the inputs.
#[derive(Debug, Default)]
pub struct Counter {
    seen: BTreeMap<String, usize>,
}

impl Counter {
    /// The fingerprint, with a number from the second time on: `5f0c6d2e8b1a9374-2`.
    pub fn number(&mut self, fingerprint: String) -> String {
        let count = self.seen.entry(fingerprint.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { fingerprint } else { format!("{fingerprint}-{count}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, name: &str) -> ObjectRef {
        let (api_version, namespace) = (api_version.to_owned(), "team-a".to_owned());
        ObjectRef {
            api_version,
            kind: "Memory".to_owned(),
            namespace,
            name: name.to_owned(),
            set: String::new(),
        }
    }

    #[test]
    fn is_the_same_in_every_release() {
        let notes = object("orloj.dev/v1", "notes");
        assert_eq!(of("orloj/provider-empty", &notes, &Pointer::new("/spec/provider")), "3c351a9051bddc5a");
    }

    #[test]
    fn knows_the_object_and_the_place_and_not_the_version() {
        let pointer = Pointer::new("/spec");
        let one = of("a/b", &object("orloj.dev/v1", "notes"), &pointer);
        assert_eq!(one, of("a/b", &object("orloj.dev/v2", "notes"), &pointer));
        for other in [
            of("a/c", &object("orloj.dev/v1", "notes"), &pointer),
            of("a/b", &object("orloj.io/v1", "notes"), &pointer),
            of("a/b", &object("v1", "notes"), &pointer),
            of("a/b", &object("orloj.dev/v1", "note"), &pointer),
            of("a/b", &object("orloj.dev/v1", "note"), &Pointer::new("s/spec")),
            of("a/b", &object("orloj.dev/v1", "notes"), &Pointer::new("/spec/a")),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn numbers_repeats() {
        let mut counter = Counter::default();
        let numbered = ["a", "b", "a", "a"].map(|text| counter.number(text.to_owned()));
        assert_eq!(numbered, ["a", "b", "a-2", "a-3"]);
    }
}

//! Identifies a finding over time: the fingerprint stays the same in the next run, after lines have moved and files were
//! renamed, and in the next release of memgate.
//!
//! It is made from the code, the object (group, kind, namespace and name, without the version), its unit and the pointer, but not
//! from line, file and message.

use std::collections::BTreeMap;
use std::fmt;

use ring::digest::{Context, SHA256};

use crate::report::{InputError, ObjectRef, relative};
use memgate_primitives::pointer::Pointer;

/// A fingerprint: in hexadecimal, with a number from the second time on: `5f0c6d2e8b1a9374-2`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    hash: u64,
    number: u32,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)?;
        if self.number > 1 { write!(f, "-{}", self.number) } else { Ok(()) }
    }
}

/// The bytes of the hash that are kept: with a million findings two collide in one of 37 million runs.
const BYTES: usize = 8;

/// The fingerprint of a finding. Two findings with one code at one place of one object have the
/// same fingerprint; [`Counter`] numbers them.
pub fn of(code: &str, object_ref: &ObjectRef, pointer: &Pointer) -> Fingerprint {
    // As outputs have them, so that it can be made anew of what they say.
    let ([kind, namespace, name], pointer) = (object_ref.shown(), pointer.shown());
    let mut parts = vec![code, object_ref.group(), &kind, &namespace, &name, &pointer];
    // Sets are judged apart: a finding of one says nothing about another.
    parts.extend(Some(&*object_ref.unit).filter(|unit| !unit.is_empty()));
    hash(&parts)
}

/// The fingerprint of an error of an input. It is made from the file, since an error has no object.
pub fn of_error(error: &InputError<'_>) -> Fingerprint {
    hash(&[error.code(), &relative(error.file.unwrap_or_default()), &error.message])
}

/// A hash of texts, the same in every run.
pub(crate) fn hash(parts: &[&str]) -> Fingerprint {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        // With its length, so that parts cannot run into each other.
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finish();
    let hash = hash.as_ref().iter().take(BYTES).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
    Fingerprint { hash, number: 1 }
}

/// Numbers findings with the same fingerprint, in the order of the inputs.
#[derive(Debug, Default)]
pub struct Counter {
    seen: BTreeMap<u64, u32>,
}

impl Counter {
    /// The fingerprint with its number.
    pub fn number(&mut self, Fingerprint { hash, .. }: Fingerprint) -> Fingerprint {
        let number = self.seen.entry(hash).or_insert(0);
        *number += 1;
        Fingerprint { hash, number: *number }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn object(api_version: &str, name: &str) -> ObjectRef {
        ObjectRef {
            api_version: api_version.into(),
            kind: "Memory".into(),
            namespace: "team-a".into(),
            name: name.into(),
            unit: Arc::default(),
        }
    }

    #[test]
    fn is_the_same_in_every_release() {
        let notes = object("orloj.dev/v1", "notes");
        let fingerprint = of("orloj/provider-empty", &notes, &Pointer::new("/spec/provider"));
        assert_eq!(fingerprint.to_string(), "3c351a9051bddc5a");
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
        let one = |hash| Fingerprint { hash, number: 1 };
        let numbered = [10, 11, 10, 10].map(|hash| counter.number(one(hash)).to_string());
        let (a, b) = (format!("{:016x}", 10), format!("{:016x}", 11));
        assert_eq!(numbered, [a.clone(), b, format!("{a}-2"), format!("{a}-3")]);
    }
}

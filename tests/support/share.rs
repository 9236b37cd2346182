//! Which part of the cases a door is asked.
//!
//! The library decides every case. A door (the command, the HTTP router, `memgate test`, a real apiserver) adds code that
//! is the same for all cases, so it is asked a part of them: one of each kind, operation and verdict, and a tenth of all,
//! chosen by a hash of the name, so that a new case falls in by itself. `MEMGATE_TEST_CASES=all` asks all of them.
#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::collections::BTreeMap;
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};

use memgate_workbench::casefile::Case;

/// A part of the cases; each one contains those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// One for each kind, operation and verdict.
    OneOfEach,
    /// And a tenth of all.
    Tenth,
    /// Every case.
    All,
}

impl Share {
    /// What a door is asked: this part, or all cases with `MEMGATE_TEST_CASES=all`.
    pub(crate) fn or_all(self) -> Self {
        let all = env::var_os("MEMGATE_TEST_CASES").is_some_and(|value| value == "all");
        if all { Self::All } else { self }
    }

    /// The cases of this part, in their order. `case` says what a value stands for.
    pub(crate) fn of<T>(self, mut values: Vec<T>, case: impl Fn(&T) -> &Case) -> Vec<T> {
        let mut first = BTreeMap::new();
        for value in &values {
            let case = case(value);
            let hash = hash(case);
            let least = first.entry(request(case)).or_insert(hash);
            *least = hash.min(*least);
        }
        values.retain(|value| {
            let case = case(value);
            let hash = hash(case);
            match self {
                Self::All => true,
                Self::Tenth => hash.is_multiple_of(10) || first.get(&request(case)) == Some(&hash),
                Self::OneOfEach => first.get(&request(case)) == Some(&hash),
            }
        });
        values
    }
}

fn hash(case: &Case) -> u64 {
    let mut hasher = DefaultHasher::new();
    case.name.hash(&mut hasher);
    hasher.finish()
}

/// What an apiserver and its webhook entries distinguish about a request, and its verdict.
fn request(case: &Case) -> String {
    let object = case.object.as_ref().or(case.old_object.as_ref());
    let text = |field: &str| object.and_then(|object| object.get(field)?.as_str()).unwrap_or_default();
    let Case { operation, subresource, expect, .. } = case;
    format!("{} {} {operation:?} {subresource} {:?}", text("apiVersion"), text("kind"), expect.allowed)
}

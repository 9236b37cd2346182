//! Which part of the cases a door is asked.
//!
//! The library decides every case. A door (the command, the HTTP router, `memgate test`, a real apiserver) adds code that
//! is the same for all cases, so it is asked a part of them: one of each kind, operation and verdict, with a patch and
//! without, and a tenth of all, chosen by a hash of the name, so that a new case falls in by itself.
//! `MEMGATE_TEST_CASES=all` asks all of them.
#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::collections::BTreeMap;
use std::env;

use memgate_workbench::files::casefile::{Case, Expect};

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

    /// The cases of this part, in their order. `case` says what a value stands for: its file, and the case.
    pub(crate) fn of<T>(self, mut values: Vec<T>, case: impl Fn(&T) -> (&str, &Case)) -> Vec<T> {
        let mut first = BTreeMap::new();
        for value in &values {
            let hash = hash(case(value).1);
            let least = first.entry(class(case(value))).or_insert(hash);
            *least = hash.min(*least);
        }
        values.retain(|value| {
            let hash = hash(case(value).1);
            let is_first = || first.get(&class(case(value))) == Some(&hash);
            match self {
                Self::All => true,
                Self::Tenth => hash.is_multiple_of(10) || is_first(),
                Self::OneOfEach => is_first(),
            }
        });
        values
    }
}

/// FNV-1a of the name, 64 bits. The standard library's hash may change with the compiler, and with it the part.
fn hash(case: &Case) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    case.name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What an apiserver and its webhook entries distinguish about a request, its verdict, and whether a patch is expected.
/// A pod may be of any platform, and the folder of its file says of which.
fn class((file, case): (&str, &Case)) -> String {
    let object = case.object.as_ref().or(case.old_object.as_ref());
    let text = |field: &str| object.and_then(|object| object.get(field)?.as_str()).unwrap_or_default();
    let platform = file.split('/').next().filter(|_| text("kind") == "Pod").unwrap_or_default();
    let Case { operation, subresource, expect, .. } = case;
    let verdict = (expect.allowed, expects_a_patch(expect));
    format!("{} {} {platform} {operation:?} {subresource} {verdict:?}", text("apiVersion"), text("kind"))
}

/// Whether the object is changed, or fields are looked at that a patch may have added.
fn expects_a_patch(expect: &Expect) -> bool {
    match expect.unchanged {
        Some(unchanged) => !unchanged,
        None => !(expect.after.is_empty() && expect.env.is_empty() && expect.containers_present.is_empty()),
    }
}

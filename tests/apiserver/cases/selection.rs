//! The cases to which an apiserver adds something.

use std::{collections::BTreeSet, env};

use memgate_model::request::Operation;
use memgate_workbench::casefile::Case;
use memgate_workbench::casefile::Expect;

/// Chooses cases by their properties, in order.
#[derive(Default)]
pub(super) struct Selection {
    takes_all: bool,
    codes: BTreeSet<String>,
    requests: BTreeSet<String>,
}

impl Selection {
    /// One that takes every case when `MEMGATE_TEST_CASES=all`.
    pub(super) fn from_environment() -> Self {
        Self {
            takes_all: env::var_os("MEMGATE_TEST_CASES").is_some_and(|value| value == "all"),
            ..Self::default()
        }
    }

    /// Takes a case whose patch the apiserver applies, whose old object the apiserver adds, or that is the first one
    /// with a code, or the first one of a kind to be allowed or refused.
    pub(super) fn takes(&mut self, case: &Case) -> bool {
        let known_codes = self.codes.len();
        self.codes.extend(case.expect.codes.iter().flatten().cloned());
        let has_new_code = self.codes.len() > known_codes;
        let is_new_request = self.requests.insert(request(case));
        self.takes_all
            || has_new_code
            || is_new_request
            || case.operation != Operation::Create
            || !case.subresource.is_empty()
            || expects_a_patch(&case.expect)
    }
}

/// What an apiserver and its webhook entries distinguish about a request, and its result.
fn request(case: &Case) -> String {
    let object = case.object.as_ref().or(case.old_object.as_ref());
    let text = |field: &str| object.and_then(|object| object[field].as_str()).unwrap_or_default();
    let Case { operation, dry_run, user, expect, .. } = case;
    let (version, kind, has_user) = (text("apiVersion"), text("kind"), user.is_some());
    format!("{version} {kind} {operation:?} {dry_run} {has_user} {:?}", expect.allowed)
}

/// Whether the object is changed, or fields are looked at that a patch may have added.
fn expects_a_patch(expect: &Expect) -> bool {
    match expect.unchanged {
        Some(unchanged) => !unchanged,
        None => !(expect.after.is_empty() && expect.env.is_empty() && expect.containers_present.is_empty()),
    }
}

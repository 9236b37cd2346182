//! What a container has against what a Memory wants: what is missing is added, and nothing else is
//! changed.

use std::borrow::Cow;

use crate::family::pod::{Place, env_pointer, insert_env};
use crate::model::decision::Reason;
use crate::model::finding::Finding;
use crate::model::injection::{Added, Injection};
use crate::model::pod::{self, Container};

use super::super::api::AGENT_CONTAINER;
use super::super::codes::POD_ENV_KEPT;
use super::rows::{self, Row, Wanted};

/// Adds what is missing in the container of this index.
pub(super) fn add_missing(index: usize, container: &Container<'_>, wanted: &Wanted) -> Injection {
    let existing = Existing::of(container);
    let has_password = existing.get(rows::PASSWORD).is_some();
    let mut missing: Vec<&Row> = Vec::new();
    let mut warnings: Vec<Finding> = Vec::new();
    let mut kept = false;
    for row in &wanted.rows {
        match existing.get(row.name) {
            // The password would come behind the string that refers to it, or be another one.
            None if row.needs_password && has_password => {}
            None => missing.push(row),
            Some(entry) if row.equals(entry) => {}
            Some(_) => {
                kept = true;
                let message = format!("env {} is already set; kept", row.name);
                warnings.push(Finding::warn(&POD_ENV_KEPT, env_pointer(index), message));
            }
        }
    }
    let withheld = wanted.warnings.iter();
    warnings
        .extend(withheld.map(|(code, message)| Finding::warn(code, env_pointer(index), message.as_str())));
    let names: Vec<_> = missing.iter().map(|row| Cow::from(row.name)).collect();
    let reason = match (names.is_empty(), kept) {
        (false, _) => Reason::Injected,
        (true, true) => Reason::Conflict,
        (true, false) => Reason::Complete,
    };
    let env = if names.is_empty() { Vec::new() } else { vec![(AGENT_CONTAINER.to_owned(), names)] };
    let block = missing.into_iter().map(|row| (row.env_var(), row.origin.clone())).collect();
    let edits = insert_env(index, container.env.as_deref(), block, Place::Front);
    let added = Added { memory: vec![wanted.memory.clone()], env, ..Added::default() };
    Injection { warnings, edits, added, ..Injection::nothing(reason) }
}

/// The variables of a container that could be about memory, in their order.
struct Existing<'p, 'a>(Vec<&'p pod::EnvVar<'a>>);

impl<'p, 'a> Existing<'p, 'a> {
    /// One look at each entry, however many there are.
    fn of(container: &'p Container<'a>) -> Self {
        let entries = container.env.as_deref().unwrap_or_default().iter();
        let ours = |entry: &&pod::EnvVar<'_>| {
            entry.name.as_deref().is_some_and(|name| name.starts_with(rows::COMMON_START))
        };
        Self(entries.filter(ours).collect())
    }

    /// The last entry of a name: the one that counts.
    fn get(&self, name: &str) -> Option<&'p pod::EnvVar<'a>> {
        self.0.iter().rev().find(|entry| entry.name.as_deref() == Some(name)).copied()
    }
}

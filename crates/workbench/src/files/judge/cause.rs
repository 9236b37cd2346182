//! The cause first: a denied memory resource names its users, and their warnings that only follow from the denial are
//! marked.

use std::collections::BTreeSet;

use memgate_model::finding::{Code, Finding, Relation, Severity};
use memgate_model::object::Reference;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_platforms::{references, validated};
use memgate_primitives::budget::Budget;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::shown_name;

use super::Decided;
use crate::report::USED_BY;

/// Adds the users of each denied memory resource to its first denial, and marks the warnings of users that only repeat it.
pub(super) fn name_users(all: &mut [Decided], snapshot: &Snapshot) {
    let mut denied = BTreeSet::new();
    for decided in all.iter_mut().filter(|decided| !decided.decision.allowed()) {
        let Some((object, users)) = users(decided, snapshot) else { continue };
        decided.users = Some(format!("{USED_BY}{users}").into());
        decided.tell_users();
        denied.insert(object);
    }
    let families = &snapshot.settings.families;
    let follows: Vec<&Code> = families.iter().flat_map(|family| family.validation.follows).copied().collect();
    let repeats = |finding: &Finding| {
        let warns = finding.severity != Severity::Deny && follows.contains(&finding.code);
        let of = finding.elsewhere.first().filter(|_| warns);
        of.is_some_and(|cause| denied.contains(&cause.object))
    };
    for decided in all.iter_mut().filter(|_| !denied.is_empty()) {
        let findings = decided.decision.findings.iter_mut();
        findings.filter(|it| repeats(it)).for_each(|it| it.relation = Relation::Follows);
    }
}

impl Decided {
    /// Lets its first denial name the users, and nothing else: those of an object that is not denied have findings of their own.
    pub(crate) fn tell_users(&mut self) {
        let Some(users) = self.users.as_deref() else { return };
        let mut is_named = false;
        for finding in &mut self.decision.findings {
            let tells = !is_named && finding.is_denial();
            let message = finding.message();
            let has_them = message.contains(users);
            if has_them != tells {
                let message =
                    if tells { format!("{message}{users}") } else { message.replacen(users, "", 1) };
                *finding = finding.clone().with_message(message);
            }
            is_named |= tells;
        }
    }
}

/// A memory resource, and its users in words: `ArkAgent a0 and 11 more`. `None` for another object, and without users.
fn users(decided: &Decided, snapshot: &Snapshot) -> Option<(Reference, String)> {
    let object = &decided.object.object_ref;
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    let (family, kind) = validated(&snapshot.settings.families, group, &object.kind)?;
    let (namespace, budget) = (&*object.namespace, Budget::default());
    let mut state = StateReader::new(snapshot, &budget);
    let users = references::users(family, (kind, namespace, &object.name), &mut state);
    let first = users.first()?;
    let more = more(users.len() - 1);
    let reference = Reference { kind, namespace: namespace.to_owned(), name: object.name.to_string() };
    Some((reference, format!("{} {}{more}", first.kind.kind, shown_name(&first.name_in(namespace)))))
}

//! Validates a memory resource, an agent or settings.
//!
//! `schema_rules` repeat the CRD's schema, for files. `conditional_rules` depend on the backend, and the
//! platform does not enforce them. The submodules also warn about objects that work, but probably not as
//! intended.
//! A change or DELETE of a memory resource that agents use gets a warning.

mod advice;
mod agent;
mod memory;

use super::prelude::*;
use crate::message::{MAX_NAMES, first_of, one_of};
use crate::references;
use memgate_model::finding::Relation;
use memgate_model::object::Defect;
use memgate_schema::violation::{Rule, SchemaViolation, type_message};

use super::FAMILY;

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let kind = subject.kind;
    if kind.group == MISNAMED_GROUP {
        return misnamed(subject);
    }
    match role(kind) {
        None => Vec::new(),
        Some((dialect, Role::Memory)) => match subject.operation {
            Operation::Delete => deleted(dialect, subject, state),
            _ => memory(dialect, subject, state),
        },
        Some(_) if subject.operation == Operation::Delete => Vec::new(),
        Some((dialect, Role::Agent)) => agent::findings(dialect, subject, state),
        Some((dialect, Role::Settings)) => memory::settings_findings(dialect, subject, state),
    }
}

/// What only the successor's operator repository takes: the field, the values, and those that its newer chart takes.
const OLDER_VALUES: [(Field, [&str; 2], &[&str]); 2] = [
    (PROVIDER, ["pinecone", "weaviate"], KUBESWARM.providers),
    (EMBEDDING_PROVIDER, ["google", "voyageai"], &[OF_MODEL, "openai"]),
];

/// The warning about a value that only the successor's operator repository takes, and its newer chart refuses.
pub(crate) fn other_release(kind: &Kind, violation: &SchemaViolation<'_>) -> Option<Finding> {
    let is_it = |(field, ..): &(Field, _, _)| Pointer::from(*field) == violation.pointer;
    let (_, older, newer) = OLDER_VALUES.into_iter().find(is_it)?;
    let value = violation.shown();
    let is_older = *kind == KUBESWARM.memory
        && matches!(violation.rule, Rule::Unsupported(_))
        && older.contains(&value.trim_matches('"'));
    let message = || format!("kubeswarm 0.4 refuses {value}; use {}", one_of(newer));
    is_older.then(|| Finding::warn(&SWARM_OLDER_VALUE, violation.pointer.clone(), message()))
}

/// The first denial of a memory resource, in document order. A stored resource with a denial is not usable.
pub(crate) fn first_denial(dialect: &'static Dialect, memory: &Tree) -> Option<Defect> {
    let mut findings = memory::schema_rules(dialect, memory);
    findings.extend(memory::conditional_rules(dialect, memory));
    let denials = findings.into_iter().filter(|finding| finding.severity == Severity::Deny);
    let of_rules =
        denials.map(|finding| Defect { message: finding.message().into_owned(), pointer: finding.pointer });
    let all = wrong_type(dialect, memory).into_iter().chain(of_rules);
    all.min_by_key(|defect| memory.document_position(&defect.pointer))
}

/// The first value of the wrong type in a memory resource of the state, whose schema nothing else compares.
fn wrong_type(dialect: &'static Dialect, memory: &Tree) -> Option<Defect> {
    let misfit = memory.misfit(&dialect.memory.schema, Path::Root)?;
    let shown = match misfit.value? {
        Tree::Boolean(value) => value.to_string(),
        Tree::Integer(number) => number.to_string(),
        Tree::Fraction(number) => number.to_string(),
        other => other.text().map(quoted_text).unwrap_or_default(),
    };
    let message = type_message(&misfit.pointer, misfit.expected, misfit.got, &shown);
    Some(Defect { message, pointer: misfit.pointer })
}

/// Whether the CRD's schema would refuse a memory resource.
pub(crate) fn breaks_schema(dialect: &'static Dialect, memory: &Tree) -> bool {
    wrong_type(dialect, memory).is_some() || !memory::schema_rules(dialect, memory).is_empty()
}

/// The role of a kind in its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The memory resource.
    Memory,
    /// The referrer.
    Agent,
    /// The settings, which can also name a backend.
    Settings,
}

/// The dialect of a kind and its role; `None` for kinds of other families.
pub(crate) fn role(kind: &Kind) -> Option<(&'static Dialect, Role)> {
    DIALECTS.iter().find_map(|dialect| {
        let parts = [
            (&dialect.memory, Role::Memory),
            (&dialect.agent, Role::Agent),
            (&dialect.settings, Role::Settings),
        ];
        parts.into_iter().find(|(known, _)| *known == kind).map(|(_, role)| (*dialect, role))
    })
}

fn memory(dialect: &'static Dialect, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let mut findings = memory::schema_rules(dialect, subject.object);
    findings.extend(memory::conditional_rules(dialect, subject.object));
    findings.extend(advice::findings(dialect, subject.object));
    findings.extend(memory::embedding_missing(dialect, subject, state));
    findings.extend(changed(dialect, subject, state));
    // The denial names the section that is filled instead.
    if findings.iter().any(|it| [&REDIS_REQUIRED, &VECTOR_STORE_REQUIRED].contains(&it.code)) {
        let unused = findings.iter_mut().filter(|it| it.code == &SECTION_UNUSED);
        unused.for_each(|it| it.relation = Relation::Follows);
    }
    findings
}

/// The only finding about a resource in the mistaken group.
fn misnamed(subject: &Subject<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        return Vec::new();
    }
    let message = "apiVersion \"kubeswarm/v1alpha1\" is not served; use \"kubeswarm.io/v1alpha1\"";
    vec![Finding::deny(&API_VERSION_NOT_SERVED, "/apiVersion", message)]
}

/// Warns about a change. The operator does not watch memories, so running agents keep the old values.
fn changed(dialect: &'static Dialect, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let old = subject.old?;
    let [old, new] = [old, subject.object].map(|object| Memory::read(dialect, object));
    if handed_on(&old, new.backend()) == handed_on(&new, new.backend()) {
        return None;
    }
    let users = users(subject, state);
    let (pronoun, names) = user_names(dialect.agent.kind, &users)?;
    let verb = if users.len() == 1 { "uses" } else { "use" };
    let message =
        format!("{names} {verb} this {}; restart {pronoun} to apply the change", dialect.memory.kind);
    Some(Finding::warn(&IN_USE_CHANGED, "/spec", message).when_allowed())
}

/// Warns about a DELETE, and never refuses it. The warning lists the agents that use the memory.
fn deleted(dialect: &'static Dialect, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let users = users(subject, state);
    let Some((_, names)) = user_names(dialect.agent.kind, &users) else { return Vec::new() };
    let verb = if users.len() == 1 { "references" } else { "reference" };
    let message = format!("{names} still {verb} {} {}", dialect.memory.kind, quoted(subject.name));
    vec![Finding::warn(&IN_USE_DELETED, Pointer::root(), message)]
}

/// The names of the agents that claim the memory.
fn users<'s>(subject: &Subject<'_>, state: &mut StateReader<'s>) -> Vec<&'s str> {
    references::users(&FAMILY, (subject.kind, subject.namespace, subject.name), state)
        .map(|agent| &*agent.name)
        .collect()
}

/// `ArkAgent "a"` with "it", or `ArkAgents "a", "b", "c" and 2 more` with "them".
fn user_names(kind: &str, users: &[&str]) -> Option<(&'static str, String)> {
    if let [only] = users {
        return Some(("it", format!("{kind} {}", quoted(only))));
    }
    let names = first_of(users, MAX_NAMES, |name| quoted(name));
    (!users.is_empty()).then(|| ("them", format!("{kind}s {names}")))
}

/// What agents of this backend are handed of a memory, with defaults applied and negative numbers as 0. If that is equal in
/// two versions, agents do not have to restart. An empty collection is handed on as it is, although memgate adds the default
/// for it.
fn handed_on<'t>(memory: &Memory<'t>, backend: Option<Backend>) -> (Vec<Option<&'t str>>, [i64; 2]) {
    let mut texts = vec![memory.text(BACKEND)];
    match backend {
        Some(Backend::Redis) => {
            texts.push(memory.secret(REDIS_SECRET));
            (texts, [REDIS_TTL, MAX_ENTRIES].map(|field| memory.number(field)))
        }
        Some(Backend::VectorStore) => {
            texts.extend([PROVIDER, ENDPOINT, EMBEDDING_MODEL].map(|field| memory.text(field)));
            texts.push(memory.secret(VECTOR_SECRET));
            let with_default = [(COLLECTION, COLLECTION_DEFAULT), (EMBEDDING_PROVIDER, OF_MODEL)];
            texts.extend(with_default.map(|(field, default)| memory.text(field).or(Some(default))));
            (texts, [memory.number(VECTOR_TTL), 0])
        }
        Some(Backend::InContext) | None => (texts, [0; 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::user_names;

    #[test]
    fn names_three_users_at_most() {
        assert_eq!(user_names("ArkAgent", &[]), None);
        assert_eq!(user_names("ArkAgent", &["a"]).expect("one").1, "ArkAgent \"a\"");
        assert_eq!(user_names("ArkAgent", &["a", "b"]).expect("two").1, "ArkAgents \"a\", \"b\"");
        let five = user_names("ArkAgent", &["a", "b", "c", "d", "e"]).expect("five").1;
        assert_eq!(five, "ArkAgents \"a\", \"b\", \"c\" and 2 more");
    }
}

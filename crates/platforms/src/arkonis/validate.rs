//! Validates a memory resource, an agent or settings.
//!
//! `schema_rules` repeat the CRD's schema, for files. `conditional_rules` depend on the backend, and the
//! platform does not enforce them. The submodules also warn about objects that work, but probably not as
//! intended.

mod advice;
mod agent;
mod memory;
mod settings;
mod usage;

use crate::schema_check::{self, Codes, drop_below_wrong_types};
use memgate_model::family::Subject;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::Kind;
use memgate_model::object::Defect;
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;
use memgate_schema::violation::{Rule, SchemaViolation};

use super::api::{DIALECTS, Dialect, KUBESWARM, MISNAMED_GROUP};
use super::codes::{API_VERSION_NOT_SERVED, FIELD_TYPE, UNKNOWN_FIELD};

const SCHEMA_CODES: Codes = Codes { field_type: &FIELD_TYPE, unknown_field: &UNKNOWN_FIELD };

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let kind = subject.kind;
    if kind.group == MISNAMED_GROUP {
        return misnamed(subject);
    }
    let findings = match role(kind) {
        None => Vec::new(),
        Some((dialect, Role::Memory)) => match subject.operation {
            Operation::Delete => return usage::deleted(dialect, subject, state),
            _ => memory(dialect, subject, state),
        },
        Some(_) if subject.operation == Operation::Delete => Vec::new(),
        Some((dialect, Role::Agent)) => agent::findings(dialect, subject, state),
        Some((dialect, Role::Settings)) => settings::findings(dialect, subject, state),
    };
    drop_below_wrong_types(findings, SCHEMA_CODES)
}

/// Later versions of the successor have more providers. The rule on providers judges them all.
pub(crate) fn later_accepts(kind: &Kind, violation: &SchemaViolation<'_>) -> bool {
    *kind == KUBESWARM.memory
        && matches!(violation.rule, Rule::Unsupported(_))
        && violation.pointer.as_str() == "/spec/vectorStore/provider"
}

/// The first denial of a memory resource, in document order. A stored resource with a denial is not usable.
pub(crate) fn first_denial(dialect: &'static Dialect, memory: &Tree) -> Option<Defect> {
    let mut findings = schema_rules(dialect, memory, &Budget::default());
    findings.extend(memory::conditional_rules(dialect, memory));
    let findings = drop_below_wrong_types(findings, SCHEMA_CODES).into_iter();
    let denials = findings.filter(|finding| finding.severity == Severity::Deny);
    let first = denials.min_by_key(|finding| memory.document_position(&finding.pointer));
    first.map(|finding| Defect { message: finding.message().into_owned(), pointer: finding.pointer })
}

/// Whether the CRD's schema would refuse a memory resource.
pub(crate) fn breaks_schema(dialect: &'static Dialect, memory: &Tree) -> bool {
    schema_rules(dialect, memory, &Budget::for_denials())
        .iter()
        .any(|finding| finding.severity == Severity::Deny)
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
    let mut findings = schema_rules(dialect, subject.object, state.budget());
    findings.extend(memory::conditional_rules(dialect, subject.object));
    findings.extend(advice::findings(dialect, subject.object));
    findings.extend(advice::secret(subject, state));
    findings.extend(usage::changed(dialect, subject, state));
    findings
}

/// The rules of the CRD's schema, all of them independent of the backend.
fn schema_rules(dialect: &'static Dialect, object: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    let mut findings = schema_check::check(object, &dialect.memory.schema, SCHEMA_CODES, work);
    findings.extend(memory::schema_rules(dialect, object));
    findings
}

/// The only finding about a resource in the mistaken group.
fn misnamed(subject: &Subject<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        return Vec::new();
    }
    let message = "apiVersion \"kubeswarm/v1alpha1\" is not served; use \"kubeswarm.io/v1alpha1\"";
    vec![Finding::deny(&API_VERSION_NOT_SERVED, Pointer::new("/apiVersion"), message)]
}

//! Validates an Ensemble, an Agent, an AgentRun or a SkillPack.
//!
//! Rules deny what breaks a documented format, and what the platform refuses itself or can never run. They
//! warn about what the platform ignores, clamps or overrides.

mod access;
mod agent;
mod configs;
mod ensemble;
mod environment;
mod limits;
mod membrane;
mod names;
mod pack;
mod run;
mod skills;
mod tolerance;
mod volumes;

use crate::family::naming::and_more;
use crate::family::schema_check::{self, Codes, drop_below_wrong_types};
use crate::model::family::Subject;
use crate::model::finding::{Code, Finding, Severity, quoted};
use crate::model::pointer::Pointer;
use crate::model::request::Operation;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

pub use self::skills::skill_pack_missing;
pub use self::tolerance::tolerates;
use super::api::{AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD, SKILL_PACK};
use super::codes::{TYPE_INVALID, UNKNOWN_FIELD};

const SCHEMA_CODES: Codes = Codes {
    field_type: &TYPE_INVALID,
    unknown_field: &UNKNOWN_FIELD,
    unknown_message: schema_check::unknown_field_message,
    type_message: |field, expected, got| {
        format!("{field}: Invalid value: {}: expected {expected}", quoted(got))
    },
};

/// All findings about the subject, in any order.
#[must_use]
pub fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let deleted = subject.operation == Operation::Delete;
    let mut findings = if deleted { Vec::new() } else { schema_rules(subject) };
    let kind = subject.kind;
    findings.extend(if *kind == ENSEMBLE || *kind == ENSEMBLE_OLD {
        if deleted { ensemble::deleted(subject, state) } else { ensemble::findings(subject) }
    } else if *kind == AGENT || *kind == AGENT_OLD {
        if deleted { agent::deleted(subject) } else { agent::findings(subject, state) }
    } else if *kind == SKILL_PACK {
        if deleted { pack::deleted(subject, state) } else { pack::findings(subject) }
    } else if *kind == AGENT_RUN && !deleted {
        run::findings(subject, state)
    } else {
        Vec::new()
    });
    let denials = findings.iter_mut().filter(|finding| finding.severity == Severity::Deny);
    denials.for_each(|finding| {
        finding.fingerprint_path = Some(fingerprint_path(subject.object, &finding.pointer));
    });
    drop_below_wrong_types(findings, SCHEMA_CODES)
}

/// Whether every field has the right type. Other objects are denied, so they get no defaults.
#[must_use]
pub fn is_well_formed(subject: &Subject<'_>) -> bool {
    schema_rules(subject).iter().all(|finding| finding.severity == Severity::Warn)
}

/// Violations of the schema. The status is skipped, since only the controller writes it.
fn schema_rules(subject: &Subject<'_>) -> Vec<Finding> {
    let findings = schema_check::check(subject.object, &subject.kind.schema, SCHEMA_CODES);
    let status = Pointer::new("/status");
    findings.into_iter().filter(|finding| !status.holds(&finding.pointer)).collect()
}

/// A place in an object by the names of the list elements on the way, where they have one: what
/// was moved within its list is still the same.
fn fingerprint_path(object: &Tree, pointer: &Pointer) -> String {
    const NAMES: [&str; 3] = ["name", "agentConfig", "persona"];
    let mut path = String::new();
    let mut here = Some(object);
    for token in pointer.tokens() {
        path.push('/');
        here = match here {
            Some(Tree::List(elements)) => {
                let element = token.parse::<usize>().ok().and_then(|index| elements.get(index));
                let name = element.and_then(|element| NAMES.iter().find_map(|key| element.get(key)?.text()));
                path.push_str(name.map_or_else(|| token.to_string(), quoted).as_str());
                element
            }
            other => {
                path.push_str(&token);
                other.and_then(|tree| tree.get(&token))
            }
        };
    }
    path
}

/// A finding whose message starts with its field.
fn finding_at(
    finding: fn(&'static Code, Pointer, String) -> Finding,
    code: &'static Code,
    at: &Pointer,
    text: &str,
) -> Finding {
    finding(code, at.clone(), format!("{}: {text}", at.field()))
}

fn deny(code: &'static Code, at: &Pointer, text: &str) -> Finding {
    finding_at(Finding::deny, code, at, text)
}

fn warn(code: &'static Code, at: &Pointer, text: &str) -> Finding {
    finding_at(Finding::warn, code, at, text)
}

/// Denies a value that the CRD's schema does not accept; the empty one is no value of any list.
fn unsupported(
    code: &'static Code,
    at: &Pointer,
    value: Option<&str>,
    supported: &[&str],
) -> Option<Finding> {
    let value = value.filter(|value| !supported.contains(value))?;
    let listed: Vec<String> = supported.iter().map(|value| quoted(value)).collect();
    let text = format!("Unsupported value: {}: supported values: {}", quoted(value), listed.join(", "));
    Some(deny(code, at, &text).fingerprint_value(value))
}

/// A name for a message, without quotes.
fn without_quotes(name: &str) -> String {
    quoted(name).trim_matches('"').to_owned()
}

/// `Agent "a"`, or `Agents "a", "b", "c", "d", "e" and 2 more`; `None` for an empty list.
fn list_users(kind: &str, mut users: Vec<String>) -> Option<String> {
    /// How many users a message names.
    const MAX_NAMES: usize = 5;
    users.sort();
    users.dedup();
    let s = if users.len() == 1 { "" } else { "s" };
    let names: Vec<String> = users.iter().map(|name| quoted(name)).collect();
    (!users.is_empty()).then(|| format!("{kind}{s} {}", and_more(&names, MAX_NAMES)))
}

/// A reference to a config that the Ensemble does not have.
fn not_found(code: &'static Code, at: &Pointer, name: &str) -> Finding {
    warn(code, at, &format!("Not found: {}", quoted(name)))
}

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

use std::collections::BTreeSet;

use crate::family::message::{MAX_NAME_CHARS, fit_message, fit_names, fits, truncate};
use crate::family::naming::and_more;
use crate::family::schema_check::{self, Codes, drop_below_wrong_types};
use crate::family::suggest::{self, did_you_mean};
use crate::model::family::Subject;
use crate::model::finding::{Code, Finding, Severity, quoted};
use crate::model::pointer::Pointer;
use crate::model::request::Operation;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;
use crate::model::work::Work;

pub use self::skills::skill_pack_missing;
pub use self::tolerance::tolerates;
use super::api::{AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD, SKILL_PACK};
use super::codes::{TYPE_INVALID, UNKNOWN_FIELD};

const SCHEMA_CODES: Codes = Codes {
    field_type: &TYPE_INVALID,
    unknown_field: &UNKNOWN_FIELD,
    unknown_message: unknown_field,
    type_message: |field, expected, got| {
        format!("{field}: Invalid value: {}: expected {expected}", quoted(got))
    },
};

/// The usual message, or a shorter one for a field that is deep in the object.
fn unknown_field(field: &str, meant: Option<&str>) -> String {
    let usual = schema_check::unknown_field_message(field, meant);
    if fits(&usual) {
        usual
    } else {
        fit_names([field], |[field]| format!("{field}: unknown field{}", did_you_mean(meant)))
    }
}

/// All findings about the subject, in any order.
#[must_use]
pub fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let deleted = subject.operation == Operation::Delete;
    let mut findings = if deleted { Vec::new() } else { schema_rules(subject, state.work()) };
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
    drop_above_wrong_types(drop_below_wrong_types(findings, SCHEMA_CODES))
}

/// Removes warnings about what holds a field of the wrong type: whether it has an effect is not known yet.
fn drop_above_wrong_types(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut above: BTreeSet<String> = BTreeSet::new();
    for wrong in findings.iter().filter(|finding| *finding.code == TYPE_INVALID) {
        let pointer = wrong.pointer.as_str();
        above.extend(
            pointer.match_indices('/').map(|(end, _)| pointer.get(..end).unwrap_or_default().to_owned()),
        );
    }
    findings
        .retain(|finding| finding.severity == Severity::Deny || !above.contains(finding.pointer.as_str()));
    findings
}

/// Whether every field has the right type. Other objects are denied, so they get no defaults.
#[must_use]
pub fn is_well_formed(subject: &Subject<'_>) -> bool {
    schema_rules(subject, &Work::wordless(None)).iter().all(|finding| finding.severity == Severity::Warn)
}

/// Violations of the schema. The status is skipped, since only the controller writes it.
fn schema_rules(subject: &Subject<'_>, work: &Work<'_>) -> Vec<Finding> {
    let findings = schema_check::check(subject.object, &subject.kind.schema, SCHEMA_CODES, work);
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

/// A warning whose message starts with its field and fits, with these names as far as there is room.
fn warn_of<const N: usize>(
    code: &'static Code,
    at: &Pointer,
    names: [&str; N],
    text: impl Fn([&str; N]) -> String,
) -> Finding {
    let field = at.field();
    let message = fit_names(names, |names| format!("{field}: {}", text(names)));
    Finding::warn(code, at.clone(), message)
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
    let finding = deny(code, at, &text).fingerprint_value(value);
    Some(match suggest::help(value, supported.iter().copied()) {
        Some(help) => finding.help(help),
        None => finding,
    })
}

/// A message about `Agent "a"`, or `Agents "a", "b", "c", "d", "e" and 2 more`: as many of them as fit, and one at
/// least. `message` gets them, and how long other names in it may be. `None` for an empty list.
fn about_agents(mut users: Vec<String>, message: impl Fn(&str, usize) -> String) -> Option<String> {
    /// How many users a message names.
    const MAX_NAMES: usize = 5;
    users.sort();
    users.dedup();
    let s = if users.len() == 1 { "" } else { "s" };
    let about = |names: usize, limit| {
        let shown = users.iter().take(names).map(|name| quoted(&truncate(name, limit)));
        let mut listed: Vec<String> = shown.collect();
        listed.resize(users.len(), String::new());
        message(&format!("Agent{s} {}", and_more(&listed, names)), limit)
    };
    let whole = (1..=MAX_NAMES).rev().map(|names| about(names, MAX_NAME_CHARS)).find(|text| fits(text));
    (!users.is_empty()).then(|| whole.unwrap_or_else(|| fit_message(|limit| about(1, limit))))
}

/// A second entry of a name, of which the first one counts.
fn duplicate_value(code: &'static Code, at: &Pointer, name: &str) -> Finding {
    warn_of(code, at, [name], |[name]| format!("Duplicate value: {}", quoted(name)))
}

/// A reference to a config that the Ensemble does not have.
fn not_found(code: &'static Code, at: &Pointer, name: &str) -> Finding {
    warn_of(code, at, [name], |[name]| format!("Not found: {}", quoted(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_value_was_meant() {
        let help = |value| {
            let at = Pointer::new("/spec/access");
            unsupported(&TYPE_INVALID, &at, Some(value), &["read-write", "read-only"])?.help
        };
        assert_eq!(help("readonly").as_deref(), Some("did you mean \"read-only\"?"));
        assert_eq!(help("all"), None);
    }
}

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
mod report;
mod run;
mod skills;
mod tolerance;
mod volumes;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::family::message::{MAX_NAME_CHARS, fit_message, fit_names, fits, truncate};
use crate::family::schema_check::{self, Codes, drop_below_wrong_types};
use crate::family::suggest::did_you_mean;
use crate::model::budget::Budget;
use crate::model::family::Subject;
use crate::model::finding::{Finding, Severity, quoted};
use crate::model::members::Members;
use crate::model::number::more;
use crate::model::pointer::{Pointer, unescape};
use crate::model::request::Operation;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use self::report::Report;
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
    let mut findings = if deleted { Vec::new() } else { schema_rules(subject, state.budget()) };
    let (kind, report) = (subject.kind, Report::new(state.budget()));
    findings.extend(if *kind == ENSEMBLE || *kind == ENSEMBLE_OLD {
        if deleted { ensemble::deleted(subject, state) } else { ensemble::findings(subject, report) }
    } else if *kind == AGENT || *kind == AGENT_OLD {
        if deleted { agent::deleted(subject) } else { agent::findings(subject, state) }
    } else if *kind == SKILL_PACK {
        if deleted { pack::deleted(subject, state) } else { pack::findings(subject, report) }
    } else if *kind == AGENT_RUN && !deleted {
        run::findings(subject, state)
    } else {
        Vec::new()
    });
    let mut findings = drop_above_wrong_types(drop_below_wrong_types(findings, SCHEMA_CODES));
    // Only what is compared needs it.
    if subject.old.is_some() || !state.budget().wants_warnings() {
        let mut walk = Walk::new(subject.object);
        for finding in findings.iter_mut().filter(|finding| finding.severity == Severity::Deny) {
            finding.fingerprint_path = walk.fingerprint_path(finding.pointer.as_str());
        }
    }
    findings
}

/// Removes warnings about what holds a field of the wrong type: whether it has an effect is not known yet.
fn drop_above_wrong_types(mut findings: Vec<Finding>) -> Vec<Finding> {
    let is_wrong_type = |finding: &&Finding| *finding.code == TYPE_INVALID;
    if !findings.iter().any(|finding| finding.severity == Severity::Warn) {
        return findings;
    }
    let mut above: Members<&str> = Members::default();
    let mut last = None;
    for wrong in findings.iter().filter(is_wrong_type) {
        let holder = wrong.pointer.as_str().rsplit_once('/').map(|(holder, _)| holder);
        // Most stand in one list.
        if holder != last {
            last = holder;
            let holder = holder.unwrap_or_default();
            above.extend(holder.match_indices('/').filter_map(|(end, _)| holder.get(..end)).chain([holder]));
        }
    }
    if above.is_empty() {
        return findings;
    }
    let says_more =
        |finding: &Finding| finding.severity == Severity::Deny || !above.contains(finding.pointer.as_str());
    let mut kept: Vec<bool> = findings.iter().rev().map(says_more).collect();
    findings.retain(|_| kept.pop().unwrap_or(true));
    findings
}

/// Whether every field has the right type. Other objects are denied, so they get no defaults.
#[must_use]
pub fn is_well_formed(subject: &Subject<'_>) -> bool {
    schema_rules(subject, &Budget::for_denials()).iter().all(|finding| finding.severity == Severity::Warn)
}

/// Violations of the schema. The status is skipped, since only the controller writes it.
fn schema_rules(subject: &Subject<'_>, work: &Budget<'_>) -> Vec<Finding> {
    let mut findings = schema_check::check(subject.object, &subject.kind.schema, SCHEMA_CODES, work);
    let status = Pointer::new("/status");
    findings.retain(|finding| !status.holds(&finding.pointer));
    findings
}

/// A way through an object by the names of its list elements. Most findings stand in one list, and the way to that
/// is walked once.
struct Walk<'t> {
    object: &'t Tree,
    /// What holds the last place, as a pointer.
    holder: String,
    /// The way to it by names; `None` where none of the elements has one.
    path: Option<String>,
    here: Option<&'t Tree>,
}

impl<'t> Walk<'t> {
    const fn new(object: &'t Tree) -> Self {
        Self { object, holder: String::new(), path: None, here: Some(object) }
    }

    /// A place by the names of the list elements on the way: what was moved within its list is still the same.
    /// `None` where none of them has a name.
    fn fingerprint_path(&mut self, pointer: &str) -> Option<String> {
        let (holder, token) = pointer.rsplit_once('/')?;
        if holder != self.holder {
            self.walk_to(holder);
        }
        let (mut path, mut here) = (self.path.clone(), self.here);
        step(&mut path, &mut here, holder, token);
        path
    }

    fn walk_to(&mut self, holder: &str) {
        holder.clone_into(&mut self.holder);
        (self.path, self.here) = (None, Some(self.object));
        let mut end = 0;
        for token in holder.split('/').skip(1) {
            let before = holder.get(..end).unwrap_or_default();
            step(&mut self.path, &mut self.here, before, token);
            end += 1 + token.len();
        }
    }
}

/// Walks on by one token of a pointer, behind `before`.
fn step(path: &mut Option<String>, here: &mut Option<&Tree>, before: &str, token: &str) {
    const NAMES: [&str; 3] = ["name", "agentConfig", "persona"];
    let mut name = None;
    if let Some(Tree::List(elements)) = *here {
        *here = token.parse::<usize>().ok().and_then(|index| elements.get(index));
        name = here.and_then(|element| NAMES.iter().find_map(|key| element.get(key)?.text()));
    } else {
        *here = here.and_then(|tree| tree.get(&unescape(token)));
    }
    match (path, name) {
        (None, None) => {}
        (Some(path), None) => {
            path.push('/');
            path.push_str(token);
        }
        (path, Some(name)) => push_name(path.get_or_insert_with(|| before.to_owned()), name),
    }
}

/// Appends the name of an element. Of a long one its hash is enough.
fn push_name(path: &mut String, name: &str) {
    const MAX_BYTES: usize = 64;
    path.push_str("/\"");
    if name.len() <= MAX_BYTES {
        path.push_str(name);
    } else {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        path.push_str(&hasher.finish().to_string());
    }
}

/// A message about `Agent "a"`, or `Agents "a", "b", "c", "d", "e" and 2 more`: as many of them as fit, and one at
/// least. `message` gets them, and how long other names in it may be. `None` for an empty list.
fn about_agents(mut users: Vec<Cow<'_, str>>, message: impl Fn(&str, usize) -> String) -> Option<String> {
    /// How many users a message names.
    const MAX_NAMES: usize = 5;
    users.sort_unstable();
    users.dedup();
    let s = if users.len() == 1 { "" } else { "s" };
    let about = |names: usize, limit| {
        let shown = users.iter().take(names).map(|name| quoted(&truncate(name, limit)));
        let shown = shown.collect::<Vec<String>>().join(", ");
        let more = more(users.len().saturating_sub(names));
        message(&format!("Agent{s} {shown}{more}"), limit)
    };
    let whole = (1..=MAX_NAMES).rev().map(|names| about(names, MAX_NAME_CHARS)).find(|text| fits(text));
    (!users.is_empty()).then(|| whole.unwrap_or_else(|| fit_message(|limit| about(1, limit))))
}

//! A policy to begin with, and two cases of it: one that passes and one that it denies.
//!
//! ```text
//! CODE ──by_code──▶ candidates ─┐
//!                               ├─▶ Trial: does exactly the new rule deny? ──text──▶ NewPolicy, tried once more
//! FILE:LINE ──by_line──▶ same ──┘
//! ```
//!
//! Nothing is assumed about a rule and its objects: a candidate counts if memgate decides about it as its case says.

mod by_code;
mod by_line;
mod samples;

pub use self::by_code::codes_with_rule;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use thiserror::Error;

use crate::casefile::compare::{CaseOutcome, failures};
use crate::casefile::read::read;
use crate::casefile::{Case, Expect};
use crate::cases::answer;
use crate::judge::check;
use crate::load::{self, load};
use crate::plan::Plan;
use crate::report::json::without_nulls;
use memgate_core::state::{add, empty};
use memgate_manifest::document::values;
use memgate_manifest::error::Error as InputError;
use memgate_manifest::rewrite::yaml;
use memgate_manifest::source::Source;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::request::{Occasion, Operation};
use memgate_model::snapshot::Snapshot;
use memgate_platforms::default_settings;
use memgate_policy::read::MAX_NAME;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::{cut, quoted_text};
use memgate_primitives::pointer::Pointer;

/// The most objects of files, and fields of a line, that are tried.
const MOST_TRIED: usize = 64;

/// What a new policy is about.
#[derive(Debug)]
pub struct PolicyWish<'a> {
    /// The name of the policy.
    pub name: &'a str,
    /// `CODE`, or `FILE:LINE` with or without a column.
    pub about: &'a str,
    /// More files: those with objects that have the finding CODE, or those to which the objects of FILE refer.
    pub paths: &'a [String],
    /// The command that runs the cases.
    pub next: &'a str,
}

/// A policy and its cases, as texts of files.
#[derive(Debug)]
pub struct NewPolicy {
    /// The MemoryPolicy.
    pub policy: String,
    /// The cases.
    pub cases: String,
}

/// Why no policy was made.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Files cannot be read.
    #[error("failed to read the files")]
    Unread(Vec<InputError>),
    /// Nothing can be loaded.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// The wish cannot be met.
    #[error("{0}")]
    Wish(String),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Wish(reason)
    }
}

/// A rule, and what its policy matches.
struct RuleDraft {
    id: String,
    /// The name of its type, and what that holds.
    typed: (&'static str, Value),
    /// Null for the roles of the type.
    roles: Value,
    /// Null without conditions.
    when: Value,
    matching: Value,
    message: String,
    hint: String,
}

/// A case, with words for its comment.
struct Sample {
    case: Case,
    about: String,
}

/// Makes a policy and its cases.
///
/// # Errors
/// When the name is wrong, files cannot be read, or no rule can say what is wished.
pub fn new_policy(wish: &PolicyWish<'_>) -> Result<NewPolicy, Refusal> {
    if wish.name.len() > MAX_NAME || !is_dns_subdomain(wish.name) {
        let name = quoted_text(&cut(wish.name, MAX_NAME));
        let message = format!(
            "{name} is not the name of a policy; use at most {MAX_NAME} of a-z, 0-9, \"-\" and \".\""
        );
        return Err(message.into());
    }
    match file_and_line(wish.about) {
        Some((file, line, column)) => by_line::new(wish, file, (line, column)),
        None => by_code::new(wish),
    }
}

/// The parts of `FILE:LINE` or `FILE:LINE:COLUMN`.
fn file_and_line(text: &str) -> Option<(&str, usize, Option<usize>)> {
    let (before, last) = text.rsplit_once(':')?;
    let last = last.parse().ok()?;
    match before.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) if !file.is_empty() => Some((file, line, Some(last))),
        _ => Some((before, last, None)).filter(|_| !before.is_empty()),
    }
}

/// A policy with one rule, in force.
struct Trial {
    name: String,
    rule: RuleDraft,
    /// The code of the findings.
    code: String,
    /// A state with the policy alone.
    base: Snapshot,
}

impl Trial {
    /// `None` for a policy about which `memgate check` would report something.
    fn new(name: &str, rule: RuleDraft) -> Option<Self> {
        let code = format!("policy/{name}/{}", rule.id);
        let mut base = empty(default_settings());
        add(&mut base, &rule.policy(name)).ok()?;
        let checked = check(load(&Plan::of_text(&yaml(&rule.policy(name)))).ok()?, Occasion::default());
        let has_finding = checked.decided.iter().any(|decided| decided.findings().next().is_some());
        let is_clean = checked.inputs.errors.is_empty() && checked.inputs.notices.is_empty() && !has_finding;
        is_clean.then(|| Self { name: name.to_owned(), rule, code, base })
    }

    fn outcome(&self, case: &Case) -> Option<CaseOutcome> {
        answer(case, &self.base).ok().map(|(outcome, ..)| outcome)
    }

    /// The codes of a case that is allowed without a finding of the rule.
    fn codes_if_passed(&self, case: &Case) -> Option<BTreeSet<String>> {
        let outcome = self.outcome(case).filter(|outcome| outcome.allowed)?;
        let codes: BTreeSet<String> = outcome.codes.into_iter().flatten().collect();
        Some(codes).filter(|codes| !codes.contains(&self.code))
    }

    /// The codes of a case that the rule denies.
    fn codes_if_denied(&self, case: &Case) -> Option<BTreeSet<String>> {
        let is_it = |it: &CaseOutcome| !it.allowed && it.message.contains(&self.rule.message);
        let codes: BTreeSet<String> = self.outcome(case).filter(is_it)?.codes.into_iter().flatten().collect();
        Some(codes).filter(|codes| codes.contains(&self.code))
    }

    /// The texts of the files, if the cases pass.
    fn into_texts(self, wish: &PolicyWish<'_>, passes: &Sample, denied: &Sample) -> Option<NewPolicy> {
        let allowed = json!({"allowed": true, "codes": self.codes_if_passed(&passes.case)?});
        let refused = json!({
            "allowed": false,
            "codes": self.codes_if_denied(&denied.case)?,
            "message_contains": [self.rule.message],
        });
        let cases = format!(
            "# Cases of the policy {}: what it allows and what it denies. Add your own, and run them:\n#   {}\n{}{}",
            self.name,
            in_comment(wish.next),
            case_text(passes, &format!("passes-{}", self.rule.id), &allowed),
            case_text(denied, &format!("is-denied-by-{}", self.rule.id), &refused),
        );
        let made = NewPolicy { policy: self.rule.text(wish), cases };
        self.holds(&made).then_some(made)
    }

    /// Whether the cases as they are written do what they say.
    fn holds(&self, made: &NewPolicy) -> bool {
        let mut errors = Vec::new();
        let documents = values(&Arc::new(Source::new("", made.cases.as_str())), &mut errors);
        let cases: Vec<Case> =
            documents.iter().filter_map(|document| read(document.value()).ok()).flatten().collect();
        let is_met =
            |case: &Case| self.outcome(case).is_some_and(|it| failures(&case.expect, &it).is_empty());
        errors.is_empty() && cases.len() == 2 && cases.iter().all(is_met)
    }
}

impl RuleDraft {
    fn policy(&self, name: &str) -> Value {
        let (type_name, body) = &self.typed;
        let rule = json!({
            "id": self.id,
            "roles": self.roles,
            "when": self.when,
            (*type_name): body,
            "message": self.message,
            "hint": self.hint,
        });
        json!({
            "apiVersion": MEMORY_POLICY.api_version(),
            "kind": MEMORY_POLICY.kind,
            "metadata": {"name": name},
            "spec": {"match": self.matching, "actions": {"admission": "deny"}, "rules": [without_nulls(rule)]},
        })
    }

    /// The policy as a file, with comments that say what to edit.
    fn text(&self, wish: &PolicyWish<'_>) -> String {
        let type_name = self.typed.0;
        let comments = [
            (
                "  match:",
                "Which objects. Add namespaces, names or a namespaceSelector to narrow it.".to_owned(),
            ),
            (
                "  actions:",
                "In the cluster: deny, warn or report. In CI the rule denies, in audits it reports."
                    .to_owned(),
            ),
            (
                &format!("    {type_name}:"),
                format!(
                    "What is allowed; `memgate explain policy/{}/{} --policy FILE` describes it.",
                    wish.name, self.id
                ),
            ),
            ("    message:", "What users read: what is wrong, and what to do about it.".to_owned()),
        ];
        let about = in_comment(wish.about);
        let mut text = format!(
            "# Made for {about}. Edit the parts below, and run its cases:\n#   {}\n",
            in_comment(wish.next)
        );
        for line in yaml(&self.policy(wish.name)).lines() {
            let comment = comments.iter().find(|(start, _)| line.starts_with(start));
            if let Some((start, comment)) = comment {
                let indent: String = start.chars().take_while(|c| *c == ' ').collect();
                text.extend([&indent, "# ", comment, "\n"]);
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// One case as an element of a list, below a comment.
fn case_text(Sample { case, about }: &Sample, name: &str, expect: &Value) -> String {
    let list = |values: &[Value]| if values.is_empty() { Value::Null } else { json!(values) };
    let value = without_nulls(json!({
        "name": name,
        "operation": (case.operation != Operation::Create).then(|| case.operation.name()),
        "namespace": case.namespace,
        "state": list(&case.state),
        "object": case.object,
        "oldObject": case.old_object,
        "expect": expect,
    }));
    format!("# {}\n{}", in_comment(about), yaml(&json!([value])))
}

/// A case about the creation of an object in this state.
fn creation(object: Value, state: Vec<Value>) -> Case {
    Case {
        pointer: Pointer::root(),
        name: String::new(),
        why: String::new(),
        operation: Operation::Create,
        state,
        object: Some(object),
        old_object: None,
        dry_run: false,
        namespace: None,
        occasion: Occasion::default(),
        user: None,
        subresource: String::new(),
        expect: Expect::default(),
    }
}

/// A text of the user on one line. Some readers of YAML end a line at U+2028 and U+2029.
fn in_comment(text: &str) -> String {
    crate::view::in_one_line(text)
}

//! One rule of a policy, as it is written.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_model::finding::Cause;
use memgate_model::memory_view::Role;
use memgate_model::policy::{Action, Rule, When};
use memgate_model::policy_rule::PolicyRule;
use memgate_model::typed_rule::TypedRule;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::super::names::MAX_ENTRIES;
use super::super::reader::{Fields, Reader, one_of};
use super::super::rules::{self, RuleType};
use super::super::values::is_kebab;
use super::{RULE_AUDIT_ACTIONS, overrides};

/// The most characters of the id of a rule.
pub(super) const MAX_ID: usize = 40;

/// The most characters of a message, a hint and the address of a page.
const MAX_MESSAGE: usize = 200;
const MAX_HINT: usize = 300;
const MAX_DOCS: usize = 500;

/// The fields of a rule besides the typed one.
pub(crate) const FIELDS: [&str; 10] =
    ["id", "roles", "when", "action", "message", "hint", "docs", "severity", "onUnknown", "exemptable"];

const SEVERITIES: [&str; 5] = ["critical", "high", "medium", "low", "info"];

pub(super) fn read<'v>(policy: &str, reader: &Reader<'v>, seen: &RefCell<BTreeSet<&'v str>>) -> Option<Rule> {
    let fields = reader.any_fields()?;
    let id = id(&fields, seen);
    let typed = typed(&fields);
    let severity = SEVERITIES.map(|name| (name, name));
    let severity = fields.choice("severity", &severity).unwrap_or("medium");
    let on_unknown = [("note", Action::Report), ("warn", Action::Warn), ("deny", Action::Deny)];
    let on_unknown = fields.choice("onUnknown", &on_unknown).unwrap_or(Action::Report);
    let when = fields.get("when").and_then(|it| when(&it));
    let action = fields.get("action").map(|it| overrides(&it, &RULE_AUDIT_ACTIONS)).unwrap_or_default();
    let message = fields.get("message").and_then(|it| one_line(&it));
    let hint = fields.text("hint", MAX_HINT).map(str::to_owned);
    let docs = fields.get("docs").and_then(|it| docs(&it));
    let exemptable = fields.get("exemptable").and_then(|it| it.flag()).unwrap_or(true);
    let (kind, check) = typed?;
    let roles = roles(&fields, kind);
    // A TTL is that of a referrer itself or of its memory; a rule that asks for referrers means both.
    let also_itself = kind.name == "retention" && fields.has("roles");
    let is_natural = |role: &Role| kind.natural.contains(role) && (*role == Role::Memory || !also_itself);
    let by_sources = roles.iter().copied().filter(|role| !is_natural(role)).collect();
    let id = id?.to_owned();
    let about = PolicyRule {
        code: format!("policy/{policy}/{id}"),
        policy: policy.to_owned(),
        id,
        pointer: fields.pointer().clone(),
        hint,
        docs,
        severity,
        type_name: kind.name,
        page: kind.page,
    };
    Some(Rule {
        about: Arc::new(about),
        roles,
        by_sources,
        when,
        also_itself,
        check: check?,
        action,
        message,
        on_unknown,
        exemptable,
    })
}

fn id<'v>(fields: &Fields<'v>, seen: &RefCell<BTreeSet<&'v str>>) -> Option<&'v str> {
    let reader = fields.required("id")?;
    let id = reader.text(MAX_ID)?;
    if !is_kebab(id) {
        let message = format!("{} is not an id; use a-z, 0-9 and single \"-\" between them", quoted(id));
        reader.fault(Cause::Invalid, &message);
    } else if !seen.borrow_mut().insert(id) {
        reader.fault(Cause::Duplicate, &format!("there is a rule {} already", quoted(id)));
    }
    Some(id)
}

/// The typed rule: the one field that is not in [`FIELDS`].
fn typed<'t>(fields: &Fields<'_>) -> Option<(&'t RuleType, Option<Box<dyn TypedRule>>)> {
    let mut found: Vec<&RuleType> = Vec::new();
    let mut is_misspelt = false;
    for name in fields.names().filter(|name| !FIELDS.contains(name)) {
        match rules::find(name) {
            Some(rule) => found.push(rule),
            None => {
                is_misspelt = true;
                unknown_field(fields, name);
            }
        }
    }
    let names: Vec<&str> = rules::TYPES.iter().map(|rule| rule.name).collect();
    match found.as_slice() {
        [] if is_misspelt => None,
        [] => {
            fields.fault_here(Cause::Required, &format!("has no rule; use {}", one_of(&names)));
            None
        }
        [one] => Some((one, (one.read)(&fields.get(one.name)?))),
        [_, others @ ..] => {
            for other in others {
                fields.fault(
                    other.name,
                    Cause::Invalid,
                    "a rule has one type; give this one an id of its own",
                );
            }
            None
        }
    }
}

fn unknown_field(fields: &Fields<'_>, name: &str) {
    let known = rules::TYPES.iter().map(|rule| rule.name).chain(FIELDS);
    let message = match name {
        "on" | "true" => "unknown field; use roles (YAML 1.1 reads on as true)".to_owned(),
        "expression" => "is reserved for a later version; use a typed rule".to_owned(),
        _ => {
            let near = nearest(name, known);
            let typed: Vec<&str> = rules::TYPES.iter().map(|rule| rule.name).collect();
            let hint = match near {
                Some(_) => did_you_mean(near),
                None => format!("; the rules are {}", typed.join(", ")),
            };
            format!("unknown field {}{hint}", quoted(name))
        }
    };
    fields.fault(name, Cause::Invalid, &message);
}

/// The roles of a rule: its own list, or else the natural roles of its type.
fn roles(fields: &Fields<'_>, kind: &RuleType) -> Vec<Role> {
    let Some(reader) = fields.get("roles") else { return kind.natural.to_vec() };
    let choices = Role::ALL.map(|role| (role.name(), role));
    let mut roles = Vec::new();
    for (_, element) in reader.texts(1, Role::ALL.len(), MAX_ID) {
        let Some(role) = element.choice(&choices) else { continue };
        if kind.natural.contains(&role) || kind.natural.contains(&Role::Memory) {
            roles.push(role);
        } else {
            let natural: Vec<&str> = kind.natural.iter().map(|role| role.name()).collect();
            let message = format!("{} judges {} only", kind.name, one_of(&natural));
            element.fault(Cause::Invalid, &message);
        }
    }
    roles
}

fn when(reader: &Reader<'_>) -> Option<When> {
    let fields = reader.fields(&["backends", "providers"])?;
    let words = |field| {
        let texts = fields.texts(field, MAX_ENTRIES, 64)?;
        Some(texts.into_iter().map(|(text, _)| text.to_lowercase()).collect())
    };
    let when = When { backends: words("backends"), providers: words("providers") };
    if when == When::default() {
        fields.fault_here(Cause::Required, "needs backends or providers");
    }
    Some(when)
}

fn one_line(reader: &Reader<'_>) -> Option<String> {
    let text = reader.text(MAX_MESSAGE)?;
    if text.chars().any(char::is_control) {
        reader.fault(Cause::Invalid, "must be one line");
        return None;
    }
    Some(text.to_owned())
}

fn docs(reader: &Reader<'_>) -> Option<String> {
    let text = reader.text(MAX_DOCS)?;
    let is_url = text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    if !is_url {
        reader.fault(Cause::Invalid, "must be a URL that begins with https://");
        return None;
    }
    Some(text.to_owned())
}

//! One rule of a policy, as it is written.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_model::finding::Cause;
use memgate_model::memory_view::Role;
use memgate_model::policy::{Action, During, Rule, WEEKDAYS, Weekdays};
use memgate_model::policy_rule::PolicyRule;
use memgate_model::typed_rule::RuleRoles;
use memgate_primitives::plain_text::{cut, quoted};

use super::{RULE_AUDIT_ACTIONS, instant, overrides};
use crate::reader::{Fields, Reader, one_of};
use crate::rules::{self, RuleType};
use crate::values::is_kebab;

/// The most characters of the id of a rule.
pub(super) const MAX_ID: usize = 40;

/// The most characters of a message, a hint and the address of a page.
const MAX_MESSAGE: usize = 200;
const MAX_HINT: usize = 300;
const MAX_DOCS: usize = 500;

/// The most characters of the conditions of a rule where a report shows them.
const MAX_WHEN: usize = 200;

const SEVERITIES: [&str; 5] = ["critical", "high", "medium", "low", "info"];

pub(super) fn read<'v>(policy: &str, reader: &Reader<'v>, seen: &RefCell<BTreeSet<&'v str>>) -> Option<Rule> {
    let fields = reader.any_fields()?;
    let id = id(&fields, seen);
    let typed = rules::typed(&fields, &rules::FIELDS);
    let severity = SEVERITIES.map(|name| (name, name));
    let severity = fields.choice("severity", &severity).unwrap_or("medium");
    let on_unknown = [("note", Action::Report), ("warn", Action::Warn), ("deny", Action::Deny)];
    let on_unknown = fields.choice("onUnknown", &on_unknown).unwrap_or(Action::Report);
    let when = fields.get("when").and_then(|it| rules::when::read(&it));
    let during = fields.get("during").and_then(|it| during(&it)).unwrap_or_default();
    let action = fields.get("action").map(|it| overrides(&it, &RULE_AUDIT_ACTIONS)).unwrap_or_default();
    let message = fields.get("message").and_then(|it| one_line(&it));
    let hint = fields.text("hint", MAX_HINT).map(str::to_owned);
    let docs = fields.get("docs").and_then(|it| docs(&it));
    let exemptable = fields.get("exemptable").and_then(|it| it.flag()).unwrap_or(true);
    let (kind, check) = typed?;
    let check = check?;
    let mut of_type = kind.roles(&*check);
    // A TTL is that of a referrer itself or of its memory; a rule that asks for referrers means both.
    if kind.name == "retention" && fields.has("roles") {
        of_type.by_sources.push(Role::Referrer);
    }
    let roles = roles(&fields, kind, &of_type);
    let RuleRoles { own, by_sources, .. } = of_type.only(&roles);
    let id = id?.to_owned();
    let words = when.as_ref().map(|when| {
        let conditions: Vec<String> = when.words().into_iter().map(|(words, _)| words).collect();
        cut(&conditions.join(" and "), MAX_WHEN).into_owned()
    });
    let about = PolicyRule {
        code: format!("policy/{policy}/{id}"),
        policy: policy.to_owned(),
        id,
        pointer: fields.pointer().clone(),
        hint,
        docs,
        severity,
        type_name: kind.name,
        when: words,
    };
    Some(Rule {
        about: Arc::new(about),
        roles,
        own,
        by_sources,
        when,
        during,
        check,
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

/// The roles of a rule: its own list, or else those of its type.
fn roles(fields: &Fields<'_>, kind: &RuleType, of_type: &RuleRoles) -> Vec<Role> {
    let Some(reader) = fields.get("roles") else { return of_type.default.clone() };
    let choices = Role::ALL.map(|role| (role.name(), role));
    let mut roles = Vec::new();
    for (_, element) in reader.texts(1, Role::ALL.len(), MAX_ID) {
        let Some(role) = element.choice(&choices) else { continue };
        if of_type.possible().any(|possible| possible == role) {
            roles.push(role);
        } else {
            let possible: Vec<&str> = of_type.possible().map(Role::name).collect();
            let message = format!("{} judges {} only", kind.name, one_of(&possible));
            element.fault(Cause::Invalid, &message);
        }
    }
    roles
}

fn during(reader: &Reader<'_>) -> Option<During> {
    let parts = ["from", "until", "weekdays"];
    let fields = reader.fields(&parts)?;
    let [from, until] = ["from", "until"].map(|field| fields.get(field).and_then(|it| instant(&it)));
    if !parts.iter().any(|part| fields.has(part)) {
        fields.fault_here(Cause::Required, "needs from or until, or weekdays");
    }
    if from.zip(until).is_some_and(|(from, until)| until <= from) {
        fields.fault("until", Cause::Invalid, "must be after from");
    }
    let days = WEEKDAYS.into_iter().zip(0_u8..).collect::<Vec<_>>();
    let weekdays = fields.get("weekdays").map(|it| {
        let texts = it.texts(1, WEEKDAYS.len(), MAX_ID).into_iter();
        texts.filter_map(|(_, day)| day.choice(&days)).fold(Weekdays::default(), Weekdays::and)
    });
    Some(During { from, until, weekdays })
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

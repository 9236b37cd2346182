//! Describes a rule of a policy: its condition, the objects that it judges, its actions, and its exemptions.

use std::fmt::Write as _;

use crate::files::exempt::duration;
use crate::files::inputs::Inputs;
use memgate_manifest::rewrite::yaml;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::memory_view::Role;
use memgate_model::object::Reference;
use memgate_model::policy::{During, Match, Policy, Promotion, Rule};
use memgate_model::request::Point;
use memgate_policy::rules;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::plain;

/// The description of the rule, and then the page of its type.
pub fn rule(policy: &Policy, rule: &Rule, inputs: &Inputs) -> String {
    let about = &rule.about;
    let mut text = format!("# {}\n\n", about.code);
    let mut line = |name: &str, value: &str| {
        let _infallible = writeln!(text, "{:14}{value}", format!("{name}:"));
    };
    line("asks", &asks(policy, rule, inputs));
    line("judges", &judged(rule));
    line("matches", &matched(&policy.matching));
    if rule.during != During::default() {
        line("applies", &during(rule.during));
    }
    for (point, name) in
        [(Point::Admission, "at admission"), (Point::Ci, "in CI"), (Point::Audit, "in audits")]
    {
        line(name, &action(policy, rule, point));
    }
    line("existing", existing(policy));
    line("unknown", &format!("what cannot be judged comes to {} at most", rule.on_unknown.name()));
    line("exemptions", &exemptions(policy, rule));
    line("severity", about.severity);
    for (name, value) in [("message", &rule.message), ("hint", &about.hint), ("docs", &about.docs)] {
        if let Some(value) = value {
            line(name, &plain(value));
        }
    }
    text.push('\n');
    text.push_str(rules::find(about.type_name).map_or("", |rule| rule.page.text()).trim_end());
    text.push('\n');
    text
}

/// The typed rule as written in the policy.
fn asks(policy: &Policy, rule: &Rule, inputs: &Inputs) -> String {
    let name = rule.about.type_name;
    let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name: policy.name.clone() };
    let written = inputs.policies.manifest(&object);
    let value = written.as_ref().and_then(|it| it.pointer(rule.about.pointer.key(name).as_str()));
    let Some(value) = value else { return name.to_owned() };
    let indented = yaml(value).trim_end().replace('\n', "\n                ");
    let mut text = format!("{name}\n                {indented}");
    for (words, says_absent) in rule.when.iter().flat_map(|when| when.words()) {
        let absent = if says_absent { "" } else { "; not where it is absent" };
        let _infallible = write!(text, "\n              only where {words}{absent}");
    }
    text
}

fn judged(rule: &Rule) -> String {
    let words = |role: &Role| match (role, rule.own.contains(role), rule.by_sources.contains(role)) {
        (Role::Memory, ..) => "memory resources",
        (Role::Referrer, _, false) => "what refers to memory",
        (Role::Referrer, false, true) => "what refers to memory, by the memory it uses",
        (Role::Referrer, true, true) => "what refers to memory, itself and by the memory it uses",
        (Role::Pod, _, false) => "agent pods",
        (Role::Pod, false, true) => "agent pods, by the memory they use",
        (Role::Pod, true, true) => "agent pods, themselves and by the memory they use",
    };
    rule.roles.iter().map(words).collect::<Vec<_>>().join("; ")
}

fn matched(matching: &Match) -> String {
    let texts = |globs: &[Glob]| globs.iter().map(Glob::as_str).collect::<Vec<_>>().join(", ");
    let list = |words: &Option<Vec<String>>| words.as_ref().map(|words| words.join(", "));
    let excluded = &matching.exclude_namespaces;
    let users = [matching.exclude_users.as_slice(), &matching.exclude_groups].concat();
    let operations = matching.operations.as_ref();
    let parts = [
        ("families", list(&matching.families)),
        ("kinds", list(&matching.kinds)),
        ("namespaces", matching.namespaces.as_deref().map(texts)),
        ("all namespaces but", (!excluded.is_empty()).then(|| texts(excluded))),
        ("names", matching.names.as_deref().map(texts)),
        (
            "Namespaces by label",
            matching.namespace_selector.as_ref().map(|_| "see namespaceSelector".to_owned()),
        ),
        ("objects by label", matching.object_selector.as_ref().map(|_| "see objectSelector".to_owned())),
        ("operations", operations.map(|it| it.iter().map(|it| it.name()).collect::<Vec<_>>().join(", "))),
        ("not requests of", (!users.is_empty()).then(|| users.join(", "))),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
    if parts.is_empty() { "everything".to_owned() } else { parts.join("; ") }
}

fn during(During { from, until, weekdays }: During) -> String {
    let from = from.map(|from| format!("from {from}"));
    let until = until.map(|until| format!("until {until}"));
    let days = weekdays.map(|days| format!("on {} (UTC)", days.words().collect::<Vec<_>>().join(", ")));
    from.into_iter().chain(until).chain(days).collect::<Vec<_>>().join(" ")
}

fn action(policy: &Policy, rule: &Rule, point: Point) -> String {
    if let Some(own) = rule.action.at(point) {
        return format!("{} (the rule's own)", own.name());
    }
    let action = policy.actions.at(point).name();
    let is_promoted = |it: &Promotion| point == Point::Admission && rule.during.spans(it.at);
    match policy.promote.filter(is_promoted) {
        Some(promotion) => format!("{action}, from {} on {}", promotion.at, promotion.to.name()),
        None => action.to_owned(),
    }
}

const fn existing(policy: &Policy) -> &'static str {
    if policy.enforces_existing {
        "an update is judged like a new object"
    } else {
        "what a stored object violates already only warns when it is updated"
    }
}

fn exemptions(policy: &Policy, rule: &Rule) -> String {
    match &policy.exemptions {
        Some(terms) if rule.exemptable => {
            let names: Vec<&str> = terms.namespaces.iter().map(String::as_str).collect();
            format!("from {}, for at most {}", names.join(" or "), duration(terms.max_age))
        }
        _ => "none".to_owned(),
    }
}

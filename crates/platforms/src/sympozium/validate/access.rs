//! Validates the access rules of shared memory.

use memgate_model::finding::Finding;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::ACCESSES;
use super::super::api::ensemble::Ensemble;
use super::super::api::shared_memory::{AccessRule, SharedMemory};
use super::super::codes::{
    ACCESS_CONFIG_CONFLICT, ACCESS_CONFIG_REQUIRED, ACCESS_CONFIG_UNKNOWN, ACCESS_DUPLICATE,
    ACCESS_UNCOVERED, ACCESS_UNSUPPORTED,
};
use super::Report;

/// The pointer to the list of rules.
pub(super) fn pointer() -> Pointer {
    Pointer::new("/spec/sharedMemory/accessRules")
}

/// The pointer to one of them.
fn place(rule: &AccessRule<'_>) -> Pointer {
    pointer().index(rule.index)
}

pub(super) fn findings(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    for rule in &shared.rules {
        let access = || place(rule).key("access");
        findings.extend(report.unsupported(&ACCESS_UNSUPPORTED, access, rule.access, &ACCESSES));
        match rule.config() {
            None => findings.extend(without_config(rule, report)),
            Some(name) if report.wants_warnings() => {
                findings.extend(conflicting_names(rule, report));
                findings.extend(unknown_config(ensemble, rule, name, report));
                findings.extend(duplicate(shared, rule, name, report));
            }
            Some(_) => {}
        }
    }
    // If all rules are read-only, they are exceptions, and the other configs are meant to write.
    if report.wants_warnings() && shared.rules.iter().any(|rule| rule.access() == ACCESSES[0]) {
        for name in ensemble.named_configs().filter(|name| shared.rule(name).is_none()) {
            findings.extend(report.warn_of(&ACCESS_UNCOVERED, pointer, [name], |[name]| {
                format!("no rule for {}: it gets read-write", quoted(name))
            }));
        }
    }
}

/// Reports a rule without a config. The schema requires a name; upstream never applies a rule with an empty
/// name.
fn without_config(rule: &AccessRule<'_>, report: Report<'_>) -> Option<Finding> {
    let message = |here: &Pointer| format!("{}: Required value", here.key("agentConfig").field());
    if rule.is_named {
        report.warn_whole(&ACCESS_CONFIG_REQUIRED, || place(rule), message)
    } else {
        report.deny_whole(&ACCESS_CONFIG_REQUIRED, || place(rule), message)
    }
}

fn conflicting_names(rule: &AccessRule<'_>, report: Report<'_>) -> Option<Finding> {
    let (today, old) = (rule.agent_config?, rule.persona?);
    if today == old || today.is_empty() || old.is_empty() {
        return None;
    }
    let finding = report.warn_of(
        &ACCESS_CONFIG_CONFLICT,
        || place(rule),
        [today, old],
        |[today, old]| format!("agentConfig {} and persona {} differ", quoted(today), quoted(old)),
    )?;
    Some(finding.help("agentConfig wins"))
}

fn unknown_config(
    ensemble: &Ensemble<'_>,
    rule: &AccessRule<'_>,
    name: &str,
    report: Report<'_>,
) -> Option<Finding> {
    if ensemble.has_config(name) {
        return None;
    }
    let today = rule.agent_config.is_some_and(|name| !name.is_empty());
    let at = || place(rule).key(if today { "agentConfig" } else { "persona" });
    let finding = report.not_found(&ACCESS_CONFIG_UNKNOWN, at, name, ensemble)?;
    Some(finding.help("a config without a rule of its own gets read-write"))
}

fn duplicate(
    shared: &SharedMemory<'_>,
    rule: &AccessRule<'_>,
    name: &str,
    report: Report<'_>,
) -> Option<Finding> {
    let first = shared.rule(name).filter(|first| first.index != rule.index)?;
    let finding = report.duplicate_value(&ACCESS_DUPLICATE, || place(rule), name)?;
    Some(finding.help("the first rule wins").related(place(first), "the rule that counts"))
}

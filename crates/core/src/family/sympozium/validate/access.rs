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

pub(super) fn findings(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    let list = pointer();
    for rule in &shared.rules {
        let here = || list.index(rule.index);
        let access = || here().key("access");
        findings.extend(report.unsupported(&ACCESS_UNSUPPORTED, access, rule.access, &ACCESSES));
        match rule.config() {
            None => findings.extend(without_config(rule, here, report)),
            Some(name) if report.wants_warnings() => {
                findings.extend(conflicting_names(rule, here, report));
                findings.extend(unknown_config(ensemble, rule, name, here, report));
                findings.extend(duplicate(shared, rule, name, here, report));
            }
            Some(_) => {}
        }
    }
    if report.wants_warnings() {
        uncovered(ensemble, shared, report, findings);
    }
}

/// Reports a rule without a config. The schema requires a name; upstream never applies a rule with an empty
/// name.
fn without_config(
    rule: &AccessRule<'_>,
    here: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    let message = |here: &Pointer| format!("{}: Required value", here.key("agentConfig").field());
    if rule.is_named {
        report.warn_whole(&ACCESS_CONFIG_REQUIRED, here, message)
    } else {
        report.deny_whole(&ACCESS_CONFIG_REQUIRED, here, message)
    }
}

fn conflicting_names(
    rule: &AccessRule<'_>,
    here: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    let (today, old) = (rule.agent_config?, rule.persona?);
    if today == old || today.is_empty() || old.is_empty() {
        return None;
    }
    let finding = report.warn_of(&ACCESS_CONFIG_CONFLICT, here, [today, old], |[today, old]| {
        format!("agentConfig {} and persona {} differ", quoted(today), quoted(old))
    })?;
    Some(finding.help("agentConfig wins"))
}

fn unknown_config(
    ensemble: &Ensemble<'_>,
    rule: &AccessRule<'_>,
    name: &str,
    here: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    if ensemble.has_config(name) {
        return None;
    }
    let today = rule.agent_config.is_some_and(|name| !name.is_empty());
    let at = || here().key(if today { "agentConfig" } else { "persona" });
    let finding = report.not_found(&ACCESS_CONFIG_UNKNOWN, at, name, ensemble)?;
    Some(finding.help("a config without a rule of its own gets read-write"))
}

fn duplicate(
    shared: &SharedMemory<'_>,
    rule: &AccessRule<'_>,
    name: &str,
    here: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    let first = shared.rule(name).filter(|first| first.index != rule.index)?;
    let finding = report.duplicate_value(&ACCESS_DUPLICATE, here, name)?;
    let first = pointer().index(first.index);
    Some(finding.help("the first rule wins").related(first, "the rule that counts"))
}

/// Warns about configs without a rule, unless all rules are read-only: then the rules are exceptions, and
/// the other configs are meant to write.
fn uncovered(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    if !shared.rules.iter().any(|rule| rule.access() == ACCESSES[0]) {
        return;
    }
    for name in ensemble.named_configs().filter(|name| shared.rule(name).is_none()) {
        findings.extend(report.warn_of(&ACCESS_UNCOVERED, pointer, [name], |[name]| {
            format!("no rule for {}: it gets read-write", quoted(name))
        }));
    }
}

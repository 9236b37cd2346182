//! Validates the access rules of shared memory.

use std::collections::BTreeSet;

use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;

use super::super::api::ACCESSES;
use super::super::api::ensemble::{AccessRule, Ensemble, SharedMemory};
use super::super::codes::{
    ACCESS_CONFIG_CONFLICT, ACCESS_CONFIG_REQUIRED, ACCESS_CONFIG_UNKNOWN, ACCESS_DUPLICATE,
    ACCESS_UNCOVERED, ACCESS_UNSUPPORTED,
};
use super::{duplicate_value, not_found, unsupported, warn_of};

/// The pointer to the list of rules.
pub(super) fn pointer() -> Pointer {
    Pointer::new("/spec/sharedMemory/accessRules")
}

pub(super) fn findings(ensemble: &Ensemble<'_>, shared: &SharedMemory<'_>) -> Vec<Finding> {
    let list = pointer();
    let mut findings = Vec::new();
    for rule in &shared.rules {
        let here = list.index(rule.index);
        findings.extend(unsupported(&ACCESS_UNSUPPORTED, &here.key("access"), rule.access, &ACCESSES));
        match rule.config() {
            None => findings.push(without_config(rule, &here)),
            Some(name) => {
                findings.extend(conflicting_names(rule, &here));
                findings.extend(unknown_config(ensemble, rule, name, &here));
                findings.extend(duplicate(shared, rule, name, &here));
            }
        }
    }
    findings.extend(uncovered(ensemble, shared));
    findings
}

/// The schema asks for a name; upstream never applies a rule with an empty one.
fn without_config(rule: &AccessRule<'_>, here: &Pointer) -> Finding {
    let message = format!("{}: Required value", here.key("agentConfig").field());
    let finding = if rule.is_named { Finding::warn } else { Finding::deny };
    finding(&ACCESS_CONFIG_REQUIRED, here.clone(), message)
}

fn conflicting_names(rule: &AccessRule<'_>, here: &Pointer) -> Option<Finding> {
    let (today, old) = (rule.agent_config?, rule.persona?);
    let differ = today != old && !today.is_empty() && !old.is_empty();
    let finding = || {
        warn_of(&ACCESS_CONFIG_CONFLICT, here, [today, old], |[today, old]| {
            format!("agentConfig {} and persona {} differ", quoted(today), quoted(old))
        })
    };
    differ.then(|| finding().help("agentConfig wins"))
}

fn unknown_config(
    ensemble: &Ensemble<'_>,
    rule: &AccessRule<'_>,
    name: &str,
    here: &Pointer,
) -> Option<Finding> {
    if ensemble.has_config(name) {
        return None;
    }
    let today = rule.agent_config.is_some_and(|name| !name.is_empty());
    let at = here.key(if today { "agentConfig" } else { "persona" });
    Some(
        not_found(&ACCESS_CONFIG_UNKNOWN, &at, name)
            .help("a config without a rule of its own gets read-write"),
    )
}

fn duplicate(
    shared: &SharedMemory<'_>,
    rule: &AccessRule<'_>,
    name: &str,
    here: &Pointer,
) -> Option<Finding> {
    let first = shared.rule(name).filter(|first| first.index != rule.index)?;
    let finding = duplicate_value(&ACCESS_DUPLICATE, here, name);
    Some(finding.help("the first rule wins").related(pointer().index(first.index), "the rule that counts"))
}

/// Where all rules are read-only they are exceptions, and those without one are meant to write.
fn uncovered(ensemble: &Ensemble<'_>, shared: &SharedMemory<'_>) -> Vec<Finding> {
    if !shared.rules.iter().any(|rule| rule.access() == ACCESSES[0]) {
        return Vec::new();
    }
    let names = ensemble.configs.iter().filter_map(|config| config.name.filter(|name| !name.is_empty()));
    let mut seen = BTreeSet::new();
    let uncovered = names.filter(|name| shared.rule(name).is_none() && seen.insert(*name));
    let finding = |name: &str| {
        warn_of(&ACCESS_UNCOVERED, &pointer(), [name], |[name]| {
            format!("no rule for {}: it gets read-write", quoted(name))
        })
    };
    uncovered.map(finding).collect()
}

//! Validates an Ensemble: its shared memory as a whole, and the effects of a change. Of its
//! parts, the access rules of shared memory are here; the others have their own modules.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::message::{fit_names, truncate};
use crate::prelude::*;
use crate::references;
use crate::sympozium::FAMILY;
use crate::sympozium::api::ensemble::{Ensemble, shares_memory};
use crate::sympozium::api::shared_memory::{AccessRule, SharedMemory};
use crate::sympozium::api::{ACCESSES, ENSEMBLE_OLD, is_true, shared_server};
use crate::sympozium::codes::{
    ACCESS_CONFIG_CONFLICT, ACCESS_CONFIG_REQUIRED, ACCESS_CONFIG_UNKNOWN, ACCESS_DUPLICATE,
    ACCESS_UNCOVERED, EXCLUDE_DATA_LOSS, LEGACY_PERSONAS, MEMBRANE_WITHOUT_MEMORY, RELATIONSHIP_UNKNOWN,
    SHARED_MEMORY_DATA_LOSS, STORAGE_SIZE_CHANGED, STORAGE_SIZE_INVALID,
};
use crate::sympozium::lookup::AGENTS;
use memgate_model::finding::excerpt;
use memgate_primitives::quantity::billionths;

use super::{Report, about_agents, membrane, names, pods};

const SHARED: &str = "/spec/sharedMemory";

pub(super) fn findings(
    subject: &Subject<'_>,
    report: Report<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let ensemble = Ensemble::read(subject.object);
    let before = subject.old.map(|old| (old, Ensemble::read(old)));
    let mut findings = Vec::new();
    names::config_findings(&ensemble, subject, report, &mut findings);
    names::ensemble(&ensemble, before.as_ref().map(|(_, before)| before), subject, report, &mut findings);
    findings.extend(old_names(&ensemble, subject));
    if report.wants_warnings() {
        relationships(&ensemble, report, &mut findings);
        findings.extend(pods::volume_warnings(subject.object, report));
    }
    if let Some(shared) = &ensemble.shared {
        if shared.enabled {
            let (server, at) = (shared_server(subject.name), Pointer::new(SHARED).key("enabled"));
            findings.extend(pods::without_key(&server, subject.namespace, at, state));
        }
        findings.extend(storage_size(shared, report));
        findings.extend(without_memory(shared, report));
        access_findings(&ensemble, shared, report, &mut findings);
        if let Some(membrane) = &shared.membrane {
            membrane::findings(&ensemble, shared, membrane, report, &mut findings);
            findings.extend(membrane::limit_findings(membrane, report));
        }
    }
    if let Some((old, before)) = &before {
        let changes = changes(&ensemble, before, subject, old, report);
        findings.extend(changes.into_iter().map(Finding::when_allowed));
    }
    findings
}

/// Warns about the memory that is deleted with an Ensemble, and names the Agents that use it.
pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if !shares_memory(subject.object) {
        return Vec::new();
    }
    let at = Pointer::new(SHARED).key("enabled");
    let with_users = about_agents(users(subject, state), |users, limit| {
        format!("{} of {users}", data_loss_message(&truncate(subject.name, limit)))
    });
    let finding = data_loss(subject.name, at);
    vec![match with_users {
        Some(message) => finding.with_message(message),
        None => finding,
    }]
}

/// The Agents that share the memory.
fn users<'s>(subject: &Subject<'_>, state: &mut StateReader<'s>) -> Vec<Cow<'s, str>> {
    let users =
        references::users(&FAMILY, (subject.kind, subject.namespace, subject.name), state).into_iter();
    let members = users.filter(|user| AGENTS.contains(&user.kind));
    members.map(|agent| Cow::Borrowed(&*agent.name)).collect()
}

fn data_loss(name: &str, at: Pointer) -> Finding {
    Finding::warn(&SHARED_MEMORY_DATA_LOSS, at, fit_names([name], |[name]| data_loss_message(name)))
}

fn data_loss_message(name: &str) -> String {
    format!("PVC {name}-shared-memory-db will be deleted with all shared memories")
}

/// Warns about old field names, once: users who rename one field rename them all.
fn old_names(ensemble: &Ensemble<'_>, subject: &Subject<'_>) -> Option<Finding> {
    if *subject.kind == ENSEMBLE_OLD {
        return None;
    }
    if subject.object.at(&["spec", "personas"]).is_some() {
        let both = ensemble.configs_field != "personas";
        let text = if both { "; agentConfigs is there too and wins" } else { "" };
        let message = format!("spec.personas is the old name of spec.agentConfigs{text}");
        return Some(Finding::warn(&LEGACY_PERSONAS, Pointer::new("/spec/personas"), message).at_key());
    }
    let rules = ensemble.shared.as_ref().map(|shared| shared.rules.iter());
    let rule = rules.into_iter().flatten().find(|rule| rule.persona.is_some())?;
    let at = pointer().index(rule.index).key("persona");
    let message = format!("{} is the old name of agentConfig", at.field());
    Some(Finding::warn(&LEGACY_PERSONAS, at, message).at_key())
}

/// Reports relationships with unknown configs. Upstream does not create any Agents of such an Ensemble.
fn relationships(ensemble: &Ensemble<'_>, report: Report<'_>, findings: &mut Vec<Finding>) {
    let list = Pointer::new("/spec/relationships");
    for edge in &ensemble.relationships {
        let stimulus = edge.kind == Some("stimulus");
        let source_known =
            |name: &str| if stimulus { ensemble.stimulus == Some(name) } else { ensemble.has_config(name) };
        let ends = [
            ("source", edge.source.filter(|name| !source_known(name))),
            ("target", edge.target.filter(|name| !ensemble.has_config(name))),
        ];
        for (field, name) in ends {
            let Some(name) = name else { continue };
            let at = || list.index(edge.index).key(field);
            findings.extend(if stimulus && field == "source" {
                let text = |[name]: [&str; 1]| format!("spec.stimulus is not named {}", quoted(name));
                report.warn_of(&RELATIONSHIP_UNKNOWN, at, [name], text)
            } else {
                report.not_found(&RELATIONSHIP_UNKNOWN, at, name, ensemble)
            });
        }
    }
}

/// Reports an invalid storage size. The size is read only while the shared memory is on: upstream parses it
/// with a call that panics.
fn storage_size(shared: &SharedMemory<'_>, report: Report<'_>) -> Option<Finding> {
    let size = shared.storage_size;
    if size.is_empty() || billionths(size).is_some_and(|size| size > 0) {
        return None;
    }
    let at = || Pointer::new(SHARED).key("storageSize");
    let text = |size: &str| {
        format!("Invalid value: {}: must be a quantity greater than 0, e.g. \"1Gi\"", quoted_text(size))
    };
    let shown = excerpt(size);
    let finding = if shared.enabled {
        report.deny(&STORAGE_SIZE_INVALID, at, move || text(&shown))
    } else {
        report.warn_of(&STORAGE_SIZE_INVALID, at, [size], move |[size]| text(size))
    };
    Some(finding?.fingerprint_value(size))
}

fn without_memory(shared: &SharedMemory<'_>, report: Report<'_>) -> Option<Finding> {
    if shared.enabled {
        return None;
    }
    let set = match (&shared.membrane, shared.rules.is_empty()) {
        (Some(_), true) => "membrane has",
        (Some(_), false) => "membrane and accessRules have",
        (None, false) => "accessRules have",
        (None, true) => return None,
    };
    let text = move || format!("{set} no effect while enabled is false");
    report.warn(&MEMBRANE_WITHOUT_MEMORY, || Pointer::new(SHARED), text)
}

fn changes(
    ensemble: &Ensemble<'_>,
    before: &Ensemble<'_>,
    subject: &Subject<'_>,
    old: &Tree,
    report: Report<'_>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = memory_lost(ensemble, before, subject, old).into_iter().collect();
    findings.extend(resized(ensemble, before, report));
    let is_new = |name: &&&str| !before.excluded.contains(**name) && ensemble.has_config(name);
    let own: Arc<str> = excerpt(subject.name).into();
    for name in ensemble.excluded.iter().collect::<BTreeSet<_>>().into_iter().filter(is_new) {
        let at = || Pointer::new("/spec/excludePersonas");
        let (own, name) = (Arc::clone(&own), excerpt(name));
        findings.extend(report.warn_whole(&EXCLUDE_DATA_LOSS, at, move |at| {
            let agent = names::agent_of(&own, &name);
            fit_names([&agent], |[agent]| {
                let shown = quoted(agent);
                format!("{}: Agent {shown} and PVC {agent}-memory-db will be deleted", at.field())
            })
        }));
    }
    findings
}

fn memory_lost(
    ensemble: &Ensemble<'_>,
    before: &Ensemble<'_>,
    subject: &Subject<'_>,
    old: &Tree,
) -> Option<Finding> {
    if !before.shares_memory() {
        return None;
    }
    let enabled = ["spec", "enabled"];
    let at = if !ensemble.shares_memory() {
        Pointer::new(SHARED).key("enabled")
    } else if is_true(old, &enabled) && !is_true(subject.object, &enabled) {
        Pointer::new("/spec/enabled")
    } else {
        return None;
    };
    Some(data_loss(subject.name, at))
}

/// Warns about a changed storage size. The volume is created once and never resized.
fn resized(ensemble: &Ensemble<'_>, before: &Ensemble<'_>, report: Report<'_>) -> Option<Finding> {
    let (new, old) = (ensemble.shared.as_ref()?, before.shared.as_ref()?);
    let (new_size, old_size) = (effective_size(new)?, effective_size(old)?);
    if !new.enabled || !old.enabled || new_size == old_size {
        return None;
    }
    let at = || Pointer::new(SHARED).key("storageSize");
    report.warn(&STORAGE_SIZE_CHANGED, at, || "the PVC is create-only; it is not resized")
}

fn effective_size(shared: &SharedMemory<'_>) -> Option<i128> {
    let size = shared.storage_size;
    billionths(if size.is_empty() { crate::sympozium::api::STORAGE_SIZE_DEFAULT } else { size })
}

/// The pointer to the list of rules.
pub(super) fn pointer() -> Pointer {
    Pointer::new("/spec/sharedMemory/accessRules")
}

/// The pointer to one of them.
fn place(rule: &AccessRule<'_>) -> Pointer {
    pointer().index(rule.index)
}

pub(super) fn access_findings(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    for rule in &shared.rules {
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

//! Validates an Ensemble: its shared memory as a whole, and the effects of a change. Of its
//! parts, the access rules of shared memory are here; the others have their own modules.

use crate::message::truncate;
use crate::references;
use crate::sympozium::FAMILY;
use crate::sympozium::api::ensemble;
use crate::sympozium::lookup::AGENTS;
use crate::sympozium::prelude::*;
use crate::sympozium::report::{DUPLICATE_RULE, Report, UNKNOWN, whole};
use memgate_model::finding::Severity::{Deny, Warn};
use memgate_primitives::pointer::Path::{self, Index, Key, Known};
use memgate_primitives::quantity::billionths;

use super::{about_agents, membrane, names, pods};

const SHARED: Path<'_> = Known("/spec/sharedMemory");
const ENABLED: Path<'_> = Key(&SHARED, "enabled");
const STORAGE_SIZE: Path<'_> = Key(&SHARED, "storageSize");
const RULES: Path<'_> = Key(&SHARED, "accessRules");

const DATA_LOSS: &str = "PVC {name}-shared-memory-db will be deleted with all shared memories";

pub(super) fn findings(subject: &Subject<'_>, out: &mut Report<'_>, state: &mut StateReader<'_>) {
    let ensemble = Ensemble::read(subject.object);
    let before = subject.old.map(|old| (old, Ensemble::read(old)));
    names::configs(&ensemble, subject, out);
    names::ensemble(&ensemble, before.as_ref().map(|(_, before)| before), subject, out);
    out.extend(old_names(&ensemble, subject));
    relationships(&ensemble, out);
    pods::volumes(subject.object, out);
    if let Some(shared) = &ensemble.shared {
        if shared.enabled {
            let server = shared_server(subject.name);
            out.extend(pods::without_key(&server, subject.namespace, ENABLED, state));
        }
        storage_size(shared, out);
        without_memory(shared, out);
        access(&ensemble, shared, out);
        if let Some(membrane) = &shared.membrane {
            membrane::findings(&ensemble, shared, membrane, out);
        }
    }
    if let Some((old, before)) = &before {
        let known = out.findings.len();
        changes(&ensemble, before, subject, old, out);
        out.when_allowed(known);
    }
}

/// Warns about the memory that is deleted with an Ensemble, and names the Agents that use it.
pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    shares_memory(subject.object).then(|| {
        let with_users = about_agents(users(subject, state), |users, limit| {
            let loss = DATA_LOSS.replace("{name}", &truncate(subject.name, limit));
            format!("{loss} of {users}")
        });
        let message = with_users.unwrap_or_else(|| filled(DATA_LOSS, [subject.name]));
        Finding::warn(&SHARED_MEMORY_DATA_LOSS, ENABLED.pointer(), message)
    })
}

/// The Agents that share the memory.
fn users<'s>(subject: &Subject<'_>, state: &mut StateReader<'s>) -> Vec<Cow<'s, str>> {
    let users = references::users(&FAMILY, (subject.kind, subject.namespace, subject.name), state);
    let members = users.filter(|user| AGENTS.contains(&user.kind));
    members.map(|agent| Cow::Borrowed(&*agent.name)).collect()
}

/// Warns about old field names, once: users who rename one field rename them all.
fn old_names(ensemble: &Ensemble<'_>, subject: &Subject<'_>) -> Option<Finding> {
    if *subject.kind == ENSEMBLE_OLD {
        return None;
    }
    let (at, template) = if subject.object.at(&["spec", "personas"]).is_some() {
        let both = "spec.personas is the old name of spec.agentConfigs; agentConfigs is there too and wins";
        let is_used = ensemble.configs_field == "personas";
        let template = if is_used { "spec.personas is the old name of spec.agentConfigs" } else { both };
        (Pointer::new("/spec/personas"), template)
    } else {
        let mut rules = ensemble.shared.iter().flat_map(|shared| shared.rules.iter());
        let rule = rules.find(|rule| rule.tree.text_at(&["persona"]).is_some())?;
        (Key(&Index(&RULES, rule.index), "persona").pointer(), "{bare} is the old name of agentConfig")
    };
    Some(warning(&LEGACY_PERSONAS, at.clone(), template, [&at.field()]).at_key())
}

/// Reports relationships with unknown configs. Upstream does not create any Agents of such an Ensemble.
fn relationships(ensemble: &Ensemble<'_>, out: &mut Report<'_>) {
    for edge in &ensemble.relationships {
        let here = Index(&Known("/spec/relationships"), edge.index);
        let is_stimulus = edge.kind == Some("stimulus");
        let source = edge.source.unwrap_or_default();
        if is_stimulus && edge.source.is_some() && ensemble.stimulus != edge.source {
            out.warn(&RELATIONSHIP_UNKNOWN, Key(&here, "source"), "spec.stimulus is not named {}", &[source]);
        }
        let ends = [("source", edge.source.filter(|_| !is_stimulus)), ("target", edge.target)];
        for (field, name) in ends {
            if let Some(name) = name {
                out.not_found(&RELATIONSHIP_UNKNOWN, Key(&here, field), (UNKNOWN, name), ensemble);
            }
        }
    }
}

/// Reports an invalid storage size. The size is read only while the shared memory is on: with an invalid one, upstream
/// makes nothing of the Ensemble.
fn storage_size(shared: &SharedMemory<'_>, out: &mut Report<'_>) {
    let size = shared.storage_size;
    if !size.is_empty() && billionths(size).is_none_or(|size| size <= 0) {
        let text = "Invalid value: {text}: must be a quantity greater than 0, e.g. \"1Gi\"";
        let severity = if shared.enabled { Deny } else { Warn };
        out.add(severity, &STORAGE_SIZE_INVALID, STORAGE_SIZE, text, &[size]);
    }
}

fn without_memory(shared: &SharedMemory<'_>, out: &mut Report<'_>) {
    let set = match (&shared.membrane, shared.rules.is_empty()) {
        _ if shared.enabled => return,
        (Some(_), true) => "membrane has no effect while enabled is false",
        (Some(_), false) => "membrane and accessRules have no effect while enabled is false",
        (None, false) => "accessRules have no effect while enabled is false",
        (None, true) => return,
    };
    out.warn(&MEMBRANE_WITHOUT_MEMORY, SHARED, set, &[]);
}

fn changes(
    ensemble: &Ensemble<'_>,
    before: &Ensemble<'_>,
    subject: &Subject<'_>,
    old: &Tree,
    out: &mut Report<'_>,
) {
    let is_on = |object| is_true(object, &["spec", "enabled"]);
    let lost = match (before.shares_memory(), ensemble.shares_memory()) {
        (true, false) => Some(ENABLED),
        (true, true) => Some(Known("/spec/enabled")).filter(|_| is_on(old) && !is_on(subject.object)),
        (false, _) => None,
    };
    if let Some(at) = lost {
        out.extend([warning(&SHARED_MEMORY_DATA_LOSS, at.pointer(), DATA_LOSS, [subject.name])]);
    }
    resized(ensemble, before, out);
    let is_new = |name: &&&str| !before.excluded.contains(**name) && ensemble.has_config(name);
    for name in ensemble.excluded.iter().collect::<BTreeSet<_>>().into_iter().filter(is_new) {
        let agent = names::agent_of(subject.name, name);
        let text = "Agent {} and PVC {name}-memory-db will be deleted";
        out.warn(&EXCLUDE_DATA_LOSS, Known("/spec/excludePersonas"), text, &[&*agent, &agent]);
    }
}

/// Warns about a changed storage size. The volume is created once and never resized.
fn resized(ensemble: &Ensemble<'_>, before: &Ensemble<'_>, out: &mut Report<'_>) {
    let size = |ensemble: &Ensemble<'_>| {
        let size = ensemble.shared.as_ref().filter(|shared| shared.enabled)?.storage_size;
        billionths(if size.is_empty() { STORAGE_SIZE_DEFAULT } else { size })
    };
    if size(ensemble).zip(size(before)).is_some_and(|(new, old)| new != old) {
        out.warn(&STORAGE_SIZE_CHANGED, STORAGE_SIZE, "the PVC is create-only; it is not resized", &[]);
    }
}

fn access(ensemble: &Ensemble<'_>, shared: &SharedMemory<'_>, out: &mut Report<'_>) {
    for rule in shared.rules.iter() {
        let here = Index(&RULES, rule.index);
        let [today, old] = ["agentConfig", "persona"].map(|field| rule.tree.get(field));
        let Some(name) = rule.name else {
            // The schema requires a name; upstream never applies a rule with an empty name.
            let severity = if today.or(old).is_some() { Warn } else { Deny };
            let text = whole("{field}.agentConfig: Required value");
            out.add(severity, &ACCESS_CONFIG_REQUIRED, here, text, &[]);
            continue;
        };
        let [today, old] = [today, old].map(|it| it.and_then(Tree::text).filter(|it| !it.is_empty()));
        if let Some((today, old)) = today.zip(old).filter(|(today, old)| today != old) {
            let text = ("agentConfig {} and persona {} differ", "agentConfig wins");
            out.warn(&ACCESS_CONFIG_CONFLICT, here, text, &[today, old]);
        }
        let at = Key(&here, if today.is_some() { "agentConfig" } else { "persona" });
        let text = UNKNOWN.help("a config without a rule of its own gets read-write");
        out.not_found(&ACCESS_CONFIG_UNKNOWN, at, (text, name), ensemble);
        if let Some(first) = shared.rules.before(rule) {
            let first = (Index(&RULES, first.index), "the rule that counts");
            out.duplicate(&ACCESS_DUPLICATE, here, (DUPLICATE_RULE, name), first);
        }
    }
    // If all rules are read-only, they are exceptions, and the other configs are meant to write.
    if shared.rules.iter().any(|rule| ensemble::access(rule) == ACCESSES[0]) {
        for name in ensemble.named_configs().filter(|name| shared.rules.first(name).is_none()) {
            out.warn(&ACCESS_UNCOVERED, RULES, "no rule for {}: it gets read-write", &[name]);
        }
    }
}

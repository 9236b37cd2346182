//! Validates the list of configs of an Ensemble, and names that become parts of Service names.

use std::sync::Arc;

use crate::message::fit_names;
use crate::prelude::*;
use crate::sympozium::api::agent::has_memory;
use crate::sympozium::api::ensemble::{AgentConfig, Ensemble};
use crate::sympozium::api::{ENSEMBLE, MAX_AGENT_NAME_BYTES, MAX_ENSEMBLE_NAME_BYTES};
use crate::sympozium::codes::{
    AGENT_NAME_TOO_LONG, CONFIG_NAME_DUPLICATE, CONFIG_NAME_REQUIRED, CRD_REQUIRED, MAX_SIZE,
    NAME_NOT_SERVICE, NAME_TOO_LONG, SEEDS_DISABLED, SEEDS_EMPTY, SKILLS_OBJECT_FORM,
};
use memgate_model::finding::excerpt;
use memgate_model::request::Operation;

use super::{Report, pods};

const NOT_SERVICE_MESSAGE: &str = "is not allowed in the name of the Service that is made from it";

fn own_name() -> Pointer {
    Pointer::new("/metadata/name")
}

/// Findings about the name of an Agent that needs a Service.
pub(super) fn agent(subject: &Subject<'_>, report: Report<'_>) -> Vec<Finding> {
    let name = subject.name;
    if name.is_empty() || !has_memory(subject.object) {
        return Vec::new();
    }
    let too_long = too_long(subject, MAX_AGENT_NAME_BYTES, "-memory", report);
    let shown = excerpt(name);
    let not_service = not_service(move || shown.to_string(), is_dns_label(name), own_name, report);
    too_long.into_iter().chain(not_service).collect()
}

/// Findings about the name of an Ensemble and the names of its Agents; `before` is the stored Ensemble.
pub(super) fn ensemble(
    ensemble: &Ensemble<'_>,
    before: Option<&Ensemble<'_>>,
    subject: &Subject<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    let own = subject.name;
    if own.is_empty() {
        return;
    }
    if ensemble.shares_memory() {
        findings.extend(too_long(subject, MAX_ENSEMBLE_NAME_BYTES, "-shared-memory", report));
    }
    let is_label = is_dns_label(own);
    let shown_own: Arc<str> = excerpt(own).into();
    if ensemble.shares_memory() || !ensemble.configs.is_empty() {
        let name = Arc::clone(&shown_own);
        findings.extend(not_service(move || name.to_string(), is_label, own_name, report));
    }
    for config in &ensemble.configs {
        let Some(name) = config.name.filter(|name| !name.is_empty()) else { continue };
        // Faults of the Ensemble's own name are reported once, at that name.
        let is_service = can_end_dns_label(name);
        let is_too_long = own.len() + 1 + name.len() > MAX_AGENT_NAME_BYTES;
        if is_service && !is_too_long || ensemble.excluded.contains(name) {
            continue;
        }
        let at = || ensemble.configs_pointer().index(config.index).key("name");
        if is_too_long {
            let is_new = before.is_none_or(|before| !before.has_config(name));
            findings.extend(agent_name_too_long(&shown_own, name, is_new, at, report));
        }
        let (ensemble_name, name) =
            (if is_label { Arc::clone(&shown_own) } else { "a".into() }, excerpt(name));
        findings.extend(not_service(move || agent_of(&ensemble_name, &name), is_service, at, report));
    }
}

/// Reports a name that is too long. A stored object only warns, since its name cannot change.
fn too_long(subject: &Subject<'_>, max_bytes: usize, suffix: &str, report: Report<'_>) -> Option<Finding> {
    if subject.name.len() <= max_bytes {
        return None;
    }
    let suffix: Box<str> = suffix.into();
    let text = move || {
        format!(
            "Too long: may not be more than {max_bytes} characters, or its Service \"…{suffix}\" has over 63"
        )
    };
    let finding = if subject.operation == Operation::Create {
        report.deny(&NAME_TOO_LONG, own_name, text)
    } else {
        report.warn(&NAME_TOO_LONG, own_name, text)
    };
    Some(finding?.fingerprint_value(subject.name))
}

/// The name of the Agent that is made from a config. Of an Ensemble's name that is too long for any object, only
/// the start is used.
pub(super) fn agent_of(ensemble: &str, config: &str) -> String {
    const MAX_BYTES: usize = 8 << 10;
    let start = ensemble.get(..ensemble.floor_char_boundary(MAX_BYTES)).unwrap_or(ensemble);
    format!("{start}-{config}")
}

/// Reports an Agent name that is too long. A config of the stored Ensemble only warns, since its Agent already
/// exists.
fn agent_name_too_long(
    own: &Arc<str>,
    name: &str,
    is_new: bool,
    at: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    let text = |agent: &str| {
        format!("Too long: {} may not be more than {MAX_AGENT_NAME_BYTES} characters", quoted(agent))
    };
    let (own, config) = (Arc::clone(own), excerpt(name));
    let finding = if is_new {
        report.deny(&AGENT_NAME_TOO_LONG, at, move || text(&agent_of(&own, &config)))
    } else {
        report.warn_whole(&AGENT_NAME_TOO_LONG, at, move |at| {
            let field = at.field();
            fit_names([&agent_of(&own, &config)], |[agent]| format!("{field}: {}", text(agent)))
        })
    };
    Some(finding?.fingerprint_value(name))
}

fn not_service(
    name: impl Fn() -> String + Send + Sync + 'static,
    is_service: bool,
    at: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    if is_service {
        return None;
    }
    let finding = report.warn_whole(&NAME_NOT_SERVICE, at, move |at| {
        let field = at.field();
        fit_names([&name()], |[name]| format!("{field}: {} {NOT_SERVICE_MESSAGE}", quoted(name)))
    })?;
    Some(finding.help("use a-z, 0-9 and '-', and start with a letter"))
}

/// Whether a name is a DNS-1035 label, except for its length.
/// Source: Kubernetes documentation, Object Names and IDs, RFC 1035 Label Names.
fn is_dns_label(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_lowercase) && can_end_dns_label(name)
}

/// Whether a DNS-1035 label, a dash and this name make a DNS-1035 label, except for its length.
fn can_end_dns_label(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.last().is_some_and(alphanumeric) && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

pub(super) fn config_findings(
    ensemble: &Ensemble<'_>,
    subject: &Subject<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    let list = ensemble.configs_pointer();
    let is_old_field = ensemble.configs_field == "personas" && *subject.kind == ENSEMBLE;
    duplicates(ensemble, report, findings);
    for config in &ensemble.configs {
        let here = || list.index(config.index);
        if config.name.is_none_or(str::is_empty) {
            let at = || here().key("name");
            findings.extend(report.deny(&CONFIG_NAME_REQUIRED, at, || "Required value"));
        }
        // Of the newer kind, whose definition does not have the old field.
        if is_old_field && config.tree.get("systemPrompt").is_none() {
            let at = || here().key("systemPrompt");
            findings.extend(report.deny(&CRD_REQUIRED, at, || "Required value"));
        }
        findings.extend(skills(config, || here().key("skills"), report));
        findings.extend(memory(config, || here().key("memory"), report));
        findings.extend(pods::in_env(config.tree.get("env"), || here().key("env"), report));
    }
}

/// Reports entries with the same name. They make one Agent; if they differ, they overwrite each other
/// forever.
fn duplicates(ensemble: &Ensemble<'_>, report: Report<'_>, findings: &mut Vec<Finding>) {
    let list = ensemble.configs_pointer();
    for config in &ensemble.configs {
        let Some(name) = config.name.filter(|name| !name.is_empty()) else { continue };
        let Some(first) = ensemble.config(name).filter(|first| first.index != config.index) else { continue };
        let at = || list.index(config.index).key("name");
        let finding = if config.is_same(first) {
            report.duplicate_value(&CONFIG_NAME_DUPLICATE, at, name)
        } else {
            let name = excerpt(name);
            report.deny(&CONFIG_NAME_DUPLICATE, at, move || format!("Duplicate value: {}", quoted(&name)))
        };
        let finding = finding.map(|finding| finding.fingerprint_value(name));
        let related = |finding: Finding| {
            finding.related(list.index(first.index).key("name"), "the first one of this name")
        };
        findings.extend(finding.map(related));
    }
}

/// Denies skills in the form of an Agent's, which users copy.
fn skills(config: &AgentConfig<'_>, list: impl Fn() -> Pointer, report: Report<'_>) -> Vec<Finding> {
    let skills = config.tree.list_at(&["skills"]).iter().enumerate();
    let objects = skills.filter(|(_, skill)| matches!(skill, Tree::Map(_) | Tree::Texts(_)));
    let finding = |(index, skill): (usize, &Tree)| {
        let meant =
            skill.text_at(&["skillPackRef"]).map(|name| format!("; write {}", quoted(&excerpt(name))));
        let text = move || format!("must be of type string{}", meant.as_deref().unwrap_or_default());
        report.deny(&SKILLS_OBJECT_FORM, || list().index(index), text)
    };
    objects.filter_map(finding).collect()
}

fn memory(config: &AgentConfig<'_>, here: impl Fn() -> Pointer, report: Report<'_>) -> Vec<Finding> {
    let Some(memory) = config.tree.get("memory").filter(|_| report.wants_warnings()) else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = max_size(memory, &here, report).into_iter().collect();
    let seeds = memory.list_at(&["seeds"]);
    for (index, seed) in seeds.iter().enumerate() {
        if seed.text().is_some_and(|seed| seed.trim().is_empty()) {
            let at = || here().key("seeds").index(index);
            findings.extend(report.warn(&SEEDS_EMPTY, at, || "the seed is blank"));
        }
    }
    if config.memory_disabled() && !seeds.is_empty() {
        let text = "seeds have no effect while enabled is false";
        findings.extend(report.warn(&SEEDS_DISABLED, here, move || text));
    }
    findings
}

/// Warns about a memory size that could not be enforced. Upstream does not enforce any size.
pub(super) fn max_size(memory: &Tree, here: impl FnOnce() -> Pointer, report: Report<'_>) -> Option<Finding> {
    /// KiB that a ConfigMap holds.
    /// Source: Kubernetes documentation, ConfigMaps.
    const MAX_CONFIG_MAP_KIB: i64 = 1024;
    let size = memory.get("maxSizeKB").and_then(Tree::integer)?;
    let why = match size {
        ..0 => String::new(),
        0..=MAX_CONFIG_MAP_KIB => return None,
        _ => format!(": a ConfigMap holds {MAX_CONFIG_MAP_KIB} KiB at most"),
    };
    report.warn(&MAX_SIZE, || here().key("maxSizeKB"), move || format!("{size} has no effect{why}"))
}

//! Validates the list of configs.

use std::collections::BTreeMap;

use crate::model::family::Subject;
use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::super::api::ensemble::{AgentConfig, Ensemble};
use super::super::codes::{
    CONFIG_NAME_DUPLICATE, CONFIG_NAME_REQUIRED, CRD_REQUIRED, MAX_SIZE, SEEDS_DISABLED, SEEDS_EMPTY,
    SKILLS_OBJECT_FORM, TYPE_INVALID,
};
use super::{deny, duplicate_value, warn};

pub(super) fn findings(ensemble: &Ensemble<'_>, subject: &Subject<'_>) -> Vec<Finding> {
    let list = ensemble.configs_pointer();
    let mut findings = Vec::new();
    if subject.object.at(&["spec", ensemble.configs_field]).is_none() {
        findings.push(warn(&CRD_REQUIRED, &list, "required by the CRD"));
    }
    findings.extend(duplicates(ensemble));
    for config in &ensemble.configs {
        let here = list.index(config.index);
        if config.name.is_none_or(str::is_empty) {
            findings.push(deny(&CONFIG_NAME_REQUIRED, &here.key("name"), "Required value"));
        }
        if config.tree.get("systemPrompt").is_none() {
            findings.push(warn(&CRD_REQUIRED, &here.key("systemPrompt"), "required by the CRD"));
        }
        findings.extend(skills(config, &here.key("skills")));
        findings.extend(memory(config, &here.key("memory")));
    }
    findings
}

/// Two entries of one name make one Agent; where they differ they overwrite each other for ever.
fn duplicates(ensemble: &Ensemble<'_>) -> Vec<Finding> {
    let mut first = BTreeMap::new();
    let mut findings = Vec::new();
    for config in &ensemble.configs {
        let Some(name) = config.name.filter(|name| !name.is_empty()) else { continue };
        let fields = config.fields();
        let Some((earlier, earlier_fields)) = first.get(name) else {
            first.insert(name, (config, fields));
            continue;
        };
        let is_same = if fields.is_some() && earlier_fields.is_some() {
            fields == *earlier_fields
        } else {
            config.tree.is_equivalent(earlier.tree)
        };
        let list = ensemble.configs_pointer();
        let at = list.index(config.index).key("name");
        let finding = if is_same {
            duplicate_value(&CONFIG_NAME_DUPLICATE, &at, name)
        } else {
            deny(&CONFIG_NAME_DUPLICATE, &at, &format!("Duplicate value: {}", quoted(name)))
        };
        findings.push(
            finding
                .fingerprint_value(name)
                .related(list.index(earlier.index).key("name"), "the first one of this name"),
        );
    }
    findings
}

/// The CRD's schema requires a plain name, but users copy objects from Agents.
fn skills(config: &AgentConfig<'_>, list: &Pointer) -> Vec<Finding> {
    let skills = config.tree.get("skills").map(Tree::elements).unwrap_or_default();
    let finding = |(index, skill): (usize, &Tree)| match skill {
        Tree::Text(_) => None,
        Tree::Map(_) | Tree::Texts(..) => {
            let at = list.index(index);
            Some(warn(&SKILLS_OBJECT_FORM, &at, "the CRD wants a plain string, not an object"))
        }
        other => {
            let at = list.index(index);
            let text = format!("Invalid value: {}: expected string", quoted(other.type_name()));
            Some(deny(&TYPE_INVALID, &at, &text).fingerprint_value(other.type_name()))
        }
    };
    skills.iter().enumerate().filter_map(finding).collect()
}

fn memory(config: &AgentConfig<'_>, here: &Pointer) -> Vec<Finding> {
    let Some(memory) = config.tree.get("memory") else { return Vec::new() };
    let mut findings: Vec<Finding> = max_size(memory, here).into_iter().collect();
    let seeds = memory.get("seeds").map(Tree::elements).unwrap_or_default();
    for (index, seed) in seeds.iter().enumerate() {
        if seed.text().is_some_and(|seed| seed.trim().is_empty()) {
            findings.push(warn(&SEEDS_EMPTY, &here.key("seeds").index(index), "the seed is blank"));
        }
    }
    if !seeds.is_empty() && config.memory_disabled() {
        findings.push(warn(&SEEDS_DISABLED, here, "seeds have no effect while enabled is false"));
    }
    findings
}

/// Upstream enforces no size at all; beyond these bounds none could be.
pub(super) fn max_size(memory: &Tree, here: &Pointer) -> Option<Finding> {
    /// KiB that a ConfigMap holds.
    /// Source: Kubernetes documentation, ConfigMaps.
    const MAX_CONFIG_MAP_KIB: i64 = 1024;
    let size = memory.get("maxSizeKB").and_then(Tree::integer)?;
    let at = here.key("maxSizeKB");
    match size {
        ..0 => Some(warn(&MAX_SIZE, &at, &format!("{size} has no effect"))),
        0..=MAX_CONFIG_MAP_KIB => None,
        _ => Some(warn(
            &MAX_SIZE,
            &at,
            &format!("{size} has no effect: a ConfigMap holds {MAX_CONFIG_MAP_KIB} KiB at most"),
        )),
    }
}

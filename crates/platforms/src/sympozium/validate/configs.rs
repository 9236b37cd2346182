//! Validates the list of configs.

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::ensemble::{AgentConfig, Ensemble};
use super::super::codes::{
    CONFIG_NAME_DUPLICATE, CONFIG_NAME_REQUIRED, CRD_REQUIRED, MAX_SIZE, SEEDS_DISABLED, SEEDS_EMPTY,
    SKILLS_OBJECT_FORM, TYPE_INVALID,
};
use super::{Report, tokens};

pub(super) fn findings(
    ensemble: &Ensemble<'_>,
    subject: &Subject<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    let list = ensemble.configs_pointer();
    if subject.object.at(&["spec", ensemble.configs_field]).is_none() {
        findings.extend(report.warn(&CRD_REQUIRED, || list.clone(), || "required by the CRD"));
    }
    duplicates(ensemble, report, findings);
    for config in &ensemble.configs {
        let here = || list.index(config.index);
        if config.name.is_none_or(str::is_empty) {
            let at = || here().key("name");
            findings.extend(report.deny(&CONFIG_NAME_REQUIRED, at, || "Required value"));
        }
        if config.tree.get("systemPrompt").is_none() {
            let at = || here().key("systemPrompt");
            findings.extend(report.warn(&CRD_REQUIRED, at, || "required by the CRD"));
        }
        findings.extend(skills(config, || here().key("skills"), report));
        findings.extend(memory(config, || here().key("memory"), report));
        findings.extend(tokens::in_env(config.tree.get("env"), || here().key("env"), report));
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

/// Validates skills. The CRD's schema requires a plain name, but users copy objects from Agents.
fn skills(config: &AgentConfig<'_>, list: impl Fn() -> Pointer, report: Report<'_>) -> Vec<Finding> {
    let skills = config.tree.list_at(&["skills"]).iter().enumerate();
    let check = |(index, skill): (usize, &Tree)| {
        let at = || list().index(index);
        match skill {
            Tree::Text(_) => None,
            Tree::Map(_) | Tree::Texts(_) => {
                report.warn(&SKILLS_OBJECT_FORM, at, || "the CRD wants a plain string, not an object")
            }
            other => {
                let got = other.type_name();
                let text = move || format!("Invalid value: {}: expected string", quoted(got));
                Some(report.deny(&TYPE_INVALID, at, text)?.fingerprint_value(got))
            }
        }
    };
    skills.filter_map(check).collect()
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

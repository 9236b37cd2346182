//! Validates the skills of an Agent or AgentRun.

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::{memory_skill, skills};
use super::super::api::{MEMORY_SKILL, SKILL_PACK, SYSTEM_NAMESPACE};
use super::super::codes::{SKILL_EMPTY, SKILL_NEAR_MISS, SKILLPACK_MISSING};
use super::super::lookup;
use super::Report;
use crate::message::fit_names;

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let report = Report::new(state.budget());
    if !report.wants_warnings() {
        return Vec::new();
    }
    let list = Pointer::new("/spec/skills");
    let skills = skills(subject.object);
    let objects = skills.iter().enumerate().filter(|(_, skill)| skill.is_object());
    let finding = |(index, skill)| check_skill(skill, || list.index(index), report);
    let mut findings: Vec<Finding> = objects.filter_map(finding).collect();
    if let Some(index) = memory_skill(skills) {
        findings.extend(pack_missing(subject.namespace, &list.index(index), state));
    }
    findings
}

fn check_skill(skill: &Tree, here: impl FnOnce() -> Pointer, report: Report<'_>) -> Option<Finding> {
    let name = skill.text_at(&["skillPackRef"]).unwrap_or_default();
    let has_text = skill.text_at(&["configMapRef"]).is_some_and(|name| !name.is_empty());
    let wrong_type = ["skillPackRef", "configMapRef"]
        .iter()
        .any(|field| skill.get(field).is_some_and(|value| value.text().is_none()));
    if name.is_empty() && !has_text && !wrong_type {
        return report.warn(&SKILL_EMPTY, here, || "has neither skillPackRef nor configMapRef");
    }
    if !is_near_miss(name) {
        return None;
    }
    let name = excerpt(name);
    let at = || here().key("skillPackRef");
    report.warn_whole(&SKILL_NEAR_MISS, at, move |_| {
        fit_names([&name], |[name]| {
            format!("skillPackRef {} does not turn memory on; use \"memory\"", quoted(name))
        })
    })
}

fn is_near_miss(name: &str) -> bool {
    /// More bytes than the longest near miss has, in any alphabet.
    const MAX_BYTES: usize = 64;
    let trimmed = name.trim();
    if name == MEMORY_SKILL || trimmed.len() > MAX_BYTES {
        return false;
    }
    let plain = trimmed.to_lowercase();
    plain.strip_prefix("skillpack-").unwrap_or(&plain) == MEMORY_SKILL
}

/// Warns about a missing SkillPack. Upstream's memory works without it, so files without any SkillPack give
/// no warning.
fn pack_missing(namespace: &str, skill: &Pointer, state: &mut StateReader<'_>) -> Option<Finding> {
    let absent = lookup::memory_pack(namespace, state) == Lookup::Absent;
    (absent && state.holds_any(&SKILL_PACK)).then(|| skill_pack_missing(namespace, skill.key("skillPackRef")))
}

/// The warning that the SkillPack `memory` is missing.
pub(crate) fn skill_pack_missing(namespace: &str, at: Pointer) -> Finding {
    let message = fit_names([namespace], |[namespace]| {
        let namespace = quoted(namespace);
        format!("SkillPack \"{MEMORY_SKILL}\" not found in {namespace} or \"{SYSTEM_NAMESPACE}\"")
    });
    Finding::warn(&SKILLPACK_MISSING, at, message)
}

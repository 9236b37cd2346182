//! Validates the membrane, which controls which entries agents see of each other.

use std::collections::BTreeSet;

use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;

use super::super::api::ensemble::{Ensemble, Membrane, PermeabilityRule, SharedMemory, TrustGroup};
use super::super::api::membrane::{VisibilitySource, effective_permeability, with_peers};
use super::super::api::{ACCESSES, VISIBILITIES};
use super::super::codes::{
    EXPOSE_READ_ONLY, PERMEABILITY_CONFIG_REQUIRED, PERMEABILITY_CONFIG_UNKNOWN, PERMEABILITY_DUPLICATE,
    TAG_INVALID, TRUST_GROUP_DUPLICATE, TRUST_GROUP_MEMBER_UNKNOWN, TRUST_GROUP_NAME_REQUIRED,
    TRUST_GROUP_TOO_SMALL, TRUSTED_WITHOUT_PEERS, VISIBILITY_UNSUPPORTED,
};
use super::{deny, duplicate_value, not_found, unsupported, warn, warn_of};

/// The pointer to the membrane.
pub(super) fn pointer() -> Pointer {
    Pointer::new("/spec/sharedMemory/membrane")
}

pub(super) fn findings(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    membrane: &Membrane<'_>,
) -> Vec<Finding> {
    let default = pointer().key("defaultVisibility");
    let mut findings: Vec<Finding> =
        unsupported(&VISIBILITY_UNSUPPORTED, &default, membrane.default_visibility, &VISIBILITIES)
            .into_iter()
            .collect();
    for rule in &membrane.permeability {
        findings.extend(permeability(ensemble, shared, membrane, rule));
    }
    for group in &membrane.groups {
        findings.extend(trust_group(ensemble, membrane, group));
    }
    findings.extend(trusted_without_peers(ensemble, membrane));
    findings
}

fn permeability(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    membrane: &Membrane<'_>,
    rule: &PermeabilityRule<'_>,
) -> Vec<Finding> {
    let list = pointer().key("permeability");
    let here = list.index(rule.index);
    let visibility = here.key("defaultVisibility");
    let mut findings: Vec<Finding> =
        unsupported(&VISIBILITY_UNSUPPORTED, &visibility, rule.visibility, &VISIBILITIES)
            .into_iter()
            .collect();
    findings.extend(tags(&here.key("exposeTags"), &rule.expose_tags));
    findings.extend(tags(&here.key("acceptTags"), &rule.accept_tags));
    let name_at = here.key("agentConfig");
    let Some(name) = rule.config else {
        findings.push(deny(&PERMEABILITY_CONFIG_REQUIRED, &name_at, "Required value"));
        return findings;
    };
    if !ensemble.has_config(name) {
        findings.push(not_found(&PERMEABILITY_CONFIG_UNKNOWN, &name_at, name));
    }
    if let Some(first) = membrane.rule(name).filter(|first| first.index != rule.index) {
        let finding = duplicate_value(&PERMEABILITY_DUPLICATE, &here, name);
        findings.push(
            finding.help("the first rule wins").related(list.index(first.index), "the rule that counts"),
        );
    }
    let read_only = shared.rule(name).is_some_and(|rule| rule.access() == ACCESSES[1]);
    if read_only && !rule.expose_tags.is_empty() {
        let finding = warn_of(&EXPOSE_READ_ONLY, &here.key("exposeTags"), [name], |[name]| {
            format!("{}: it cannot store, so exposeTags has no effect", quoted(name))
        });
        findings.push(finding.help("its access rule says read-only"));
    }
    findings
}

/// The runner gets tags as one comma-separated value.
fn tags(list: &Pointer, tags: &[&str]) -> Vec<Finding> {
    let invalid = tags.iter().enumerate().filter_map(|(index, tag)| {
        let why = match *tag {
            "" => "an empty tag matches everything or nothing",
            tag if tag.contains(',') => "a comma makes it several tags",
            _ => return None,
        };
        Some(warn_of(&TAG_INVALID, &list.index(index), [tag], |[tag]| {
            format!("Invalid value: {}: {why}", quoted(tag))
        }))
    });
    invalid.collect()
}

fn trust_group(ensemble: &Ensemble<'_>, membrane: &Membrane<'_>, group: &TrustGroup<'_>) -> Vec<Finding> {
    let list = pointer().key("trustGroups");
    let here = list.index(group.index);
    let mut findings = Vec::new();
    let name_at = here.key("name");
    match group.name {
        None => findings.push(deny(&TRUST_GROUP_NAME_REQUIRED, &name_at, "Required value")),
        Some("") => findings.push(warn(&TRUST_GROUP_NAME_REQUIRED, &name_at, "Required value")),
        Some(name) => {
            if let Some(first) = membrane.group(name).filter(|first| first.index != group.index) {
                let other = list.index(first.index).key("name");
                findings.push(
                    duplicate_value(&TRUST_GROUP_DUPLICATE, &name_at, name)
                        .related(other, "the first one of this name"),
                );
            }
        }
    }
    let members = here.key("agentConfigs");
    for (index, member) in group.members.iter().enumerate() {
        if !ensemble.has_config(member) {
            findings.push(not_found(&TRUST_GROUP_MEMBER_UNKNOWN, &members.index(index), member));
        }
    }
    let first = group.members.first();
    if group.members.iter().all(|member| Some(member) == first) {
        findings.push(warn(&TRUST_GROUP_TOO_SMALL, &members, "has no effect with fewer than two members"));
    }
    findings
}

/// Only an agent itself sees its trusted entries if it has no peers.
fn trusted_without_peers(ensemble: &Ensemble<'_>, membrane: &Membrane<'_>) -> Vec<Finding> {
    let with_peers = with_peers(ensemble, membrane);
    let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
    let mut findings = Vec::new();
    for name in ensemble.configs.iter().filter_map(|config| config.name.filter(|name| !name.is_empty())) {
        if !seen.insert(name) {
            continue;
        }
        let permeation = effective_permeability(ensemble, membrane, Some(name));
        let is_alone = permeation.visibility == "trusted" && !with_peers.contains(name);
        if !is_alone || !reported.insert(permeation.source) {
            continue;
        }
        let at = match permeation.source {
            VisibilitySource::Rule(index) => pointer().key("permeability").index(index),
            VisibilitySource::Relationships => pointer().key("trustGroups"),
            VisibilitySource::Default => pointer().key("defaultVisibility"),
        };
        findings.push(warn_of(&TRUSTED_WITHOUT_PEERS, &at, [name], |[name]| {
            format!("{} has no trust peers: only its author sees those entries", quoted(name))
        }));
    }
    findings
}

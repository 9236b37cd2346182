//! The effect of the membrane on one agent: combines rules, relationships and defaults.

use std::collections::BTreeSet;

use super::VISIBILITIES;
use super::ensemble::{Ensemble, Parts, Relationship};
use super::shared_memory::Membrane;
use memgate_primitives::members::Members;

/// The setting that decides the visibility of an agent's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum VisibilitySource {
    /// The rule at this index.
    Rule(usize),
    /// The agent's relationships, since the membrane has no rules.
    Relationships,
    /// The default of the membrane, or of the CRD's schema.
    Default,
}

/// The visibility of the entries of a config's agent, and the setting that decides it.
pub(crate) fn effective_visibility<'t>(
    ensemble: &Ensemble<'t>,
    membrane: &Membrane<'t>,
    config: Option<&str>,
) -> (&'t str, VisibilitySource) {
    let non_empty = |visibility: &&str| !visibility.is_empty();
    let default = membrane.default_visibility.filter(non_empty).unwrap_or(VISIBILITIES[0]);
    let decided = config.and_then(|config| {
        if derives_visibility(ensemble, membrane) {
            let derived = ensemble.has_config(config).then(|| derived_visibility(ensemble, config)).flatten();
            return derived.map(|visibility| (visibility, VisibilitySource::Relationships));
        }
        let rule = membrane.rule(config)?;
        let own = rule.visibility.filter(non_empty)?;
        Some((own, VisibilitySource::Rule(rule.index)))
    });
    decided.unwrap_or((default, VisibilitySource::Default))
}

/// Whether relationships decide the visibility: there are relationships and no rules.
const fn derives_visibility(ensemble: &Ensemble<'_>, membrane: &Membrane<'_>) -> bool {
    membrane.permeability.is_empty() && !ensemble.relationships.is_empty()
}

/// The visibility that follows from an agent's relationships; `None` if the default applies.
/// Source: upstream, `internal/controller/agentrun_controller.go`, the derived permeability.
fn derived_visibility(ensemble: &Ensemble<'_>, config: &str) -> Option<&'static str> {
    let Parts { delegating, supervised, starting } = &ensemble.parts;
    if delegating.contains(config) {
        Some("trusted")
    } else if supervised.contains(config) {
        Some("public")
    } else if !starting.contains(config) {
        Some("private")
    } else {
        None
    }
}

/// The configs whose agents see the trusted entries of this one, in order. With trust groups, they are the
/// other members of its groups. Without any trust group, they are the configs with which it has a
/// delegation or supervision, in either direction.
pub(crate) fn peers<'t>(ensemble: &Ensemble<'t>, membrane: &Membrane<'t>, config: &str) -> Vec<&'t str> {
    let mut peers = BTreeSet::new();
    if membrane.groups.is_empty() {
        for relationship in close_relationships(ensemble) {
            if relationship.source == Some(config) {
                peers.extend(relationship.target);
            }
            if relationship.target == Some(config) {
                peers.extend(relationship.source);
            }
        }
    }
    for group in membrane.groups.iter().filter(|group| group.members.contains(&config)) {
        peers.extend(&group.members);
    }
    peers.into_iter().filter(|peer| *peer != config && !peer.is_empty()).collect()
}

/// The configs that have any [`peers`].
pub(crate) fn with_peers<'t>(ensemble: &Ensemble<'t>, membrane: &Membrane<'t>) -> Members<&'t str> {
    let mut all = Members::default();
    if membrane.groups.is_empty() {
        for relationship in close_relationships(ensemble) {
            if let (Some(source), Some(target)) = (relationship.source, relationship.target)
                && source != target
                && !source.is_empty()
                && !target.is_empty()
            {
                all.extend([source, target]);
            }
        }
    }
    for group in &membrane.groups {
        let mut named = group.members.iter().filter(|member| !member.is_empty());
        let first = named.next();
        if named.any(|member| Some(member) != first) {
            all.extend(group.members.iter().copied());
        }
    }
    all
}

/// The relationships that make two configs peers if there are no trust groups.
fn close_relationships<'e, 't>(ensemble: &'e Ensemble<'t>) -> impl Iterator<Item = &'e Relationship<'t>> {
    let close = |kind: Option<&str>| matches!(kind, Some("delegation" | "supervision"));
    ensemble.relationships.iter().filter(move |relationship| close(relationship.kind))
}

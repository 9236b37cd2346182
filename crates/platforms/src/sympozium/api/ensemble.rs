//! The fields of an Ensemble that decisions read. A field of the wrong type counts as absent, and list elements
//! keep their index. The effect of the membrane on one agent is what rules, relationships and defaults come to.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_model::tree::Tree;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

use super::shared_memory::{Membrane, SharedMemory};
use super::{Places, VISIBILITIES, first_places, is_true, list, objects, section, texts};

/// An Ensemble.
#[derive(Debug)]
pub(crate) struct Ensemble<'t> {
    /// The field that lists the configs, under its current or its old name.
    pub(crate) configs_field: &'static str,
    /// The configs of the agents that it makes.
    pub(crate) configs: Vec<AgentConfig<'t>>,
    /// The first config of each name, by its index in `configs`.
    first_configs: Places<'t>,
    known_names: OnceCell<Arc<[Box<str>]>>,
    /// The names of excluded configs.
    pub(crate) excluded: Members<&'t str>,
    /// The relationships between its agents.
    pub(crate) relationships: Vec<Relationship<'t>>,
    /// The roles of its agents in these relationships.
    pub(crate) parts: Parts<'t>,
    /// The name of the stimulus.
    pub(crate) stimulus: Option<&'t str>,
    /// `spec.sharedMemory`.
    pub(crate) shared: Option<SharedMemory<'t>>,
}

/// One of the agents that an Ensemble makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentConfig<'t> {
    /// Its index in the list.
    pub(crate) index: usize,
    /// Its name.
    pub(crate) name: Option<&'t str>,
    /// The whole entry.
    pub(crate) tree: &'t Tree,
}

/// A relationship.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relationship<'t> {
    /// Its index in the list.
    pub(crate) index: usize,
    /// The config at which it starts; for a stimulus, the stimulus.
    pub(crate) source: Option<&'t str>,
    /// The config at which it ends.
    pub(crate) target: Option<&'t str>,
    /// Its type, such as `delegation`.
    pub(crate) kind: Option<&'t str>,
}

/// The roles of configs in relationships.
#[derive(Debug, Default)]
pub(crate) struct Parts<'t> {
    /// The configs that delegate.
    pub(crate) delegating: Members<&'t str>,
    /// The configs that are supervised.
    pub(crate) supervised: Members<&'t str>,
    /// The configs at which any relationship starts.
    pub(crate) starting: Members<&'t str>,
}

impl<'t> Ensemble<'t> {
    /// Reads an Ensemble.
    pub(crate) fn read(object: &'t Tree) -> Self {
        let configs_field = configs_field(object);
        let relationships: Vec<Relationship<'t>> = list(object, &["spec", "relationships"], |index, tree| {
            let text = |field| tree.text_at(&[field]);
            Relationship { index, source: text("source"), target: text("target"), kind: text("type") }
        });
        let configs: Vec<AgentConfig<'t>> = list(object, &["spec", configs_field], AgentConfig::read);
        Self {
            configs_field,
            known_names: OnceCell::new(),
            first_configs: first_places(configs.iter().map(|config| config.name)),
            configs,
            excluded: texts(object, &["spec", "excludePersonas"]).collect(),
            parts: Parts::of(&relationships),
            relationships,
            stimulus: object.text_at(&["spec", "stimulus", "name"]),
            shared: section(object, &["spec", "sharedMemory"]).map(SharedMemory::read),
        }
    }

    /// Whether it has a config of this name.
    pub(crate) fn has_config(&self, config: &str) -> bool {
        self.config(config).is_some()
    }

    /// The first config of this name.
    pub(crate) fn config(&self, name: &str) -> Option<&AgentConfig<'t>> {
        self.configs.get(*self.first_configs.get(name)?)
    }

    /// The names of the configs that count: names that are not empty, each once.
    pub(crate) fn named_configs(&self) -> impl Iterator<Item = &'t str> {
        let is_first = |config: &AgentConfig<'t>, name| {
            self.config(name).is_some_and(|first| first.index == config.index)
        };
        self.configs
            .iter()
            .filter_map(move |config| config.name.filter(|name| !name.is_empty() && is_first(config, name)))
    }

    /// The first names of configs, for suggestions; shared, since many messages may look for one.
    pub(crate) fn known_names(&self) -> Arc<[Box<str>]> {
        const MAX_NAMES: usize = 64;
        let names = || self.named_configs().take(MAX_NAMES).map(Box::from).collect();
        Arc::clone(self.known_names.get_or_init(names))
    }

    /// The pointer to the list of configs.
    pub(crate) fn configs_pointer(&self) -> Pointer {
        Pointer::new("/spec").key(self.configs_field)
    }

    /// Whether the shared memory is on.
    pub(crate) fn shares_memory(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.enabled)
    }
}

/// The field that lists the configs of an Ensemble, under its current or its old name.
pub(crate) fn configs_field(object: &Tree) -> &'static str {
    let has = |field| object.at(&["spec", field]).is_some();
    if !has("agentConfigs") && has("personas") { "personas" } else { "agentConfigs" }
}

/// The first config of a name, for callers that need only this one.
pub(crate) fn find_config<'t>(object: &'t Tree, name: &str) -> Option<AgentConfig<'t>> {
    let mut configs = objects(object, &["spec", configs_field(object)]);
    let (index, tree) = configs.find(|(_, config)| config.text_at(&["name"]) == Some(name))?;
    Some(AgentConfig::read(index, tree))
}

/// Whether a config is excluded.
pub(crate) fn is_excluded(object: &Tree, config: &str) -> bool {
    texts(object, &["spec", "excludePersonas"]).any(|excluded| excluded == config)
}

/// Whether the shared memory of an Ensemble is on.
pub(crate) fn shares_memory(object: &Tree) -> bool {
    is_true(object, &["spec", "sharedMemory", "enabled"])
}

/// Whether the shared memory of an Ensemble has access rules.
pub(crate) fn has_access_rules(object: &Tree) -> bool {
    objects(object, &["spec", "sharedMemory", "accessRules"]).next().is_some()
}

impl<'t> Parts<'t> {
    fn of(relationships: &[Relationship<'t>]) -> Self {
        let mut parts = Self::default();
        for relationship in relationships {
            parts.starting.extend(relationship.source);
            match relationship.kind {
                Some("delegation") => parts.delegating.extend(relationship.source),
                Some("supervision") => parts.supervised.extend(relationship.target),
                _ => {}
            }
        }
        parts
    }
}

impl<'t> AgentConfig<'t> {
    fn read(index: usize, tree: &'t Tree) -> Self {
        Self { index, name: tree.text_at(&["name"]), tree }
    }

    /// Whether two configs have the same fields. A `null` field counts as absent. If a config nests too deep for
    /// a digest, only the fields in the schema are compared.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self.tree.digest(), other.tree.digest()) {
            (Some(own), Some(others)) => own == others,
            _ => self.tree.is_equivalent(other.tree),
        }
    }

    /// Whether its memory is switched off.
    pub(crate) fn memory_disabled(&self) -> bool {
        self.tree.at(&["memory", "enabled"]) == Some(&Tree::Boolean(false))
    }

    /// Whether its Agent does not store its runs automatically. The config's own setting overrides that of its
    /// Ensemble `object`.
    pub(crate) fn auto_store_off(&self, object: &Tree) -> bool {
        let own = self.tree.at(&["memory", "autoStore"]);
        own.or_else(|| object.at(&["spec", "autoStoreMemory"])) == Some(&Tree::Boolean(false))
    }

    /// The initial memories (seeds), without blank ones.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = &'t str> {
        texts(self.tree, &["memory", "seeds"]).filter(|seed| !seed.trim().is_empty())
    }
}

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

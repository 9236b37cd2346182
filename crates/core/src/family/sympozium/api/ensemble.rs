//! An Ensemble as decisions read it. A field of the wrong type reads as absent, and list elements
//! keep their index.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::agent::{is_true, text_at};
use super::{ACCESSES, STORAGE_SIZE_DEFAULT};

/// An Ensemble.
#[derive(Debug)]
pub struct Ensemble<'t> {
    /// The field that lists the configs: today's name or the old one.
    pub configs_field: &'static str,
    /// The agents that it makes.
    pub configs: Vec<AgentConfig<'t>>,
    /// The first config of each name, by its place in `configs`.
    first_configs: BTreeMap<&'t str, usize>,
    /// The names of configs that are left out.
    pub excluded: BTreeSet<&'t str>,
    /// The relationships between its agents.
    pub relationships: Vec<Relationship<'t>>,
    /// Who takes which part in them.
    pub parts: Parts<'t>,
    /// The name of the stimulus.
    pub stimulus: Option<&'t str>,
    /// `spec.sharedMemory`.
    pub shared: Option<SharedMemory<'t>>,
}

/// One of the agents that an Ensemble makes.
#[derive(Debug, Clone, Copy)]
pub struct AgentConfig<'t> {
    /// Its place in the list.
    pub index: usize,
    /// Its name.
    pub name: Option<&'t str>,
    /// All of it.
    pub tree: &'t Tree,
}

/// A relationship.
#[derive(Debug, Clone, Copy)]
pub struct Relationship<'t> {
    /// Its place in the list.
    pub index: usize,
    /// Where it starts.
    pub source: Option<&'t str>,
    /// Where it ends.
    pub target: Option<&'t str>,
    /// What it is.
    pub kind: Option<&'t str>,
}

/// Which configs take which part in relationships.
#[derive(Debug, Default)]
pub struct Parts<'t> {
    /// Those that delegate.
    pub delegating: BTreeSet<&'t str>,
    /// Those that are supervised.
    pub supervised: BTreeSet<&'t str>,
    /// Those at which any relationship starts.
    pub starting: BTreeSet<&'t str>,
}

/// `spec.sharedMemory`.
#[derive(Debug)]
pub struct SharedMemory<'t> {
    /// Whether it is on.
    pub enabled: bool,
    /// The size of its volume, the default applied.
    pub storage_size: &'t str,
    /// The access rules.
    pub rules: Vec<AccessRule<'t>>,
    /// The first rule of each config, by its place in `rules`.
    first_rules: BTreeMap<&'t str, usize>,
    /// The membrane.
    pub membrane: Option<Membrane<'t>>,
}

/// One of the `accessRules`.
#[derive(Debug, Clone, Copy)]
pub struct AccessRule<'t> {
    /// Its place in the list.
    pub index: usize,
    /// The config that it applies to.
    pub agent_config: Option<&'t str>,
    /// The same under its old name.
    pub persona: Option<&'t str>,
    /// Whether it has a name at all, of whatever type.
    pub is_named: bool,
    /// The access, unparsed.
    pub access: Option<&'t str>,
}

/// `spec.sharedMemory.membrane`.
#[derive(Debug)]
pub struct Membrane<'t> {
    /// The default visibility of entries.
    pub default_visibility: Option<&'t str>,
    /// The rules for single configs.
    pub permeability: Vec<PermeabilityRule<'t>>,
    /// The first rule of each config, by its place in `permeability`.
    first_permeability: BTreeMap<&'t str, usize>,
    /// The trust groups.
    pub groups: Vec<TrustGroup<'t>>,
    /// The first group of each name, by its place in `groups`.
    first_groups: BTreeMap<&'t str, usize>,
    /// All of it.
    pub tree: &'t Tree,
}

/// One of the `permeability` rules.
#[derive(Debug)]
pub struct PermeabilityRule<'t> {
    /// Its place in the list.
    pub index: usize,
    /// The config that it applies to.
    pub config: Option<&'t str>,
    /// What its entries are.
    pub visibility: Option<&'t str>,
    /// What of its entries is shown.
    pub expose_tags: Vec<&'t str>,
    /// What it gets to see.
    pub accept_tags: Vec<&'t str>,
}

/// One of the `trustGroups`.
#[derive(Debug)]
pub struct TrustGroup<'t> {
    /// Its place in the list.
    pub index: usize,
    /// Its name.
    pub name: Option<&'t str>,
    /// Its members.
    pub members: Vec<&'t str>,
}

impl<'t> Ensemble<'t> {
    /// Reads an Ensemble.
    #[must_use]
    pub fn read(object: &'t Tree) -> Self {
        let has = |field| object.at(&["spec", field]).is_some();
        let configs_field = if !has("agentConfigs") && has("personas") { "personas" } else { "agentConfigs" };
        let configs: Vec<AgentConfig<'t>> = list(object, &["spec", configs_field], |index, tree| {
            AgentConfig { index, name: text_at(tree, &["name"]), tree }
        });
        let relationships: Vec<Relationship<'t>> = list(object, &["spec", "relationships"], |index, tree| {
            let text = |field| text_at(tree, &[field]);
            Relationship { index, source: text("source"), target: text("target"), kind: text("type") }
        });
        Self {
            configs_field,
            first_configs: first_places(configs.iter().map(|config| config.name)),
            configs,
            excluded: texts(object, &["spec", "excludePersonas"]).into_iter().collect(),
            parts: Parts::of(&relationships),
            relationships,
            stimulus: text_at(object, &["spec", "stimulus", "name"]),
            shared: section(object, &["spec", "sharedMemory"]).map(SharedMemory::read),
        }
    }

    /// Whether it has a config of this name.
    #[must_use]
    pub fn has_config(&self, config: &str) -> bool {
        self.config(config).is_some()
    }

    /// The first config of this name.
    #[must_use]
    pub fn config(&self, name: &str) -> Option<&AgentConfig<'t>> {
        self.configs.get(*self.first_configs.get(name)?)
    }

    /// The pointer to the list of configs.
    #[must_use]
    pub fn configs_pointer(&self) -> Pointer {
        Pointer::new("/spec").key(self.configs_field)
    }

    /// Whether the shared memory is on.
    #[must_use]
    pub fn shares_memory(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.enabled)
    }
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
    /// All its fields; a `null` is none. `None` for one that nests too deep.
    #[must_use]
    pub fn fields(&self) -> Option<Map<String, Value>> {
        let mut fields = self.tree.whole()?;
        fields.retain(|_, value| !value.is_null());
        Some(fields)
    }

    /// Whether its memory was switched off.
    #[must_use]
    pub fn memory_disabled(&self) -> bool {
        self.tree.at(&["memory", "enabled"]) == Some(&Tree::Boolean(false))
    }

    /// Whether its Agent has the older memory in a ConfigMap: with `memory` it is on by default.
    #[must_use]
    pub fn has_legacy_memory(&self) -> bool {
        section(self.tree, &["memory"]).is_some() && !self.memory_disabled()
    }

    /// Whether its Agent does not store its runs by itself, as its Ensemble `object` and it say together.
    #[must_use]
    pub fn auto_store_off(&self, object: &Tree) -> bool {
        let own = self.tree.at(&["memory", "autoStore"]);
        own.or_else(|| object.at(&["spec", "autoStoreMemory"])) == Some(&Tree::Boolean(false))
    }

    /// Its first memories, without blank ones.
    pub fn seeds(&self) -> impl Iterator<Item = &'t str> {
        texts(self.tree, &["memory", "seeds"]).into_iter().filter(|seed| !seed.trim().is_empty())
    }
}

impl<'t> SharedMemory<'t> {
    fn read(tree: &'t Tree) -> Self {
        let rules: Vec<AccessRule<'t>> = list(tree, &["accessRules"], |index, tree| AccessRule {
            index,
            agent_config: text_at(tree, &["agentConfig"]),
            persona: text_at(tree, &["persona"]),
            is_named: tree.get("agentConfig").or_else(|| tree.get("persona")).is_some(),
            access: text_at(tree, &["access"]),
        });
        Self {
            enabled: is_true(tree, &["enabled"]),
            storage_size: text_at(tree, &["storageSize"]).unwrap_or(STORAGE_SIZE_DEFAULT),
            first_rules: first_places(rules.iter().map(AccessRule::config)),
            rules,
            membrane: section(tree, &["membrane"]).map(Membrane::read),
        }
    }

    /// The first rule for a config.
    #[must_use]
    pub fn rule(&self, config: &str) -> Option<&AccessRule<'t>> {
        self.rules.get(*self.first_rules.get(config)?)
    }
}

impl<'t> AccessRule<'t> {
    /// The config that it applies to; the current field overrides the old one. `None` if both are absent
    /// or empty.
    #[must_use]
    pub fn config(&self) -> Option<&'t str> {
        let non_empty = |name: &&str| !name.is_empty();
        self.agent_config.filter(non_empty).or_else(|| self.persona.filter(non_empty))
    }

    /// The access, with the default applied.
    #[must_use]
    pub fn access(&self) -> &'t str {
        self.access.filter(|access| !access.is_empty()).unwrap_or(ACCESSES[0])
    }
}

impl<'t> Membrane<'t> {
    fn read(tree: &'t Tree) -> Self {
        let permeability: Vec<PermeabilityRule<'t>> =
            list(tree, &["permeability"], |index, tree| PermeabilityRule {
                index,
                config: text_at(tree, &["agentConfig"]),
                visibility: text_at(tree, &["defaultVisibility"]),
                expose_tags: texts(tree, &["exposeTags"]),
                accept_tags: texts(tree, &["acceptTags"]),
            });
        let groups: Vec<TrustGroup<'t>> = list(tree, &["trustGroups"], |index, tree| TrustGroup {
            index,
            name: text_at(tree, &["name"]),
            members: texts(tree, &["agentConfigs"]),
        });
        Self {
            default_visibility: text_at(tree, &["defaultVisibility"]),
            first_permeability: first_places(permeability.iter().map(|rule| rule.config)),
            permeability,
            first_groups: first_places(groups.iter().map(|group| group.name)),
            groups,
            tree,
        }
    }

    /// The first permeability rule for a config.
    #[must_use]
    pub fn rule(&self, config: &str) -> Option<&PermeabilityRule<'t>> {
        self.permeability.get(*self.first_permeability.get(config)?)
    }

    /// The first trust group of a name.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&TrustGroup<'t>> {
        self.groups.get(*self.first_groups.get(name)?)
    }

    /// A section of the membrane.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&'t Tree> {
        section(self.tree, &[name])
    }
}

/// The first place of each name.
fn first_places<'t>(
    names: impl DoubleEndedIterator<Item = Option<&'t str>> + ExactSizeIterator,
) -> BTreeMap<&'t str, usize> {
    // From the back, so that the first one stays.
    names.enumerate().rev().filter_map(|(place, name)| Some((name?, place))).collect()
}

fn section<'t>(tree: &'t Tree, path: &[&str]) -> Option<&'t Tree> {
    tree.at(path).filter(|section| section.is_object())
}

fn list<'t, T>(tree: &'t Tree, path: &[&str], read: impl Fn(usize, &'t Tree) -> T) -> Vec<T> {
    let elements = tree.at(path).map(Tree::elements).unwrap_or_default();
    let objects = elements.iter().enumerate().filter(|(_, element)| element.is_object());
    objects.map(|(index, element)| read(index, element)).collect()
}

/// The strings of a list. One that holds anything else is refused by the apiserver.
fn texts<'t>(tree: &'t Tree, path: &[&str]) -> Vec<&'t str> {
    let elements = tree.at(path).map(Tree::elements).unwrap_or_default();
    elements.iter().filter_map(Tree::text).collect()
}

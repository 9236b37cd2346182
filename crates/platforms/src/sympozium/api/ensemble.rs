//! The fields of an Ensemble that decisions read. A field of the wrong type counts as absent, and list elements
//! keep their index.

use std::cell::OnceCell;
use std::sync::Arc;

use memgate_model::tree::Tree;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

use super::read::{Places, first_places, is_true, list, objects, section, texts};
use super::shared_memory::SharedMemory;

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

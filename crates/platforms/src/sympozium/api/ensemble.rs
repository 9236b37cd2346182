//! The fields of an Ensemble that decisions read. A field of the wrong type counts as absent, and list elements
//! keep their index. The effect of the membrane on one agent is what rules, relationships and defaults come to.

use crate::prelude::*;
use std::cell::OnceCell;

use memgate_model::pod::SPEC;

use super::{ACCESSES, STORAGE_SIZE_DEFAULT, VISIBILITIES, is_true, objects, section, texts};

/// An Ensemble.
#[derive(Debug)]
pub(crate) struct Ensemble<'t> {
    /// The field that lists the configs, under its current or its old name.
    pub(crate) configs_field: &'static str,
    /// The configs of the agents that it makes.
    pub(crate) configs: Entries<'t>,
    known_names: OnceCell<Arc<[Box<str>]>>,
    /// The names of excluded configs.
    pub(crate) excluded: Members<&'t str>,
    /// The relationships between its agents.
    pub(crate) relationships: Vec<Relationship<'t>>,
    /// The roles of its agents in these relationships.
    parts: Parts<'t>,
    /// The name of the stimulus.
    pub(crate) stimulus: Option<&'t str>,
    /// `spec.sharedMemory`.
    pub(crate) shared: Option<SharedMemory<'t>>,
}

/// `spec.sharedMemory`.
#[derive(Debug)]
pub(crate) struct SharedMemory<'t> {
    /// Whether it is on.
    pub(crate) enabled: bool,
    /// The size of its volume, with the default applied.
    pub(crate) storage_size: &'t str,
    /// The access rules, by the config that they apply to.
    pub(crate) rules: Entries<'t>,
    /// The membrane.
    pub(crate) membrane: Option<Membrane<'t>>,
}

/// `spec.sharedMemory.membrane`.
#[derive(Debug)]
pub(crate) struct Membrane<'t> {
    /// The rules for single configs.
    pub(crate) permeability: Entries<'t>,
    /// The trust groups.
    pub(crate) groups: Entries<'t>,
    tree: &'t Tree,
}

/// The objects of a list, and the first one of each name.
#[derive(Debug)]
pub(crate) struct Entries<'t> {
    all: Vec<Entry<'t>>,
    first: ByKey<&'t str, usize>,
}

/// An object of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'t> {
    /// Its index in the list.
    pub(crate) index: usize,
    /// Its name.
    pub(crate) name: Option<&'t str>,
    /// All its fields.
    pub(crate) tree: &'t Tree,
}

/// One of the agents that an Ensemble makes.
pub(crate) type AgentConfig<'t> = Entry<'t>;

impl<'t> Entries<'t> {
    fn read(tree: &'t Tree, path: &[&str], name: impl Fn(&'t Tree) -> Option<&'t str>) -> Self {
        let all = objects(tree, path).map(|(index, tree)| Entry { index, name: name(tree), tree });
        let all: Vec<Entry<'t>> = all.collect();
        // Going backwards, the first place of a name overwrites later ones.
        let places = all.iter().enumerate().rev();
        let first = places.filter_map(|(place, entry)| Some((entry.name?, place))).collect();
        Self { all, first }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<'t>> {
        self.all.iter()
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The first one of a name.
    pub(crate) fn first(&self, name: &str) -> Option<&Entry<'t>> {
        self.all.get(*self.first.get(name)?)
    }

    /// The first one of the name of this one, if that is another one.
    pub(crate) fn before(&self, entry: &Entry<'_>) -> Option<&Entry<'t>> {
        self.first(entry.name?).filter(|first| first.index != entry.index)
    }
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
struct Parts<'t> {
    /// The configs that delegate.
    delegating: Members<&'t str>,
    /// The configs that are supervised.
    supervised: Members<&'t str>,
    /// The configs at which any relationship starts.
    starting: Members<&'t str>,
}

impl<'t> Ensemble<'t> {
    /// Reads an Ensemble.
    pub(crate) fn read(object: &'t Tree) -> Self {
        let configs_field = configs_field(object);
        let (mut relationships, mut parts) = (Vec::new(), Parts::default());
        for (index, tree) in objects(object, &["spec", "relationships"]) {
            let [source, target, kind] = ["source", "target", "type"].map(|field| tree.text_at(&[field]));
            parts.starting.extend(source);
            match kind {
                Some("delegation") => parts.delegating.extend(source),
                Some("supervision") => parts.supervised.extend(target),
                _ => {}
            }
            relationships.push(Relationship { index, source, target, kind });
        }
        Self {
            configs_field,
            configs: Entries::read(object, &["spec", configs_field], name),
            known_names: OnceCell::new(),
            excluded: texts(object, &["spec", "excludePersonas"]).collect(),
            relationships,
            parts,
            stimulus: object.text_at(&["spec", "stimulus", "name"]),
            shared: section(object, &["spec", "sharedMemory"]).map(SharedMemory::read),
        }
    }

    /// Whether it has a config of this name.
    pub(crate) fn has_config(&self, name: &str) -> bool {
        self.configs.first(name).is_some()
    }

    /// The names of the configs that count: names that are not empty, each once.
    pub(crate) fn named_configs(&self) -> impl Iterator<Item = &'t str> {
        let first = self.configs.iter().filter(|config| self.configs.before(config).is_none());
        first.filter_map(|config| config.name).filter(|name| !name.is_empty())
    }

    /// The first names of configs, for suggestions; shared, since many messages may look for one.
    pub(crate) fn known_names(&self) -> Arc<[Box<str>]> {
        const MAX_NAMES: usize = 64;
        let names = || self.named_configs().take(MAX_NAMES).map(Box::from).collect();
        Arc::clone(self.known_names.get_or_init(names))
    }

    /// The place of the list of configs.
    pub(crate) const fn configs_place(&self) -> Path<'static> {
        Path::Key(&SPEC, self.configs_field)
    }

    /// Whether the shared memory is on.
    pub(crate) fn shares_memory(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.enabled)
    }
}

fn name(tree: &Tree) -> Option<&str> {
    tree.text_at(&["name"])
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
    Some(Entry { index, name: tree.text_at(&["name"]), tree })
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

impl<'t> AgentConfig<'t> {
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

impl<'t> SharedMemory<'t> {
    fn read(tree: &'t Tree) -> Self {
        // The current field overrides the old one.
        let config =
            |rule: &'t Tree| rule.filled_at(&["agentConfig"]).or_else(|| rule.filled_at(&["persona"]));
        Self {
            enabled: is_true(tree, &["enabled"]),
            storage_size: tree.text_at(&["storageSize"]).unwrap_or(STORAGE_SIZE_DEFAULT),
            rules: Entries::read(tree, &["accessRules"], config),
            membrane: section(tree, &["membrane"]).map(|tree| Membrane {
                permeability: Entries::read(tree, &["permeability"], |rule| rule.text_at(&["agentConfig"])),
                groups: Entries::read(tree, &["trustGroups"], name),
                tree,
            }),
        }
    }

    /// The access of a config by its rule, if it has one.
    pub(crate) fn access(&self, config: &str) -> Option<&'t str> {
        self.rules.first(config).map(access)
    }
}

/// The access that a rule gives, with the default applied.
pub(crate) fn access<'t>(rule: &Entry<'t>) -> &'t str {
    rule.tree.filled_at(&["access"]).unwrap_or(ACCESSES[0])
}

/// The members of a trust group.
pub(crate) fn members<'t>(group: &Entry<'t>) -> impl Iterator<Item = &'t str> + use<'t> {
    texts(group.tree, &["agentConfigs"])
}

impl<'t> Membrane<'t> {
    /// A section of the membrane.
    pub(crate) fn section(&self, name: &str) -> Option<&'t Tree> {
        section(self.tree, &[name])
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
    let default = membrane.tree.filled_at(&["defaultVisibility"]).unwrap_or(VISIBILITIES[0]);
    let decided = config.and_then(|config| {
        if membrane.permeability.is_empty() && !ensemble.relationships.is_empty() {
            let derived = ensemble.has_config(config).then(|| ensemble.derived_visibility(config)).flatten();
            return derived.map(|visibility| (visibility, VisibilitySource::Relationships));
        }
        let rule = membrane.permeability.first(config)?;
        let own = rule.tree.filled_at(&["defaultVisibility"])?;
        Some((own, VisibilitySource::Rule(rule.index)))
    });
    decided.unwrap_or((default, VisibilitySource::Default))
}

impl<'t> Ensemble<'t> {
    /// The visibility that follows from an agent's relationships; `None` if the default applies.
    /// Source: upstream, `internal/controller/agentrun_controller.go`, the derived permeability.
    fn derived_visibility(&self, config: &str) -> Option<&'static str> {
        let Parts { delegating, supervised, starting } = &self.parts;
        match () {
            () if delegating.contains(config) => Some("trusted"),
            () if supervised.contains(config) => Some("public"),
            () if !starting.contains(config) => Some("private"),
            () => None,
        }
    }

    /// The two ends of each relationship that makes them peers if there are no trust groups.
    fn close_pairs(&self) -> impl Iterator<Item = [&'t str; 2]> {
        let close = |it: &&Relationship<'t>| matches!(it.kind, Some("delegation" | "supervision"));
        let pairs = self.relationships.iter().filter(close);
        let pairs = pairs.filter_map(|it| Some([it.source?, it.target?]));
        pairs.filter(|[source, target]| source != target && !source.is_empty() && !target.is_empty())
    }
}

/// The configs whose agents see the trusted entries of this one, in order. With trust groups, they are the
/// other members of its groups. Without any trust group, they are the configs with which it has a
/// delegation or supervision, in either direction.
pub(crate) fn peers<'t>(ensemble: &Ensemble<'t>, membrane: &Membrane<'t>, config: &str) -> Vec<&'t str> {
    let mut peers = BTreeSet::new();
    if membrane.groups.is_empty() {
        peers.extend(ensemble.close_pairs().filter(|pair| pair.contains(&config)).flatten());
    }
    for group in membrane.groups.iter().filter(|group| members(group).any(|member| member == config)) {
        peers.extend(members(group));
    }
    peers.into_iter().filter(|peer| *peer != config && !peer.is_empty()).collect()
}

/// The configs that have any [`peers`].
pub(crate) fn with_peers<'t>(ensemble: &Ensemble<'t>, membrane: &Membrane<'t>) -> Members<&'t str> {
    let mut all = Members::default();
    if membrane.groups.is_empty() {
        all.extend(ensemble.close_pairs().flatten());
    }
    for group in membrane.groups.iter() {
        let mut named = members(group).filter(|member| !member.is_empty());
        let first = named.next();
        if named.any(|member| Some(member) != first) {
            all.extend(members(group));
        }
    }
    all
}

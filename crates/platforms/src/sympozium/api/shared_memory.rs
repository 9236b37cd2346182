//! The fields of an Ensemble's shared memory that decisions read. A field of the wrong type counts as absent,
//! and list elements keep their index.

use memgate_model::tree::Tree;

use super::{ACCESSES, Places, STORAGE_SIZE_DEFAULT, first_places, is_true, list, section, texts};

/// `spec.sharedMemory`.
#[derive(Debug)]
pub(crate) struct SharedMemory<'t> {
    /// Whether it is on.
    pub(crate) enabled: bool,
    /// The size of its volume, with the default applied.
    pub(crate) storage_size: &'t str,
    /// The access rules.
    pub(crate) rules: Vec<AccessRule<'t>>,
    /// The first rule of each config, by its index in `rules`.
    first_rules: Places<'t>,
    /// The membrane.
    pub(crate) membrane: Option<Membrane<'t>>,
}

/// One of the `accessRules`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccessRule<'t> {
    /// Its index in the list.
    pub(crate) index: usize,
    /// The config that it applies to.
    pub(crate) agent_config: Option<&'t str>,
    /// The same under its old name.
    pub(crate) persona: Option<&'t str>,
    /// Whether it has a name field at all, of any type.
    pub(crate) is_named: bool,
    /// The access, unparsed.
    pub(crate) access: Option<&'t str>,
}

/// `spec.sharedMemory.membrane`.
#[derive(Debug)]
pub(crate) struct Membrane<'t> {
    /// The default visibility of entries.
    pub(crate) default_visibility: Option<&'t str>,
    /// The rules for single configs.
    pub(crate) permeability: Vec<PermeabilityRule<'t>>,
    /// The first rule of each config, by its index in `permeability`.
    first_permeability: Places<'t>,
    /// The trust groups.
    pub(crate) groups: Vec<TrustGroup<'t>>,
    /// The first group of each name, by its index in `groups`.
    first_groups: Places<'t>,
    /// The whole membrane.
    pub(crate) tree: &'t Tree,
}

/// One of the `permeability` rules.
#[derive(Debug)]
pub(crate) struct PermeabilityRule<'t> {
    /// Its index in the list.
    pub(crate) index: usize,
    /// The config that it applies to.
    pub(crate) config: Option<&'t str>,
    /// The visibility of the config's entries.
    pub(crate) visibility: Option<&'t str>,
    /// The tags of the config's entries that others see.
    pub(crate) expose_tags: Vec<&'t str>,
    /// The tags of the entries that the config sees.
    pub(crate) accept_tags: Vec<&'t str>,
}

/// One of the `trustGroups`.
#[derive(Debug)]
pub(crate) struct TrustGroup<'t> {
    /// Its index in the list.
    pub(crate) index: usize,
    /// Its name.
    pub(crate) name: Option<&'t str>,
    /// Its members.
    pub(crate) members: Vec<&'t str>,
}

impl<'t> SharedMemory<'t> {
    pub(super) fn read(tree: &'t Tree) -> Self {
        let rules: Vec<AccessRule<'t>> = list(tree, &["accessRules"], |index, tree| AccessRule {
            index,
            agent_config: tree.text_at(&["agentConfig"]),
            persona: tree.text_at(&["persona"]),
            is_named: tree.get("agentConfig").or_else(|| tree.get("persona")).is_some(),
            access: tree.text_at(&["access"]),
        });
        Self {
            enabled: is_true(tree, &["enabled"]),
            storage_size: tree.text_at(&["storageSize"]).unwrap_or(STORAGE_SIZE_DEFAULT),
            first_rules: first_places(rules.iter().map(AccessRule::config)),
            rules,
            membrane: section(tree, &["membrane"]).map(Membrane::read),
        }
    }

    /// The first rule for a config.
    pub(crate) fn rule(&self, config: &str) -> Option<&AccessRule<'t>> {
        self.rules.get(*self.first_rules.get(config)?)
    }
}

impl<'t> AccessRule<'t> {
    /// The config that it applies to; the current field overrides the old one. `None` if both are absent
    /// or empty.
    pub(crate) fn config(&self) -> Option<&'t str> {
        let non_empty = |name: &&str| !name.is_empty();
        self.agent_config.filter(non_empty).or_else(|| self.persona.filter(non_empty))
    }

    /// The access, with the default applied.
    pub(crate) fn access(&self) -> &'t str {
        self.access.filter(|access| !access.is_empty()).unwrap_or(ACCESSES[0])
    }
}

impl<'t> Membrane<'t> {
    fn read(tree: &'t Tree) -> Self {
        let permeability: Vec<PermeabilityRule<'t>> =
            list(tree, &["permeability"], |index, tree| PermeabilityRule {
                index,
                config: tree.text_at(&["agentConfig"]),
                visibility: tree.text_at(&["defaultVisibility"]),
                expose_tags: texts(tree, &["exposeTags"]).collect(),
                accept_tags: texts(tree, &["acceptTags"]).collect(),
            });
        let groups: Vec<TrustGroup<'t>> = list(tree, &["trustGroups"], |index, tree| TrustGroup {
            index,
            name: tree.text_at(&["name"]),
            members: texts(tree, &["agentConfigs"]).collect(),
        });
        Self {
            default_visibility: tree.text_at(&["defaultVisibility"]),
            first_permeability: first_places(permeability.iter().map(|rule| rule.config)),
            permeability,
            first_groups: first_places(groups.iter().map(|group| group.name)),
            groups,
            tree,
        }
    }

    /// The first permeability rule for a config.
    pub(crate) fn rule(&self, config: &str) -> Option<&PermeabilityRule<'t>> {
        self.permeability.get(*self.first_permeability.get(config)?)
    }

    /// The first trust group of a name.
    pub(crate) fn group(&self, name: &str) -> Option<&TrustGroup<'t>> {
        self.groups.get(*self.first_groups.get(name)?)
    }

    /// A section of the membrane.
    pub(crate) fn section(&self, name: &str) -> Option<&'t Tree> {
        section(self.tree, &[name])
    }
}

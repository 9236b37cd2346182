//! The CustomResourceDefinitions that stand in for an apiserver where there is none.

use std::sync::Arc;

use memgate_schema::crd::Crd;

use crate::family::Family;
use crate::state_reader::GivenCrds;

/// The definitions that stand in for an apiserver.
#[derive(Debug, Clone)]
pub struct Crds {
    /// The definitions among the inputs, by group and kind.
    given: GivenCrds,
    /// Finds the bundled definition of a family's kind, by group and kind.
    bundled: fn(&Family, &str, &str) -> Option<Arc<Crd>>,
    /// How many objects are judged.
    objects: usize,
}

impl Crds {
    /// Only the bundled definitions, each of which is read at its first use.
    pub const fn new(bundled: fn(&Family, &str, &str) -> Option<Arc<Crd>>) -> Self {
        Self { given: GivenCrds::new(), bundled, objects: 0 }
    }

    /// Reads the bundled definitions of all kinds of these families. A server calls this so that the first
    /// review of a kind does not wait for its definition.
    pub fn read_bundled(&self, families: &[&'static Family]) {
        for family in families {
            for kind in family.kinds.validated.iter().chain(family.kinds.misnamed) {
                drop((self.bundled)(family, kind.group, kind.kind));
            }
        }
    }

    /// Uses a definition in place of the bundled one.
    pub fn insert(&mut self, crd: Crd) {
        self.given.insert((crd.group.clone(), crd.kind.clone()), Arc::new(crd));
    }

    /// Says how many objects are judged, which share what rules in CEL may cost.
    pub const fn share_among(&mut self, objects: usize) {
        self.objects = objects;
    }

    /// What the rules in CEL of each object may cost.
    pub fn allowance(&self) -> u64 {
        memgate_schema::allowance(self.objects)
    }

    /// Whether the inputs define a kind.
    pub fn is_given(&self, group: &str, kind: &str) -> bool {
        self.given.contains_key(&(group.to_owned(), kind.to_owned()))
    }

    pub(crate) const fn given(&self) -> &GivenCrds {
        &self.given
    }

    /// The definition of a kind of a family.
    pub fn get(&self, family: &Family, group: &str, kind: &str) -> Option<Arc<Crd>> {
        let given = self.given.get(&(group.to_owned(), kind.to_owned())).cloned();
        given.or_else(|| (self.bundled)(family, group, kind))
    }
}

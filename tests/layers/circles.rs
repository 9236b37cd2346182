//! Modules of one parent that use each other in a circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::source::{Module, Source};

/// The modules of one crate.
pub(crate) struct Modules {
    sources: Vec<Source>,
    known: BTreeSet<Module>,
    /// What a module has imported under which name.
    imports: BTreeMap<(Module, String), Vec<String>>,
}

/// Who uses whom, and the places where.
pub(crate) type Uses = BTreeMap<String, BTreeMap<String, Vec<String>>>;

impl Modules {
    pub(crate) fn of(sources: Vec<Source>) -> Self {
        let known = sources.iter().map(|source| source.module.clone()).collect();
        let mut imports = BTreeMap::new();
        for source in &sources {
            for used in source.paths.iter().filter(|used| used.start != "memgate") {
                if let Some(name) = &used.import {
                    imports.insert((source.module.clone(), name.clone()), used.from(&source.module));
                }
            }
        }
        Self { sources, known, imports }
    }

    /// The module that a path leads to; imports on the way are followed.
    fn target(&self, path: &[String], follow: usize) -> Option<Module> {
        let depth = (0..=path.len()).rev().find(|depth| self.known.contains(&path[..*depth]))?;
        let module = path[..depth].to_vec();
        let Some(name) = path.get(depth).filter(|_| follow > 0) else { return Some(module) };
        match self.imports.get(&(module.clone(), name.clone())) {
            Some(imported) => self.target(imported, follow - 1),
            None => Some(module),
        }
    }

    /// For each parent, which of its children use which others.
    pub(crate) fn uses_among_children(&self) -> BTreeMap<Module, Uses> {
        let mut all: BTreeMap<Module, Uses> = BTreeMap::new();
        for source in &self.sources {
            for used in source.paths.iter().filter(|used| used.start != "memgate") {
                let Some(target) = self.target(&used.from(&source.module), 5) else { continue };
                let shared = source.module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                // One of the two is the other's parent, or both are one.
                let (Some(from), Some(to)) = (source.module.get(shared), target.get(shared)) else {
                    continue;
                };
                let uses = all.entry(target[..shared].to_vec()).or_default();
                let places = uses.entry(from.clone()).or_default().entry(to.clone()).or_default();
                let place = format!("{}:{}", source.file.display(), used.line);
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        all
    }
}

/// The shortest circle through each use that is part of one, each circle once.
pub(crate) fn circles_in(uses: &Uses) -> Vec<Vec<(String, String)>> {
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (from, used) in uses {
        for to in used.keys() {
            let Some(back) = way(uses, to, from) else { continue };
            let members: BTreeSet<_> = back.iter().cloned().collect();
            if seen.insert(members) {
                let stops: Vec<_> = std::iter::once(from.clone()).chain(back).collect();
                circles.push(stops.iter().cloned().zip(stops.iter().skip(1).cloned()).collect());
            }
        }
    }
    circles
}

/// The shortest way from one module to another, both included.
fn way(uses: &Uses, from: &str, to: &str) -> Option<Vec<String>> {
    let mut queue = VecDeque::from([vec![from.to_owned()]]);
    let mut seen = BTreeSet::from([from.to_owned()]);
    while let Some(stops) = queue.pop_front() {
        let here = stops.last()?;
        if here == to {
            return Some(stops);
        }
        for next in uses.get(here).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next.clone()) {
                queue.push_back([stops.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

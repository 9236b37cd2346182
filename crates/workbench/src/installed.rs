//! What the inputs make that memgate does not see: what Applications, Kustomizations and releases install from elsewhere,
//! and what charts and kustomizations make that are not rendered.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::objects::UndecidedObject;
use crate::paths::{Roots, normal};
use crate::render::Unrendered;
use crate::repository::Tool;
use memgate_core::state::makers::{Installation, add_anything};
use memgate_manifest::source::Source;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::budget::Budget;
use memgate_primitives::glob::Glob;

/// So many paths of files are compared with patterns. What more patterns install counts as unknown.
const MOST_COMPARED: usize = 1 << 20;

/// The objects among the inputs that install others.
#[derive(Debug, Default)]
pub(crate) struct Installers {
    all: Vec<(Arc<Path>, Installation)>,
    /// All files of the inputs, manifests or not.
    pub(crate) files: Vec<PathBuf>,
    /// The files that a kustomization gives a namespace, together with what it makes.
    pub(crate) moved: BTreeSet<PathBuf>,
}

/// Namespaces in which something is made; `None` for any.
type Namespaces = Option<BTreeSet<String>>;

impl Installers {
    /// Adds what an object of a file installs.
    pub(crate) fn add(&mut self, file: &Path, installations: BTreeSet<Installation>) {
        let file: Arc<Path> = file.into();
        self.all.extend(installations.into_iter().map(|it| (Arc::clone(&file), it)));
    }
}

/// Makes unknown what the inputs make and do not hold, once everything was read.
pub(crate) fn make_unknown(
    Installers { all, files, moved }: Installers,
    unrendered: &mut [Unrendered],
    sources: &[Arc<Source>],
    objects: &mut [UndecidedObject],
    snapshot: &mut Snapshot,
) {
    let is_maker = |it: &&mut Unrendered| it.unit.generates;
    let makers: Vec<&mut Unrendered> = unrendered.iter_mut().filter(is_maker).collect();
    if all.is_empty() && makers.is_empty() {
        return;
    }
    let (mut read, mut roots) = (ReadPaths::of(&files), Roots::default());
    let (mut made, mut by_path) = (BTreeSet::new(), BTreeMap::<PathBuf, BTreeSet<Option<String>>>::new());
    for (file, Installation { path, namespace }) in all {
        let paths = path.map(|path| read.fitting(&roots.of(&file), &path));
        match paths.filter(|paths| !paths.is_empty()) {
            Some(paths) => {
                for path in paths {
                    by_path.entry(path).or_default().insert(namespace.clone());
                }
            }
            None => drop(made.insert(namespace)),
        }
    }
    for Unrendered { unit, namespaces, .. } in makers {
        let installed = || unit.absolute().ancestors().filter_map(|path| by_path.get(path)).flatten();
        let installed: BTreeSet<Option<String>> = match (unit.tool, unit.namespaces.is_empty()) {
            (Tool::Kustomize, false) => unit.namespaces.iter().cloned().map(Some).collect(),
            _ => installed().cloned().collect(),
        };
        if installed.is_empty() {
            made.insert(None);
        } else {
            *namespaces = installed.iter().cloned().collect();
        }
        made.extend(installed);
    }
    // These files are judged in the namespaces that they say.
    let is_moved = |source: &&Arc<Source>| moved.contains(&normal(Path::new(source.name())));
    let moved: BTreeSet<_> =
        sources.iter().filter(|_| !moved.is_empty()).filter(is_moved).map(Arc::as_ptr).collect();
    let objects = objects.iter().map(|it| &it.object);
    let objects = objects.filter(|it| moved.contains(&Arc::as_ptr(it.place.source())));
    made.extend(objects.map(|it| Some(it.object_ref.namespace.to_string())));
    let namespaces: Namespaces = made.into_iter().collect();
    match namespaces {
        None => add_anything(snapshot, None),
        Some(namespaces) => {
            for namespace in &namespaces {
                add_anything(snapshot, Some(namespace));
            }
        }
    }
}

/// The files that were read, and the directories above them.
struct ReadPaths {
    all: BTreeSet<PathBuf>,
    budget: usize,
}

impl ReadPaths {
    fn of(files: &[PathBuf]) -> Self {
        let mut all = BTreeSet::new();
        for file in files {
            let file = normal(file);
            // Above one that is known, all are.
            for path in file.ancestors() {
                if !all.insert(path.to_owned()) {
                    break;
                }
            }
        }
        Self { all, budget: MOST_COMPARED }
    }

    /// Those at a path from a root, which may be a pattern.
    fn fitting(&mut self, root: &Path, path: &str) -> Vec<PathBuf> {
        let place = normal(&root.join(path.trim_start_matches('/')));
        if !path.contains('*') {
            return Some(place).filter(|place| self.all.contains(place)).into_iter().collect();
        }
        let fixed: PathBuf =
            place.components().take_while(|it| !it.as_os_str().to_string_lossy().contains('*')).collect();
        let glob = Glob::within(place.to_string_lossy(), '/');
        let behind = (Bound::Included(fixed.clone()), Bound::Unbounded);
        let below = self.all.range::<PathBuf, _>(behind).take_while(|it| it.starts_with(&fixed));
        let (mut found, mut left) = (Vec::new(), self.budget);
        for path in below.take(self.budget) {
            left -= 1;
            if glob.matches(&path.to_string_lossy(), &Budget::default()) {
                found.push(path.clone());
            }
        }
        self.budget = left;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_among_the_files() {
        let files = ["/r/apps/a/x.yaml", "/r/apps/b/c/y.yaml", "/r/z.yaml"].map(PathBuf::from);
        let mut read = ReadPaths::of(&files);
        for (path, expected) in [
            ("apps", 1),
            ("./apps/a/", 1),
            ("/apps/a/x.yaml", 1),
            (".", 1),
            ("apps/d", 0),
            ("app", 0),
            ("apps/*", 2),
            ("apps/*/c", 1),
            ("apps/**", 5),
            ("apps/*/d", 0),
            ("../other", 0),
        ] {
            assert_eq!(read.fitting(Path::new("/r"), path).len(), expected, "{path}");
        }
    }

    #[test]
    fn very_many_patterns_compare_a_bounded_number_of_paths() {
        let files: Vec<PathBuf> = (0..10_000).map(|it| format!("/r/a{it}/x.yaml").into()).collect();
        let mut read = ReadPaths::of(&files);
        let found =
            (0..10_000).filter(|it| !read.fitting(Path::new("/r"), &format!("*{it}")).is_empty()).count();
        assert!(found > 0 && found < 1000, "{found}");
        assert_eq!(read.budget, 0);
    }
}

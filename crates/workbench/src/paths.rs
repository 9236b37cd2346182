//! Paths without dots, the repository around one, and links that lead out of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The repository around a directory: the nearest one at or above it that has `.git`.
pub fn root_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|ancestor| ancestor.join(".git").exists())
}

/// The roots of repositories that were looked for, by the directories of files.
#[derive(Debug, Default)]
pub(crate) struct Roots(BTreeMap<PathBuf, PathBuf>);

impl Roots {
    /// The root of the repository of a file; outside of one the working directory.
    pub(crate) fn of(&mut self, file: &Path) -> PathBuf {
        let directory = normal(file).parent().map(Path::to_owned).unwrap_or_default();
        let root =
            |directory: &PathBuf| root_of(directory).map_or_else(|| normal(Path::new(".")), Path::to_owned);
        self.0.entry(directory).or_insert_with_key(root).clone()
    }
}

/// Whether a path is a link, or lies below one, that leads out of the repository, or without one out of the working
/// directory. A path elsewhere may lead to what lies beside it, as the files of a mounted ConfigMap do.
pub(crate) fn leads_out(path: &Path) -> bool {
    let (named, Ok(real)) = (normal(path), fs::canonicalize(path)) else { return false };
    if named == real {
        return false;
    }
    let Ok(here) = fs::canonicalize(".") else { return true };
    let around = |directory: &Path| root_of(directory).unwrap_or(directory).to_owned();
    let home = around(&here);
    let beside = || {
        let around = named.parent().and_then(|parent| fs::canonicalize(around(parent)).ok());
        around.is_some_and(|around| real.starts_with(around))
    };
    let is_inside = real.starts_with(&home) || !named.starts_with(&home) && beside();
    !is_inside || real.iter().any(|part| part == ".git")
}

/// An absolute path without `.` and `..`: two names of one file become one. Links are not followed.
pub fn normal(path: &Path) -> PathBuf {
    without_dots(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// The path without `.`, and without `..` behind a directory: `overlays/prod/../../base/a.yaml` is `base/a.yaml`.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match (part, plain.components().next_back()) {
            (Component::ParentDir, Some(Component::Normal(_))) => {
                plain.pop();
            }
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            _ => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory of the system may be a link itself, as /var/run is.
    #[test]
    fn a_path_elsewhere_may_lead_through_a_link() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        for directory in ["real", "repo/.git"] {
            fs::create_dir_all(path(directory)).expect("directories");
        }
        fs::write(path("real/a.yaml"), "").expect("a file");
        for (target, link) in [("real", "via"), ("../real", "repo/via"), ("../real/a.yaml", "repo/a.yaml")] {
            symlink(target, path(link)).expect("a link");
        }
        for (name, expected) in
            [("real/a.yaml", false), ("via/a.yaml", false), ("repo/via/a.yaml", true), ("repo/a.yaml", true)]
        {
            assert_eq!(leads_out(&path(name)), expected, "{name}");
        }
    }
}

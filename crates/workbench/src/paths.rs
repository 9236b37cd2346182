//! Paths without dots, the repository around one with the file of its choices, and links that lead out of it.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The repository around a directory: the nearest one at or above it that has `.git`.
pub fn root_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|ancestor| ancestor.join(".git").exists())
}

/// The root of the repository around a file or directory; outside of one the working directory.
pub fn root_around(path: &Path) -> PathBuf {
    root_of(&normal(path)).map_or_else(|| normal(Path::new(".")), Path::to_owned)
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
    // A link of a repository leads out of that one.
    let is_of_another = named.parent().and_then(root_of).is_some_and(|own| own != home);
    let is_inside = if is_of_another {
        beside()
    } else {
        real.starts_with(&home) || !named.starts_with(&home) && beside()
    };
    !is_inside || real.iter().any(|part| part == ".git")
}

/// Whether a link on the way of a path leads out of the work tree around the working directory, or into git's own files.
pub fn leads_out_of_tree(path: &Path) -> bool {
    let Ok(mut at) = fs::canonicalize(".") else { return true };
    let root = root_of(&at).unwrap_or(&at).to_owned();
    let is_of_git = |path: &Path| path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
    for part in path.components() {
        let next = at.join(part);
        // What does not exist is made.
        let Ok(real) = fs::canonicalize(&next) else { return false };
        if at.starts_with(&root) && next.is_symlink() && (!real.starts_with(&root) || is_of_git(&real)) {
            return true;
        }
        at = real;
    }
    false
}

/// Whether a path leads to something at or below a directory, which has no links, and not into git's own files.
pub(crate) fn is_below(path: &Path, directory: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| {
        path.strip_prefix(directory).is_ok_and(|below| below.iter().all(|part| part != ".git"))
    })
}

/// Where the files lie that a kustomization may name: its repository. Outside of one kustomize may read what it builds on
/// anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Home {
    /// The directory out of which no file lies.
    within: Option<PathBuf>,
}

impl Home {
    /// That of a directory.
    pub(crate) fn of(directory: &Path) -> Self {
        Self { within: root_of(&normal(directory)).and_then(|root| fs::canonicalize(root).ok()) }
    }

    /// What a path leads to, as a path below the repository.
    pub(crate) fn real(&self, path: &Path) -> PathBuf {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let below = self.within.as_ref().and_then(|within| real.strip_prefix(within).ok());
        // What a link leads to may have a `.git` too.
        below
            .zip(path.parent().and_then(root_of))
            .map_or_else(|| real.clone(), |(below, root)| root.join(below))
    }

    /// Whether a path leads out of the repository, to a file that exists or not.
    pub(crate) fn is_left_by(&self, path: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        let there = || normal(path).ancestors().find_map(real);
        self.within.as_ref().is_some_and(|within| there().is_some_and(|there| !there.starts_with(within)))
    }

    /// Whether a file may be read: others than ordinary files may have no end.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        path.is_file() && self.within.as_ref().is_none_or(|within| is_below(path, within))
    }
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

/// The name of the file with the choices of a repository.
pub const PROJECT_FILE: &str = ".memgate.yaml";

/// Whether a file has the extension of a manifest.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

/// Whether a path has the extension of a manifest, however it is written.
pub(crate) fn looks_like_manifest(path: &Path) -> bool {
    is_manifest(Path::new(&path.to_string_lossy().to_lowercase()))
}

/// Whether a path is a glob.
pub fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// The file with the choices for these paths: the one that all of them have, else that of the working directory.
pub fn project_file_for(paths: &[String]) -> Option<PathBuf> {
    let here = normal(Path::new("."));
    let mut files =
        paths.iter().filter(|path| *path != "-").map(|path| find(&normal(&start_of_search(path)), &here));
    let first = files.next().filter(|first| files.all(|file| file == *first));
    first.unwrap_or_else(|| find(&here, &here))
}

/// The nearest file from a directory up to the root of its repository, as a path from `here`. Outside of a repository
/// only `here` can have one, since any user may write into the directories above.
fn find(directory: &Path, here: &Path) -> Option<PathBuf> {
    let (from, root) = root_of(directory).map_or((here, here), |root| (directory, root));
    // A link among the directories may lead out of the repository.
    let real_root = fs::canonicalize(root).ok()?;
    let is_inside = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real.starts_with(&real_root));
    let has_file = |path: &Path| fs::symlink_metadata(path.join(PROJECT_FILE)).is_ok();
    let mut directories = from.ancestors().take_while(|path| path.starts_with(root));
    let found = directories.find(|path| has_file(path) && is_inside(path))?;
    path_from(here, &found.join(PROJECT_FILE))
}

/// An absolute path as one from a directory.
pub(crate) fn path_from(directory: &Path, path: &Path) -> Option<PathBuf> {
    let (depth, common) = directory.ancestors().enumerate().find(|(_, above)| path.starts_with(above))?;
    let up = std::iter::repeat_n("..", depth).collect::<PathBuf>();
    Some(up.join(path.strip_prefix(common).ok()?))
}

/// The directory at which the search for a path begins.
fn start_of_search(path: &str) -> PathBuf {
    let path = Path::new(path);
    let mut directories = path.ancestors().filter(|it| it.is_dir());
    directories.next().map_or_else(|| PathBuf::from("."), Path::to_owned)
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

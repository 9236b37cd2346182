//! The files of a commit that the paths of a command line name. A few more are written than are read afterwards, which
//! costs little.

use std::fs;
use std::path::Path;

use crate::offline::repository::without_dots;
use crate::offline::walk::{is_glob, is_manifest};

/// Matches the files that a path names.
#[derive(Debug)]
pub(super) struct PathFilter {
    start: String,
    /// Whether the path is a glob, which may name files of any extension.
    any_extension: bool,
}

impl PathFilter {
    /// The filter of a path from the root of the work tree: a file, a directory, or a glob.
    pub(super) fn of(relative: &str) -> Self {
        Self { start: fixed_part(relative).to_owned(), any_extension: is_glob(relative) }
    }

    /// Whether the path names this file.
    pub(super) fn matches(&self, name: &str) -> bool {
        name == self.start
            || (is_below(name, &self.start) && (self.any_extension || is_manifest(Path::new(name))))
    }
}

/// Whether a file is at or below a path; everything is below the empty one.
pub(super) fn is_below(name: &str, path: &str) -> bool {
    path.is_empty() || name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The directories of a glob before its first wildcard; of any other path all of it.
pub(super) fn fixed_part(path: &str) -> &str {
    let Some(wildcard) = path.find(['*', '?', '[', '{']) else { return path };
    path.get(..wildcard).and_then(|start| start.rsplit_once('/')).map_or("", |(start, _)| start)
}

/// A path of the command line from the root of the work tree; `None` if it is outside.
pub(super) fn relative(root: &Path, working_directory: &Path, path: &str) -> Option<String> {
    let whole = without_dots(&working_directory.join(path));
    let inside = whole.strip_prefix(root).ok().map(Path::to_owned);
    // A path may reach the work tree through a link.
    let inside = inside.or_else(|| Some(fs::canonicalize(path).ok()?.strip_prefix(root).ok()?.to_owned()));
    inside.map(|inside| inside.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_in_the_work_tree() {
        let (root, inside) = (Path::new("/r"), Path::new("/r/a"));
        for (path, expected) in [
            (".", Some("a")),
            ("..", Some("")),
            ("b/", Some("a/b")),
            ("../b/./c.yaml", Some("b/c.yaml")),
            ("/r/x/*.yaml", Some("x/*.yaml")),
            ("../../x", None),
            ("/rx", None),
        ] {
            assert_eq!(relative(root, inside, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn matches_the_files_that_a_path_names() {
        for (path, name, expected) in [
            ("", "a/b.yaml", true),
            ("", "a/b.go", false),
            ("a", "a/b.json", true),
            ("a", "ab/b.yaml", false),
            ("a/b.txt", "a/b.txt", true),
            ("a/*.txt", "a/b.txt", true),
            ("a/*.txt", "b/b.txt", false),
            ("*.txt", "a/b.txt", true),
        ] {
            assert_eq!(PathFilter::of(path).matches(name), expected, "{path} {name}");
        }
    }
}

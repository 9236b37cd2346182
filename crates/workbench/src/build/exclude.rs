//! Globs for files and directories that the user excludes.

use std::path::{Path, PathBuf};

use globset::{ErrorKind, GlobBuilder, GlobMatcher, GlobSet};

use crate::paths::normal;
use memgate_manifest::error::Error;
use memgate_primitives::plain_text::cut;

/// The most characters of a glob in an error.
const MAX_SHOWN_CHARS: usize = 256;

/// Globs for files and directories that are not read.
#[derive(Debug, Default)]
pub struct Exclude {
    globs: Vec<Glob>,
}

#[derive(Debug, Clone)]
struct Glob {
    matcher: GlobMatcher,
    /// Whether it matches names at any depth, since it has no `/`.
    is_name: bool,
    /// The directory to which paths are relative, for a glob of a file.
    base: Option<PathBuf>,
}

/// The matcher of a glob of paths.
///
/// # Errors
/// When the glob is malformed or too large.
pub(crate) fn matcher(glob: &str) -> Result<GlobMatcher, Error> {
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    // A matcher of one that is too large panics; a set of it is an error.
    let built = built.and_then(|built| GlobSet::new([built.clone()]).map(|_| built));
    let fault = |error| Error::of_input(cut(glob, MAX_SHOWN_CHARS), fault(&error));
    built.map(|built| built.compile_matcher()).map_err(fault)
}

/// Why a glob cannot be used.
pub(crate) fn fault(error: &globset::Error) -> String {
    match error.kind() {
        ErrorKind::Regex(_) => "this glob is too large; write a shorter one".to_owned(),
        kind => kind.to_string(),
    }
}

impl Exclude {
    /// Adds a glob. Without `/` it matches names at any depth, else paths: as they were given, relative to the directory of
    /// the walk, or, with a `base`, relative to that.
    ///
    /// # Errors
    /// When the glob is malformed.
    pub fn add(&mut self, glob: &str, base: Option<&Path>) -> Result<(), Error> {
        let text = glob.strip_prefix("./").unwrap_or(glob).trim_end_matches('/');
        self.globs.push(Glob {
            matcher: matcher(text)?,
            is_name: !text.contains('/'),
            base: base.map(Path::to_owned),
        });
        Ok(())
    }

    /// Whether a path below the directory of a walk is left out.
    pub fn excludes(&self, path: &Path, root: &Path) -> bool {
        self.globs.iter().any(|glob| glob.excludes(path, root))
    }

    /// Whether a file that is not found by a walk is left out, by itself or with a directory around it.
    pub fn excludes_file(&self, file: &Path) -> bool {
        let here = normal(Path::new("."));
        let is_inside = |path: &&Path| !path.as_os_str().is_empty() && !here.starts_with(normal(path));
        file.ancestors().take_while(is_inside).any(|path| self.excludes(path, Path::new("")))
    }

    /// The globs of flags alone: a file of the repository has no say in what the caller names.
    #[must_use]
    pub fn of_flags(&self) -> Self {
        Self { globs: self.globs.iter().filter(|glob| glob.base.is_none()).cloned().collect() }
    }
}

impl Glob {
    fn excludes(&self, path: &Path, root: &Path) -> bool {
        let is_name = |path: &Path| path.file_name().is_some_and(|name| self.matcher.is_match(name));
        if let Some(base) = &self.base {
            // A file leaves out nothing beside its own directory.
            let below = normal(path);
            let path = below.strip_prefix(base);
            path.is_ok_and(|path| if self.is_name { is_name(path) } else { self.matcher.is_match(path) })
        } else if self.is_name {
            is_name(path)
        } else {
            let plain = path.strip_prefix(".").unwrap_or(path);
            self.matcher.is_match(plain)
                || path.strip_prefix(root).is_ok_and(|path| self.matcher.is_match(path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_names_and_paths() {
        for (glob, path, expected) in [
            ("vendor", "deploy/a/vendor", true),
            ("vendor/", "deploy/vendor", true),
            ("*.gen.yaml", "deploy/a/b.gen.yaml", true),
            ("vendor", "deploy/vendored", false),
            ("deploy/a", "deploy/a", true),
            ("a/b.yaml", "deploy/a/b.yaml", true),
            ("a/*", "deploy/a/b/c.yaml", false),
            ("**/c.yaml", "deploy/a/b/c.yaml", true),
            ("./deploy/a", "deploy/a", true),
        ] {
            let mut exclude = Exclude::default();
            exclude.add(glob, None).expect("a glob");
            assert_eq!(exclude.excludes(Path::new(path), Path::new("deploy")), expected, "{glob} {path}");
        }
    }

    #[test]
    fn takes_globs_of_a_file_relative_to_its_directory() {
        let base = normal(Path::new(".."));
        let mut exclude = Exclude::default();
        exclude.add("here/x.yaml", Some(&base)).expect("a glob");
        let root = base.join("here");
        assert!(exclude.excludes(&root.join("x.yaml"), &root));
        assert!(!exclude.excludes(&root.join("here/x.yaml"), &root));
    }
}

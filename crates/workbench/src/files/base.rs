//! The files as they were where a branch began, so that a check can tell which findings are new.
//!
//! They are written into a directory that the caller gives and removes. No file of the repository is written, neither work
//! tree nor index.

mod git;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use thiserror::Error;

use crate::build::plan::Plan;
use crate::files::base::git::Repository;
use crate::paths::{PROJECT_FILE, path_from, without_dots};

/// Why the base cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The program `git` does not exist.
    #[error("--base needs git, and there is no such program")]
    NoGit,
    /// The working directory does not belong to a repository with a work tree.
    #[error("--base compares with a commit, and this directory is in no git work tree; run it inside of one")]
    NoRepository,
    /// There is nothing to compare with at the reference.
    #[error("--base {reference}: {problem}")]
    Reference {
        /// The reference that the user gave.
        reference: String,
        /// Why, and what to do.
        problem: String,
    },
    /// A path outside of the repository.
    #[error("--base compares with a commit, and {path} is outside of the repository")]
    Outside {
        /// The path as the user gave it.
        path: String,
    },
    /// `git` failed.
    #[error("git failed to {step}: {message}")]
    Git {
        /// The step.
        step: &'static str,
        /// The message of git.
        message: String,
    },
    /// The files of the base cannot be written.
    #[error("failed to write the files of the base for comparison: {}", .0.kind())]
    Write(io::Error),
}

/// A branch and what it is compared with: the commit that the user named, and the one at which the branch began. The first
/// one says by what the branch is judged, the second one what was there before it.
#[derive(Debug)]
pub struct Branch {
    /// The first commit as the user named it.
    pub reference: String,
    /// The root of the work tree, and the working directory in it.
    root: PathBuf,
    working_directory: PathBuf,
    tip: CommitFiles,
    start: CommitFiles,
}

/// The files of a commit.
#[derive(Debug)]
struct CommitFiles {
    commit: String,
    /// By their paths from the root.
    blobs: BTreeMap<String, git::Blob>,
}

/// Which commit of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// The one that the user named.
    Named,
    /// The last one that it and HEAD have in common.
    Start,
}

/// Files of a commit, in a directory.
#[derive(Debug)]
pub struct Base {
    directory: PathBuf,
    /// The root of the work tree, and the working directory in it.
    root: PathBuf,
    working_directory: PathBuf,
    /// The paths of the commit's files, from its root.
    names: BTreeSet<String>,
}

/// A file of the commit that a branch is compared with.
#[derive(Debug)]
pub enum FileThere {
    /// Its text.
    Text(String),
    /// It is a link, which may lead to any file, or not a text.
    Unreadable,
    /// It is not there.
    Missing,
}

impl Branch {
    /// Finds the commits.
    ///
    /// # Errors
    /// When the commit does not exist, or git is missing or fails.
    pub fn find(reference: &str) -> Result<Self, Error> {
        let repository = Repository::find()?;
        let commits = repository.commits(reference)?;
        let tree = |commit: String| {
            let blobs = git::blobs(&commit)?.into_iter().map(|blob| (blob.name.clone(), blob));
            Ok::<_, Error>(CommitFiles { blobs: blobs.collect(), commit })
        };
        let [tip, start] = commits.map(tree);
        let working_directory = env::current_dir().map_err(Error::Write)?;
        let (reference, root) = (reference.to_owned(), repository.root);
        Ok(Self { reference, root, working_directory, tip: tip?, start: start? })
    }

    /// The id of the commit at which it began.
    pub fn start(&self) -> &str {
        &self.start.commit
    }

    /// Whether nothing was committed since it began where it is compared, so that both commits are one.
    pub fn is_at_tip(&self) -> bool {
        self.tip.commit == self.start.commit
    }

    /// Writes the files of a commit, from which those of a plan are read, into an empty directory.
    ///
    /// # Errors
    /// When a path is outside of the repository, or git fails.
    pub fn write(&self, commit: Commit, plan: &Plan, directory: &Path) -> Result<Base, Error> {
        let CommitFiles { blobs, .. } = if commit == Commit::Named { &self.tip } else { &self.start };
        let names = blobs.keys().cloned().collect();
        let directory = directory.canonicalize().map_err(Error::Write)?;
        let (root, working_directory) = (self.root.clone(), self.working_directory.clone());
        let base = Base { directory, root, working_directory, names };
        for path in &plan.checked {
            if base.relative(path).is_none() {
                return Err(Error::Outside { path: path.clone() });
            }
        }
        git::write(blobs.values().collect(), &base.directory)?;
        // The directory is the root of a repository: paths in manifests begin there.
        fs::create_dir_all(base.directory.join(".git")).map_err(Error::Write)?;
        Ok(base)
    }

    /// The paths of the files of the work tree from its root, without those that git ignores.
    ///
    /// # Errors
    /// When git fails.
    pub fn files(&self) -> Result<Vec<String>, Error> {
        git::files(&self.root)
    }

    /// The root of the work tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path of the command line from the root of the work tree; `None` if it is outside.
    pub fn relative(&self, path: &str) -> Option<String> {
        relative(&self.root, &self.working_directory, path)
    }

    /// A file at a path from the root, as the commit that the user named has it.
    ///
    /// # Errors
    /// When git fails.
    pub fn file(&self, relative: &str) -> Result<FileThere, Error> {
        let Some(blob) = self.tip.blobs.get(relative) else {
            return Ok(FileThere::Missing);
        };
        if blob.is_link {
            return Ok(FileThere::Unreadable);
        }
        let text = String::from_utf8(git::content(blob)?);
        Ok(text.map_or(FileThere::Unreadable, FileThere::Text))
    }

    /// The path from the root of the file with the choices for these paths, as the commit that the user named has it: the
    /// one that all of them have, else that of the working directory.
    pub fn project_file_for(&self, paths: &[String]) -> Option<String> {
        let has = |name: &String| self.tip.blobs.contains_key(name);
        let nearest = |path: &str| {
            let directories = Path::new(path).ancestors();
            let mut files = directories.map(|it| it.join(PROJECT_FILE).to_string_lossy().into_owned());
            files.find(has)
        };
        let relative = |path: &String| self.relative(path).unwrap_or_default();
        let mut files = paths.iter().filter(|path| *path != "-").map(|it| nearest(fixed_part(&relative(it))));
        let first = files.next().filter(|first| files.all(|file| file == *first));
        first.unwrap_or_else(|| nearest(&self.relative(".")?))
    }

    /// A path from the root of the work tree as the user would write it.
    pub fn shown(&self, relative: &str) -> PathBuf {
        let whole = self.root.join(relative);
        path_from(&self.working_directory, &whole).unwrap_or(whole)
    }
}

impl Base {
    /// The directory with the files, without links in its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The paths of its files, from its root.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.names.iter()
    }

    /// The path of a directory of the work tree among the files of the base.
    pub fn directory_of(&self, directory: &Path) -> PathBuf {
        self.directory.join(self.relative(&directory.to_string_lossy()).unwrap_or_default())
    }

    /// The paths of the files that were checked, as they were in the commit; those that it does not have are left out.
    pub fn paths(&self, paths: &[String]) -> Vec<String> {
        paths.iter().filter_map(|path| self.path(path)).collect()
    }

    /// The paths of state: as they were in the commit, and as they are where it does not have them.
    pub fn state_paths(&self, paths: &[String]) -> Vec<String> {
        paths.iter().map(|path| self.path(path).unwrap_or_else(|| path.clone())).collect()
    }

    /// A chart and a file of values for it, likewise.
    pub fn values(&self, chart: Option<PathBuf>, file: &Path) -> (Option<PathBuf>, PathBuf) {
        let there =
            |path: &Path| self.path(&path.to_string_lossy()).map_or_else(|| path.to_owned(), PathBuf::from);
        (chart.map(|chart| there(&chart)), there(file))
    }

    /// A text about files of the base, with their paths from the root of the work tree.
    pub fn from_root(&self, text: &str) -> String {
        let directory = self.directory.to_string_lossy();
        text.replace(&format!("{directory}/"), "").replace(&*directory, ".")
    }

    fn path(&self, path: &str) -> Option<String> {
        let relative = self.relative(path)?;
        let is_there = self.directory.join(fixed_part(&relative)).exists();
        is_there.then(|| self.directory.join(&relative).to_string_lossy().into_owned())
    }

    /// A path from the root of the work tree.
    fn relative(&self, path: &str) -> Option<String> {
        relative(&self.root, &self.working_directory, path)
    }
}

/// The directories of a glob before its first wildcard; of any other path all of it.
fn fixed_part(path: &str) -> &str {
    let Some(wildcard) = path.find(['*', '?', '[', '{']) else { return path };
    path.get(..wildcard).and_then(|start| start.rsplit_once('/')).map_or("", |(start, _)| start)
}

/// A path of the command line from the root of the work tree; `None` if it is outside.
fn relative(root: &Path, working_directory: &Path, path: &str) -> Option<String> {
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
}

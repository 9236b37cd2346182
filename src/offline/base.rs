//! The files as they were where a branch began, so that a check can tell which findings are new.
//!
//! The user's `git` reads the commit's objects, and memgate writes them into a directory that the caller gives and
//! removes. Nothing is checked out, and no file of the repository is written, neither work tree nor index.

mod git;
mod paths;

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::offline::base::git::{Blob, Contents, Repository};
use crate::offline::base::paths::{PathFilter, is_below, relative};
use crate::offline::stop::Stop;

/// Why the base cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The program `git` does not exist.
    #[error("--base needs git, and there is no such program")]
    NoGit,
    /// The working directory does not belong to a repository with a work tree.
    #[error("--base compares with a commit, and this directory is in no git work tree; run it inside of one")]
    NoRepository,
    /// The repository does not have the commit.
    #[error("--base {reference}: there is no such commit here; {}", advice(reference, *is_shallow))]
    Unknown {
        /// The reference that the user gave.
        reference: String,
        /// Whether the clone lacks commits.
        is_shallow: bool,
    },
    /// The branch does not exist locally, but at a remote.
    #[error("--base {reference}: there is no such branch here; did you mean {remote}?")]
    RemoteOnly {
        /// The reference that the user gave.
        reference: String,
        /// The branch of the remote.
        remote: String,
    },
    /// Nothing is committed yet.
    #[error("--base {reference}: nothing is committed here yet, so there is nothing to compare with")]
    NoHead {
        /// The reference that the user gave.
        reference: String,
    },
    /// The histories have no commit in common.
    #[error("--base {reference}: it has no commit in common with HEAD{}", if *is_shallow {
        format!(" in this shallow clone; {}", advice(reference, true))
    } else {
        String::new()
    })]
    NoMergeBase {
        /// The reference that the user gave.
        reference: String,
        /// Whether the clone lacks commits.
        is_shallow: bool,
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
    /// The user has ended it.
    #[error("interrupted")]
    Interrupted,
}

/// The command that fetches the missing commits.
fn advice(reference: &str, is_shallow: bool) -> String {
    let (remote, branch) = match reference.split_once('/') {
        Some((remote, branch)) if remote == "origin" => (remote, branch),
        _ => ("origin", reference),
    };
    if is_shallow {
        format!("fetch its history: git fetch --unshallow {remote} {branch}")
    } else {
        format!("fetch it: git fetch {remote} {branch}")
    }
}

/// Files of a commit, in a directory.
#[derive(Debug)]
pub struct Base {
    /// The commit.
    pub commit: String,
    directory: PathBuf,
    /// The root of the work tree, and the working directory in it.
    root: PathBuf,
    working_directory: PathBuf,
    /// The paths of the commit's files, from its root.
    names: BTreeSet<String>,
}

/// The paths that are read of a commit.
#[derive(Debug, Clone, Copy)]
pub struct BasePaths<'p> {
    /// The paths of the objects to check.
    pub paths: &'p [String],
    /// The paths of state.
    pub state_paths: &'p [String],
    /// Whether charts and overlays are rendered: they may refer to any file.
    pub renders: bool,
}

/// Writes the files at these paths, as the merge base of `reference` and HEAD has them, into an empty directory.
///
/// # Errors
/// When the commit does not exist, git is missing or fails, or the user stops it.
pub fn read(reference: &str, read: BasePaths<'_>, directory: &Path, stop: &Stop) -> Result<Base, Error> {
    let BasePaths { paths, state_paths, renders } = read;
    let repository = Repository::find(stop)?;
    let commit = repository.merge_base(reference, stop)?;
    let working_directory = env::current_dir().map_err(Error::Write)?;
    let blobs = git::blobs(&commit, stop)?;
    let names = blobs.iter().map(|blob| blob.name.clone()).collect();
    let (root, directory) = (repository.root, directory.to_owned());
    let base = Base { commit, directory, root, working_directory, names };
    for path in paths {
        if base.relative(path).is_none() {
            return Err(Error::Outside { path: path.clone() });
        }
    }
    let all = paths.iter().chain(state_paths);
    let filters: Vec<_> = all.filter_map(|path| Some(PathFilter::of(&base.relative(path)?))).collect();
    let is_read = |blob: &Blob| renders || filters.iter().any(|filter| filter.matches(&blob.name));
    write(blobs.into_iter().filter(is_read).collect(), &base.directory, stop)?;
    Ok(base)
}

impl Base {
    /// The path of a directory of the work tree among the files of the base.
    #[must_use]
    pub fn directory_of(&self, directory: &Path) -> PathBuf {
        let below = directory.canonicalize().ok();
        let below = below.as_deref().and_then(|directory| directory.strip_prefix(&self.root).ok());
        self.directory.join(below.unwrap_or_else(|| Path::new("")))
    }

    /// The paths of the files that were checked, as they were in the commit; those that it does not have are left out.
    #[must_use]
    pub fn paths(&self, paths: &[String]) -> Vec<String> {
        paths.iter().filter_map(|path| self.path(path)).collect()
    }

    /// The paths of state: as they were in the commit, and as they are where it does not have them.
    #[must_use]
    pub fn state_paths(&self, paths: &[String]) -> Vec<String> {
        paths.iter().map(|path| self.path(path).unwrap_or_else(|| path.clone())).collect()
    }

    /// The files of values, likewise.
    #[must_use]
    pub fn values(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let file =
            |file: &PathBuf| self.path(&file.to_string_lossy()).map_or_else(|| file.clone(), PathBuf::from);
        files.iter().map(file).collect()
    }

    /// A text about files of the base, with their paths from the root of the work tree.
    #[must_use]
    pub fn from_root(&self, text: &str) -> String {
        let directory = self.directory.to_string_lossy();
        text.replace(&format!("{directory}/"), "").replace(&*directory, ".")
    }

    fn path(&self, path: &str) -> Option<String> {
        let relative = self.relative(path)?;
        let start = paths::fixed_part(&relative);
        let is_there = self.names.iter().any(|name| is_below(name, start));
        is_there.then(|| self.directory.join(&relative).to_string_lossy().into_owned())
    }

    /// A path from the root of the work tree.
    fn relative(&self, path: &str) -> Option<String> {
        relative(&self.root, &self.working_directory, path)
    }
}

/// Writes the files, links last: nothing is ever written through one.
fn write(blobs: Vec<Blob>, directory: &Path, stop: &Stop) -> Result<(), Error> {
    let (links, files): (Vec<Blob>, Vec<Blob>) = blobs.into_iter().partition(|blob| blob.is_link);
    let blobs = || files.iter().chain(&links);
    let mut contents = Contents::read(blobs(), stop)?;
    blobs().try_for_each(|blob| write_one(&mut contents, blob, directory))
}

fn write_one(contents: &mut Contents, blob: &Blob, directory: &Path) -> Result<(), Error> {
    let path = directory.join(&blob.name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::Write)?;
    }
    if !blob.is_link {
        return contents.copy(blob, &mut File::create_new(&path).map_err(Error::Write)?);
    }
    let mut target = Vec::new();
    contents.copy(blob, &mut target)?;
    link(&target, &path).map_err(Error::Write)
}

#[cfg(unix)]
fn link(target: &[u8], path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), path)
}

/// Writes a file that holds the path, as git does on systems without symbolic links.
#[cfg(not(unix))]
fn link(target: &[u8], path: &Path) -> io::Result<()> {
    fs::write(path, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_fetch() {
        for (reference, is_shallow, expected) in [
            ("main", false, "fetch it: git fetch origin main"),
            ("origin/release/1", false, "fetch it: git fetch origin release/1"),
            ("feature/x", true, "fetch its history: git fetch --unshallow origin feature/x"),
        ] {
            assert_eq!(advice(reference, is_shallow), expected);
        }
    }
}

//! Reads commits and their files with the user's `git`. Only commands that read are run, without a shell, and none that
//! runs hooks or filters, which the author of a change may have written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ignore::{DirEntry, WalkBuilder};
use tempfile::tempfile;

use crate::build::program::{self, Failure, Limits};
use crate::files::base::Error;
use crate::paths::without_dots;

/// The mode of a symbolic link in a tree.
const LINK_MODE: &str = "120000";

/// How many files are in memory at a time.
const READ_AT_ONCE: usize = 256;

/// What a CI system has to be told, in error messages.
const WHOLE: &str = "in a pipeline, check out with fetch-depth: 0";

/// The step in error messages.
const READ: &str = "read a file of the base";

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks"]).args(arguments);
    // Its messages become part of ours, and no terminal can answer its questions.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
    command.stdin(Stdio::null());
    command
}

/// Runs git to its end, however long that takes: it may have to fetch objects.
fn run(step: &'static str, command: &mut Command) -> Result<Output, Error> {
    let limits = Limits { time: Duration::MAX, bytes: usize::MAX };
    program::run(command, &limits).map_err(|failure| match failure {
        Failure::Missing => Error::NoGit,
        Failure::Start(error) => Error::Git { step, message: error.kind().to_string() },
        Failure::Failed(message) => Error::Git { step, message },
        Failure::TooLong | Failure::TooMuch => Error::Git { step, message: "it has ended".to_owned() },
    })
}

/// Runs git like [`run`]; a failure of it is an error.
fn run_well(step: &'static str, command: &mut Command) -> Result<Output, Error> {
    let output = run(step, command)?;
    if output.status.success() { Ok(output) } else { Err(Error::Git { step, message: message(&output) }) }
}

/// The message of git, in one line.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    let line = line.or_else(|| text.lines().next()).unwrap_or("it does not say why");
    let line = line.trim_start_matches("fatal: ").trim_start_matches("error: ");
    memgate_primitives::credential::masked(line).into_owned()
}

fn line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

/// The repository of the working directory.
#[derive(Debug)]
pub(super) struct Repository {
    /// The root of the work tree.
    pub(super) root: PathBuf,
    is_shallow: bool,
}

impl Repository {
    pub(super) fn find() -> Result<Self, Error> {
        let step = "find the repository";
        let mut questions = git(&["rev-parse", "--is-shallow-repository", "--is-inside-work-tree"]);
        let output = run_well(step, &mut questions).map_err(|error| match error {
            Error::Git { message, .. } if message.contains("not a git repository") => Error::NoRepository,
            other => other,
        })?;
        let answer = line(&output);
        let mut answers = answer.lines();
        let is_shallow = answers.next() == Some("true");
        if answers.next() != Some("true") {
            return Err(Error::NoRepository);
        }
        let output = run_well(step, &mut git(&["rev-parse", "--show-toplevel"]))?;
        Ok(Self { root: PathBuf::from(line(&output)), is_shallow })
    }

    /// The commit of the reference, and the last one that it and HEAD have in common.
    pub(super) fn commits(&self, reference: &str) -> Result<[String; 2], Error> {
        let failed = |problem: String| Error::Reference { reference: reference.to_owned(), problem };
        let Some(found) = commit(reference)? else {
            let remote = format!("origin/{reference}");
            return Err(failed(match commit(&remote)? {
                Some(_) => format!("there is no such branch here; did you mean {remote}?"),
                None => {
                    format!("there is no such commit here; fetch it: git fetch origin {reference} ({WHOLE})")
                }
            }));
        };
        let Some(head) = commit("HEAD")? else {
            return Err(failed(
                "nothing is committed here yet, so there is nothing to compare with".to_owned(),
            ));
        };
        let step = "find where the branch began";
        let output = run(step, &mut git(&["merge-base", &found, &head]))?;
        let here = "it has no commit in common with HEAD";
        match output.status.code() {
            Some(0) => Ok([found, line(&output)]),
            Some(1) if self.is_shallow => {
                Err(failed(format!("{here} in this shallow clone; run git fetch --unshallow ({WHOLE})")))
            }
            Some(1) => Err(failed(here.to_owned())),
            _ => Err(Error::Git { step, message: message(&output) }),
        }
    }
}

/// The commit of a name, if there is one.
fn commit(reference: &str) -> Result<Option<String>, Error> {
    let name = format!("{reference}^{{commit}}");
    let output = run("find a commit", &mut git(&["rev-parse", "--verify", "--quiet", &name]))?;
    Ok(output.status.success().then(|| line(&output)))
}

/// A file of a commit.
#[derive(Debug)]
pub(super) struct Blob {
    /// Its path from the root.
    pub(super) name: String,
    /// Whether it is a symbolic link; its content is the target.
    pub(super) is_link: bool,
    id: String,
}

impl Blob {
    /// One line of `ls-tree`, `<mode> <type> <id>\t<path>`. `None` if it is not a file, and for a path that would lead out
    /// of a directory, as only a forged tree has.
    fn of(entry: &str) -> Option<Self> {
        let (entry, name) = entry.split_once('\t')?;
        let mut fields = entry.split(' ');
        let (mode, kind, id) = (fields.next()?, fields.next()?, fields.next()?);
        let blob = Self { name: name.to_owned(), is_link: mode == LINK_MODE, id: id.to_owned() };
        (kind == "blob" && is_plain(Path::new(name))).then_some(blob)
    }

    fn write(&self, content: &[u8], directory: &Path) -> io::Result<()> {
        let path = directory.join(&self.name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        File::create_new(&path)?.write_all(content)
    }
}

/// The paths of the files of a work tree, from its root: those that are committed or staged, and the others that no
/// `.gitignore` leaves out.
pub(super) fn files(root: &Path) -> Result<Vec<String>, Error> {
    // A monitor of files would be a program of the repository.
    let mut list = git(&["-c", "core.fsmonitor=false", "ls-files", "-z"]);
    list.args(["--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = run_well("list the files of the work tree", &mut list)?;
    let names: BTreeSet<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    Ok(names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The files of a commit.
pub(super) fn blobs(commit: &str) -> Result<Vec<Blob>, Error> {
    let mut list = git(&["ls-tree", "-r", "-z", "--full-tree", commit]);
    let output = run_well("list the files of the base", &mut list)?;
    let entries = output.stdout.split(|byte| *byte == 0);
    Ok(entries.filter_map(|entry| Blob::of(std::str::from_utf8(entry).ok()?)).collect())
}

/// So many files are written in place of links.
const MOST_LINKED: usize = 100_000;

/// Writes files below an empty directory. In place of a link stands what it leads to among them; one that leads elsewhere,
/// or to what is around it, is left out.
pub(super) fn write(blobs: Vec<&Blob>, directory: &Path) -> Result<(), Error> {
    let (mut links, files): (Vec<_>, Vec<_>) = blobs.into_iter().partition(|blob| blob.is_link);
    each(&files, |blob, content| blob.write(content, directory).map_err(Error::Write))?;
    let mut targets = BTreeMap::new();
    each(&links, |blob, content| {
        let beside = Path::new(&blob.name).parent().unwrap_or_else(|| Path::new(""));
        let target = std::str::from_utf8(content).map(|target| without_dots(&beside.join(target)));
        targets.extend(target.ok().map(|target| (blob.name.clone(), target)));
        Ok(())
    })?;
    let mut room = MOST_LINKED;
    // A link may lead to another one, which is written first.
    while !links.is_empty() {
        let before = links.len();
        links.retain(|blob| {
            let target = targets.get(&blob.name).filter(|target| is_plain(target));
            !target.is_some_and(|target| copy(directory, target, Path::new(&blob.name), &mut room))
        });
        if links.len() == before {
            break;
        }
    }
    Ok(())
}

/// Whether a path leads to nothing above its start.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Copies a file or directory below another path. Returns whether it is there.
fn copy(directory: &Path, from: &Path, to: &Path, room: &mut usize) -> bool {
    let source = directory.join(from);
    if to.starts_with(from) || !source.exists() {
        return false;
    }
    let all = WalkBuilder::new(&source).standard_filters(false).build().flatten();
    let files: Vec<PathBuf> =
        all.map(DirEntry::into_path).filter(|path| path.is_file()).take(*room).collect();
    *room -= files.len();
    for file in files {
        let below = file.strip_prefix(&source).unwrap_or(&file);
        let there = directory.join(to).join(below);
        let there = if below.as_os_str().is_empty() { directory.join(to) } else { there };
        let made = there.parent().map_or(Ok(()), fs::create_dir_all);
        // What cannot be written is missing at the base, so that findings about it are new.
        drop(made.and_then(|()| fs::copy(&file, &there)));
    }
    true
}

/// Reads the contents of files, a few at a time.
fn each(blobs: &[&Blob], mut visit: impl FnMut(&Blob, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
    blobs.chunks(READ_AT_ONCE).try_for_each(|blobs| {
        let contents = contents(blobs)?;
        let mut rest = contents.as_slice();
        blobs.iter().try_for_each(|blob| visit(blob, next_content(&mut rest).ok_or_else(|| missing(blob))?))
    })
}

/// What `git cat-file --batch` prints about blobs: for each a line with its size, the content, and a line feed.
fn contents(blobs: &[&Blob]) -> Result<Vec<u8>, Error> {
    let mut ids = tempfile().map_err(Error::Write)?;
    for blob in blobs {
        writeln!(ids, "{}", blob.id).map_err(Error::Write)?;
    }
    ids.rewind().map_err(Error::Write)?;
    Ok(run_well(READ, git(&["cat-file", "--batch"]).stdin(ids))?.stdout)
}

/// The content of one file.
pub(super) fn content(blob: &Blob) -> Result<Vec<u8>, Error> {
    let mut whole = Vec::new();
    each(&[blob], |_, content| {
        whole = content.to_vec();
        Ok(())
    })?;
    Ok(whole)
}

fn missing(blob: &Blob) -> Error {
    Error::Git { step: READ, message: format!("{} is not in this clone; fetch it with git", blob.name) }
}

/// The next content; `None` for a blob that is missing.
fn next_content<'c>(rest: &mut &'c [u8]) -> Option<&'c [u8]> {
    let (header, below) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'\n')?)?;
    let size = std::str::from_utf8(header).ok()?.rsplit_once(" blob ")?.1.parse().ok()?;
    let (content, below) = below.get(1..)?.split_at_checked(size)?;
    *rest = below.get(1..)?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_lines_of_a_tree() {
        for (entry, expected) in [
            ("100644 blob 0a\ta b/c.yaml", Some(("a b/c.yaml", false))),
            ("120000 blob 0a\tlink", Some(("link", true))),
            ("160000 commit 0a\tmodule", None),
            ("100644 blob 0a\t../out", None),
            ("100644 blob 0a\t/etc/passwd", None),
            ("", None),
        ] {
            let blob = Blob::of(entry);
            assert_eq!(blob.as_ref().map(|blob| (blob.name.as_str(), blob.is_link)), expected, "{entry}");
        }
    }
}

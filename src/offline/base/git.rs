//! Reads commits and their files with the user's `git`. Only commands that read are run, without a shell, and none that
//! uses the index or the work tree.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use tempfile::tempfile;

use crate::offline::base::Error;
use crate::offline::program::{self, Failure, Limits};
use crate::offline::stop::Stop;

/// The mode of a symbolic link in a tree.
const LINK_MODE: &str = "120000";

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks"]).args(arguments);
    // Its messages become part of ours, and no terminal can answer its questions.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs git to its end, however long that takes: it may have to fetch objects.
fn run(step: &'static str, arguments: &[&str], interrupt: &Stop) -> Result<Output, Error> {
    run_command(step, &mut git(arguments), interrupt)
}

fn run_command(step: &'static str, command: &mut Command, interrupt: &Stop) -> Result<Output, Error> {
    let limits = Limits { time: Duration::MAX, bytes: usize::MAX, stop: interrupt.clone() };
    let output = program::run(command, &limits).map_err(|failure| match failure {
        Failure::Missing => Error::NoGit,
        Failure::Stopped => Error::Interrupted,
        Failure::Start(error) => Error::Git { step, message: error.kind().to_string() },
        Failure::Failed(message) => Error::Git { step, message },
        Failure::TooLong | Failure::TooMuch => Error::Git { step, message: "it has ended".to_owned() },
    })?;
    if is_interrupted(output.status) { Err(Error::Interrupted) } else { Ok(output) }
}

/// Whether the user ended git: it gets Ctrl-C too, maybe before this process does.
#[cfg(unix)]
fn is_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    matches!(status.signal(), Some(INTERRUPT | TERMINATE))
}

#[cfg(windows)]
fn is_interrupted(status: ExitStatus) -> bool {
    status.code() == Some(CONTROL_C)
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
    pub(super) fn find(interrupt: &Stop) -> Result<Self, Error> {
        let step = "find the repository";
        let output =
            run(step, &["rev-parse", "--is-shallow-repository", "--is-inside-work-tree"], interrupt)?;
        if !output.status.success() {
            let message = message(&output);
            let is_none = message.contains("not a git repository");
            return Err(if is_none { Error::NoRepository } else { Error::Git { step, message } });
        }
        let answer = line(&output);
        let mut answers = answer.lines();
        let is_shallow = answers.next() == Some("true");
        if answers.next() != Some("true") {
            return Err(Error::NoRepository);
        }
        let output = run(step, &["rev-parse", "--show-toplevel"], interrupt)?;
        if !output.status.success() {
            return Err(Error::Git { step, message: message(&output) });
        }
        Ok(Self { root: PathBuf::from(line(&output)), is_shallow })
    }

    /// The last commit that the reference and HEAD have in common.
    pub(super) fn merge_base(&self, reference: &str, interrupt: &Stop) -> Result<String, Error> {
        let (is_shallow, owned) = (self.is_shallow, reference.to_owned());
        let Some(commit) = commit(reference, interrupt)? else {
            let remote = format!("origin/{reference}");
            return Err(match commit(&remote, interrupt)? {
                Some(_) => Error::RemoteOnly { reference: owned, remote },
                None => Error::Unknown { reference: owned, is_shallow },
            });
        };
        let Some(head) = self::commit("HEAD", interrupt)? else {
            return Err(Error::NoHead { reference: owned });
        };
        let step = "find where the branch began";
        let output = run(step, &["merge-base", &commit, &head], interrupt)?;
        match output.status.code() {
            Some(0) => Ok(line(&output)),
            Some(1) => Err(Error::NoMergeBase { reference: owned, is_shallow }),
            _ => Err(Error::Git { step, message: message(&output) }),
        }
    }
}

/// The files of a commit.
pub(super) fn blobs(commit: &str, interrupt: &Stop) -> Result<Vec<Blob>, Error> {
    let step = "list the files of the base";
    let output = run(step, &["ls-tree", "-r", "-z", "--full-tree", commit], interrupt)?;
    if !output.status.success() {
        return Err(Error::Git { step, message: message(&output) });
    }
    let entries = output.stdout.split(|byte| *byte == 0);
    Ok(entries.filter_map(|entry| Blob::of(std::str::from_utf8(entry).ok()?)).collect())
}

/// The commit of a name, if there is one.
fn commit(reference: &str, interrupt: &Stop) -> Result<Option<String>, Error> {
    let name = format!("{reference}^{{commit}}");
    let output = run("find a commit", &["rev-parse", "--verify", "--quiet", &name], interrupt)?;
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
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let blob = Self { name: name.to_owned(), is_link: mode == LINK_MODE, id: id.to_owned() };
        (kind == "blob" && is_plain).then_some(blob)
    }
}

/// The numbers of the signals with which users end programs.
#[cfg(unix)]
const INTERRUPT: i32 = 2;
#[cfg(unix)]
const TERMINATE: i32 = 15;

/// The exit code of a program that Ctrl-C ended: STATUS_CONTROL_C_EXIT.
#[cfg(windows)]
const CONTROL_C: i32 = 0xC000_013A_u32.cast_signed();

/// The contents of blobs, as `git cat-file --batch` printed them into a file.
pub(super) struct Contents(BufReader<File>);

/// The step in error messages.
const READ: &str = "read a file of the base";

impl Contents {
    /// Reads the contents of blobs.
    pub(super) fn read<'b>(blobs: impl Iterator<Item = &'b Blob>, interrupt: &Stop) -> Result<Self, Error> {
        let (mut ids, mut contents) = (tempfile().map_err(Error::Write)?, tempfile().map_err(Error::Write)?);
        for blob in blobs {
            writeln!(ids, "{}", blob.id).map_err(Error::Write)?;
        }
        ids.rewind().map_err(Error::Write)?;
        let mut command = git(&["cat-file", "--batch"]);
        command.stdin(ids).stdout(contents.try_clone().map_err(Error::Write)?);
        let output = run_command(READ, &mut command, interrupt)?;
        if !output.status.success() {
            return Err(Error::Git { step: READ, message: message(&output) });
        }
        contents.rewind().map_err(Error::Write)?;
        Ok(Self(BufReader::new(contents)))
    }

    /// Writes the content of the next blob.
    pub(super) fn copy(&mut self, blob: &Blob, out: &mut impl Write) -> Result<(), Error> {
        let mut header = String::new();
        self.0.read_line(&mut header).map_err(Error::Write)?;
        let size = header.trim_end().rsplit_once(" blob ").and_then(|(_, size)| size.parse::<u64>().ok());
        let missing = || {
            let message = format!("{} is not in this clone; fetch it with git", blob.name);
            Error::Git { step: READ, message }
        };
        io::copy(&mut (&mut self.0).take(size.ok_or_else(missing)?), out).map_err(Error::Write)?;
        self.0.read_exact(&mut [0]).map_err(Error::Write)
    }
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

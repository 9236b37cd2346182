//! Reads commits and their files with the user's `git`, without a shell. No command uses the index or the work tree of the
//! repository.

use std::collections::BTreeSet;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use tempfile::{tempdir, tempfile};

use crate::offline::base::{Error, advice};
use crate::offline::program::{self, Failure, Limits};
use crate::offline::stop::Stop;

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks"]).args(arguments);
    // Its messages become part of ours, and no terminal can answer its questions.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    command
}

/// Runs git to its end, however long that takes: it may have to fetch objects.
fn run(step: &'static str, command: &mut Command, interrupt: &Stop) -> Result<Output, Error> {
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

/// Runs git like [`run`]; a failure of it is an error.
fn run_well(step: &'static str, command: &mut Command, interrupt: &Stop) -> Result<Output, Error> {
    let output = run(step, command, interrupt)?;
    if output.status.success() { Ok(output) } else { Err(Error::Git { step, message: message(&output) }) }
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
        let mut questions = git(&["rev-parse", "--is-shallow-repository", "--is-inside-work-tree"]);
        let output = run_well(step, &mut questions, interrupt).map_err(|error| match error {
            Error::Git { message, .. } if message.contains("not a git repository") => Error::NoRepository,
            other => other,
        })?;
        let answer = line(&output);
        let mut answers = answer.lines();
        let is_shallow = answers.next() == Some("true");
        if answers.next() != Some("true") {
            return Err(Error::NoRepository);
        }
        let output = run_well(step, &mut git(&["rev-parse", "--show-toplevel"]), interrupt)?;
        Ok(Self { root: PathBuf::from(line(&output)), is_shallow })
    }

    /// The last commit that the reference and HEAD have in common.
    pub(super) fn merge_base(&self, reference: &str, interrupt: &Stop) -> Result<String, Error> {
        let failed = |problem: String| Error::Reference { reference: reference.to_owned(), problem };
        let Some(found) = commit(reference, interrupt)? else {
            let remote = format!("origin/{reference}");
            let advice = match commit(&remote, interrupt)? {
                Some(_) => {
                    return Err(failed(format!("there is no such branch here; did you mean {remote}?")));
                }
                None => advice(reference, self.is_shallow),
            };
            return Err(failed(format!("there is no such commit here; {advice}")));
        };
        let Some(head) = commit("HEAD", interrupt)? else {
            return Err(failed(
                "nothing is committed here yet, so there is nothing to compare with".to_owned(),
            ));
        };
        let step = "find where the branch began";
        let output = run(step, &mut git(&["merge-base", &found, &head]), interrupt)?;
        let here = "it has no commit in common with HEAD";
        match output.status.code() {
            Some(0) => Ok(line(&output)),
            Some(1) if self.is_shallow => {
                Err(failed(format!("{here} in this shallow clone; {}", advice(reference, true))))
            }
            Some(1) => Err(failed(here.to_owned())),
            _ => Err(Error::Git { step, message: message(&output) }),
        }
    }
}

/// The commit of a name, if there is one.
fn commit(reference: &str, interrupt: &Stop) -> Result<Option<String>, Error> {
    let name = format!("{reference}^{{commit}}");
    let output = run("find a commit", &mut git(&["rev-parse", "--verify", "--quiet", &name]), interrupt)?;
    Ok(output.status.success().then(|| line(&output)))
}

/// The paths of the files of a commit, from the root.
pub(super) fn names(commit: &str, interrupt: &Stop) -> Result<BTreeSet<String>, Error> {
    let mut list = git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]);
    let output = run_well("list the files of the base", &mut list, interrupt)?;
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| Some(std::str::from_utf8(name).ok()?.to_owned())).collect())
}

/// Writes files of a commit below a directory. git refuses paths that lead out of it, and never writes through a link.
pub(super) fn write<'n>(
    commit: &str,
    names: impl Iterator<Item = &'n String>,
    root: &Path,
    directory: &Path,
    interrupt: &Stop,
) -> Result<(), Error> {
    let step = "write the files of the base";
    let (place, mut list) = (tempdir().map_err(Error::Write)?, tempfile().map_err(Error::Write)?);
    for name in names {
        write!(list, "{name}\0").map_err(Error::Write)?;
    }
    list.rewind().map_err(Error::Write)?;
    let index = place.path().join("index");
    let mut read = git(&["read-tree", "--no-sparse-checkout", commit]);
    run_well(step, read.env("GIT_INDEX_FILE", &index), interrupt)?;
    let prefix = format!("--prefix={}/", directory.display());
    let mut write = git(&["checkout-index", "-z", "--stdin", &prefix]);
    write.current_dir(root).stdin(list).env("GIT_INDEX_FILE", &index).env("GIT_LFS_SKIP_SMUDGE", "1");
    run_well(step, &mut write, interrupt)?;
    Ok(())
}

/// The numbers of the signals with which users end programs.
#[cfg(unix)]
const INTERRUPT: i32 = 2;
#[cfg(unix)]
const TERMINATE: i32 = 15;

/// The exit code of a program that Ctrl-C ended: STATUS_CONTROL_C_EXIT.
#[cfg(windows)]
const CONTROL_C: i32 = 0xC000_013A_u32.cast_signed();

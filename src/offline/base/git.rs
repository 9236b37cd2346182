//! The user's `git`, asked for commits and for what they hold. Only commands that read are run, without a shell, and
//! none that looks at the index or the work tree.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::offline::base::Error;
use crate::offline::program::{self, Failure, Limits};
use crate::offline::stop::Stop;

/// The mode of a symbolic link in a tree.
const LINK_MODE: &str = "120000";

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks"]).args(arguments);
    // Its words are part of ours, and nobody is there to answer its questions.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    command
}

/// Runs git to its end, however long that takes: it may have to fetch what it is asked for.
fn run(step: &'static str, arguments: &[&str], interrupt: &Stop) -> Result<Output, Error> {
    let limits = Limits { time: Duration::MAX, bytes: usize::MAX, stop: interrupt.clone() };
    let output = program::run(&mut git(arguments), &limits).map_err(|failure| match failure {
        Failure::Missing => Error::NoGit,
        Failure::Stopped => Error::Interrupted,
        Failure::Start(error) => Error::Git { step, words: error.kind().to_string() },
        Failure::Failed(words) => Error::Git { step, words },
        Failure::TooLong | Failure::TooMuch => ended(step),
    })?;
    if is_interrupted(output.status) { Err(Error::Interrupted) } else { Ok(output) }
}

fn ended(step: &'static str) -> Error {
    Error::Git { step, words: "it has ended".to_owned() }
}

/// Whether git was ended by the user: Ctrl-C is for it too, and it may hear of it before this process does.
#[cfg(unix)]
fn is_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    matches!(status.signal(), Some(INTERRUPT | TERMINATE))
}

#[cfg(windows)]
fn is_interrupted(status: ExitStatus) -> bool {
    status.code() == Some(CONTROL_C)
}

/// What git said, in one line.
fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    let line = line.or_else(|| text.lines().next()).unwrap_or("it does not say why");
    let line = line.trim_start_matches("fatal: ").trim_start_matches("error: ");
    crate::model::credential::masked(line).into_owned()
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
            let words = words(&output);
            let is_none = words.contains("not a git repository");
            return Err(if is_none { Error::NoRepository } else { Error::Git { step, words } });
        }
        let answer = line(&output);
        let mut answers = answer.lines();
        let is_shallow = answers.next() == Some("true");
        if answers.next() != Some("true") {
            return Err(Error::NoRepository);
        }
        let output = run(step, &["rev-parse", "--show-toplevel"], interrupt)?;
        if !output.status.success() {
            return Err(Error::Git { step, words: words(&output) });
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
            _ => Err(Error::Git { step, words: words(&output) }),
        }
    }
}

/// The files of a commit.
pub(super) fn blobs(commit: &str, interrupt: &Stop) -> Result<Vec<Blob>, Error> {
    let step = "list the files of the base";
    let output = run(step, &["ls-tree", "-r", "-z", "--full-tree", commit], interrupt)?;
    if !output.status.success() {
        return Err(Error::Git { step, words: words(&output) });
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
    /// One line of `ls-tree`, `<mode> <type> <id>\t<path>`. None of what is no file, and of a path that would lead out of
    /// a directory, which no honest tree has.
    fn of(entry: &str) -> Option<Self> {
        let (entry, name) = entry.split_once('\t')?;
        let mut words = entry.split(' ');
        let (mode, kind, id) = (words.next()?, words.next()?, words.next()?);
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

/// How a program ends by Ctrl-C: STATUS_CONTROL_C_EXIT.
#[cfg(windows)]
const CONTROL_C: i32 = 0xC000_013A_u32.cast_signed();

/// How often to look whether git is to end.
const POLL: Duration = Duration::from_millis(10);

/// A `git` that answers with the contents of objects, one after another. It is killed when the user ends the command,
/// so that nobody waits for an answer that may take long.
pub(super) struct Objects {
    child: Arc<Mutex<Child>>,
    is_done: Arc<AtomicBool>,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What is to be done, in errors.
const READ: &str = "read a file of the base";

impl Objects {
    pub(super) fn open(interrupt: &Stop) -> Result<Self, Error> {
        let mut command = git(&["cat-file", "--batch"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NoGit,
            kind => Error::Git { step: READ, words: kind.to_string() },
        })?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Git { step: READ, words: "it cannot be talked to".to_owned() });
        };
        let (child, is_done) = (Arc::new(Mutex::new(child)), Arc::new(AtomicBool::new(false)));
        let (watched, is_over, interrupt) = (Arc::clone(&child), Arc::clone(&is_done), interrupt.clone());
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if interrupt.is_set() {
                    return end(&watched);
                }
                thread::sleep(POLL);
            }
        });
        Ok(Self { child, is_done, questions, answers: BufReader::new(answers) })
    }

    /// Writes the content of a file.
    pub(super) fn copy(&mut self, blob: &Blob, out: &mut impl Write) -> Result<(), Error> {
        let mut header = String::new();
        let asked = writeln!(self.questions, "{}", blob.id).and_then(|()| self.questions.flush());
        if asked.and_then(|()| self.answers.read_line(&mut header)).unwrap_or(0) == 0 {
            return Err(self.ended());
        }
        let size = header.trim_end().rsplit_once(" blob ").and_then(|(_, size)| size.parse::<u64>().ok());
        let missing = || {
            let words = format!("{} is not in this clone; fetch it with git", blob.name);
            Error::Git { step: READ, words }
        };
        let size = size.ok_or_else(missing)?;
        std::io::copy(&mut (&mut self.answers).take(size), out).map_err(Error::Write)?;
        self.answers.read_exact(&mut [0]).map_err(|_| self.ended())
    }

    /// Why it answers no longer.
    fn ended(&mut self) -> Error {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // It may only have closed its output.
        let _ = child.kill();
        if child.wait().is_ok_and(is_interrupted) { Error::Interrupted } else { ended(READ) }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        end(&self.child);
    }
}

/// Ends the process, whatever it was about to say.
fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
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

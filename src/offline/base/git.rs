//! The user's `git`, asked for commits and for what they hold. Only commands that read are run, without a shell, and
//! none that looks at the index or the work tree.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use crate::offline::base::Error;

/// The mode of a symbolic link in a tree.
const LINK_MODE: &str = "120000";

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks"]).args(arguments);
    // Its words are part of ours, and nobody is there to answer its questions.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    command
}

fn run(step: &'static str, arguments: &[&str]) -> Result<Output, Error> {
    git(arguments).output().map_err(|error| cannot_run(step, &error))
}

fn cannot_run(step: &'static str, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoGit,
        kind => Error::Git { step, words: kind.to_string() },
    }
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
    pub(super) fn find() -> Result<Self, Error> {
        let step = "find the repository";
        let output = run(step, &["rev-parse", "--is-shallow-repository", "--is-inside-work-tree"])?;
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
        let output = run(step, &["rev-parse", "--show-toplevel"])?;
        if !output.status.success() {
            return Err(Error::Git { step, words: words(&output) });
        }
        Ok(Self { root: PathBuf::from(line(&output)), is_shallow })
    }

    /// The last commit that the reference and HEAD have in common.
    pub(super) fn merge_base(&self, reference: &str) -> Result<String, Error> {
        let (is_shallow, owned) = (self.is_shallow, reference.to_owned());
        let Some(commit) = commit(reference)? else {
            let remote = format!("origin/{reference}");
            return Err(match commit(&remote)? {
                Some(_) => Error::RemoteOnly { reference: owned, remote },
                None => Error::Unknown { reference: owned, is_shallow },
            });
        };
        let Some(head) = self::commit("HEAD")? else { return Err(Error::NoHead { reference: owned }) };
        let step = "find where the branch began";
        let output = run(step, &["merge-base", &commit, &head])?;
        match output.status.code() {
            Some(0) => Ok(line(&output)),
            Some(1) => Err(Error::NoMergeBase { reference: owned, is_shallow }),
            _ => Err(Error::Git { step, words: words(&output) }),
        }
    }
}

/// The files of a commit.
pub(super) fn blobs(commit: &str) -> Result<Vec<Blob>, Error> {
    let step = "list the files of the base";
    let output = run(step, &["ls-tree", "-r", "-z", "--full-tree", commit])?;
    if !output.status.success() {
        return Err(Error::Git { step, words: words(&output) });
    }
    let entries = output.stdout.split(|byte| *byte == 0);
    Ok(entries.filter_map(|entry| Blob::of(std::str::from_utf8(entry).ok()?)).collect())
}

/// The commit of a name, if there is one.
fn commit(reference: &str) -> Result<Option<String>, Error> {
    let name = format!("{reference}^{{commit}}");
    let output = run("find a commit", &["rev-parse", "--verify", "--quiet", &name])?;
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
const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;

/// A `git` that answers with the contents of objects, one after another.
pub(super) struct Objects {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What is to be done, in errors.
const READ: &str = "read a file of the base";

impl Objects {
    pub(super) fn open() -> Result<Self, Error> {
        let mut command = git(&["cat-file", "--batch"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| cannot_run(READ, &error))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Git { step: READ, words: "it cannot be talked to".to_owned() });
        };
        Ok(Self { child, questions, answers: BufReader::new(answers) })
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

    /// Why it answers no longer. Ctrl-C is for git too, which may hear of it first.
    fn ended(&mut self) -> Error {
        let signal = self.child.wait().ok().and_then(|status| status.signal());
        match signal {
            Some(INTERRUPT | TERMINATE) => Error::Interrupted,
            _ => Error::Git { step: READ, words: "it has ended".to_owned() },
        }
    }
}

impl Drop for Objects {
    /// Ends the process, whatever it was about to say.
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
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

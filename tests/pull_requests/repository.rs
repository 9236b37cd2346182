//! A git repository in a directory of its own, and what memgate says about it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::assets::{Assets, SearchPaths};
use crate::support::tools;

/// A repository, with the directories for homes, temporary files and stand-ins for programs beside it.
pub(crate) struct Repository {
    scratch: TempDir,
    pub(crate) path: PathBuf,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self::beside("repository");
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository
    }

    /// One with kubectl and helm, and without a kustomize of its own.
    pub(crate) fn with_programs() -> Self {
        let repository = Self::new();
        let paths = SearchPaths::from_environment().expect("it names a release");
        let kubectl = Assets::find(&paths).expect("there is a kubectl").kubectl;
        let helm = tools::helm().expect("there is a helm");
        for (name, program) in [("kubectl", kubectl), ("helm", helm)] {
            std::os::unix::fs::symlink(program, repository.beside_it("bin").join(name)).expect("a link");
        }
        repository
    }

    pub(crate) fn beside(name: &str) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        for directory in ["tmp", "home", "bin"] {
            fs::create_dir(scratch.path().join(directory)).expect("a directory");
        }
        let path = fs::canonicalize(scratch.path()).expect("is there").join(name);
        fs::create_dir(&path).expect("a directory");
        Self { scratch, path }
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let home = self.scratch.path().join("home");
        command.env_clear().env("HOME", &home).env("TMPDIR", self.temporary());
        command.env("PATH", format!("{}:{}", self.beside_it("bin").display(), path()));
        command.env("GIT_CONFIG_NOSYSTEM", "1").current_dir(&self.path).stdin(Stdio::null());
        command
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.command("git");
        let output = command
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"])
            .args(arguments)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("a directory");
        fs::write(path, content).expect("can be written");
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "change"]);
    }

    pub(crate) fn check(&self, arguments: &[&str]) -> Checked {
        self.check_in("", arguments)
    }

    pub(crate) fn check_in(&self, directory: &str, arguments: &[&str]) -> Checked {
        let mut command = self.command(env!("CARGO_BIN_EXE_memgate"));
        let command = command.current_dir(self.path.join(directory));
        let output = command.args(["check", "-o", "concise"]).args(arguments).output().expect("memgate runs");
        self.expect_nothing_left();
        Checked::of(&output)
    }

    /// A path outside of the repository.
    pub(crate) fn beside_it(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.beside_it("tmp")
    }

    pub(crate) fn expect_nothing_left(&self) {
        let left = files(&self.temporary());
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Where programs are found without stand-ins.
pub(crate) fn path() -> String {
    std::env::var("PATH").expect("is set")
}

/// What a check said.
pub(crate) struct Checked {
    pub(crate) code: Option<i32>,
    pub(crate) findings: Vec<String>,
    pub(crate) stderr: String,
}

impl Checked {
    pub(crate) fn of(output: &Output) -> Self {
        let findings = text(&output.stdout).lines().map(str::to_owned).collect();
        Self { code: output.status.code(), findings, stderr: text(&output.stderr) }
    }

    /// Whether a finding begins so and has this in it.
    pub(crate) fn tells(&self, start: &str, part: &str) -> bool {
        self.findings.iter().any(|finding| finding.starts_with(start) && finding.contains(part))
    }

    pub(crate) fn expect_failure(&self, message: &str) {
        assert_eq!(self.code, Some(2), "{}", self.stderr);
        assert!(self.findings.is_empty(), "{:?}", self.findings);
        assert!(self.stderr.contains(message), "{}", self.stderr);
        assert!(!self.stderr.contains("os error"), "{}", self.stderr);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every file and directory below a directory with its content, in a fixed order.
pub(crate) fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("can be listed") {
        let path = entry.expect("can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.push((path.clone(), fs::read(&path).unwrap_or_default()));
    }
    found.sort();
    found
}

pub(crate) fn denied(name: &str) -> String {
    format!(
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: team-a}}\n\
         spec: {{backend: redis}}\n"
    )
}

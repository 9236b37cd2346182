//! The hooks of pre-commit, run by pre-commit itself with the configuration that docs/ci.md prints.
//!
//! pip fetches pre-commit into the directory of tools/check-pipelines.sh, below target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::release::{ROOT, VERSION, run, text};

const GOOD: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\n\
                    spec: {backend: in-context}\n";

const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                     spec: {model: m, systemPrompt: Search., memoryRef: {name: notes}}\n";

/// The configuration of the page.
fn configuration() -> &'static str {
    let (_, section) = include_str!("../../docs/ci.md").split_once("\n## pre-commit\n").expect("the section");
    let (_, block) = section.split_once("```yaml\n").expect("a configuration");
    block.split_once("```").expect("an end").0
}

/// pre-commit of the version that tools/check-pipelines.sh names.
static PRE_COMMIT: LazyLock<PathBuf> = LazyLock::new(|| {
    let script = include_str!("../../tools/check-pipelines.sh");
    let version = script.lines().find_map(|line| line.strip_prefix("PRE_COMMIT=")).expect("a version");
    let venv = Path::new(ROOT).join("target/check-pipelines/venv");
    let program = venv.join("bin/pre-commit");
    let is_there = Command::new(&program).arg("--version").output();
    if !is_there.is_ok_and(|output| text(&output.stdout).trim() == format!("pre-commit {version}")) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let mut pip = Command::new(venv.join("bin/pip"));
        run(pip
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .arg(format!("pre-commit=={version}")));
    }
    program
});

/// A repository whose commits run the hooks, and the copy of this one that the page calls HOST/OWNER.
struct Project {
    directory: TempDir,
}

impl Project {
    fn new(configuration: &str) -> Self {
        let project = Self { directory: tempfile::tempdir().expect("a directory") };
        let (hooks, bin) = (project.path("hooks"), project.path("bin"));
        for directory in [&hooks, &bin, &project.path("home"), &project.path("project/deploy")] {
            fs::create_dir_all(directory).expect("a directory");
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_memgate"), bin.join("memgate")).expect("a link");
        let settings = format!(
            "[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n\
             [url \"file://{}\"]\ninsteadOf = https://HOST/OWNER/memgate\n",
            hooks.display()
        );
        fs::write(project.path("home/.gitconfig"), settings).expect("settings");
        fs::copy(Path::new(ROOT).join(".pre-commit-hooks.yaml"), hooks.join(".pre-commit-hooks.yaml"))
            .expect("the hooks");
        for (folder, arguments) in [
            ("hooks", &["init", "--quiet"][..]),
            ("hooks", &["add", "--all"]),
            ("hooks", &["commit", "--quiet", "--message", "hooks"]),
            ("hooks", &["tag", &format!("v{VERSION}")]),
            ("project", &["init", "--quiet"]),
        ] {
            run(project.command("git", folder).args(arguments));
        }
        project.write(".pre-commit-config.yaml", configuration);
        run(project.command(&*PRE_COMMIT, "project").arg("install"));
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path("project").join(name), content).expect("a file");
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").expect("is set");
        command.env_clear().env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("GIT_CONFIG_NOSYSTEM", "1").current_dir(self.path(folder));
        command
    }

    /// Commits everything, and returns whether the hooks let it pass, and what they print.
    fn commit(&self) -> (bool, String) {
        run(self.command("git", "project").args(["add", "--all"]));
        let mut commit = self.command("git", "project");
        let Output { status, stdout, stderr } =
            commit.args(["commit", "--message", "change"]).output().expect("git runs");
        (status.success(), text(&stdout) + &text(&stderr))
    }
}

#[test]
#[ignore = "needs python3 with pip to fetch pre-commit"]
fn pre_commit_checks_what_is_committed() {
    for hook in ["memgate-check", "memgate-fix"] {
        let project = Project::new(&configuration().replace("memgate-check", hook));
        // The configuration itself is YAML, and not a manifest of memgate's.
        project.write("pipeline.yaml", "jobs: {}\n");
        let (passed, said) = project.commit();
        assert!(passed && said.contains("Passed"), "{hook}: {said}");
        project.write("deploy/memory.yaml", GOOD);
        let (passed, said) = project.commit();
        assert!(passed && said.contains("Passed"), "{hook}: {said}");
        // The memory to which the agent refers is not part of this commit.
        project.write("deploy/agent.yaml", AGENT);
        let (passed, said) = project.commit();
        assert!(passed && said.contains("Passed"), "{hook}: {said}");
        project.write("deploy/memory.yaml", &GOOD.replace("in-context", "redis"));
        let (passed, said) = project.commit();
        assert!(!passed && said.contains("deny[arkonis/redis-required]"), "{hook}: {said}");
        assert!(said.contains("deploy/memory.yaml:4:1") && said.contains("exit code: 1"), "{hook}: {said}");
        project.write("deploy/memory.yaml", GOOD);
        project.write("notes.txt", "no manifest\n");
        let (passed, said) = project.commit();
        assert!(passed && said.contains("Skipped"), "{hook}: {said}");
    }
}

#[test]
#[ignore = "needs python3 with pip to fetch pre-commit"]
fn pre_commit_corrects_what_has_one_answer() {
    let project = Project::new(&configuration().replace("memgate-check", "memgate-fix"));
    project.write("deploy/memory.yaml", &GOOD.replace("backend", "backnd"));
    let (passed, said) = project.commit();
    assert!(!passed && said.contains("files were modified by this hook"), "{said}");
    let corrected = fs::read_to_string(project.path("project/deploy/memory.yaml")).expect("a file");
    assert_eq!(corrected, GOOD);
    let (passed, said) = project.commit();
    assert!(passed, "{said}");
}

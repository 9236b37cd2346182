//! A repository with a wrong memory, for an editor that runs the programs of docs/editors.md.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The file with the wrong memory. The backend on line 6 does not exist.
pub(crate) const FILE: &str = "deploy/memory.yaml";
const WRONG: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata:
  name: notes
spec:
  backend: rediss
";

/// The repository, a home directory, and a directory of programs.
pub(crate) struct Repository {
    parent: TempDir,
}

impl Repository {
    /// With the schema for all manifests, and memgate as a program.
    pub(crate) fn new() -> Self {
        let parent = tempfile::Builder::new().prefix("editor-").tempdir().expect("a folder");
        let repository = Self { parent };
        let folder = repository.folder();
        for path in [folder.join(".schemas"), folder.join("deploy"), repository.home(), repository.programs()]
        {
            fs::create_dir_all(path).expect("a folder");
        }
        let memgate = Path::new(env!("CARGO_BIN_EXE_memgate"));
        let schema = Command::new(memgate).args(["schema", "all"]).output().expect("memgate runs").stdout;
        fs::write(folder.join(".schemas/memgate.json"), schema).expect("is written");
        fs::write(folder.join(FILE), WRONG).expect("is written");
        let git = folder.join(".git");
        fs::create_dir_all(git.join("objects")).expect("a folder");
        fs::create_dir_all(git.join("refs")).expect("a folder");
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("is written");
        repository.add_program(memgate);
        repository
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.parent.path().join("repository")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.parent.path().join("home")
    }

    fn programs(&self) -> PathBuf {
        self.parent.path().join("programs")
    }

    /// Puts a program first on the `PATH`.
    pub(crate) fn add_program(&self, program: &Path) {
        let name = program.file_name().expect("a name");
        symlink(program, self.programs().join(name)).expect("a link");
    }

    /// Runs an editor in the repository, with the home directory, and returns what it prints.
    pub(crate) fn run(&self, editor: &mut Command) -> String {
        let path = env::var_os("PATH").expect("a PATH");
        let path = env::join_paths(std::iter::once(self.programs()).chain(env::split_paths(&path)));
        let output = editor
            .current_dir(self.folder())
            .env("PATH", path.expect("a PATH"))
            .env("HOME", self.home())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap_or_else(|error| panic!("{editor:?}: {error}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{editor:?} failed ({})\n{stderr}", output.status);
        String::from_utf8(output.stdout).expect("is text")
    }
}

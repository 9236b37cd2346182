//! A repository in a directory of its own, and what the programs make of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::support::assets::{Assets, SearchPaths};
use crate::support::tools;

/// A directory with links to the kubectl and the helm of these tests, and a `PATH` with it alone and what takes the network away.
pub(crate) fn path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("units-bin-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (name, program) in [("kubectl", kubectl()), ("helm", tools::helm().expect("there is a helm"))] {
            let link = folder.join(name);
            let _ = fs::remove_file(&link);
            symlink(program, link).expect("a link");
        }
        format!("{}:/usr/bin:/bin", folder.display())
    })
}

/// The kubectl of these tests.
pub(crate) fn kubectl() -> PathBuf {
    static KUBECTL: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let paths = SearchPaths::from_environment().expect("it names a release");
        Assets::find(&paths).expect("there is a kubectl").kubectl
    };
    KUBECTL.get_or_init(find).clone()
}

/// A directory with files.
pub(crate) struct Repository(TempDir);

impl Repository {
    pub(crate) fn with<'f>(files: impl IntoIterator<Item = (&'f str, &'f str)>) -> Self {
        let repository = Self(tempfile::tempdir().expect("a directory"));
        fs::create_dir(repository.path().join(".git")).expect("a repository");
        for (name, text) in files {
            repository.write(name, text);
        }
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    /// What memgate writes, with these words after its name.
    pub(crate) fn memgate(&self, words: &[&str], path: &str) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
        command.args(words).env_clear().env("PATH", path).current_dir(self.path());
        let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().expect("memgate runs");
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }
}

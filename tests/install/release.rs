//! A release in a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

/// The root of the repository.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The version that is released.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A place of releases with one release in it, and a home directory beside it.
pub(crate) struct Release {
    pub(crate) directory: TempDir,
}

impl Release {
    /// One with an archive for this machine, in which the binary under test is.
    pub(crate) fn new() -> Self {
        let release = Self { directory: tempfile::tempdir().expect("a directory") };
        fs::create_dir_all(release.folder()).expect("a folder");
        fs::create_dir_all(release.home()).expect("a home");
        let archive = format!("{}.tar.gz", Self::name());
        fs::copy(packed(), release.folder().join(&archive)).expect("an archive");
        let sums = run(Command::new("sha256sum").arg(&archive).current_dir(release.folder()));
        fs::write(release.folder().join("SHA256SUMS"), sums.stdout).expect("sums");
        fs::copy(Path::new(ROOT).join("install.sh"), release.folder().join("install.sh")).expect("a script");
        release
    }

    /// What the archive is called without its ending.
    pub(crate) fn name() -> String {
        format!("memgate-{VERSION}-linux-{}", std::env::consts::ARCH)
    }

    /// The folder of the version.
    pub(crate) fn folder(&self) -> PathBuf {
        self.directory.path().join("releases").join(format!("v{VERSION}"))
    }

    /// The place of all versions, as a URL.
    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.directory.path().join("releases").display())
    }

    /// A home directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Runs install.sh as a newcomer does.
    pub(crate) fn install(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new("sh");
        command.arg(Path::new(ROOT).join("install.sh")).args(arguments).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.env("MEMGATE_RELEASES", self.url()).envs(variables.iter().copied());
        command.output().expect("a shell")
    }

    /// The program, once it is installed.
    pub(crate) fn installed(&self) -> PathBuf {
        self.home().join(".local/bin/memgate")
    }
}

/// The archive, packed once: the binary under test is large.
fn packed() -> PathBuf {
    static PACKED: LazyLock<TempDir> = LazyLock::new(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join(Release::name());
        fs::create_dir(&folder).expect("a folder");
        // A link takes no room; tar puts the file in its place.
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_memgate"), folder.join("memgate")).expect("a link");
        let tar = ["--create", "--dereference", "--use-compress-program", "gzip -1", "--file", "archive"];
        run(Command::new("tar").args(tar).arg(Release::name()).current_dir(directory.path()));
        directory
    });
    PACKED.path().join("archive")
}

/// What a command wrote; it has to succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    output
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

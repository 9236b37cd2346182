//! A release in a directory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

/// The root of the repository.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The version that is released.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The address of the repository in formulas and manifests of plugins.
pub(crate) const SOURCE: &str = "https://example.com/someone/memgate";

/// Its releases.
pub(crate) const PUBLISHED: &str = "https://example.com/someone/memgate/releases/download";

/// The commit that the program is said to be of.
pub(crate) const REVISION: &str = "0123456789012345678901234567890123456789";

/// A place of releases with one release in it, and a home directory beside it.
pub(crate) struct Release {
    pub(crate) directory: TempDir,
}

impl Release {
    /// One with an archive for this machine.
    pub(crate) fn new() -> Self {
        let release = Self { directory: tempfile::tempdir().expect("a directory") };
        fs::create_dir_all(release.folder()).expect("a folder");
        fs::create_dir_all(release.home()).expect("a home");
        let made = made().join("releases").join(format!("v{VERSION}"));
        for entry in fs::read_dir(made).expect("a folder") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), release.folder().join(entry.file_name())).expect("a file");
        }
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
        command.arg(Path::new(ROOT).join("tools/install.sh")).args(arguments).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.env("MEMGATE_RELEASES", self.url()).envs(variables.iter().copied());
        command.output().expect("a shell")
    }

    /// The program, once it is installed.
    pub(crate) fn installed(&self) -> PathBuf {
        self.home().join(".local/bin/memgate")
    }
}

/// The releases of one version, made once, as a release is made. Its program starts the one under test, which is large.
pub(crate) fn made() -> &'static Path {
    static MADE: LazyLock<TempDir> = LazyLock::new(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let built =
            directory.path().join("static").join(format!("{}-unknown-linux-musl", std::env::consts::ARCH));
        fs::create_dir_all(&built).expect("a folder");
        let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_memgate"));
        fs::write(built.join("memgate"), program).expect("a program");
        fs::set_permissions(built.join("memgate"), fs::Permissions::from_mode(0o755)).expect("permissions");
        fs::write(built.join("memgate.cdx.json"), "{}").expect("a bill of materials");
        fs::write(built.join("revision"), REVISION).expect("a commit");
        archives(directory.path(), "releases", &[]);
        directory
    });
    MADE.path()
}

/// Runs tools/build-archives.sh on what is built in a directory.
pub(crate) fn archives(directory: &Path, out: &str, systems: &[&str]) {
    let mut command = Command::new(Path::new(ROOT).join("tools/build-archives.sh"));
    command.arg("--from").arg(directory.join("static")).arg("--out").arg(directory.join(out));
    for variable in
        ["SOURCE_DATE_EPOCH", "MEMGATE_SOURCE", "MEMGATE_PAGES", "MEMGATE_IMAGE", "MEMGATE_BUILDER"]
    {
        command.env_remove(variable);
    }
    run(command.args(systems).env("MEMGATE_RELEASES", PUBLISHED));
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

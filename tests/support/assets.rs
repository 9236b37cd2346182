//! Where the programs of the control plane are: found, or built.
//!
//! Each program is looked for by itself, in this order:
//! 1. the directory that `KUBEBUILDER_ASSETS` names;
//! 2. the directory where `setup-envtest use` unpacks, newest patch of the [`Release`];
//! 3. the build cache, which is filled with Go from `tools/envtest` when it lacks the program.
//!
//! One by one, since setup-envtest brings no kube-controller-manager.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{build, release::Release};

/// One program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Runs the controllers, which turn a Deployment into Pods.
    ControllerManager,
    /// The command line client.
    Kubectl,
}

impl Program {
    /// Every program, in the order in which they are needed.
    pub(crate) const ALL: [Self; 4] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Kubectl];

    /// Its file name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }
}

/// The programs, each as the path of an executable file.
#[derive(Clone, Debug)]
pub(crate) struct Assets {
    /// The store.
    pub(crate) etcd: PathBuf,
    /// The API server.
    pub(crate) apiserver: PathBuf,
    /// The controllers.
    pub(crate) controller_manager: PathBuf,
    /// The command line client.
    pub(crate) kubectl: PathBuf,
}

impl Assets {
    /// Finds all programs and builds what is missing; minutes when there is much to build.
    ///
    /// # Errors
    /// When a program is missing and cannot be built; the text names the ways to get it.
    pub(crate) fn find(paths: &SearchPaths) -> Result<Self> {
        Ok(Self {
            etcd: paths.locate(Program::Etcd)?,
            apiserver: paths.locate(Program::ApiServer)?,
            controller_manager: paths.locate(Program::ControllerManager)?,
            kubectl: paths.locate(Program::Kubectl)?,
        })
    }
}

/// Where programs are looked for; a value, so that tests can pass other paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchPaths {
    /// The value of `KUBEBUILDER_ASSETS`.
    pub(crate) kubebuilder_assets: Option<PathBuf>,
    /// setup-envtest's own directory, which holds one `<version>-<os>-<arch>` each.
    pub(crate) setup_envtest: Option<PathBuf>,
    /// The build cache, `<user's cache>/memgate/envtest`.
    pub(crate) cache: Option<PathBuf>,
    /// The Go command.
    pub(crate) go: Option<PathBuf>,
    /// The release of Kubernetes.
    pub(crate) release: Release,
}

impl SearchPaths {
    /// The paths in the environment of this process.
    ///
    /// # Errors
    /// When it names an unknown release.
    pub(crate) fn from_environment() -> Result<Self> {
        Ok(Self {
            kubebuilder_assets: directory_from("KUBEBUILDER_ASSETS"),
            setup_envtest: data_home().map(|home| home.join("kubebuilder-envtest/k8s")),
            cache: cache_home().map(|home| home.join("memgate/envtest")),
            go: env::var_os("PATH").and_then(|path| on_path("go", &path)),
            release: Release::from_environment()?,
        })
    }

    fn locate(&self, program: Program) -> Result<PathBuf> {
        let installed = self.installed().map(|dir| dir.join(program.name()));
        match installed.into_iter().find(|path| is_executable(path)) {
            Some(path) => Ok(path),
            None => build::cached(program, self),
        }
    }

    /// The directories of ready-made programs, best first.
    fn installed(&self) -> impl Iterator<Item = PathBuf> {
        let unpacked =
            self.setup_envtest.as_deref().and_then(|parent| newest_patch(parent, self.release.series));
        self.kubebuilder_assets.clone().into_iter().chain(unpacked)
    }
}

/// The directory of the newest patch of a series that setup-envtest unpacked for this machine.
fn newest_patch(parent: &Path, series: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(parent).ok()?.flatten();
    entries
        .filter_map(|entry| Some((patch(entry.file_name().to_str()?, series)?, entry.path())))
        .max()
        .map(|(_, path)| path)
}

/// 3 for `1.36.3-linux-amd64` and 1.36 on such a machine.
fn patch(directory: &str, series: &str) -> Option<u32> {
    let (version, platform) = directory.split_once('-')?;
    let number = version.strip_prefix(series)?.strip_prefix('.')?;
    (platform == go_platform()).then(|| number.parse().ok())?
}

/// The name of this machine in Go: `linux-amd64`.
pub(crate) fn go_platform() -> String {
    let os = match env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    };
    format!("{os}-{arch}")
}

/// The directory that setup-envtest chooses: `XDG_DATA_HOME`, or the usual one of the system.
fn data_home() -> Option<PathBuf> {
    let usual = match env::consts::OS {
        "macos" => "Library/Application Support",
        _ => ".local/share",
    };
    directory_from("XDG_DATA_HOME").or_else(|| Some(directory_from("HOME")?.join(usual)))
}

fn cache_home() -> Option<PathBuf> {
    directory_from("XDG_CACHE_HOME").or_else(|| Some(directory_from("HOME")?.join(".cache")))
}

/// The directory in an environment variable; an empty value counts as none.
fn directory_from(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The first program of this name in the directories of a `PATH`.
pub(crate) fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path).map(|dir| dir.join(name)).find(|file| is_executable(file))
}

/// Whether it is an executable file.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

//! Builds a program that tests need with Go, once, into a cache outside the work tree.
//!
//! The cache is `<cache>/<version>-<hash of its module files>/<program>`. A program appears there by
//! a rename, so it is always complete. A lock lets one run build while others wait.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::{
    assets::{Program, SearchPaths, is_executable},
    release::Release,
};

/// The version that `tools/envtest/etcd/go.mod` asks for, to tell directories of the cache apart.
const ETCD_VERSION: &str = "etcd-v3.6.16";

/// Symbols are left out: the programs are a third smaller, and are not debugged here.
const SMALL: &str = "-s -w";

/// How a program is built.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// Its file name.
    pub(crate) name: &'static str,
    /// The first part of the cache's key.
    pub(crate) version: &'static str,
    /// The files below `tools/` that decide what is built.
    pub(crate) files: &'static [&'static str],
    /// Its Go module, a directory below `tools/`.
    pub(crate) module: &'static str,
    /// Its package.
    pub(crate) package: &'static str,
    /// The build tags, separated by commas.
    pub(crate) tags: &'static str,
    /// The arguments for the linker.
    pub(crate) linker_flags: String,
    /// What the user can do when it is missing and cannot be built.
    pub(crate) advice: String,
}

/// A program of the control plane from the cache; builds it first when it is missing.
pub(crate) fn cached(program: Program, paths: &SearchPaths) -> Result<PathBuf> {
    let release = paths.release;
    let recipe = match program {
        Program::Etcd => Recipe {
            name: program.name(),
            version: ETCD_VERSION,
            files: &["envtest/etcd/go.mod", "envtest/etcd/go.sum"],
            module: "envtest/etcd",
            package: package(program),
            tags: "",
            linker_flags: SMALL.to_owned(),
            advice: missing(program, paths),
        },
        Program::ApiServer | Program::ControllerManager | Program::Kubectl => Recipe {
            name: program.name(),
            version: release.version,
            files: release.files,
            module: release.module,
            package: package(program),
            tags: "",
            linker_flags: linker_flags(release),
            advice: missing(program, paths),
        },
    };
    built(&recipe, paths)
}

/// A program from the cache; builds it first when it is missing.
pub(crate) fn built(recipe: &Recipe, paths: &SearchPaths) -> Result<PathBuf> {
    let missing = || anyhow!("{}", recipe.advice);
    let cache = paths.cache.as_deref().ok_or_else(missing)?;
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("tools"));
    let tools = folders.into_iter().find(|folder| folder.is_dir()).context("found no folder tools")?;
    let dir = cache.join(key(recipe, &tools)?);
    let path = dir.join(recipe.name);
    if is_executable(&path) {
        return Ok(path);
    }
    let go = paths.go.as_deref().ok_or_else(missing)?;

    fs::create_dir_all(&dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let _alone = lock(&dir.join("lock"))?;
    // Another run may have built it while this one waited.
    if !is_executable(&path) {
        let unfinished = tempfile::tempdir_in(&dir)?;
        let built = unfinished.path().join(recipe.name);
        build(recipe, go, &tools, &built)?;
        fs::rename(&built, &path).with_context(|| format!("failed to rename to {}", path.display()))?;
    }
    Ok(path)
}

/// `v1.36.3-0123456789abcdef`.
fn key(recipe: &Recipe, tools: &Path) -> Result<String> {
    let mut hash = Fnv::new();
    for file in recipe.files {
        let path = tools.join(file);
        let bytes = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
        hash.add(&bytes);
    }
    Ok(format!("{}-{:016x}", recipe.version, hash.0))
}

/// FNV-1a, 64 bits. The standard library's hash may change with the compiler, and with it would
/// the key and four minutes of building.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// Waits until no other run builds. The lock ends with the file, or with this process.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("failed to create {}", path.display()))?;
    file.lock().with_context(|| format!("failed to lock {}", path.display()))?;
    Ok(file)
}

fn build(recipe: &Recipe, go: &Path, tools: &Path, to: &Path) -> Result<()> {
    let Recipe { name, version, package, .. } = recipe;
    eprintln!("building {name} ({version}) with Go; this happens once and may take minutes");
    let module = tools.join(recipe.module);
    let status = Command::new(go)
        .args(["build", "-buildvcs=false", "-tags", recipe.tags, "-ldflags", &recipe.linker_flags, "-o"])
        .args([to.as_os_str(), package.as_ref()])
        .env("GOWORK", "off")
        .current_dir(&module)
        .status()
        .with_context(|| format!("failed to run {}", go.display()))?;
    ensure!(
        status.success(),
        "failed to build {name} ({status}); Go's own words are above. To see them again: cd {} && go build {package}",
        module.display(),
    );
    if !is_executable(to) {
        bail!("Go built {name}, but left no {}", to.display());
    }
    Ok(())
}

/// The sources of modules do not have the version, so the linker sets it.
fn linker_flags(release: Release) -> String {
    let Release { version, .. } = release;
    let (major, minor) = release.number();
    let variable = "k8s.io/component-base/version";
    format!(
        "{SMALL} -X {variable}.gitVersion={version} -X {variable}.gitMajor={major} -X {variable}.gitMinor={minor}"
    )
}

fn package(program: Program) -> &'static str {
    match program {
        Program::Etcd => "go.etcd.io/etcd/server/v3",
        Program::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
        Program::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
        Program::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
    }
}

/// The advice for a missing program.
fn missing(program: Program, paths: &SearchPaths) -> String {
    let shown = |path: &Option<PathBuf>, unset: &str| {
        path.as_ref().map_or_else(|| unset.to_owned(), |path| path.display().to_string())
    };
    format!(
        "{name} is missing. Any one of these helps:
  1. set KUBEBUILDER_ASSETS to a directory that holds etcd, kube-apiserver, kube-controller-manager and kubectl (now: {set})
  2. run `setup-envtest use {series}.x`; its directory is found by itself (now: {unpacked}), but it has no kube-controller-manager
  3. install Go 1.26 or newer; what is missing is then built from tools/envtest, once, into {cache}",
        name = program.name(),
        series = paths.release.series,
        set = shown(&paths.kubebuilder_assets, "not set"),
        unpacked = shown(&paths.setup_envtest, "HOME is not set"),
        cache = shown(&paths.cache, "the cache of the user, but HOME is not set"),
    )
}

//! Go programs that tests run, or compare memgate with. They are found on this machine, or built from `tools/`.

use std::{env, path::PathBuf};

use anyhow::Result;

use super::{
    assets::{SearchPaths, is_executable, on_path},
    build::{Recipe, built},
};

/// The Helm that `tools/helm/go.mod` asks for.
const HELM_VERSION: &str = "v4.3.1";

/// The Prometheus that `tools/promtool/go.mod` asks for.
const PROMETHEUS_VERSION: &str = "v0.315.0";

/// Helm: the one that `HELM` names, one on the `PATH`, or one built from `tools/helm`.
///
/// # Errors
/// When there is none and it cannot be built; the text names the ways to get it.
pub(crate) fn helm() -> Result<PathBuf> {
    let named = env::var_os("HELM").map(PathBuf::from);
    let found = || env::var_os("PATH").and_then(|path| on_path("helm", &path));
    if let Some(helm) = named.filter(|path| is_executable(path)).or_else(found) {
        return Ok(helm);
    }
    let recipe = Recipe {
        name: "helm",
        version: HELM_VERSION,
        files: &["helm/go.mod", "helm/go.sum"],
        module: "helm",
        package: "helm.sh/helm/v4/cmd/helm",
        tags: "",
        linker_flags: "-s -w".to_owned(),
        advice: "helm is missing: set HELM to it, put it on the PATH, or install Go 1.26 or newer".to_owned(),
    };
    built(&recipe, &SearchPaths::from_environment()?)
}

/// promtool, built from `tools/promtool`: an older one on the `PATH` may not know what the alerts use.
///
/// # Errors
/// When it cannot be built; the text says what is missing.
pub(crate) fn promtool() -> Result<PathBuf> {
    let recipe = Recipe {
        name: "promtool",
        version: PROMETHEUS_VERSION,
        files: &["promtool/go.mod", "promtool/go.sum"],
        module: "promtool",
        package: "github.com/prometheus/prometheus/cmd/promtool",
        // Service discovery is half of Prometheus, and rules do not use it.
        tags: "remove_all_sd",
        linker_flags: "-s -w".to_owned(),
        advice: "install Go 1.26 or newer: tests run the alerts with promtool".to_owned(),
    };
    built(&recipe, &SearchPaths::from_environment()?)
}

/// A program that reads JSON and applies patches with an apiserver's own libraries, built from `tools/compare`.
///
/// # Errors
/// When it cannot be built; the text says what is missing.
pub(crate) fn compare() -> Result<PathBuf> {
    let recipe = Recipe {
        name: "compare",
        version: "v1",
        files: &["compare/go.mod", "compare/go.sum", "compare/main.go"],
        module: "compare",
        package: ".",
        tags: "",
        linker_flags: "-s -w".to_owned(),
        advice: "install Go 1.26 or newer: tests compare memgate with an apiserver's own libraries"
            .to_owned(),
    };
    built(&recipe, &SearchPaths::from_environment()?)
}

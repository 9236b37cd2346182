//! The settings of a run: from a file, and from flags, which win over the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::families::FamilyArgs;
use crate::cli::keys;
use crate::cli::server_keys::ServerKeys;
use memgate_manifest::document::Document;
use memgate_manifest::source::Source;
use memgate_model::platform_settings::{PlatformSettings, Sizes};
use memgate_model::settings::{PolicySettings, Settings};
use memgate_primitives::quantity::billionths;

/// The settings that every command with decisions has.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingsArgs {
    /// Settings file, YAML or JSON; flags win over it
    ///
    /// Its keys, all optional, are families (a list), settings of ark, orloj, sympozium and policies, and those of serve
    /// alone, such as timeoutBody; `memgate schema settings` describes all. JSON in place of a file is read too.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    #[command(flatten)]
    families: FamilyArgs,
}

/// The settings file, as far as decisions depend on it. [`keys::parse`] has checked its keys and words.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SettingsFile {
    /// The names of the families.
    pub(super) families: Option<Vec<String>>,
    #[serde(flatten)]
    platforms: PlatformSettings,
    policies: PolicyKeys,
}

/// What policies need to know of the cluster.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PolicyKeys {
    cluster_domain: Option<String>,
    exclude_namespaces: Vec<String>,
}

impl SettingsArgs {
    /// Reads a relative path from this directory, whatever the working directory is.
    pub fn read_from(&mut self, directory: &Path) {
        if let Some(file) = self.settings.as_mut().filter(|file| inline(file).is_none()) {
            *file = directory.join(&*file);
        }
    }

    /// Whether flags, or the file of a flag, choose the families.
    pub const fn names_families(&self) -> bool {
        self.settings.is_some() || self.families.is_chosen()
    }

    /// Joins the defaults, the file and the flags. The settings of a repository count when no flag names a file.
    ///
    /// # Errors
    /// When the file cannot be read or has an unknown key or value.
    pub fn settings(&self, of_repository: Option<&SettingsFile>) -> anyhow::Result<Settings> {
        self.joined(self.document()?.as_ref(), of_repository)
    }

    /// The same without a repository, and what the file sets about the server alone. The file is read once, as it may be a
    /// pipe.
    ///
    /// # Errors
    /// Those of [`SettingsArgs::settings`].
    pub fn of_server(&self) -> anyhow::Result<(Settings, ServerKeys)> {
        let document = self.document()?;
        Ok((self.joined(document.as_ref(), None)?, ServerKeys::new(document)))
    }

    /// The settings file, if there is one and it is not empty.
    fn document(&self) -> anyhow::Result<Option<Document>> {
        let Some(path) = &self.settings else { return Ok(None) };
        let source = match inline(path) {
            Some(text) => Arc::new(Source::new("--settings", text)),
            None => keys::source(path)?,
        };
        keys::parse(&source, keys::SETTINGS)
    }

    fn joined(
        &self,
        document: Option<&Document>,
        of_repository: Option<&SettingsFile>,
    ) -> anyhow::Result<Settings> {
        let file = match document {
            Some(document) => {
                serde_json::from_value(document.value().clone()).context("failed to read the settings")?
            }
            None => of_repository.filter(|_| self.settings.is_none()).cloned().unwrap_or_default(),
        };
        let SettingsFile { families, platforms, policies } = file;
        let of_file =
            families.map(|names| names.iter().filter_map(|name| memgate_platforms::find(name)).collect());
        check_sizes("wait", &platforms.sympozium.resources.wait)?;
        check_sizes("server", &platforms.sympozium.resources.server)?;
        let of_policies = PolicySettings::default();
        let policies = PolicySettings {
            cluster_domain: policies.cluster_domain.unwrap_or(of_policies.cluster_domain),
            excluded_namespaces: policies.exclude_namespaces,
            ..of_policies
        };
        Ok(Settings { families: self.families.chosen_or(of_file), namespace: None, platforms, policies })
    }
}

/// The settings that are given in place of a file.
fn inline(file: &Path) -> Option<&str> {
    file.to_str().filter(|text| text.starts_with('{'))
}

/// The keys of a settings file that an installation passes on to `memgate serve`: all but the families, which have flags.
pub fn passed_on(keys: &ServerKeys) -> Map<String, Value> {
    let mut passed = keys.all();
    passed.remove("families");
    passed
}

/// An apiserver refuses a request above the limit.
fn check_sizes(container: &str, sizes: &Sizes) -> anyhow::Result<()> {
    for (resource, request) in &sizes.requests {
        if let Some(limit) =
            sizes.limits.get(resource).filter(|limit| billionths(request) > billionths(limit))
        {
            bail!(
                "sympozium.resources.{container}.requests.{resource}: {request} is more than the limit, {limit}"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::project;
    use memgate_model::platform_settings::{MemoryMode, Waits, WriterTokens};

    #[derive(Debug, Parser)]
    struct TestArgs {
        #[command(flatten)]
        settings: SettingsArgs,
    }

    const SETTINGS: &str = r#"{"ark": {"sidecars": ["logger", "agent-*"]},
  "orloj": {"jobNamespaces": ["jobs", "more"], "sharedSecrets": ["kb-*"], "sourceNamespaces": ["*"]},
  "sympozium": {"memoryMode": "sidecar", "writerTokens": "always", "waitImage": "wait", "memoryImage": "memory",
    "wait": "never", "imagePullSecrets": ["mirror"], "resources": {"wait": {"limits": {"cpu": 1, "ephemeral-storage": "1Gi"}},
    "server": {"requests": {"memory": "64Mi"}}}}}"#;

    /// The settings of a file, of a text in its place, and of `.memgate.yaml`.
    #[test]
    fn are_the_same_wherever_they_stand() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, repository) =
            (folder.path().join("settings.yaml"), folder.path().join(memgate_workbench::paths::PROJECT_FILE));
        std::fs::write(&file, SETTINGS).expect("a file");
        std::fs::write(&repository, format!("settings: {SETTINGS}")).expect("a file");
        let args = |value: &[String]| {
            let arguments = ["serve".to_owned()].into_iter().chain(value.iter().cloned());
            TestArgs::try_parse_from(arguments).expect("good flags").settings
        };
        let of_file =
            args(&[format!("--settings={}", file.display())]).settings(None).expect("good settings");
        let of_text = args(&[format!("--settings={SETTINGS}")]).settings(None).expect("good settings");
        assert_eq!(of_file, of_text);
        let project = project::read(&repository).expect("a good file");
        assert_eq!(args(&[]).settings(Some(&project.settings)).expect("good settings"), of_file);
        let PlatformSettings { ark, orloj, sympozium, .. } = of_file.platforms;
        let sidecars: Vec<&str> = ark.sidecars.iter().map(memgate_primitives::glob::Glob::as_str).collect();
        assert_eq!(sidecars, ["logger", "agent-*"]);
        assert_eq!([&orloj.job_namespaces[1], &orloj.shared_secrets[0]], ["more", "kb-*"]);
        assert!(orloj.may_claim("any"));
        assert_eq!((sympozium.memory_mode, sympozium.wait), (MemoryMode::Sidecar, Waits::Never));
        assert_eq!(sympozium.writer_tokens, WriterTokens::Always);
        assert_eq!([&*sympozium.wait_image, &*sympozium.memory_image], ["wait", "memory"]);
        assert_eq!(sympozium.image_pull_secrets, ["mirror"]);
        let resources = &sympozium.resources;
        assert_eq!([&resources.wait.limits["cpu"], &resources.server.requests["memory"]], ["1", "64Mi"]);
    }
}

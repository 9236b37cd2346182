//! The settings of a run: from a file, and from flags, which win over the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::Deserialize;

use crate::cli::families::FamilyArgs;
use crate::family;
use crate::manifest::document::values;
use crate::model::family::Family;
use crate::model::platform_settings::MemoryMode;
use crate::model::settings::Settings;
use crate::offline::collect::collect;

/// The settings that decisions depend on.
#[derive(Debug, clap::Args)]
pub struct SettingsArgs {
    /// Take choices from this YAML or JSON file; flags win over it
    ///
    /// Its keys are families (a list), orloj.jobNamespaces (a list), and sympozium.memoryMode,
    /// .waitImage and .memoryImage; all of them are optional.
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,

    #[command(flatten)]
    families: FamilyArgs,

    /// A namespace in which Orloj runs the Jobs of agents; can be repeated [default: orloj]
    #[arg(long = "orloj-job-namespace", value_name = "NAME", help_heading = "Settings")]
    orloj_job_namespaces: Vec<String>,

    /// Where the private memory of a sympozium agent runs when nobody else says so [default: auto]
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Settings")]
    sympozium_memory_mode: Option<MemoryModeArg>,

    /// The image of init containers that wait for a sympozium memory service
    #[arg(long, value_name = "IMAGE", help_heading = "Settings")]
    sympozium_wait_image: Option<String>,

    /// The image of the sympozium memory sidecar where the SkillPack names none
    #[arg(long, value_name = "IMAGE", help_heading = "Settings")]
    sympozium_memory_image: Option<String>,
}

/// Where the private memory of a sympozium agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MemoryModeArg {
    /// As the SkillPack has it
    Auto,
    /// In a Deployment of its own
    Service,
    /// In a native sidecar of the agent's pod
    Sidecar,
}

/// The settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct File {
    families: Option<Vec<String>>,
    orloj: OrlojFile,
    sympozium: SympoziumFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct OrlojFile {
    job_namespaces: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct SympoziumFile {
    memory_mode: Option<MemoryModeArg>,
    wait_image: Option<String>,
    memory_image: Option<String>,
}

impl SettingsArgs {
    /// The settings: the defaults, then the file, then the flags.
    ///
    /// # Errors
    /// When the file cannot be read or has an unknown key or value.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let file = self.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let families = self.families.chosen_or(parse_families(file.families)?);
        let mut settings = Settings { families, ..Settings::default() };
        let from_flags = (!self.orloj_job_namespaces.is_empty()).then(|| self.orloj_job_namespaces.clone());
        if let Some(namespaces) = from_flags.or(file.orloj.job_namespaces) {
            settings.platforms.orloj.job_namespaces = namespaces;
        }
        let (sympozium, file) = (&mut settings.platforms.sympozium, file.sympozium);
        if let Some(mode) = self.sympozium_memory_mode.or(file.memory_mode) {
            sympozium.memory_mode = mode.into();
        }
        let images = [
            (&mut sympozium.wait_image, &self.sympozium_wait_image, file.wait_image),
            (&mut sympozium.memory_image, &self.sympozium_memory_image, file.memory_image),
        ];
        for (image, flag, file) in images {
            if let Some(chosen) = flag.clone().or(file) {
                *image = chosen;
            }
        }
        Ok(settings)
    }
}

/// The flags that turn the defaults into these settings, except those about families.
#[must_use]
pub fn flags(settings: &Settings) -> Vec<String> {
    let defaults = Settings::default();
    let mut flags = Vec::new();
    if settings.platforms.orloj != defaults.platforms.orloj {
        let namespaces = settings.platforms.orloj.job_namespaces.iter();
        flags.extend(namespaces.map(|namespace| format!("--orloj-job-namespace={namespace}")));
    }
    let (sympozium, defaults) = (&settings.platforms.sympozium, &defaults.platforms.sympozium);
    let mode = match sympozium.memory_mode {
        MemoryMode::Auto => "auto",
        MemoryMode::Service => "service",
        MemoryMode::Sidecar => "sidecar",
    };
    for (differs, flag, value) in [
        (sympozium.memory_mode != defaults.memory_mode, "memory-mode", mode),
        (sympozium.wait_image != defaults.wait_image, "wait-image", &sympozium.wait_image),
        (sympozium.memory_image != defaults.memory_image, "memory-image", &sympozium.memory_image),
    ] {
        flags.extend(differs.then(|| format!("--sympozium-{flag}={value}")));
    }
    flags
}

impl From<MemoryModeArg> for MemoryMode {
    fn from(mode: MemoryModeArg) -> Self {
        match mode {
            MemoryModeArg::Auto => Self::Auto,
            MemoryModeArg::Service => Self::Service,
            MemoryModeArg::Sidecar => Self::Sidecar,
        }
    }
}

fn parse_families(names: Option<Vec<String>>) -> anyhow::Result<Option<Vec<&'static Family>>> {
    let family = |name: String| {
        family::find(&name).with_context(|| {
            format!(
                "families: there is no family \"{name}\"; use {}",
                family::ALL.map(|family| family.name).join(", ")
            )
        })
    };
    names.map(|names| names.into_iter().map(family).collect()).transpose()
}

fn read_file(path: &Path) -> anyhow::Result<File> {
    let failed = || format!("failed to read the settings {}", path.display());
    let collected = collect(&[path.display().to_string()], &mut std::io::empty());
    if let Some(error) = collected.errors.into_iter().next() {
        return Err(error).with_context(failed);
    }
    let source = Arc::new(collected.sources.into_iter().next().with_context(failed)?);
    let mut errors = Vec::new();
    let documents = values(&source, &mut errors);
    if let Some(error) = errors.into_iter().next() {
        return Err(error).with_context(failed);
    }
    let Some(document) = documents.first() else { return Ok(File::default()) };
    serde_json::from_value(document.value().clone()).with_context(failed)
}

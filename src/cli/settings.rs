//! The settings of a run: from a file, and from flags, which win over the file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::cli::families::FamilyArgs;
use crate::cli::keys;
use crate::cli::policies::{self, PolicySettingsArgs};
use crate::family;
use crate::model::family::Family;
use crate::model::platform_settings::{MemoryMode, Orloj};
use crate::model::settings::Settings;

/// The settings that decisions depend on.
#[derive(Debug, clap::Args)]
pub struct SettingsArgs {
    /// Take choices from this YAML or JSON file; flags win over it
    ///
    /// Its keys are families (a list), orloj.jobNamespaces, .sharedSecrets and .sourceNamespaces (lists), and
    /// sympozium.memoryMode, .waitImage and .memoryImage; all of them are optional.
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,

    #[command(flatten)]
    families: FamilyArgs,

    /// A namespace in which Orloj runs the Jobs of agents; can be repeated [default: orloj]
    #[arg(long = "orloj-job-namespace", value_name = "NAME", help_heading = "Settings")]
    orloj_job_namespaces: Vec<String>,

    /// A Secret of a job namespace that any Memory may hand to pods; can be repeated [default: none]
    ///
    /// The name may hold * for any text and ? for one character. Pods get a shared Secret together with the
    /// endpoint of whichever Memory names it, so share only names that are made for it.
    #[arg(long = "orloj-shared-secret", value_name = "NAME", help_heading = "Settings")]
    orloj_shared_secrets: Vec<String>,

    /// A namespace whose objects may carry orloj.dev/target-namespace; can be repeated [default: all]
    ///
    /// Objects of other namespaces that carry it are ignored. An empty name means that there is none.
    #[arg(long = "orloj-source-namespace", value_name = "NAME", help_heading = "Settings")]
    orloj_source_namespaces: Vec<String>,

    /// Where the private memory of a sympozium agent runs when nobody else says so [default: auto]
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Settings")]
    sympozium_memory_mode: Option<MemoryModeArg>,

    /// The image of init containers that wait for a sympozium memory service
    #[arg(long, value_name = "IMAGE", help_heading = "Settings")]
    sympozium_wait_image: Option<String>,

    /// The image of the sympozium memory sidecar where the SkillPack names none
    #[arg(long, value_name = "IMAGE", help_heading = "Settings")]
    sympozium_memory_image: Option<String>,

    #[command(flatten)]
    policies: PolicySettingsArgs,
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
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// The names of the families.
    pub(super) families: Option<Vec<String>>,
    orloj: OrlojFile,
    sympozium: SympoziumFile,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct OrlojFile {
    job_namespaces: Option<Vec<String>>,
    shared_secrets: Option<Vec<String>>,
    source_namespaces: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
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
        self.settings_or(None)
    }

    /// The same, with the settings of a repository in place of the file that no flag names.
    ///
    /// # Errors
    /// When the file cannot be read or has an unknown key or value.
    pub fn settings_or(&self, otherwise: Option<&File>) -> anyhow::Result<Settings> {
        let file = self.config.as_deref().map(read_file).transpose()?;
        let file = file.or_else(|| otherwise.cloned()).unwrap_or_default();
        let families = self.families.chosen_or(parse_families(file.families)?);
        let policies = self.policies.settings()?;
        let mut settings = Settings { families, policies, ..Settings::default() };
        self.set_orloj(&mut settings.platforms.orloj, file.orloj)?;
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

    fn set_orloj(&self, orloj: &mut Orloj, file: OrlojFile) -> anyhow::Result<()> {
        if let Some(namespaces) = chosen(&self.orloj_job_namespaces, file.job_namespaces) {
            orloj.job_namespaces = namespaces;
        }
        if let Some(patterns) = chosen(&self.orloj_shared_secrets, file.shared_secrets) {
            let wrong = patterns.iter().find(|pattern| !is_name_pattern(pattern));
            if let Some(wrong) = wrong {
                bail!(
                    "orloj.sharedSecrets: \"{wrong}\" fits no name; use a-z, 0-9, \"-\" and \".\", and \"*\" and \"?\""
                );
            }
            orloj.shared_secrets = patterns;
        }
        orloj.source_namespaces = chosen(&self.orloj_source_namespaces, file.source_namespaces);
        Ok(())
    }
}

/// The values of a flag that can be repeated, or else those of the file. An empty value adds nothing to a list,
/// so that a flag can say that the list is empty.
fn chosen(flags: &[String], file: Option<Vec<String>>) -> Option<Vec<String>> {
    let mut values = if flags.is_empty() { file? } else { flags.to_vec() };
    values.retain(|value| !value.is_empty());
    Some(values)
}

/// Whether a pattern can fit the name of an object.
fn is_name_pattern(pattern: &str) -> bool {
    let is_name_char = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.*?".contains(&b);
    pattern.bytes().all(is_name_char)
}

/// A flag for each of these values; one without a value where there are none.
fn repeated(flag: &str, values: &[String]) -> Vec<String> {
    if values.is_empty() {
        return vec![format!("--{flag}=")];
    }
    values.iter().map(|value| format!("--{flag}={value}")).collect()
}

/// The flags that turn the defaults into these settings, except those about families.
#[must_use]
pub fn flags(settings: &Settings) -> Vec<String> {
    let defaults = Settings::default();
    let mut flags = Vec::new();
    let (orloj, default) = (&settings.platforms.orloj, &defaults.platforms.orloj);
    if orloj.job_namespaces != default.job_namespaces {
        flags.extend(repeated("orloj-job-namespace", &orloj.job_namespaces));
    }
    if orloj.shared_secrets != default.shared_secrets {
        flags.extend(repeated("orloj-shared-secret", &orloj.shared_secrets));
    }
    if let Some(namespaces) = &orloj.source_namespaces {
        flags.extend(repeated("orloj-source-namespace", namespaces));
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
    flags.extend(policies::flags(&settings.policies));
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
    let Some(document) = keys::read(path, &keys::settings())? else {
        return Ok(File::default());
    };
    let file = serde_json::from_value(document.value().clone());
    file.with_context(|| format!("failed to read the settings {}", path.display()))
}

//! The settings of a run: from a file, and from flags, which win over the file.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::builder::PossibleValuesParser;
use serde::Deserialize;

use crate::cli::families::FamilyArgs;
use crate::cli::keys;
use crate::cli::policies::ClusterPolicyArgs;
use crate::cli::server_keys::ServerKeys;
use memgate_manifest::document::Document;
use memgate_model::platform_settings::{
    AddedResources, MemoryMode, PlatformSettings, Sizes, Waits, WriterTokens,
};
use memgate_model::settings::Settings;
use memgate_primitives::glob::Glob;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::quantity::billionths;

/// The settings that every command with decisions has.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingsArgs {
    /// Settings file, YAML or JSON; flags win over it
    ///
    /// Its keys, all optional: families (a list), ark.sidecars (a list), orloj.jobNamespaces, orloj.sharedSecrets,
    /// orloj.sourceNamespaces (lists), sympozium.memoryMode, sympozium.writerTokens, sympozium.waitImage,
    /// sympozium.memoryImage, sympozium.wait, sympozium.resources, sympozium.imagePullSecrets, and those of serve alone,
    /// such as auditRate and timeoutBody; `memgate schema settings` describes all.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    families: FamilyArgs,
}

/// The settings of a server: those of all commands, those of single platforms, and what policies know of the cluster.
#[derive(Debug, clap::Args)]
pub struct ServerSettingsArgs {
    #[command(flatten)]
    common: SettingsArgs,

    #[command(flatten)]
    platforms: PlatformArgs,

    #[command(flatten)]
    policies: ClusterPolicyArgs,
}

/// The settings of single platforms: flags of `serve` and `manifests`, and keys of the settings file.
#[derive(Debug, Clone, Default, clap::Args, Deserialize)]
#[serde(default)]
#[command(next_help_heading = "Settings")]
struct PlatformArgs {
    #[command(flatten)]
    ark: ArkArgs,

    #[command(flatten)]
    orloj: OrlojArgs,

    #[command(flatten)]
    sympozium: SympoziumArgs,
}

#[derive(Debug, Clone, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ArkArgs {
    /// Name of a container that never gets the memory of an ark pod; repeatable [default: known sidecars only]
    ///
    /// The name may hold * for any text and ? for one character. The annotation memgate.dev/ark-containers wins.
    #[arg(long = "ark-sidecar", value_name = "NAME")]
    sidecars: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OrlojArgs {
    /// Namespace in which Orloj runs the Jobs of agents; repeatable [default: orloj]
    #[arg(long = "orloj-job-namespace", value_name = "NAME")]
    job_namespaces: Option<Vec<String>>,

    /// Secret of a job namespace that any Memory may give to pods; repeatable [default: none]
    ///
    /// The name may hold * for any text and ? for one character. A pod gets a shared Secret together with the
    /// endpoint of the Memory that names it, so share only names that are made for this.
    #[arg(long = "orloj-shared-secret", value_name = "NAME")]
    shared_secrets: Option<Vec<String>>,

    /// Namespace whose objects may carry orloj.dev/target-namespace; repeatable, * for all [default: none]
    ///
    /// Objects of other namespaces with this annotation are ignored.
    #[arg(long = "orloj-source-namespace", value_name = "NAME")]
    source_namespaces: Option<Vec<String>>,
}

/// The names of modes.
const MODES: [(&str, MemoryMode); 3] =
    [("auto", MemoryMode::Auto), ("service", MemoryMode::Service), ("sidecar", MemoryMode::Sidecar)];

/// The names of the choices about writer tokens.
const TOKENS: [(&str, WriterTokens); 3] =
    [("auto", WriterTokens::Auto), ("always", WriterTokens::Always), ("never", WriterTokens::Never)];

/// The names of the choices about waits.
const WAITS: [(&str, Waits); 2] = [("auto", Waits::Auto), ("never", Waits::Never)];

#[derive(Debug, Clone, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SympoziumArgs {
    /// Where the private memory of a sympozium agent runs unless its objects say so [default: auto]
    ///
    /// auto: as the SkillPack says; service: in a Deployment; sidecar: in a native sidecar of the agent's pod.
    #[arg(long = "sympozium-memory-mode", value_name = "MODE", value_parser = PossibleValuesParser::new(MODES.map(|(name, _)| name)))]
    memory_mode: Option<String>,

    /// Which agent pods of sympozium get references to the writer tokens of their memory [default: auto]
    ///
    /// auto: all, and a pod starts without the Secret unless its server is known to ask for the token; always: all, and
    /// a pod waits for the Secret; never: none, for releases of sympozium up to 0.10.46.
    #[arg(long = "sympozium-writer-tokens", value_name = "WHEN", value_parser = PossibleValuesParser::new(TOKENS.map(|(name, _)| name)))]
    writer_tokens: Option<String>,

    /// Image of the init containers that wait for a sympozium memory service
    #[arg(long = "sympozium-wait-image", value_name = "IMAGE")]
    wait_image: Option<String>,

    /// Image of the sympozium memory sidecar if the SkillPack names none
    #[arg(long = "sympozium-memory-image", value_name = "IMAGE")]
    memory_image: Option<String>,

    /// Which agent pods of sympozium get init containers that wait for a memory service [default: auto]
    ///
    /// auto: those in which an init container has a network; never: none.
    #[arg(long = "sympozium-wait", value_name = "WHEN", value_parser = PossibleValuesParser::new(WAITS.map(|(name, _)| name)))]
    wait: Option<String>,

    /// Requests and limits of the containers that sympozium pods get, as JSON; field by field over the defaults
    ///
    /// Such as {"server": {"limits": {"memory": "256Mi"}}}; the other key is wait, the other map requests, and the
    /// other resources cpu and ephemeral-storage.
    #[arg(long = "sympozium-resources", value_name = "JSON", value_parser = keys::resources)]
    resources: Option<AddedResources>,

    /// Secret with which images of added containers are pulled, in the namespace of each pod; repeatable [default: none]
    #[arg(long = "sympozium-image-pull-secret", value_name = "NAME")]
    image_pull_secrets: Option<Vec<String>>,
}

/// The settings file. [`keys::read`] has checked its keys and words.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SettingsFile {
    /// The names of the families.
    pub(super) families: Option<Vec<String>>,
    #[serde(flatten)]
    platforms: PlatformArgs,
}

impl SettingsArgs {
    /// Reads a relative path from this directory, whatever the working directory is.
    pub fn read_from(&mut self, directory: &std::path::Path) {
        if let Some(file) = &mut self.config {
            *file = directory.join(&*file);
        }
    }

    /// Whether flags, or the file of a flag, choose the families.
    pub const fn names_families(&self) -> bool {
        self.config.is_some() || self.families.is_chosen()
    }

    /// The settings file, if there is one and it is not empty.
    fn document(&self) -> anyhow::Result<Option<Document>> {
        Ok(self.config.as_ref().map(|path| keys::read(path, keys::SETTINGS)).transpose()?.flatten())
    }

    /// Joins the defaults, the file and the flags. The settings of a repository count when no flag names a file.
    ///
    /// # Errors
    /// When the file cannot be read or has an unknown key or value.
    pub fn settings(&self, of_repository: Option<&SettingsFile>) -> anyhow::Result<Settings> {
        self.joined(self.document()?.as_ref(), of_repository)
    }

    fn joined(
        &self,
        document: Option<&Document>,
        of_repository: Option<&SettingsFile>,
    ) -> anyhow::Result<Settings> {
        let file = match &self.config {
            Some(path) => {
                let file = document.map(|document| serde_json::from_value(document.value().clone()));
                let failed = || format!("failed to read the settings {}", path.display());
                file.transpose().with_context(failed)?.unwrap_or_default()
            }
            None => of_repository.cloned().unwrap_or_default(),
        };
        let of_file = file
            .families
            .map(|names| names.iter().filter_map(|name| memgate_platforms::find(name)).collect());
        let mut settings =
            Settings { families: self.families.chosen_or(of_file), ..memgate_platforms::default_settings() };
        file.platforms.apply(&mut settings.platforms)?;
        Ok(settings)
    }
}

impl ServerSettingsArgs {
    /// Joins the defaults, the file and the flags; and what the file sets about the server alone. The file is read once,
    /// as it may be a pipe.
    ///
    /// # Errors
    /// When the file cannot be read, or a value cannot be used.
    pub fn settings(&self) -> anyhow::Result<(Settings, ServerKeys)> {
        let document = self.common.document()?;
        let mut settings = self.common.joined(document.as_ref(), None)?;
        self.platforms.apply(&mut settings.platforms)?;
        self.policies.apply(&mut settings.policies);
        Ok((settings, ServerKeys::new(document)))
    }
}

impl PlatformArgs {
    /// Replaces the settings that are given. An empty name adds nothing, so that a flag can empty a list.
    fn apply(&self, settings: &mut PlatformSettings) -> anyhow::Result<()> {
        let names = |names: &Option<Vec<String>>| -> Option<Vec<String>> {
            Some(names.as_ref()?.iter().filter(|name| !name.is_empty()).cloned().collect())
        };
        let patterns = |key: &str, given| {
            let patterns = names(given);
            match patterns.iter().flatten().find(|pattern| !is_name_pattern(pattern)) {
                Some(wrong) => bail!(
                    "{key}: \"{wrong}\" fits no name; use a-z, 0-9, \"-\" and \".\", and \"*\" and \"?\""
                ),
                None => Ok(patterns),
            }
        };
        let sidecars = patterns("ark.sidecars", &self.ark.sidecars)?;
        set(&mut settings.ark.sidecars, sidecars.map(|names| names.into_iter().map(Glob::new).collect()));
        let (orloj, sympozium) = (&mut settings.orloj, &mut settings.sympozium);
        set(&mut orloj.job_namespaces, names(&self.orloj.job_namespaces));
        set(&mut orloj.shared_secrets, patterns("orloj.sharedSecrets", &self.orloj.shared_secrets)?);
        set(&mut orloj.source_namespaces, names(&self.orloj.source_namespaces));
        set(&mut sympozium.memory_mode, named(&MODES, self.sympozium.memory_mode.as_deref()));
        set(&mut sympozium.writer_tokens, named(&TOKENS, self.sympozium.writer_tokens.as_deref()));
        set(&mut sympozium.wait_image, self.sympozium.wait_image.clone());
        set(&mut sympozium.memory_image, self.sympozium.memory_image.clone());
        set(&mut sympozium.wait, named(&WAITS, self.sympozium.wait.as_deref()));
        let secrets = names(&self.sympozium.image_pull_secrets);
        if let Some(wrong) = secrets.iter().flatten().find(|name| !is_dns_subdomain(name)) {
            bail!("sympozium.imagePullSecrets: {} cannot be the name of a Secret", quoted(wrong));
        }
        set(&mut sympozium.image_pull_secrets, secrets);
        if let Some(resources) = &self.sympozium.resources {
            check_sizes("wait", &resources.wait)?;
            check_sizes("server", &resources.server)?;
            sympozium.resources = resources.clone();
        }
        Ok(())
    }
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

/// Replaces a setting if a value is given.
fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

fn named<T: Copy>(names: &[(&str, T)], name: Option<&str>) -> Option<T> {
    names.iter().find(|(known, _)| Some(*known) == name).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(names: &[(&str, T)], value: &T) -> String {
    names.iter().find(|(_, known)| known == value).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}

/// Whether a pattern can fit the name of an object.
fn is_name_pattern(pattern: &str) -> bool {
    let is_name_char = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.*?".contains(&b);
    pattern.bytes().all(is_name_char)
}

/// The flags of `memgate serve` that turn the defaults into these settings, except those about families.
pub fn flags(settings: &Settings) -> Vec<String> {
    let mut flags = Vec::new();
    for ((flag, values), default) in
        flag_values(settings).into_iter().zip(flag_values(&memgate_platforms::default_settings()))
    {
        if (flag, &values) == (default.0, &default.1) {
            continue;
        }
        let values = values.unwrap_or_default();
        // A flag without a value empties the list.
        flags.extend(values.is_empty().then(|| format!("--{flag}=")));
        flags.extend(values.iter().map(|value| format!("--{flag}={value}")));
    }
    flags
}

/// Each flag with its values in these settings.
fn flag_values(settings: &Settings) -> [(&'static str, Option<Vec<String>>); 13] {
    let (platforms, policies) = (&settings.platforms, &settings.policies);
    let mode = name_of(&MODES, &platforms.sympozium.memory_mode);
    let tokens = name_of(&TOKENS, &platforms.sympozium.writer_tokens);
    let sidecars = platforms.ark.sidecars.iter().map(|glob| glob.as_str().to_owned());
    let is_default = platforms.sympozium.resources == AddedResources::default();
    let resources = serde_json::to_string(&platforms.sympozium.resources).ok().filter(|_| !is_default);
    [
        ("ark-sidecar", Some(sidecars.collect())),
        ("orloj-job-namespace", Some(platforms.orloj.job_namespaces.clone())),
        ("orloj-shared-secret", Some(platforms.orloj.shared_secrets.clone())),
        ("orloj-source-namespace", Some(platforms.orloj.source_namespaces.clone())),
        ("sympozium-memory-mode", Some(vec![mode])),
        ("sympozium-writer-tokens", Some(vec![tokens])),
        ("sympozium-wait-image", Some(vec![platforms.sympozium.wait_image.clone()])),
        ("sympozium-memory-image", Some(vec![platforms.sympozium.memory_image.clone()])),
        ("sympozium-wait", Some(vec![name_of(&WAITS, &platforms.sympozium.wait)])),
        ("sympozium-resources", Some(resources.into_iter().collect())),
        ("sympozium-image-pull-secret", Some(platforms.sympozium.image_pull_secrets.clone())),
        ("cluster-domain", Some(vec![policies.cluster_domain.clone()])),
        ("policy-exclude-namespace", Some(policies.excluded_namespaces.clone())),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::cli::project;

    #[derive(Debug, Parser)]
    struct TestArgs {
        #[command(flatten)]
        settings: ServerSettingsArgs,
    }

    const SETTINGS: &str = "\
ark: {sidecars: [logger, \"agent-*\"]}
orloj: {jobNamespaces: [jobs, more], sharedSecrets: [\"kb-*\"], sourceNamespaces: [\"*\"]}
sympozium: {memoryMode: sidecar, writerTokens: always, waitImage: wait, memoryImage: memory, wait: never,
  imagePullSecrets: [mirror], resources: {wait: {limits: {cpu: 1, ephemeral-storage: 1Gi}},
  server: {requests: {memory: 64Mi}}}}
";

    /// The settings of a file of `--config`, of `.memgate.yaml` and of flags.
    #[test]
    fn files_have_the_settings_of_all_platform_flags() {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, repository) =
            (folder.path().join("config.yaml"), folder.path().join(memgate_workbench::paths::PROJECT_FILE));
        std::fs::write(&config, SETTINGS).expect("a file");
        std::fs::write(&repository, format!("settings:\n  {}", SETTINGS.trim_end().replace('\n', "\n  ")))
            .expect("a file");
        let parse = |flags: &[String]| {
            let arguments = std::iter::once("serve").chain(flags.iter().map(String::as_str));
            TestArgs::try_parse_from(arguments).expect("good flags").settings
        };
        let (from_config, _) =
            parse(&[format!("--config={}", config.display())]).settings().expect("good settings");
        let of_platforms = ["--ark-sidecar", "--orloj-", "--sympozium-"];
        let mut flags = flags(&from_config);
        flags.retain(|flag| of_platforms.iter().any(|start| flag.starts_with(start)));
        let names: BTreeSet<&str> = flags.iter().filter_map(|flag| flag.split('=').next()).collect();
        let mut serve = TestArgs::command();
        serve.build();
        let all: BTreeSet<String> =
            serve.get_arguments().filter_map(|it| Some(format!("--{}", it.get_long()?))).collect();
        let all: BTreeSet<&str> = all
            .iter()
            .map(String::as_str)
            .filter(|flag| of_platforms.iter().any(|it| flag.starts_with(it)))
            .collect();
        assert_eq!(names, all, "each flag of a platform differs from its default");
        assert_eq!(parse(&flags).settings().expect("good settings").0, from_config);
        let project = project::read(&repository).expect("a good file");
        let common = parse(&[]).common;
        assert_eq!(common.settings(Some(&project.settings)).expect("good settings"), from_config);
    }
}

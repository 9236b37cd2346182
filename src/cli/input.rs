//! The arguments that say which files a command reads, and notes about what was read.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::limits::parse_size;
use crate::cli::policies::{OccasionArgs, PolicyArgs};
use crate::cli::project::{FILE_NAME, Project, ProjectArgs};
use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use crate::family::naming::and_more;
use crate::model::request::{Occasion, Point};
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::offline::base::{self, Base, BasePaths};
use crate::offline::check::{Checked, check};
use crate::offline::collect::{Reading, Unread};
use crate::offline::errors::input_error;
use crate::offline::exclude::Exclude;
use crate::offline::load::{Inputs, Paths, load_as};
use crate::offline::read::DEFAULT_MAX_BYTES;
use crate::offline::render::{Rendering, Unrendered};
use crate::offline::repository::{Tool, normal};
use crate::offline::stop::Stop;
use crate::report::{counted, plain};
use crate::state::cluster_snapshot::Assumed;

/// The most charts and kustomizations with a note of their own.
const MAX_UNRENDERED_IN_NOTES: usize = 10;

/// How the state of a live cluster is named where files have their paths.
const CLUSTER: &str = "cluster";

/// The most files named in the note about those that were not read.
const MAX_UNREAD_IN_NOTE: usize = 5;

/// What is read, checked and changed.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Files, directories, globs, or - for standard input [default: the paths of .memgate.yaml]
    ///
    /// YAML with any number of documents, JSON, and Lists. In directories: *.yaml, *.yml and
    /// *.json at any depth. All of them are state for one another.
    #[arg(value_name = "PATH")]
    paths: Vec<String>,

    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    occasion: OccasionArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    #[command(flatten)]
    project: ProjectArgs,
}

/// How files are read.
#[derive(Debug, clap::Args)]
struct ReadingArgs {
    /// Leave out files and directories that a directory or glob leads to; can be repeated
    ///
    /// A glob without / is about names at any depth, such as vendor or *.gen.yaml; any other is about paths, as
    /// they are given or from the directory that is read.
    #[arg(long, value_name = "GLOB", help_heading = "Input")]
    exclude: Vec<String>,

    /// Run helm and kustomize on charts and overlays in directories, and check what they print
    ///
    /// They are your own programs: helm template, and kustomize build or kubectl kustomize. They may run what a
    /// chart or overlay asks for, so render only what you trust.
    #[arg(long, help_heading = "Input")]
    render: bool,

    /// A file of values for helm; can be repeated
    #[arg(long, value_name = "FILE", requires = "render", help_heading = "Input")]
    values: Vec<PathBuf>,

    /// The largest file that is read [default: 64Mi]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Input")]
    max_file_size: Option<usize>,
}

/// What is known besides.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// More objects of the cluster, that are not checked themselves; can be repeated
    #[arg(long = "with", value_name = "PATH", help_heading = "Input")]
    pub with: Vec<String>,

    /// The state of a cluster, as memgate snapshot wrote it
    ///
    /// The files are laid over it: their objects take the place of those of the same name.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub snapshot: Option<PathBuf>,

    /// The namespace of objects that name none [default: default]
    #[arg(short, long, value_name = "NAME", help_heading = "Input")]
    pub namespace: Option<String>,

    /// Which policies count.
    #[command(flatten)]
    pub policies: PolicyArgs,

    /// What decisions depend on besides objects.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

impl InputArgs {
    /// What the repository says about its own check.
    ///
    /// # Errors
    /// When its file is no good.
    pub fn project(&self, terminal: Terminal) -> anyhow::Result<Project> {
        self.project.read(terminal)
    }

    /// Reads the files and decides about their objects.
    ///
    /// # Errors
    /// When standard input is named twice, there is nothing to read, or the settings are no good. Files that cannot
    /// be read are part of the result.
    pub fn check(&self, project: &Project) -> anyhow::Result<Checked> {
        self.check_with(project, BTreeMap::new())
    }

    /// The same with texts that stand for those of files, by the names of their sources.
    ///
    /// # Errors
    /// Those of [`InputArgs::check`].
    pub fn check_with(
        &self,
        project: &Project,
        instead: BTreeMap<String, String>,
    ) -> anyhow::Result<Checked> {
        Ok(check(self.read_with(project, instead)?, self.occasion()))
    }

    /// Whether standard input is among what is read.
    ///
    /// # Errors
    /// When there is nothing to read.
    pub fn reads_stdin(&self, project: &Project) -> anyhow::Result<bool> {
        Ok(self.paths(project)?.iter().chain(&self.state.with).any(|path| path == "-"))
    }

    /// Reads the files.
    ///
    /// # Errors
    /// Those of [`InputArgs::check`].
    pub fn read(&self, project: &Project) -> anyhow::Result<Inputs> {
        self.read_with(project, BTreeMap::new())
    }

    fn read_with(&self, project: &Project, instead: BTreeMap<String, String>) -> anyhow::Result<Inputs> {
        let paths = self.paths(project)?;
        let settings = self.settings(project)?;
        let reading = self.reading.reading(project, &project.directory, settings.namespace.clone())?;
        let reading = Reading { instead, ..reading };
        self.load(paths, &self.state.with, &reading, settings, &mut io::stdin().lock())
    }

    /// Where and when decisions about the files are made.
    #[must_use]
    pub fn occasion(&self) -> Occasion<'static> {
        self.occasion_at(Point::Ci)
    }

    /// The same at another point, where no flag says which.
    #[must_use]
    pub fn occasion_at(&self, point: Point) -> Occasion<'static> {
        self.occasion.occasion(point)
    }

    /// Whether no policy is to count.
    #[must_use]
    pub const fn leaves_policies_out(&self) -> bool {
        self.state.policies.no_policies
    }

    /// The same for the files as they were in another commit.
    ///
    /// # Errors
    /// The same, and when standard input is among the files: no commit has it.
    pub fn check_base(
        &self,
        project: &Project,
        read: impl FnOnce(BasePaths<'_>) -> Result<Base, base::Error>,
        stop: &Stop,
    ) -> anyhow::Result<(Base, Checked)> {
        let (paths, state_paths) = (self.paths(project)?, &self.state.with);
        let reads_stdin = paths.iter().chain(state_paths).any(|path| path == "-");
        anyhow::ensure!(!reads_stdin, "--base compares with a commit, and no commit has standard input (-)");
        let base = read(BasePaths { paths, state_paths, renders: self.reading.render })?;
        let (paths, state_paths) = (base.paths(paths), base.state_paths(state_paths));
        let settings = self.settings(project)?;
        let root = base.directory_of(&project.directory);
        let mut reading = self.reading.reading(project, &root, settings.namespace.clone())?;
        if let Some(rendering) = &mut reading.rendering {
            rendering.values = base.values(&rendering.values);
            rendering.stop = stop.clone();
        }
        let inputs = self.load(&paths, &state_paths, &reading, settings, &mut io::empty())?;
        let checked = check(inputs, self.occasion());
        Ok((base, checked))
    }

    /// Reads the files without the policies that flags name. Without files, the objects of a snapshot: that of
    /// `--snapshot`, or of a live cluster in the same form.
    ///
    /// # Errors
    /// Those of [`InputArgs::check`].
    pub fn read_subjects(&self, project: &Project, cluster: Option<String>) -> anyhow::Result<Inputs> {
        let settings = self.settings(project)?;
        let mut reading = self.reading.reading(project, &project.directory, settings.namespace.clone())?;
        let live = Path::new(CLUSTER);
        let snapshot = if cluster.is_some() { Some(live) } else { self.state.snapshot.as_deref() };
        reading.instead.extend(cluster.map(|text| (CLUSTER.to_owned(), text)));
        let checks_snapshot = self.paths.is_empty() && snapshot.is_some();
        anyhow::ensure!(
            checks_snapshot || !self.paths.is_empty() || !project.paths.is_empty(),
            "nothing was given to judge; give files or directories, --snapshot FILE, or a cluster by --context or \
             --kubeconfig"
        );
        let checked = if checks_snapshot { &[] } else { self.paths(project)? };
        let paths = Paths { checked, state: &self.state.with, policies: &[], snapshot, checks_snapshot };
        Ok(load_as(paths, &reading, settings, &mut io::stdin().lock())?)
    }

    /// Whether any file or directory is named.
    #[must_use]
    pub const fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether the state of a cluster is given by a file.
    #[must_use]
    pub const fn has_snapshot(&self) -> bool {
        self.state.snapshot.is_some()
    }

    /// The policies that flags name.
    #[must_use]
    pub fn policy_paths(&self) -> &[String] {
        &self.state.policies.policy
    }

    /// The namespace of objects that name none, as it was given.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.state.namespace.as_deref()
    }

    /// Policies and exemptions alone, from files.
    ///
    /// # Errors
    /// When standard input is named twice, or the settings are no good.
    pub fn read_policies(&self, project: &Project, policies: &[String]) -> anyhow::Result<Inputs> {
        let paths = Paths { policies, ..Paths::default() };
        Ok(load_as(paths, &Reading::default(), self.settings(project)?, &mut io::stdin().lock())?)
    }

    fn load(
        &self,
        checked: &[String],
        state: &[String],
        reading: &Reading,
        settings: Settings,
        stdin: &mut dyn Read,
    ) -> anyhow::Result<Inputs> {
        let PolicyArgs { policy, no_policies } = &self.state.policies;
        let policies = if *no_policies { &[] } else { policy.as_slice() };
        let snapshot = self.state.snapshot.as_deref();
        let paths = Paths { checked, state, policies, snapshot, ..Paths::default() };
        let mut inputs = load_as(paths, reading, settings, stdin)?;
        if *no_policies {
            inputs.snapshot.policies = Arc::default();
        }
        Ok(inputs)
    }

    fn paths<'p>(&'p self, project: &'p Project) -> anyhow::Result<&'p [String]> {
        let paths = if self.paths.is_empty() { &project.paths } else { &self.paths };
        anyhow::ensure!(
            !paths.is_empty(),
            "no PATH was given, and no {FILE_NAME} names any; give files or directories, such as ., or - for \
             standard input"
        );
        Ok(paths)
    }

    /// The settings, with what the repository says.
    ///
    /// # Errors
    /// When the settings file is no good.
    pub fn settings(&self, project: &Project) -> anyhow::Result<Settings> {
        let namespace = self.state.namespace.clone().or_else(|| project.namespace.clone());
        let settings = self.state.settings.settings_or(Some(&project.settings))?;
        Ok(Settings { namespace, ..settings })
    }
}

impl ReadingArgs {
    /// `root` is the directory to which the globs of the repository are relative.
    fn reading(&self, project: &Project, root: &Path, namespace: Option<String>) -> anyhow::Result<Reading> {
        let mut exclude = Exclude::default();
        for glob in &self.exclude {
            exclude.add(glob, None).context("--exclude")?;
        }
        let directory = normal(root);
        for glob in &project.exclude {
            exclude.add(glob, Some(&directory)).context("exclude")?;
        }
        let rendering =
            self.render.then(|| Rendering { values: self.values.clone(), namespace, ..Rendering::default() });
        let max_bytes = self.max_file_size.unwrap_or(DEFAULT_MAX_BYTES);
        Ok(Reading { exclude: Arc::new(exclude), max_bytes, rendering, ..Reading::default() })
    }
}

impl StateArgs {
    /// The settings, with the namespace of objects that name none.
    ///
    /// # Errors
    /// When the settings file is no good.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings { namespace: self.namespace.clone(), ..self.settings.settings()? })
    }
}

/// The state in files; `None` after errors were written about files that cannot be read.
///
/// # Errors
/// When standard input is named twice, or the snapshot of a cluster cannot be used.
pub fn state_from_files(
    state: &[String],
    snapshot: Option<&Path>,
    policies: &PolicyArgs,
    settings: Settings,
    terminal: Terminal,
) -> anyhow::Result<Option<Snapshot>> {
    let paths = Paths { state, policies: &policies.policy, snapshot, ..Paths::default() };
    // A server keeps the state, and would keep the gaps that the places of 100,000 objects leave in it.
    let reading = Reading { keeps_places: false, ..Reading::default() };
    let mut inputs = load_as(paths, &reading, settings, &mut io::stdin().lock())?;
    if policies.no_policies {
        inputs.snapshot.policies = Arc::default();
    }
    note_unread(&inputs.unread, "manifest", terminal);
    for error in &inputs.errors {
        terminal.input_error(&input_error(error));
    }
    Ok(inputs.errors.is_empty().then_some(inputs.snapshot))
}

/// Notes which directories and globs hold nothing of what is looked for, and which files in them look like
/// it and were not read.
pub fn note_unread(unread: &Unread, what: &str, terminal: Terminal) {
    for path in &unread.empty {
        terminal.note(&format!("note: no {what} (*.yaml, *.yml, *.json) in {path}"));
    }
    if !unread.files.is_empty() {
        let (count, shown) =
            (counted(unread.files.len(), "file"), and_more(&unread.files, MAX_UNREAD_IN_NOTE));
        terminal.note(&format!("note: {count} not read: {}", plain(&shown)));
    }
    for unrendered in unread.unrendered.iter().take(MAX_UNRENDERED_IN_NOTES) {
        terminal.note(&unrendered_note(unrendered));
    }
    let more = unread.unrendered.len().saturating_sub(MAX_UNRENDERED_IN_NOTES);
    if more > 0 {
        terminal.note(&format!("note: {more} more charts and kustomizations not read as manifests"));
    }
    for glob in &unread.unused_excludes {
        terminal.note(&format!("note: exclude {} left nothing out", plain(glob)));
    }
    if let Some(assumed) = &unread.assumed {
        note_assumed(assumed, terminal);
    }
}

/// Says how old the state is, and what decisions took as right because it is not in there.
fn note_assumed(assumed: &Assumed, terminal: Terminal) {
    let Assumed { path, taken, objects, namespaces, unknown, unnamed } = assumed;
    let of_what = namespaces.as_ref().map_or_else(
        || "all namespaces".to_owned(),
        |names| format!("{} only", and_more(names, MAX_UNREAD_IN_NOTE)),
    );
    let objects = counted(*objects, "object");
    let note = format!("note: {path} holds {objects} of {of_what}, as the cluster was at {taken}");
    terminal.note(&plain(&note));
    for kind in unknown {
        terminal.note(&plain(&format!("note: not in {path}, so taken as right: {kind}")));
    }
    if !unnamed.is_empty() {
        let kinds = counted(unnamed.len(), "kind");
        let note = format!("note: {path} does not name {kinds}: {}", and_more(unnamed, MAX_UNREAD_IN_NOTE));
        terminal.note(&plain(&note));
    }
}

/// Says which files are no manifests, and how to check what becomes of them.
fn unrendered_note(unrendered: &Unrendered) -> String {
    let directory = unrendered.directory.to_string_lossy();
    let of_what = match unrendered.tool {
        Tool::Helm => format!("the chart {directory}"),
        Tool::Kustomize => format!("the kustomization {directory}"),
    };
    let files: Vec<String> = unrendered.files.iter().map(|file| below(file, &directory)).collect();
    let (count, files) = (counted(files.len(), "file"), and_more(&files, MAX_UNREAD_IN_NOTE));
    let note = format!("note: {count} of {of_what} not read as manifests: {files}");
    let note = plain(&note);
    if !unrendered.is_whole {
        return note.into_owned();
    }
    let command = unrendered.command();
    format!("{note}\n  to check what they become: {} | memgate check -", plain(&command))
}

/// A file as seen from a directory that holds it.
fn below(file: &str, directory: &str) -> String {
    let below = Path::new(file).strip_prefix(directory);
    below.map_or_else(|_| file.to_owned(), |below| below.to_string_lossy().into_owned())
}

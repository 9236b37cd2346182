//! The flags that say what a command reads, and the plan that follows from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};

use crate::cli::limits::parse_size;
use crate::cli::policies::PolicyArgs;
use crate::cli::project::{Project, ProjectArgs};
use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use memgate_model::family::Family;
use memgate_model::request::Point;
use memgate_model::settings::Settings;
use memgate_platforms::common::STATE_UNREADABLE;
use memgate_workbench::build::builder::{Builder, arguments};
use memgate_workbench::build::layout::Tool;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::build::rules::Rules;
use memgate_workbench::build::texts::DEFAULT_MAX_BYTES;
use memgate_workbench::files::base::{Base, Branch};
use memgate_workbench::files::errors::{error_of, input_error};
use memgate_workbench::files::inputs::Inputs;
use memgate_workbench::files::load::load;
use memgate_workbench::files::outcome::{MANIFEST, unread_notes};
use memgate_workbench::files::run::Run;
use memgate_workbench::paths::{is_glob, normal, root_around};
use memgate_workbench::report::counted;

/// The path of standard input.
const STDIN_PATH: &str = "-";
/// The path of a command without PATH, where the repository does not name any: the working directory.
pub const HERE: &str = ".";

/// The files of a command, and what decisions about them depend on.
#[derive(Debug, Clone, clap::Args)]
pub struct InputArgs {
    /// Files, directories, globs, or - [default: the repository]
    ///
    /// With - standard input is read. YAML with any number of documents, JSON, and Lists. In directories: *.yaml, *.yml and
    /// *.json at any depth. Manifests are state for one another; each kustomization and chart is built, and judged by
    /// itself. The repository is the paths of .memgate.yaml, else the working directory.
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,

    /// The state around the files.
    #[command(flatten)]
    pub state: StateArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    #[command(flatten)]
    project: ProjectArgs,

    /// Which policies apply.
    #[command(flatten)]
    pub policies: PolicyArgs,

    /// The settings of decisions.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// How files are read.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Input")]
struct ReadingArgs {
    /// Leave out matching files of directories; repeatable
    ///
    /// A glob without / matches names at any depth, such as vendor or *.gen.yaml. Any other glob matches paths, as
    /// they are given or from the directory that is read.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Leave out kustomizations and charts
    ///
    /// Without this flag they are judged as your own programs build them: kustomize build or kubectl kustomize, and helm
    /// template. Nothing is fetched, and no plugin or other program runs.
    #[arg(long, hide_short_help = true)]
    no_render: bool,

    /// Arguments for kustomize; repeatable
    ///
    /// One of --enable-helm, --load-restrictor, --helm-kube-version and --helm-api-versions, in one text:
    /// --kustomize-args "--enable-helm --load-restrictor LoadRestrictionsNone".
    #[arg(long, value_name = "ARGS", hide_short_help = true, allow_hyphen_values = true)]
    kustomize_args: Vec<String>,

    /// Arguments for helm template; repeatable
    ///
    /// One of --kube-version, --api-versions, --values and --set with its relatives, in one text: --helm-args "--kube-version
    /// 1.33 --set replicas=2".
    #[arg(long, value_name = "ARGS", hide_short_help = true, allow_hyphen_values = true)]
    helm_args: Vec<String>,

    /// Values file of a chart; repeatable
    ///
    /// It counts for the chart in whose directory it lies, or for the one before the equals sign: apps/one=prod.yaml.
    #[arg(long, value_name = "[CHART=]FILE", hide_short_help = true)]
    values: Vec<String>,

    /// Directory of the files from which standard input was built
    ///
    /// With -, as in kustomize build overlays/prod | memgate check - --sources src. A finding then stands in the file that says what
    /// is wrong, and not in what was printed.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    sources: Option<PathBuf>,

    /// Largest file that is read [default: 64Mi]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    max_file_size: Option<usize>,
}

/// The objects around the ones that a command is about.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Input")]
pub struct StateArgs {
    /// More objects of the cluster, as state; repeatable
    #[arg(long = "with", value_name = "PATH")]
    pub with: Vec<String>,

    /// Namespace of objects without one [default: default]
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
}

impl StateArgs {
    /// Plans to read the state alone.
    pub fn plan(&self, settings: Settings) -> Plan {
        Plan {
            state: self.with.clone(),
            settings: Settings { namespace: self.namespace.clone(), ..settings },
            ..Plan::default()
        }
    }
}

impl InputArgs {
    /// Reads the choices of the repository.
    ///
    /// # Errors
    /// When the file with them is wrong.
    pub fn project(&self, terminal: Terminal) -> anyhow::Result<Project> {
        self.project.read(&self.paths, terminal)
    }

    /// The same for a check of a branch.
    ///
    /// # Errors
    /// Those of [`InputArgs::project`].
    pub fn project_at(&self, branch: &Branch, terminal: Terminal) -> anyhow::Result<Project> {
        self.project.read_at(&self.paths, branch, terminal)
    }

    /// Whether the flags name standard input.
    pub fn reads_stdin(&self) -> bool {
        self.paths.iter().chain(&self.state.with).any(|path| path == STDIN_PATH)
    }

    /// A flag that makes no sense where files are read again with each change of a text, and why. `directory` is the one
    /// from which its paths are.
    pub fn unfit_for_changes(&self, directory: &Path) -> Option<&'static str> {
        let ReadingArgs { no_render, kustomize_args, helm_args, values, sources, .. } = &self.reading;
        let builds = *no_render
            || sources.is_some()
            || [kustomize_args, helm_args, values].iter().any(|it| !it.is_empty());
        let flags = || self.state.with.iter().chain(&self.policies.policy);
        [
            (builds, "an editor runs neither kustomize nor helm, so flags for what they build have no effect"),
            (self.reads_stdin(), "- is standard input, on which the editor sends messages"),
            (
                is_glob(&directory.to_string_lossy()) && flags().any(|path| is_glob(path)),
                "a glob of --with or --policy would not be read as meant in a directory with one of *?[{ in its name",
            ),
        ]
        .into_iter()
        .find_map(|(is_given, why)| is_given.then_some(why))
    }

    /// The same flags for a process that changes its working directory: paths of flags are those of `directory`. PATHs stay
    /// as they are.
    #[must_use]
    pub fn from_directory(&self, directory: &Path) -> Self {
        let mut args = self.clone();
        let absolute = |path: &mut String| *path = directory.join(&*path).to_string_lossy().into_owned();
        args.state.with.iter_mut().chain(&mut args.policies.policy).for_each(absolute);
        args.settings.read_from(directory);
        args.project.read_from(directory);
        args
    }

    /// Plans what is read.
    ///
    /// # Errors
    /// When the settings or a glob are wrong.
    pub fn plan(&self, project: &Project) -> anyhow::Result<Plan> {
        let mut plan = self.plan_without_paths(project, &project.directory)?;
        if plan.checked.is_empty() {
            plan.is_narrow |= !is_at_or_above(HERE, &whole(&project.directory));
            plan.checked.push(HERE.to_owned());
        }
        Ok(plan)
    }

    /// The plan, with the point and time of decisions before anything is deployed.
    ///
    /// # Errors
    /// When the settings or a glob are wrong.
    pub fn run(&self, project: &Project) -> anyhow::Result<Run> {
        Ok(Run { plan: self.plan(project)?, occasion: self.policies.occasion(Point::Ci) })
    }

    /// Plans to read the same files as another plan, as they were in another commit.
    ///
    /// # Errors
    /// When the settings or a glob are wrong.
    pub fn base_plan(&self, project: &Project, now: &Plan, base: &Base) -> anyhow::Result<Plan> {
        let mut plan = self.plan_without_paths(project, &base.directory_of(&project.directory))?;
        plan.checked = base.paths(&now.checked);
        // Links there may lead to any file of the commit, and to no other.
        plan.within = Some(base.directory().to_owned());
        plan.is_base = true;
        plan.state = base.state_paths(&plan.state);
        plan.judged_by = now.judged_by.clone();
        plan.builder.clone_from(&now.builder);
        if let Some(builder) = &mut plan.builder {
            let values = std::mem::take(&mut builder.values).into_iter();
            builder.values = values.map(|(chart, file)| base.values(chart, &file)).collect();
        }
        Ok(plan)
    }

    /// Plans what is read, which may be nothing. The globs of the repository are relative to `root`.
    ///
    /// # Errors
    /// When the settings or a glob are wrong.
    pub fn plan_without_paths(&self, project: &Project, root: &Path) -> anyhow::Result<Plan> {
        let settings = self.settings(project)?;
        let is_typed = !self.paths.is_empty();
        let configured = if is_typed { Vec::new() } else { project.paths.clone() };
        let all = whole(root);
        let is_narrow = is_typed && !self.paths.iter().any(|path| is_at_or_above(path, &all));
        let (within, switched_off) = (
            project.within(&configured, root),
            self.switched_off(project, &configured, is_narrow, &settings.families),
        );
        let PolicyArgs { policy, no_policies, .. } = &self.policies;
        let reading = self.reading.plan(project, root, settings.namespace.clone(), self.reads_stdin())?;
        Ok(Plan {
            checked: if is_typed { self.paths.clone() } else { configured },
            switched_off,
            later: project.later.clone(),
            rules: Rules::new(&project.rules, root),
            within,
            state: self.state.with.clone(),
            policies: if *no_policies { Vec::new() } else { policy.clone() },
            ignores_policies: *no_policies,
            is_narrow,
            settings,
            ..reading
        })
    }

    /// What the choices of the repository leave unchecked, unless a flag says otherwise.
    fn switched_off(
        &self,
        project: &Project,
        paths: &[String],
        is_narrow: bool,
        families: &[&'static Family],
    ) -> Vec<String> {
        let mut off: Vec<String> = if is_narrow { Vec::new() } else { project.left_out_by(paths).collect() };
        let other: Vec<&str> =
            memgate_platforms::ALL.iter().filter(|it| !families.contains(it)).map(|it| it.name).collect();
        if project.settings.families.is_some() && !self.settings.names_families() && !other.is_empty() {
            off.push(format!("{} (families)", other.join(", ")));
        }
        off
    }

    /// The settings: from flags, else from the settings file, else from the repository.
    ///
    /// # Errors
    /// When the settings file is wrong.
    pub fn settings(&self, project: &Project) -> anyhow::Result<Settings> {
        let mut settings = self.settings.settings(Some(&project.settings))?;
        settings.namespace = self.state.namespace.clone().or_else(|| project.namespace.clone());
        settings.policies.unknown_namespaces = project.unknown_namespaces();
        self.policies.apply(&mut settings.policies);
        Ok(settings)
    }
}

/// The directory that is the whole repository: that of its choices, else its root, else the working directory.
fn whole(choices: &Path) -> PathBuf {
    if choices.as_os_str().is_empty() { root_around(Path::new(".")) } else { normal(choices) }
}

fn is_at_or_above(path: &str, directory: &Path) -> bool {
    path != STDIN_PATH && directory.starts_with(normal(Path::new(path)))
}

impl ReadingArgs {
    /// How kustomizations and charts are built.
    fn builder(&self, namespace: Option<String>, reads_stdin: bool) -> anyhow::Result<Option<Builder>> {
        let words = |tool, given: &[String], flag: &str| {
            let words =
                given.iter().map(|given| arguments(tool, given).map_err(|why| anyhow!("{flag}: {why}")));
            Ok::<_, anyhow::Error>(words.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let values = |given: &String| match given.split_once('=') {
            Some((chart, file)) => (Some(PathBuf::from(chart)), PathBuf::from(file)),
            None => (None, PathBuf::from(given)),
        };
        let builder = Builder {
            kustomize_args: words(Tool::Kustomize, &self.kustomize_args, "--kustomize-args")?,
            helm_args: words(Tool::Helm, &self.helm_args, "--helm-args")?,
            values: self.values.iter().map(values).collect(),
            namespace,
            ..Builder::default()
        };
        anyhow::ensure!(
            self.sources.is_none() || reads_stdin,
            "--sources goes with -: it says where the text on standard input was built from"
        );
        for (chart, file) in &builder.values {
            let own = normal(chart.as_ref().unwrap_or(file));
            let mut around = own.ancestors().take(if chart.is_some() { 1 } else { usize::MAX });
            let is_placed = around.any(|it| it.join("Chart.yaml").is_file());
            let name = file.display();
            anyhow::ensure!(file.is_file(), "--values {name}: no such file");
            anyhow::ensure!(
                is_placed,
                "--values {name}: {} is in no chart; say the directory of one: --values CHART={name}",
                chart.as_ref().unwrap_or(file).display()
            );
        }
        Ok(Some(builder).filter(|_| !self.no_render))
    }

    /// How files are read, as a plan without files.
    fn plan(
        &self,
        project: &Project,
        root: &Path,
        namespace: Option<String>,
        reads_stdin: bool,
    ) -> anyhow::Result<Plan> {
        let mut exclude = project.exclude(root)?;
        for glob in &self.exclude {
            exclude.add(glob, None).context("--exclude")?;
        }
        let mut plan = Plan {
            exclude: Arc::new(exclude),
            // Places in a file are numbers of 32 bits.
            max_bytes: self.max_file_size.unwrap_or(DEFAULT_MAX_BYTES).min(u32::MAX as usize),
            builder: self.builder(namespace, reads_stdin)?,
            sources: self.sources.clone(),
            ..Plan::default()
        };
        plan.keep_stdin();
        Ok(plan)
    }
}

/// Loads files that must all be readable, names and namespaces of objects of state too; `None` after errors about those that are not were written.
///
/// # Errors
/// Those of [`load`].
pub fn load_whole(plan: &Plan, terminal: Terminal) -> anyhow::Result<Option<Inputs>> {
    let mut inputs = load(plan)?;
    if std::mem::take(&mut inputs.unreadable_state) > 0 {
        let unreadable = inputs.notices.iter().filter(|it| it.finding.code == &STATE_UNREADABLE);
        inputs.errors.extend(unreadable.map(|it| error_of(&it.source, it.span, &it.finding)));
    }
    note_read(&inputs, terminal);
    Ok(inputs.errors.is_empty().then_some(inputs))
}

/// Loads policies and exemptions alone; `None` after errors about them were written.
///
/// # Errors
/// When standard input is named twice, or a number is out of bounds.
pub fn load_policies(
    paths: &[String],
    settings: Settings,
    terminal: Terminal,
) -> anyhow::Result<Option<Inputs>> {
    load_whole(&Plan { policies: paths.to_vec(), settings, ..Plan::default() }, terminal)
}

/// Writes the errors of inputs, and the notes of [`note_unread`].
pub fn note_read(inputs: &Inputs, terminal: Terminal) {
    for error in &inputs.errors {
        terminal.input_error(&input_error(error));
    }
    note_unread(inputs, MANIFEST, terminal);
    if inputs.unreadable_state > 0 {
        let count = counted(inputs.unreadable_state, "state object");
        terminal.note(&format!("note: {count} not looked at; memgate check says where, and why"));
    }
}

/// Writes the notes of [`unread_notes`].
pub fn note_unread(inputs: &Inputs, what: &str, terminal: Terminal) {
    for note in unread_notes(inputs, what) {
        terminal.note(&format!("note: {note}"));
    }
}

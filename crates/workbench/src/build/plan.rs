//! What will be read, and how: the plan of a command, made of its arguments and the choices of the repository.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::builder::Builder;
use crate::build::exclude::Exclude;
use crate::build::judged_by::JudgedBy;
use crate::build::origins::files::{Files, file_name};
use crate::build::rules::IgnoredCodes;
use crate::build::rules::Rules;
use crate::build::texts::{DEFAULT_MAX_BYTES, bounded, file};
use crate::paths::normal;
use memgate_core::state::cluster_snapshot::ClusterSnapshot;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::settings::Settings;
use memgate_platforms::default_settings;

/// The name of a cluster's objects in findings, in place of a path.
pub const CLUSTER: &str = "cluster";

/// What is read, and how. A path is a file, a directory, a glob or `-`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Plan {
    /// The paths of the objects to check.
    pub checked: Vec<String>,
    /// The directory below which these must lead, when a file that comes with a change names them. Nothing is shown of
    /// files there that are not manifests.
    pub within: Option<PathBuf>,
    /// The severities that the repository gives to findings.
    pub rules: Rules,
    /// The codes that count in this run.
    pub ignored: IgnoredCodes,
    /// What the file with the choices of the repository switches off.
    pub switched_off: Vec<String>,
    /// The paths of objects that decisions may look at and that are not checked.
    pub state: Vec<String>,
    /// The paths of policies and exemptions. Other objects in these files are ignored.
    pub policies: Vec<String>,
    /// Which policies, exemptions and labels of Namespaces count.
    pub judged_by: JudgedBy,
    /// Whether these are the files of a commit with which others are compared.
    pub is_base: bool,
    /// What else a branch changes that counts once it is merged.
    pub later: Vec<String>,
    /// Whether policies are ignored, wherever they were read.
    pub ignores_policies: bool,
    /// The objects of a cluster, which are checked in place of those of paths. An apiserver has accepted them, so only
    /// policies and families judge them.
    pub cluster: Option<Arc<ClusterSnapshot>>,
    /// The files and directories that are left out of directories and globs.
    pub exclude: Arc<Exclude>,
    /// The largest input that is read, in bytes.
    pub max_bytes: usize,
    /// How to build kustomizations and charts; `None` to leave them out.
    pub builder: Option<Builder>,
    /// The directory with the files from which standard input was built.
    pub sources: Option<PathBuf>,
    /// Texts that replace those of files, by the names of their sources.
    pub instead: BTreeMap<String, String>,
    /// The files whose texts an editor holds.
    pub open: Vec<OpenFile>,
    /// Whether only the open files are checked. The other files are their state.
    pub checks_only_open: bool,
    /// Whether the places of the objects of the state are needed.
    pub keeps_places: bool,
    /// Whether less than the whole repository is read: settings that fit nothing are not reported then.
    pub is_narrow: bool,
    /// The settings of all decisions.
    pub settings: Settings,
    /// The bytes of standard input, where they are needed more than once or are given.
    pub stdin: Option<Vec<u8>>,
    /// Whether a map of the memory in the inputs is made too.
    pub wants_map: bool,
}

/// A file whose text an editor holds. It need not exist.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The path, which findings show.
    pub path: PathBuf,
    /// The text.
    pub text: Arc<str>,
    /// Whether the file is checked although it is not below the paths that are read.
    pub is_checked_outside: bool,
    /// Whether it is judged; another one is only read with its text in place of that on disk.
    pub is_judged: bool,
}

impl Default for Plan {
    /// Reads nothing, with default settings.
    fn default() -> Self {
        Self {
            checked: Vec::new(),
            within: None,
            rules: Rules::default(),
            ignored: IgnoredCodes::default(),
            switched_off: Vec::new(),
            state: Vec::new(),
            policies: Vec::new(),
            judged_by: JudgedBy::default(),
            is_base: false,
            later: Vec::new(),
            ignores_policies: false,
            cluster: None,
            exclude: Arc::default(),
            max_bytes: DEFAULT_MAX_BYTES,
            builder: None,
            sources: None,
            instead: BTreeMap::new(),
            open: Vec::new(),
            checks_only_open: false,
            keeps_places: true,
            is_narrow: false,
            settings: default_settings(),
            stdin: None,
            wants_map: false,
        }
    }
}

impl Plan {
    /// Checks a text as if it came from standard input, with default settings.
    pub fn of_text(text: &str) -> Self {
        Self { checked: vec!["-".to_owned()], stdin: Some(text.into()), ..Self::default() }
    }

    /// The files from which kustomizations and charts are built, none of them read yet.
    pub(crate) fn files(&self) -> Files {
        let text = |file: &OpenFile| (file_name(&file.path), file.text.to_string());
        let instead = self.instead.clone().into_iter().chain(self.open.iter().map(text)).collect();
        Files::new(self.builder.clone().unwrap_or_default(), self.max_bytes, instead)
    }

    /// Reads a file; where a correction or an editor has another text of it, that.
    pub(crate) fn source(&self, path: &Path) -> Result<Source, Error> {
        let name = path.to_string_lossy();
        let open = self.open.iter().find(|it| normal(&it.path) == normal(path));
        let text = self.instead.get(&*name).map(String::as_str).or_else(|| Some(&*open?.text));
        match text {
            Some(text) => Ok(Source::new(name, text)),
            None => file(path, self.max_bytes),
        }
    }

    /// Whether standard input is among the objects and the state.
    pub fn reads_stdin(&self) -> bool {
        self.checked.iter().chain(&self.state).any(|path| path == "-")
    }

    /// Reads standard input now, if the plan does, so that the same plan can be carried out twice. If that fails, so will each
    /// later attempt, which is reported.
    pub fn keep_stdin(&mut self) {
        if self.reads_stdin() && self.stdin.is_none() {
            self.stdin = bounded(io::stdin(), self.max_bytes).ok();
        }
    }

    /// Whether a source of this name is not checked itself, but state of the open files.
    pub(crate) fn is_state(&self, name: &str) -> bool {
        self.checks_only_open && !self.is_open(name)
    }

    /// Whether a file of this name is open and judged. In the working directory a name may begin with `./`.
    pub(crate) fn is_open(&self, name: &str) -> bool {
        let name = name.strip_prefix("./").unwrap_or(name);
        let is_it = |path: &str| path.strip_prefix("./").unwrap_or(path) == name;
        self.open.iter().any(|file| file.is_judged && file.path.to_str().is_some_and(is_it))
    }
}

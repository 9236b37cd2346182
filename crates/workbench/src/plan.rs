//! What will be read, and how: the plan of a command, made of its arguments and the choices of the repository.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::exclude::Exclude;
use crate::judged_by::JudgedBy;
use crate::render::Rendering;
use crate::rules::Rules;
use crate::texts::{DEFAULT_MAX_BYTES, source};
use memgate_manifest::error::Error;
use memgate_model::settings::Settings;
use memgate_platforms::default_settings;

/// What is read, and how. A path is a file, a directory, a glob or `-`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Plan {
    /// The paths of the objects to check.
    pub checked: Vec<String>,
    /// The directory below which these must lead, when a file that comes with a change names them. Nothing is shown of
    /// files there that are not manifests.
    pub within: Option<PathBuf>,
    /// Groups of these paths that are judged apart; empty if all are judged together.
    pub sets: Vec<InputSet>,
    /// The severities that the repository gives to findings.
    pub rules: Rules,
    /// What the file with the choices of the repository switches off.
    pub switched_off: Vec<String>,
    /// The paths of objects that decisions may look at and that are not checked.
    pub state: Vec<String>,
    /// The paths of policies and exemptions. Other objects in these files are ignored.
    pub policies: Vec<String>,
    /// Which policies, exemptions and labels of Namespaces count.
    pub judged_by: JudgedBy,
    /// What else a branch changes that counts once it is merged.
    pub later: Vec<String>,
    /// Whether policies are ignored, wherever they were read.
    pub ignores_policies: bool,
    /// A file of `memgate snapshot`. Objects at the other paths replace objects of the same name in it.
    pub snapshot: Option<PathBuf>,
    /// Whether the objects of the snapshot are checked too. An apiserver has accepted them, so only policies and
    /// families judge them.
    pub checks_snapshot: bool,
    /// The files and directories that are left out of directories and globs.
    pub exclude: Arc<Exclude>,
    /// The largest input that is read, in bytes.
    pub max_bytes: usize,
    /// How to render charts and overlays in directories and globs; `None` to list them.
    pub rendering: Option<Rendering>,
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
    /// A text in place of standard input: for tests, and where it is read twice.
    pub stdin: Option<String>,
    /// Whether the inputs are also read for the page of `-o html`.
    pub wants_page: bool,
}

/// Files that are judged together, and apart from others.
#[derive(Debug, Clone)]
pub struct InputSet {
    /// The name; empty for files of no set.
    pub name: String,
    /// The paths.
    pub paths: Vec<String>,
}

/// A file whose text an editor holds. It need not exist.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The path, which findings show.
    pub path: PathBuf,
    /// The text; `None` for that of standard input.
    pub text: Option<Arc<str>>,
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
            sets: Vec::new(),
            rules: Rules::default(),
            switched_off: Vec::new(),
            state: Vec::new(),
            policies: Vec::new(),
            judged_by: JudgedBy::default(),
            later: Vec::new(),
            ignores_policies: false,
            snapshot: None,
            checks_snapshot: false,
            exclude: Arc::default(),
            max_bytes: DEFAULT_MAX_BYTES,
            rendering: None,
            instead: BTreeMap::new(),
            open: Vec::new(),
            checks_only_open: false,
            keeps_places: true,
            is_narrow: false,
            settings: default_settings(),
            stdin: None,
            wants_page: false,
        }
    }
}

impl Plan {
    /// Checks a text as if it came from standard input, with default settings.
    pub fn of_text(text: &str) -> Self {
        Self { checked: vec!["-".to_owned()], stdin: Some(text.to_owned()), ..Self::default() }
    }

    /// Whether standard input is among the objects and the state.
    pub fn reads_stdin(&self) -> bool {
        self.open.iter().any(|file| file.text.is_none())
            || self.checked.iter().chain(&self.state).any(|path| path == "-")
    }

    /// Reads standard input now, if the plan does, so that the same plan can be carried out twice.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn keep_stdin(&mut self) -> Result<(), Error> {
        if self.reads_stdin() && self.stdin.is_none() {
            let text = source("<stdin>", Ok(io::stdin()), self.max_bytes)?;
            self.stdin = Some(text.text().to_owned());
        }
        Ok(())
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

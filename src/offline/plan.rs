//! The plan of what is read, after flags, `.memgate.yaml` and defaults were joined.

use std::path::PathBuf;

use crate::offline::collect::Reading;
use memgate_core::family::default_settings;
use memgate_model::settings::Settings;

/// What [`load`](crate::offline::load::load) reads, and how. A path is a file, a directory, a glob or `-`.
#[derive(Debug)]
pub struct InputPlan {
    /// The paths of the objects to check.
    pub checked: Vec<String>,
    /// The paths of objects that decisions may look at and that are not checked.
    pub state: Vec<String>,
    /// The paths of policies and exemptions. Other objects in these files are ignored.
    pub policies: Vec<String>,
    /// Whether policies are ignored, wherever they were read.
    pub ignores_policies: bool,
    /// A file of `memgate snapshot`. Objects at the other paths replace objects of the same name in it.
    pub snapshot: Option<PathBuf>,
    /// Whether the objects of the snapshot are checked too. An apiserver has accepted them, so only policies and
    /// families judge them.
    pub checks_snapshot: bool,
    /// What directories and globs leave out, the size limit, and how charts are rendered.
    pub reading: Reading,
    /// The settings of all decisions.
    pub settings: Settings,
    /// A text in place of standard input, for tests.
    pub stdin: Option<String>,
}

impl Default for InputPlan {
    /// Reads nothing, with default settings.
    fn default() -> Self {
        Self {
            checked: Vec::new(),
            state: Vec::new(),
            policies: Vec::new(),
            ignores_policies: false,
            snapshot: None,
            checks_snapshot: false,
            reading: Reading::default(),
            settings: default_settings(),
            stdin: None,
        }
    }
}

impl InputPlan {
    /// Checks a text as if it came from standard input, with default settings.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self { checked: vec!["-".to_owned()], stdin: Some(text.to_owned()), ..Self::default() }
    }

    /// Whether standard input is among the objects and the state.
    #[must_use]
    pub fn reads_stdin(&self) -> bool {
        self.checked.iter().chain(&self.state).any(|path| path == "-")
    }
}

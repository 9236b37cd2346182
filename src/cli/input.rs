//! The arguments that say which files a command reads, and notes about what was read.

use std::io;

use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use crate::family::naming::and_more;
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::offline::base::Base;
use crate::offline::check::{Checked, check};
use crate::offline::collect::Unread;
use crate::offline::errors::input_error;
use crate::offline::load::{load, load_state};
use crate::report::{counted, plain};

/// The most files named in the note about those that were not read.
const MAX_UNREAD_IN_NOTE: usize = 5;

/// What is read, checked and changed.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Files, directories, globs, or - for standard input
    ///
    /// YAML with any number of documents, JSON, and Lists. In directories: *.yaml, *.yml and
    /// *.json at any depth. All of them are state for one another.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    #[command(flatten)]
    state: StateArgs,
}

/// What is known besides.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// More objects of the cluster, that are not checked themselves; can be repeated
    #[arg(long = "with", value_name = "PATH", help_heading = "Input")]
    pub with: Vec<String>,

    /// The namespace of objects that name none [default: default]
    #[arg(short, long, value_name = "NAME", help_heading = "Input")]
    pub namespace: Option<String>,

    /// What decisions depend on besides objects.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

impl InputArgs {
    /// Reads the files and decides about their objects.
    ///
    /// # Errors
    /// When standard input is named twice, or the settings are no good. Files that cannot be read are
    /// part of the result.
    pub fn check(&self) -> anyhow::Result<Checked> {
        let settings = self.state.settings()?;
        Ok(check(load(&self.paths, &self.state.with, settings, &mut io::stdin().lock())?))
    }

    /// The same for the files as they were in another commit.
    ///
    /// # Errors
    /// The same, and when standard input is among the files: no commit has it.
    pub fn check_base(
        &self,
        read: impl FnOnce(&[String], &[String]) -> anyhow::Result<Base>,
    ) -> anyhow::Result<Checked> {
        let (paths, state_paths) = (&self.paths, &self.state.with);
        let reads_stdin = paths.iter().chain(state_paths).any(|path| path == "-");
        anyhow::ensure!(!reads_stdin, "--base compares with a commit, and no commit has standard input (-)");
        let base = read(paths, state_paths)?;
        let (paths, state_paths) = (base.paths(paths), base.state_paths(state_paths));
        Ok(check(load(&paths, &state_paths, self.state.settings()?, &mut io::empty())?))
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
/// When standard input is named twice.
pub fn state_from_files(
    paths: &[String],
    settings: Settings,
    terminal: Terminal,
) -> anyhow::Result<Option<Snapshot>> {
    let inputs = load_state(paths, settings, &mut io::stdin().lock())?;
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
}

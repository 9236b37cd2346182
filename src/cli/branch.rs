//! The branch that a command compares with a commit.

use crate::cli::interrupt::Interrupt;
use crate::cli::terminal::Terminal;
use memgate_workbench::files::base::{self, Branch, FileThere};
use memgate_workbench::report::plain;

/// How many digits of a commit are shown.
const COMMIT_DIGITS: usize = 12;

/// A branch that is compared with a commit. Until it is dropped, the first Ctrl-C lets the command clean up.
#[derive(Debug)]
pub struct OpenBranch {
    /// The branch.
    pub branch: Branch,
    /// Set when the user ends the command.
    pub interrupt: Interrupt,
}

impl OpenBranch {
    /// Finds the commits.
    ///
    /// # Errors
    /// When there is no such commit, git fails, or the user stops it.
    pub fn find(reference: &str) -> anyhow::Result<Self> {
        let interrupt = Interrupt::listen()?;
        Ok(Self { branch: Branch::find(reference, &interrupt.stop)?, interrupt })
    }

    /// A file as the commit has it.
    ///
    /// # Errors
    /// When git fails, or the user stops it.
    pub fn file(&self, relative: &str) -> Result<FileThere, base::Error> {
        self.branch.file(relative, &self.interrupt.stop)
    }

    /// Writes a note that names the commit at which the branch began.
    pub fn note_start(&self, terminal: Terminal) {
        let commit: String = self.branch.start().chars().take(COMMIT_DIGITS).collect();
        let reference = plain(&self.branch.reference);
        terminal.note(&format!("note: compared with {commit}, the merge base of {reference} and HEAD"));
    }
}

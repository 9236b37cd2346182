//! What a build without the feature `workstation` has in place of its commands.

use clap::Subcommand;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;

/// None of them.
#[derive(Debug, Subcommand)]
pub(super) enum Command {}

/// Never called, since there is no such command.
///
/// # Errors
/// None.
pub(super) fn run(args: &Command, _: clap::Command, _: Terminal) -> anyhow::Result<ExitStatus> {
    match *args {}
}

/// The command line as it is.
pub(super) fn with_layout(memgate: clap::Command) -> clap::Command {
    memgate
}

//! `memgate policy`: policies in other forms.

mod export;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;

/// Convert policies into a form that other programs evaluate
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Export(export::Export),
}

/// Runs the command.
///
/// # Errors
/// When the files cannot be read, or the objects cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match &args.command {
        Command::Export(export) => export::run(export, terminal),
    }
}

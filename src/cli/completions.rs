//! `memgate completions`: completion scripts of shells.

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    before_help = "Exit codes: 0 printed, 2 wrong usage.",
    after_long_help = "\
Examples:
  source <(memgate completions bash)
  memgate completions zsh > \"${fpath[1]}/_memgate\"
  memgate completions fish > ~/.config/fish/completions/memgate.fish"
)]
pub struct Args {
    /// Shell
    shell: clap_complete::Shell,
}

/// Runs the command.
///
/// # Errors
/// When the script cannot be written.
pub fn run(args: &Args, mut memgate: clap::Command, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut memgate, "memgate", &mut script);
    terminal.raw(&script)?;
    Ok(ExitStatus::Clean)
}

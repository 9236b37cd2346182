//! `memgate completions`: completion scripts of shells.

use clap::ValueEnum as _;

use crate::cli::terminal::Terminal;
use crate::cli::{ExitStatus, list_choices};

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    before_help = "Exit codes: 0 printed or listed, 2 wrong usage.",
    after_long_help = "\
Examples:
  source <(memgate completions bash)
  memgate completions zsh > \"${fpath[1]}/_memgate\"
  memgate completions fish > ~/.config/fish/completions/memgate.fish"
)]
pub struct Args {
    /// Shell [default: list the names]
    shell: Option<clap_complete::Shell>,
}

/// Runs the command.
///
/// # Errors
/// When the script cannot be written.
pub fn run(args: &Args, mut memgate: clap::Command, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let Some(shell) = args.shell else {
        let names = clap_complete::Shell::value_variants().iter().map(ToString::to_string);
        return list_choices("completions", names, terminal);
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut memgate, "memgate", &mut script);
    terminal.raw(&script)?;
    Ok(ExitStatus::Clean)
}

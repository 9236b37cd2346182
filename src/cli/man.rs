//! `memgate man`: manual pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_mangen::Man;

use crate::cli::ExitStatus;
use crate::cli::file::write_whole;
use crate::cli::terminal::Terminal;

/// Print the manual page of a command
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    before_help = "Exit codes: 0 printed, 2 there is no such command, or a page cannot be written.",
    after_long_help = "\
Examples:
  memgate man check | man -l -
  memgate man --dir ~/.local/share/man/man1    a page for each command"
)]
pub struct Args {
    /// Command, such as check or certs dev [default: memgate itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    names: Vec<String>,

    /// Write the pages of all commands to this directory; created if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When there is no such command, or a page cannot be written.
pub fn run(args: &Args, memgate: clap::Command, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let mut memgate = memgate.disable_help_subcommand(true);
    memgate.build();
    if let Some(dir) = &args.dir {
        fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
        write_pages(&memgate, dir)?;
        return Ok(ExitStatus::Clean);
    }
    let mut command = &memgate;
    for name in args.names.iter().filter(|name| *name != memgate.get_name()) {
        let Some(next) = command.find_subcommand(name) else {
            anyhow::bail!("there is no command \"{}\"", args.names.join(" "));
        };
        command = next;
    }
    terminal.raw(&page(command)?)?;
    Ok(ExitStatus::Clean)
}

/// Writes the page of a command, and of each subcommand.
fn write_pages(command: &clap::Command, dir: &Path) -> anyhow::Result<()> {
    let file = Man::new(command.clone()).get_filename();
    write_whole(&dir.join(file), &page(command)?)?;
    command.get_subcommands().try_for_each(|below| write_pages(below, dir))
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).manual("memgate");
    let man = man.source(concat!("memgate ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).context("failed to write the page")?;
    Ok(page)
}

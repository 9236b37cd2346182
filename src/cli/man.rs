//! `memgate man`: manual pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_mangen::Man;

use crate::cli::ExitStatus;
use crate::cli::file::write_whole;

/// Write the manual pages of all commands
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    before_help = "Exit codes: 0 written, 2 a page cannot be written.",
    after_long_help = "\
Examples:
  memgate man --dir ~/.local/share/man/man1    a page for each command"
)]
pub struct Args {
    /// Directory for the pages; created if missing
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// When a page cannot be written.
pub fn run(args: &Args, memgate: clap::Command) -> anyhow::Result<ExitStatus> {
    let mut memgate = memgate.disable_help_subcommand(true);
    memgate.build();
    fs::create_dir_all(&args.dir).with_context(|| format!("failed to create {}", args.dir.display()))?;
    write_pages(&memgate, &args.dir)?;
    Ok(ExitStatus::Clean)
}

/// Writes the page of a command, and of each subcommand.
fn write_pages(command: &clap::Command, dir: &Path) -> anyhow::Result<()> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).manual("memgate");
    let man = man.source(concat!("memgate ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).context("failed to write the page")?;
    write_whole(&dir.join(man.get_filename()), &page)?;
    command.get_subcommands().try_for_each(|below| write_pages(below, dir))
}

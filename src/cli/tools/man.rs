//! `memgate man`: manual pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::StyledStr;
use clap_mangen::Man;

use super::list_choices;
use crate::cli::ExitStatus;
use crate::cli::file::write_whole;
use crate::cli::terminal::Terminal;

/// Print the manual page of a command
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    before_help = "Exit codes: 0 printed or listed, 2 there is no such command, or a page cannot be written.",
    after_long_help = "\
Examples:
  memgate man check | man -l -
  memgate man --dir ~/.local/share/man/man1    a page for each command"
)]
pub struct Args {
    /// Command, such as memgate, check or certs dev [default: list the names]
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
    if args.names.is_empty() {
        return list_choices("man", names(&memgate), terminal);
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

/// The names of a command and of each subcommand, which are at most two levels deep.
fn names(command: &clap::Command) -> Vec<String> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let name = name.strip_prefix("memgate ").unwrap_or(name).to_owned();
    std::iter::once(name).chain(command.get_subcommands().flat_map(names)).collect()
}

/// Writes the page of a command, and of each subcommand.
fn write_pages(command: &clap::Command, dir: &Path) -> anyhow::Result<()> {
    let file = Man::new(command.clone()).get_filename();
    write_whole(&dir.join(file), &page(command)?)?;
    command.get_subcommands().try_for_each(|below| write_pages(below, dir))
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    let text = |text: Option<&StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let codes = text(command.get_before_help());
    let end = text(command.get_after_long_help().or_else(|| command.get_after_help()));
    // Written as sections below: as a paragraph, examples could not be copied.
    let man =
        command.clone().before_help(None::<&str>).after_help(None::<&str>).after_long_help(None::<&str>);
    let man = Man::new(man);
    let man = man.manual("memgate").source(concat!("memgate ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).context("failed to write the page")?;
    page.extend(sections(&format!("{codes}\n\n{end}")).into_bytes());
    Ok(page)
}

/// Exit codes and examples of a help text as sections of a page, line by line.
fn sections(end: &str) -> String {
    let mut page = String::new();
    for line in end.lines() {
        let headings = [("Examples:", "EXAMPLES"), ("Exit codes:", "EXIT STATUS")];
        let found = headings.iter().find_map(|(start, heading)| Some((heading, line.strip_prefix(start)?)));
        let rest = found.map_or(line, |(heading, rest)| {
            page.extend([".fi\n.SH ", heading, "\n.nf\n"]);
            rest.trim_start()
        });
        if found.is_none() || !rest.is_empty() {
            page.push_str(&escaped(rest));
            page.push('\n');
        }
    }
    page
}

/// A line of text in roff.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_and_examples_become_sections() {
        let end = "Examples:\n  memgate a \\\n    --b\n.c\n\nExit codes: 0 printed, 2 not.";
        let page = ".fi\n.SH EXAMPLES\n.nf\n  memgate a \\e\n    \\-\\-b\n\\&.c\n\n\
                    .fi\n.SH EXIT STATUS\n.nf\n0 printed, 2 not.\n";
        assert_eq!(sections(end), page);
    }
}

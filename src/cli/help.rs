//! The layout of the help texts.

/// The help of a command: the exit codes come before the options, and the examples last.
const OF_A_COMMAND: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}";

/// The exit codes of memgate as a whole.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  nothing would be denied
  1  something would be denied, or a case failed
  2  wrong usage, an input that cannot be read or parsed, or a fault of memgate
  3  nothing to check was found";

/// The exit codes of a command that names no others.
const FEW_EXIT_CODES: &str = "Exit codes: 0 done, 2 wrong usage or a fault.";

/// A command with the layout of its help, and of that of each command below it.
pub(super) fn with_layout(command: clap::Command) -> clap::Command {
    let codes = command.get_before_help().map_or_else(|| FEW_EXIT_CODES.into(), Clone::clone);
    command.before_help(codes).help_template(OF_A_COMMAND).mut_subcommands(with_layout)
}

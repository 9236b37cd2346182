//! The layout of the help texts, and the groups of commands in that of memgate itself.

use std::fmt::Write as _;

/// The groups of commands, in the order in which a new user needs them. The help does not list other commands.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Files", &["check", "mutate", "explain", "view", "map", "test", "review", "lsp", "schema"]),
    ("Install", &["manifests", "crds", "certs", "serve", "wait"]),
    ("Cluster", &["doctor", "explain-pod"]),
    ("Policies", &["audit", "what-if", "exempt"]),
];

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

/// The columns of the list of commands: those of the smallest usual terminal, since clap wraps no text of a template.
const COLUMNS: usize = 80;

/// memgate with the layout of its help, and of that of each command.
pub(super) fn with_layout(memgate: clap::Command) -> clap::Command {
    let memgate = of_commands(memgate);
    let template = of_memgate(&memgate);
    memgate.help_template(template)
}

fn of_commands(command: clap::Command) -> clap::Command {
    let codes = command.get_before_help().map_or_else(|| FEW_EXIT_CODES.into(), Clone::clone);
    command.before_help(codes).help_template(OF_A_COMMAND).mut_subcommands(of_commands)
}

/// The help of memgate itself: clap has no groups of commands, so they are text of the template.
fn of_memgate(memgate: &clap::Command) -> String {
    let styles = memgate.get_styles();
    let (heading, name_style) = (styles.get_header(), styles.get_literal());
    let widest = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}");
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{heading}{group}:{heading:#}");
        for command in names.iter().filter_map(|name| memgate.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let lines =
                wrapped(&about, COLUMNS.saturating_sub(widest + 4)).join(&format!("\n{:widest$}    ", ""));
            let name = command.get_name();
            let _ =
                writeln!(text, "  {name_style}{name}{name_style:#}{:1$}  {lines}", "", widest - name.len());
        }
        text.push('\n');
    }
    let _ = write!(text, "{heading}Options:{heading:#}\n{{options}}");
    text
}

/// A text in lines of at most so many characters, unless a word is longer.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut().filter(|line| line.len() + word.len() < width) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_of_the_help_is_in_one_group() {
        let memgate = crate::cli::command();
        let visible = memgate.get_subcommands().filter(|command| !command.is_hide_set());
        let visible: BTreeSet<&str> = visible.map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped.len(), visible.len(), "{grouped:?}");
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), visible);
    }

    #[test]
    fn the_list_of_commands_fits_on_a_terminal() {
        let help = crate::cli::command().render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= COLUMNS), "{help}");
    }
}

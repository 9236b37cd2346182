//! `memgate crds`: the CRDs of the families, for test clusters.

use crate::cli::ExitStatus;
use crate::cli::families::FamilyArgs;
use crate::cli::terminal::Terminal;

/// Print the CustomResourceDefinitions that the families' kinds come from
///
/// For clusters in which memgate is tried without the platform itself. A platform installs its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  memgate crds --family arkonis | kubectl apply -f -")]
pub struct Args {
    #[command(flatten)]
    families: FamilyArgs,
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let mut text = String::new();
    for file in args.families.chosen().into_iter().flat_map(|family| family.crds) {
        if !text.is_empty() && !file.starts_with("---") {
            text.push_str("---\n");
        }
        text.push_str(file.trim_end());
        text.push('\n');
    }
    terminal.raw(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

#[cfg(test)]
mod tests {
    use crate::family;

    #[test]
    fn defines_every_kind_of_a_family() {
        for family in family::ALL {
            // The kinds of the core need no definition.
            for kind in family.validated.iter().filter(|kind| !kind.group.is_empty()) {
                let name = format!("name: {}.{}\n", kind.plural, kind.group);
                assert!(family.crds.iter().any(|file| file.contains(&name)), "{name}");
            }
        }
    }
}

//! `memgate crds`: the CRDs of the families, for test clusters.

use crate::cli::ExitStatus;
use crate::cli::families::FamilyArgs;
use crate::cli::terminal::Terminal;
use crate::model::settings::Family;

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
    for file in args.families.chosen().into_iter().flat_map(files) {
        if !text.is_empty() && !file.starts_with("---") {
            text.push_str("---\n");
        }
        text.push_str(file.trim_end());
        text.push('\n');
    }
    terminal.raw(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

fn files(family: Family) -> &'static [&'static str] {
    match family {
        Family::Arkonis => &[
            include_str!("../../deploy/crds/arkonis.yaml"),
            include_str!("../../deploy/crds/arkonis-older.yaml"),
            include_str!("../../deploy/crds/arkonis-successor.yaml"),
        ],
        Family::Ark => &[include_str!("../../deploy/crds/ark.yaml")],
        Family::Orloj => &[include_str!("../../deploy/crds/orloj.yaml")],
        Family::Orka => &[include_str!("../../deploy/crds/orka.yaml")],
        Family::Sympozium => &[
            include_str!("../../deploy/crds/sympozium.yaml"),
            include_str!("../../deploy/crds/sympozium-older.yaml"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family;

    #[test]
    fn defines_every_kind_of_a_family() {
        for family in Family::ALL {
            // The kinds of the core need no definition.
            for kind in family::judged(family).iter().filter(|kind| !kind.group.is_empty()) {
                let name = format!("name: {}.{}\n", kind.plural, kind.group);
                assert!(files(family).iter().any(|file| file.contains(&name)), "{name}");
            }
        }
    }
}

//! `memgate crds`: the CRDs of the families, for test clusters, and those of memgate's own kinds.

use std::borrow::Cow;

use crate::cli::ExitStatus;
use crate::cli::families::FamilyArgs;
use crate::cli::terminal::Terminal;
use memgate_platforms::policy_crds;

/// Print the CustomResourceDefinitions of the platforms and of memgate
///
/// Use those of the platforms only in test clusters without the platform: a platform installs its own. MemoryPolicy
/// and MemoryPolicyExemption belong to memgate; `memgate manifests --only crds` prints their definitions alone.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 wrong usage.",
    after_long_help = "\
Examples:
  memgate crds --family arkonis | kubectl apply -f -"
)]
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
    for file in files(args) {
        if !text.is_empty() && !file.starts_with("---") {
            text.push_str("---\n");
        }
        text.push_str(file.trim_end());
        text.push('\n');
    }
    terminal.raw(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// The files to print: all of them, or those of `--family`.
fn files(args: &Args) -> impl Iterator<Item = Cow<'static, str>> {
    let families = args.families.chosen().into_iter();
    let of_families = families.flat_map(|family| family.definitions.crds).map(|file| file());
    of_families.chain((!args.families.is_chosen()).then(policy_crds))
}

#[cfg(test)]
mod tests {
    use memgate_model::kind::{Kind, POLICY_KINDS};
    use memgate_platforms::policy_crds;

    fn defines(file: &str, kind: &Kind) -> bool {
        file.contains(&format!("name: {}.{}\n", kind.plural, kind.group))
    }

    #[test]
    fn defines_every_kind_of_a_family() {
        for family in memgate_platforms::ALL {
            // The kinds of Kubernetes itself have no definition.
            for kind in family.kinds.validated.iter().filter(|kind| !kind.group.is_empty()) {
                assert!(family.definitions.crds.iter().any(|file| defines(&file(), kind)), "{}", kind.plural);
            }
        }
    }

    #[test]
    fn defines_its_own_kinds() {
        for kind in POLICY_KINDS {
            assert!(defines(&policy_crds(), kind), "{}", kind.plural);
        }
    }
}

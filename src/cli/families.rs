//! `--family`: which families a command is about.

use crate::family::suggest::{did_you_mean, nearest};
use crate::model::settings::Family;

/// The choice of families.
#[derive(Debug, clap::Args)]
pub struct FamilyArgs {
    /// Only this family; can be repeated
    #[arg(long = "family", value_name = "FAMILY", value_parser = parse)]
    families: Vec<Family>,
}

impl FamilyArgs {
    /// The families that were chosen, in their usual order; all of them without a choice.
    #[must_use]
    pub fn chosen(&self) -> Vec<Family> {
        let chosen = |family: &Family| self.families.is_empty() || self.families.contains(family);
        Family::ALL.into_iter().filter(chosen).collect()
    }
}

fn parse(name: &str) -> Result<Family, String> {
    let names = Family::ALL.map(Family::name);
    Family::from_name(name)
        .ok_or_else(|| format!("families are {}{}", names.join(", "), did_you_mean(nearest(name, names))))
}

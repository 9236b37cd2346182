//! `--family`: the families of a command.
use memgate_model::family::Family;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The choice of families.
#[derive(Debug, Clone, clap::Args)]
pub struct FamilyArgs {
    /// Only this platform; repeatable
    #[arg(long = "family", value_name = "PLATFORM", value_parser = parse, help_heading = "Settings")]
    families: Vec<&'static Family>,
}

impl FamilyArgs {
    /// Whether families were chosen.
    pub const fn is_chosen(&self) -> bool {
        !self.families.is_empty()
    }

    /// The families that were chosen, in the order of the list; all of them without a choice.
    pub fn chosen(&self) -> Vec<&'static Family> {
        self.chosen_or(None)
    }

    /// The chosen families; without a choice those of `otherwise`, else all. In the order of the list.
    pub fn chosen_or(&self, otherwise: Option<Vec<&'static Family>>) -> Vec<&'static Family> {
        let named = if self.families.is_empty() { otherwise } else { Some(self.families.clone()) };
        let chosen = |family: &&'static Family| named.as_ref().is_none_or(|named| named.contains(family));
        memgate_platforms::ALL.into_iter().filter(chosen).collect()
    }
}

/// Parses the name of a family.
///
/// # Errors
/// When there is no such family.
pub fn parse(name: &str) -> Result<&'static Family, String> {
    let names = memgate_platforms::ALL.map(|family| family.name);
    memgate_platforms::find(name)
        .ok_or_else(|| format!("platforms are {}{}", names.join(", "), did_you_mean(nearest(name, names))))
}

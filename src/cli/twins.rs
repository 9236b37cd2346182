//! The policies that the apiserver evaluates by itself, from the tables of the families.

use crate::deploy::twin::Twin;
use crate::family;
use crate::model::settings::Family;

/// What of these families the apiserver can do by itself.
#[must_use]
pub fn of(families: &[Family]) -> Vec<Twin> {
    let twin = |family: &Family| Twin {
        fail_open: family::resources_fail_open(*family),
        tables: family::twins(*family),
        defaults: family::written_defaults(*family),
    };
    families.iter().map(twin).collect()
}

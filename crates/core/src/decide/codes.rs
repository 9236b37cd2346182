//! The list of all finding codes.

use memgate_model::family::Family;
use memgate_model::finding::Code;
use memgate_platforms::common;

/// Every finding code: those that belong to no platform, those about policies, and those of these platforms.
pub fn all<'f>(families: &'f [&'static Family]) -> impl Iterator<Item = &'static Code> + use<'f> {
    let of_families = families.iter().flat_map(|family| family.codes).copied();
    common::ALL.into_iter().chain(memgate_policy::codes::ALL).chain(of_families)
}

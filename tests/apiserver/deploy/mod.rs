//! What `memgate manifests` installs, in the real cluster: whether it is accepted, what it may do,
//! and what happens to the cluster when memgate comes, is away and goes.
//!
//! The objects are renamed, for the memgate that other trials share bears the usual names.

pub(crate) mod absent;
mod accepted;
mod conditions;
mod lifecycle;
mod managed;
mod other_way;
mod pause;
mod policy_strict;
pub(crate) mod renamed;
mod rights;
mod self_guard;
mod third_party_crds;

use crate::fixture::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let modules = [
        accepted::trials(),
        conditions::trials(),
        self_guard::trials(),
        lifecycle::trials(),
        managed::trials(),
        other_way::trials(),
        pause::trials(),
        policy_strict::trials(),
        rights::trials(),
    ];
    modules.into_iter().flatten().collect()
}

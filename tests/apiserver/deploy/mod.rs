//! What `memgate manifests` installs, in the real cluster: whether it is accepted, what it may do,
//! and what happens to the cluster when memgate comes, is away and goes.
//!
//! The objects are renamed, for the memgate that other trials share bears the usual names.

mod accepted;
mod conditions;
mod files;
mod foreign;
mod life;
mod renamed;
mod rights;
mod self_guard;

use crate::world::Case;

pub(crate) fn cases() -> Vec<Case> {
    let modules = [
        accepted::cases(),
        conditions::cases(),
        self_guard::cases(),
        files::cases(),
        life::cases(),
        rights::cases(),
    ];
    modules.into_iter().flatten().collect()
}

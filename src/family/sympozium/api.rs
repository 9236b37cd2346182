//! The kinds of the family and what is read of them; nothing else.

use crate::model::kind::Kind;
use crate::model::selector::PodSelector;

/// The kinds that the family judges.
pub static KINDS: [&Kind; 0] = [];

/// The kinds that decisions look up, all of whose objects are watched in a cluster.
pub static WATCHED: [&Kind; 0] = [];

/// The kinds that decisions look up one by one.
pub static ASKED: [&Kind; 0] = [];

/// The kinds for which defaults are written.
pub static DEFAULTED: [&Kind; 0] = [];

/// The memory resources.
pub static MEMORIES: [&Kind; 0] = [];

/// How agent pods are told from all others.
pub static POD_SELECTORS: [PodSelector; 0] = [];

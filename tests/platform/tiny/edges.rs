//! What a Notebook refers to.

use memgate_model::edge::{Edge, memory_used};
use memgate_model::object::index::Index;

use super::api::NOTEBOOK;
use super::codes::CONTINUED_NOT_FOUND;

/// Finds Notebooks by the one that they continue.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

pub(crate) static EDGES: [Edge; 1] = [Edge::new(&[&NOTEBOOK], "/spec/continues", &[&NOTEBOOK])
    .of_memory()
    .warns(&CONTINUED_NOT_FOUND, "it begins without a page")];

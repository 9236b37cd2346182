//! The words that nearly every file here uses: what a face gets, what it reads, and what it answers.
//! A file with at least four of them imports them all.

pub(crate) use memgate_model::family::Subject;
pub(crate) use memgate_model::finding::Finding;
pub(crate) use memgate_model::kind::Kind;
pub(crate) use memgate_model::object::{Lookup, Object};
pub(crate) use memgate_model::state_reader::StateReader;
pub(crate) use memgate_model::tree::Tree;
pub(crate) use memgate_primitives::budget::Budget;
pub(crate) use memgate_primitives::plain_text::{quoted, quoted_key, quoted_text};
pub(crate) use memgate_primitives::pointer::Pointer;

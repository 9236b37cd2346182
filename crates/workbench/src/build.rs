//! What a run reads, and how: the plan of a command, the kustomizations and charts of a repository, and what the user's own
//! tools make of them.
//!
//! ```text
//! paths ──walk──▶ layout ──▶ units ──tools──▶ texts, each with the files from which it comes (origins)
//! ```
//!
//! It judges nothing.

pub(crate) mod assignments;
pub mod builder;
pub mod exclude;
pub mod judged_by;
pub mod kustomization;
pub mod layout;
pub(crate) mod neighbours;
pub(crate) mod object_name;
pub mod origins;
pub(crate) mod ours;
pub mod plan;
pub mod program;
pub(crate) mod releases;
pub(crate) mod rendered;
pub mod rules;
pub mod texts;
pub(crate) mod tools;
pub(crate) mod unit;
pub(crate) mod units;
pub mod walk;

//! The language server: it judges files while they are written.
//!
//! ```text
//! messages of an editor ──session──▶ state: folders (workspace) and open texts (buffers)
//! state + the files around them ──▶ the steps of the workbench
//!     ├──▶ diagnostics, actions (fixes)
//!     └──▶ names (what objects refer to) ──▶ navigation (definition, references), hover
//! ```
//!
//! Between two answers only the texts of the open files are kept. This module knows no arguments of the command line; a
//! [`Planner`](workspace::Planner) comes from there.

mod buffers;
mod markdown;
mod positions;
mod uri;

pub mod workspace;

mod diagnostics;

mod names;

mod navigation;

mod hover;

mod actions;

mod protocol;

mod state;

pub mod session;

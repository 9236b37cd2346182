//! The language server: it judges files while they are written.
//!
//! ```text
//! messages of an editor ──session──▶ state: folders (workspace) and open texts (buffers)
//! state + the files around them ──▶ the steps of the workbench
//!     ├──▶ diagnostics, broken (marks of closed files), actions (fixes, ignore), hints (what a pod gets), page (the map)
//!     ├──▶ mentions (names of objects, also in kustomize) ──▶ navigation (definition, references), rename, lens, hover
//!     └──▶ symbols (the outline of a file)
//! ```
//!
//! Between two answers the texts of the open files and the marks that are shown are kept, and for each root what was made of
//! the files around them ([`Kept`](memgate_workbench::kept::Kept)), until one of these changes on disk. This module knows no
//! arguments of the command line; a [`Planner`](workspace::Planner) comes
//! from there.

mod buffers;
mod markdown;
mod positions;
mod uri;

pub mod workspace;

mod diagnostics;

mod mentions;

mod kustomize;

mod objects;

mod navigation;

mod edits;

mod rename;

mod lens;

mod hover;

mod symbols;

mod broken;

mod page;

mod actions;

mod hints;

mod protocol;

mod state;

pub mod session;

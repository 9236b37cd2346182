//! Files for commands: load them, decide about their objects, and make reports.
//!
//! ```text
//! InputPlan ──collect (render)──▶ sources ──load, classify──▶ Inputs { objects, snapshot }
//! Inputs ──check──▶ Checked ──(suppress)──findings──▶ report::Report
//!                           └─rewrite──▶ the files with the edits in their text
//! ```
//!
//! An `InputPlan` comes in; values come out that `report` writes and from which `cli` takes its exit codes. This module
//! knows no arguments, terminal or exit codes.

pub mod exclude;
pub mod read;
pub mod stop;

pub mod kustomization;
pub mod program;
pub mod render;
pub mod repository;

pub mod collect;
pub mod walk;

pub mod origin;

pub mod places;
pub mod policies;

pub mod classify;

pub mod checked_object;

pub mod load;

mod misspelt;
pub mod notices;
pub mod passed_over;

pub mod check;

pub mod what_if;

mod departed;
pub mod errors;
pub mod findings;

pub mod rules;

pub mod suppress;

mod joined;
pub mod load_sets;
pub mod page;
pub mod sets;

pub mod ignore;

pub mod base;
pub mod baseline;

pub mod fix;
pub mod rewrite;

pub mod map;
pub mod view;

pub mod exempt;
pub mod explain;

pub mod cases;

pub mod injected;

pub mod kind_schema;

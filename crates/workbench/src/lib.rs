//! Files to decisions and reports: what the commands, the editor and the tests of memgate share.
//!
//! ```text
//! Plan ──read──▶ texts ──load──▶ Inputs { objects, snapshot } ──judge──▶ Checked ──(suppress)──place──▶ Report
//!                                                                            └─rewrite──▶ edited files
//! ```
//!
//! It knows no arguments, terminal or exit codes.

pub mod broken;
pub mod built;

pub mod casefile;

pub mod report;

pub mod exclude;
pub mod program;
pub mod texts;

pub mod kustomization;
pub mod render;
pub mod repository;
pub mod rules;

pub mod judged_by;
pub mod plan;
pub mod walk;

pub mod errors;
pub mod objects;
pub mod passed_over;
pub mod places;

mod inside;
mod misspelt;
pub mod notices;
pub mod policy_files;
mod substitutes;

pub mod inputs;
pub mod read;

mod state;

pub mod load;
pub mod sets;

pub mod judge;
pub(crate) mod paths;
pub mod place;

pub mod baseline;
pub mod ignore;
pub mod suppress;

pub mod base;

pub mod page;

pub mod rewrite;

pub mod map;
pub mod view;

pub mod what_if;

pub mod run;

pub mod fix;
pub mod outcome;

pub mod exempt;
pub mod explain;

pub mod cases;
pub mod unfit;

pub mod injected;
pub mod kind_schema;
pub mod kustomize;

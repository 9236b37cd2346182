//! Files to decisions and reports: what the commands, the editor and the tests of memgate share.
//!
//! ```text
//! Plan ──read──▶ texts ──load──▶ Inputs { objects, snapshot } ──judge──▶ Checked ──(suppress)──place──▶ Report
//!                                                                            └─rewrite──▶ edited files
//! ```
//!
//! It knows no arguments, terminal or exit codes.

pub mod built;

pub mod casefile;

pub mod report;

pub mod exclude;
pub mod program;
pub mod texts;

pub mod build;
pub mod kustomization;
pub mod layout;
pub mod rules;
mod tools;

pub mod ignored_codes;

mod assignments;
pub mod judged_by;
mod judged_documents;
mod made_elsewhere;
mod names;
mod neighbours;
mod ours;
pub mod plan;
mod releases;
mod rendered;
mod unit;
mod units;
pub mod walk;

mod copied;
pub mod errors;
mod misspelt;
pub mod notices;
mod object_name;
pub mod objects;
pub mod origins;
pub mod passed_over;
pub mod paths;
pub mod places;
pub mod policy_files;
mod unread_templates;

pub(crate) mod in_order;
pub mod inputs;
pub mod read;

mod state;

pub mod load;

pub mod judge;
pub mod place;
pub mod trace;

pub mod difference;
pub mod ignore;
pub mod suppress;
pub mod unjudged;

pub mod base;

pub mod rewrite;

pub mod map;
pub mod view;

pub mod what_if;

mod parts;
pub mod run;

pub mod fix;
pub mod map_verdicts;
pub mod outcome;

pub mod exempt;
pub mod explain;

pub mod cases;

pub mod injected;
pub mod kind_schema;
pub mod kustomize;

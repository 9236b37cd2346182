//! From texts to judged objects with places in files, and what commands make of these.
//!
//! ```text
//! texts ──load──▶ Inputs { objects, snapshot } ──judge──▶ Checked ──(suppress)──place──▶ Report
//!                                                            └─rewrite──▶ edited files
//! ```

pub mod base;
pub mod casefile;
pub mod cases;
pub(crate) mod copied;
pub mod difference;
pub mod errors;
pub mod exempt;
pub mod explain;
pub mod fix;
pub mod ignore;
pub mod injected;
pub mod inputs;
pub mod judge;
pub(crate) mod judged_documents;
pub mod kind_schema;
pub mod load;
pub mod map;
pub mod map_verdicts;
pub(crate) mod misspelt;
pub(crate) mod names;
pub mod notices;
pub mod objects;
pub mod outcome;
pub(crate) mod parts;
pub mod passed_over;
pub mod place;
pub mod places;
pub mod policy_files;
pub mod read;
pub mod rewrite;
pub mod run;
pub(crate) mod state;
pub mod suppress;
pub mod trace;
pub mod unjudged;
pub(crate) mod unread_templates;
pub mod view;
pub mod what_if;

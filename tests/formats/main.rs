//! Checks that each format is valid for the programs that read it, and is written whole.
//!
//! `corpus` writes every format for every case of tests/ui/check; the others test one format, or the effect
//! of inputs and disks on all of them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

#[path = "../support/archive.rs"]
mod archive;
#[path = "../support/mod.rs"]
mod support;

mod cel;
mod ci;
mod corpus;
mod false_alarms;
mod files;
mod fingerprints;
mod github;
mod hostile;
mod junit;
mod kinds;
mod map;
mod markdown;
mod namespaces;
mod overview;
mod page;
mod pod_owners;
mod policies;
mod project;
mod reading;
mod rendered;
mod repositories;
mod run;
mod sarif;
mod schema;
mod vim;

use support::cases;

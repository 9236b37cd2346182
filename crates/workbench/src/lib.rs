//! Files to decisions and reports: what the commands, the editor and the tests of memgate share.
//!
//! - [`report`]: writes findings, diffs and manifests in all formats.
//! - [`offline`]: makes decisions about files, and the values that `report` writes.
//! - [`casefile`]: cases with their expectations, and the expectations that failed.
//! - [`built`]: the addresses that the build was given.
//!
//! It knows no arguments, terminal or exit codes.

pub mod built;

pub mod casefile;

pub mod report;

pub mod offline;

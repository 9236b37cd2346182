//! memgate gives AI agents on Kubernetes their memory at admission, and says why when it cannot.
//!
//! This crate is the command line. What it calls stands in two others, whose modules are here under
//! the same names:
//!
//! - `memgate-core` decides: [`model`], [`family`], [`decide`], [`patch`], [`admission`], [`manifest`],
//!   [`state`], [`casefile`];
//! - `memgate-server` answers an apiserver: [`server`], and [`deploy`] renders what installs it.
//!
//! The modules of this crate, in reading order; each uses only those above it:
//!
//! - [`offline`]: the inputs of commands, as objects to judge and as state.
//! - [`report`]: findings and changes, written for people and programs.
//! - [`cluster`]: a live cluster, as commands ask it.
//! - [`doctor`]: what is wrong with an installation, judged by what was read of the cluster.
//! - [`cli`]: the command line.

pub use memgate_core::{admission, casefile, decide, family, manifest, model, patch, state};
pub use memgate_server::{deploy, server};

pub mod offline;

pub mod report;

pub mod cluster;

pub mod doctor;

pub mod cli;

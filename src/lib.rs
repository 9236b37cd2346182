//! memgate gives AI agents on Kubernetes their memory at admission, and reports why it cannot.
//!
//! **Where to begin.** [`decide`](memgate_core::decide::decide) is the centre of memgate: a
//! [`Request`](memgate_model::request::Request) and a [`Snapshot`](memgate_model::snapshot::Snapshot) of the
//! cluster go in, a [`Decision`](memgate_model::decision::Decision) comes out. It has no clock and no I/O. Most other
//! code brings it its input or uses its result. The rules of a platform are in its folder of [`memgate_platforms`],
//! and a command is in its module below [`cli`].
//!
//! # One AdmissionReview
//!
//! 1. [`server`](memgate_server::server) accepts a TLS connection and reads the body of `/mutate` or `/validate`.
//! 2. [`admission::parse`](memgate_core::admission::parse) reads the AdmissionReview: its
//!    [`Request`](memgate_model::request::Request) borrows the object as text.
//! 3. [`decide`](memgate_core::decide::decide) picks the family of the object, or of the pod, and gets its findings and edits.
//! 4. The family looks objects up in the [`Snapshot`](memgate_model::snapshot::Snapshot) that watches keep. Each is
//!    found, absent or unknown.
//! 5. [`memgate_policy`] judges the result by the organisation's own rules.
//! 6. The server fetches unknown objects from the apiserver, and decides again.
//! 7. [`admission::respond`](memgate_core::admission::respond) makes the response: the edits as JSON Patch, the
//!    findings as the message of the denial and as warnings. [`patch::apply`](memgate_core::patch::apply) applies
//!    the patch to the object first.
//!
//! # One YAML file
//!
//! 1. [`cli::check`] joins its flags with `.memgate.yaml` into an [`InputPlan`](offline::load::InputPlan).
//! 2. [`offline::load`] reads what the plan names: [`offline::collect`] reads the files, and [`memgate_manifest`]
//!    parses them into documents, in which each JSON pointer has a line and a column.
//! 3. [`offline::classify`] decides which documents are checked; [`state`](memgate_core::state) adds all of them to
//!    the snapshot.
//! 4. [`offline::check`] lets [`admission::admit`](memgate_core::admission::admit) decide about each object, as both
//!    webhook calls would.
//! 5. [`offline::findings`] gives each finding its location in a file, and [`report`] writes it. For
//!    `memgate mutate`, [`offline::rewrite`] makes the edits in the text of the file.
//!
//! # Crates
//!
//! In reading order. A crate uses only those above it, and the last three each have modules with an order of their own;
//! `tests/layers.rs` checks both.
//!
//! - [`memgate_primitives`]: JSON pointers, names, durations, quantities, and the budget of a decision.
//! - [`memgate_schema`]: what an apiserver refuses by the schema of a kind and by its rules for metadata.
//! - [`memgate_model`]: the types that decisions are made of.
//! - [`memgate_manifest`]: reads YAML and JSON into objects with line and column, and writes edits into their text.
//! - [`memgate_policy`]: the rules of an organisation, judged on the views of all families alike.
//! - [`memgate_platforms`]: the kinds, rules, defaults and injection of each platform.
//! - [`memgate_core`]: makes decisions.
//!   - [`patch`](memgate_core::patch): writes edits as JSON Patch, and checks that the patch applies.
//!   - [`decide`](memgate_core::decide): makes one decision from one request and one snapshot.
//!   - [`admission`](memgate_core::admission): reads an AdmissionReview into a request, and writes a decision as its
//!     response.
//!   - [`state`](memgate_core::state): makes a snapshot from the objects of files.
//!   - [`casefile`](memgate_core::casefile): reads and compares the cases of `memgate test`.
//! - [`memgate_server`]: runs in a cluster.
//!   - [`review_path`](memgate_server::review_path): the paths to which an apiserver sends reviews.
//!   - [`deploy`](memgate_server::deploy): the Kubernetes objects that install memgate.
//!   - [`server`](memgate_server::server): listener, TLS and certificates, limits, watches, metrics, Events.
//! - This crate, the command line:
//!   - [`report`]: writes findings, diffs and manifests in all formats.
//!   - [`offline`]: makes decisions about files, and the values that `report` writes.
//!   - `editor`: serves editors, with the decisions of `offline`.
//!   - `cluster`: reads a live cluster for commands.
//!   - `doctor`: judges an installation from what was read, as pure functions.
//!   - [`cli`]: arguments, standard output and standard error, exit codes.

pub mod report;

pub mod offline;

#[cfg(feature = "workstation")]
mod editor;

mod cluster;

mod doctor;

mod built;
pub mod cli;

//! memgate gives AI agents on Kubernetes their memory at admission, and says why when it cannot.
//!
//! **Where to begin.** [`decide::decide`] is the whole of memgate in one function: a
//! [`Request`](model::request::Request) and a [`Snapshot`](model::snapshot::Snapshot) of the cluster go
//! in, a [`Decision`](model::decision::Decision) comes out. It has no clock and no I/O. Everything else
//! brings it its input or takes its result somewhere. For one platform's rules, open its folder below
//! [`family`]; for one command, its module below [`cli`].
//!
//! # One AdmissionReview
//!
//! 1. [`server`] accepts a TLS connection and reads the body of `/mutate` or `/validate`.
//! 2. [`admission::parse`] reads the AdmissionReview: its [`Request`](model::request::Request) borrows the
//!    object as text.
//! 3. [`decide::decide`] picks the family of the object, or of the pod, and asks it for findings and edits.
//! 4. The family looks objects up in the [`Snapshot`](model::snapshot::Snapshot) that watches keep. Each is
//!    found, absent or unknown.
//! 5. The server fetches what was unknown from the apiserver, and decides again.
//! 6. [`admission::respond`] makes the response: the edits as JSON Patch, the findings as the message of
//!    the denial and as warnings. [`patch::verify`] applies the patch to the object first.
//!
//! # One YAML file
//!
//! 1. [`cli::check`] reads its arguments and calls [`offline::load`].
//! 2. [`offline::collect`] reads the files, [`manifest`] parses them into documents; each pointer into a
//!    document has its line and column.
//! 3. [`offline::classify`] says what each document is; [`state`] adds it to the snapshot for all others.
//! 4. [`offline::check`] has [`admission::admit`] decide about each object, as both webhook calls would.
//! 5. [`offline::findings`] gives each finding its location in a file, and [`report`] writes it. For
//!    `memgate mutate`, [`offline::rewrite`] makes the edits in the text of the file.
//!
//! # Modules
//!
//! In reading order; a module uses only those above it, and `tests/layers.rs` says which.
//!
//! The crate `memgate-core`, which decides:
//!
//! - [`model`]: the types that all others share.
//! - [`family`]: each platform's kinds, rules, defaults and injection.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`policy`]: an organisation's own rules on what families declare.
//! - [`patch`]: edits as JSON Patch, and the check that they apply.
//! - [`admission`]: bytes of an AdmissionReview to a request, a decision to bytes of the response.
//! - [`manifest`]: YAML and JSON to objects with line and column, and edits back into their text.
//! - [`state`]: objects from files as a snapshot.
//! - [`casefile`]: what `memgate test` runs.
//!
//! The crate `memgate-server`, which runs in a cluster:
//!
//! - [`review_path`]: the paths to which an apiserver sends reviews.
//! - [`deploy`]: the Kubernetes objects that install memgate.
//! - [`server`]: listener, TLS and certificates, limits, watches, metrics, Events.
//!
//! This crate, the command line:
//!
//! - [`report`]: findings, diffs and manifests as text.
//! - [`offline`]: files to decisions, and decisions to the values of `report`.
//! - [`cluster`]: what commands read from a live cluster.
//! - [`doctor`]: judgements over what was read, as pure functions.
//! - [`cli`]: arguments, standard output and standard error, exit codes.

pub use memgate_core::{admission, casefile, decide, family, manifest, model, patch, policy, state};
pub use memgate_server::{deploy, review_path, server};

pub mod report;

pub mod offline;

pub mod cluster;

pub mod doctor;

pub mod cli;

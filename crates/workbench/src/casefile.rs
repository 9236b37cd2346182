//! Case files: what `memgate test` runs, and what memgate's own tests are written in.
//!
//! ```text
//! value of a file ──read──▶ Case { state, request, expect }
//! Case ──request::{state, review}──▶ Snapshot, AdmissionReview JSON
//!      ──(any way in)──▶ CaseOutcome ──compare──▶ failures
//! ```
//!
//! Whatever answers an AdmissionReview can run a case: the library, the command, the server, a real
//! apiserver. Nothing in here decides, reads a file or knows YAML; places are JSON pointers into the value
//! of the file.

pub mod compare;
pub mod expect;
pub mod read;
pub mod request;

use serde_json::Value;

use crate::casefile::expect::Expect;
use memgate_model::request::{Occasion, Operation, User};
use memgate_primitives::pointer::Pointer;

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Where in the file.
    pub pointer: Pointer,
    /// The name, a claim such as `rejects-missing-secret`.
    pub name: String,
    /// Why it is so, in one line; may be empty.
    pub why: String,
    /// What is being done.
    pub operation: Operation,
    /// The objects in the cluster.
    pub state: Vec<Value>,
    /// The new object.
    pub object: Option<Value>,
    /// The stored object.
    pub old_object: Option<Value>,
    /// Whether the request is a dry run.
    pub dry_run: bool,
    /// The namespace of the request, where it is not the object's.
    pub namespace: Option<String>,
    /// Where and when the decision is made.
    pub occasion: Occasion<'static>,
    /// Who makes the request: a name and groups.
    pub user: Option<User>,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// What has to come out.
    pub expect: Expect,
}

/// What is wrong with a case file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFileError {
    /// Where in the value of the file.
    pub pointer: Pointer,
    /// What is wrong, without a full stop.
    pub message: String,
}

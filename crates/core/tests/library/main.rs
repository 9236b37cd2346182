//! What the core promises to its callers, in one program that links the core alone.
//!
//! ```text
//! manifest    reading manifests: values, locations, errors
//! rewrite     edits in the user's own text
//! limits      what is larger than what is read, and how much is told
//! fields      wrong values in every field that is read
//! missing     what a pod's memory lacks, and who made the pod
//! orloj_settings  what an installation of Orloj shares
//! pod_events  which object the event of a missing memory regards
//! properties  what must hold for any input
//! several_families  pods that two families know
//! warnings    how long the messages are
//! ```
//!
//! Its cases are in `cases.rs` beside it.

#[path = "../../../../tests/support/cases.rs"]
mod cases;

mod fields;
mod limits;
mod manifest;
mod missing;
mod orloj_settings;
mod pod_events;
mod properties;
mod rewrite;
mod several_families;
mod warnings;

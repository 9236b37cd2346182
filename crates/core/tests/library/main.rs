//! What the core promises to its callers, in one program that links the core alone.
//!
//! ```text
//! manifest    reading manifests: values, locations, errors
//! rewrite     edits in the user's own text
//! limits      objects that exceed a limit, and how many findings are reported
//! large_views  views of objects with very much in them, and with nothing around them
//! large_pods  pods as large as they are read, larger ones, and their patches
//! answers     how large answers are, and that they say each thing once
//! brokers     whether ark's messages outlive their process, behind very many workloads and unknown ones
//! long_lists  the check of patches with very many edits
//! endpoints   hosts and paths of endpoints, in every spelling
//! fields      wrong values in every field that is read
//! crowds      what a decision costs beside ten thousand objects of each kind
//! deletion    what is judged of objects that a finalizer keeps
//! meshes      pods that a mesh changes before and behind memgate
//! missing     what a pod's memory lacks, and who made the pod
//! orka_settings  what the annotations and variables of Orka do
//! orloj_settings  what an installation of Orloj shares
//! pod_events  which object the event of a missing memory regards
//! policies    what tenants and authors of policies may write, and what no policy may do
//! properties  what must hold for any input
//! several_families  pods that two families know
//! surroundings  odd and very many values in what surrounds a pod
//! sympozium_settings  which pods get references to writer tokens
//! views       what rules of policies see of an object
//! warnings    how long the messages are
//! ```
//!
//! Its cases are in `cases.rs` of the project's tests, and `needs.rs` there runs what needs other programs.

#[path = "../../../../tests/support/cases.rs"]
mod cases;
#[path = "../../../../tests/support/needs.rs"]
mod needs;
#[path = "../../../../tests/support/review.rs"]
mod review;

mod answers;
mod brokers;
mod crowds;
mod deletion;
mod endpoints;
mod fields;
mod large_pods;
mod large_views;
mod limits;
mod long_lists;
mod manifest;
mod meshes;
mod missing;
mod orka_settings;
mod orloj_settings;
mod pod_events;
mod policies;
mod properties;
mod rewrite;
mod several_families;
mod surroundings;
mod sympozium_settings;
mod views;
mod warnings;

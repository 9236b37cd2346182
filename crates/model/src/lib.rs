//! The types that all other modules use: requests, snapshots, findings, edits and decisions.
//!
//! Nothing here depends on HTTP, YAML, a clock or a cluster, and nothing does I/O.
//!
//! Read [`request`], [`snapshot`] and [`decision`] first. [`pod`] and [`workload`] are views of core objects;
//! [`tree`] is an object of a platform's own kind, read by its [`schema`]. [`crd`] is the schema of a
//! CustomResourceDefinition, and [`violation`] a rule of it that an object breaks. [`claim_volumes`] are the
//! volumes that a StatefulSet adds to its pods. [`credential`] masks credentials in outputs. [`object::index`]
//! finds objects of the state. [`budget`] bounds the cost of a decision.
//!
//! ```text
//! Request + Snapshot ──decide──▶ Decision { findings, edits, reason, unknown }
//! ```

pub mod causes;
pub mod cel;
pub mod cel_view;
pub mod change;
pub mod claim_volumes;
pub mod codes;
mod content_hash;
pub mod crds;
pub mod decision;
pub mod digest;
pub mod edit;
pub mod elsewhere;
pub mod event;
pub mod family;
pub mod finding;
pub mod injection;
pub mod kind;
pub mod label_selector;
pub mod memory_view;
pub mod object;
pub mod platform_settings;
pub mod pod;
pub mod policy;
pub mod policy_field;
pub mod policy_rule;
pub mod prune;
pub mod reason;
pub mod recurring_texts;
pub mod request;
pub mod schema;
pub mod selector;
pub mod settings;
pub mod snapshot;
pub mod state_reader;
pub mod tree;
pub mod typed_rule;
pub mod view;
pub mod workload;

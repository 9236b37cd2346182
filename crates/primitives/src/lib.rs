#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`mod@pointer`]: JSON pointers, and how Kubernetes writes fields.
//! - [`mod@named`]: closed sets of words.
//! - [`name`], [`number`], [`duration`], [`quantity`], [`percent`]: texts and values as Kubernetes and Go read them.
//! - [`glob`], [`members`]: patterns of names; sets and maps that cannot be iterated.
//! - [`plain_text`], [`credential`]: texts from users as outputs show them, without control characters and credentials.
//! - [`fix`], [`suggest`]: what to write in place of a fault; "did you mean …?".
//! - [`budget`]: the limits of one decision; [`json`]: one visitor for readers of JSON.
//! - [`review_path`]: the two webhook calls, and the paths to which an apiserver sends them.
//! - [`causes`]: errors in one line.

pub mod budget;
pub mod causes;
pub mod credential;
pub mod duration;
pub mod fix;
pub mod glob;
pub mod json;
pub mod members;
pub mod name;
pub mod named;
pub mod number;
pub mod percent;
pub mod plain_text;
pub mod pointer;
pub mod quantity;
pub mod review_path;
pub mod suggest;

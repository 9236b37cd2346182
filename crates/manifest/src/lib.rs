#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! Source ──document::parse──▶ Document { value, place }
//!    └──rewrite (with patches), fix──▶ new text
//! ```
//!
//! An object has two forms here: the text (a [`source`]), and a [`document`], which is a value with a place for each
//! pointer. Of an object the crate knows only that it has an `apiVersion` and a `kind`.
//!
//! Each module uses only modules before it:
//!
//! ```text
//! source ─ error ─ outline ─ scalar ─ value                 what a text is made of, and what it means
//! json ─ yaml, dialect ─ place ─ document                   parsers, places of pointers, objects
//! later: document, scalar                                   scalars that a later step fills in
//! comments: yaml                                            comments to memgate
//! document: embedded                                        documents in a text of another one
//! mask: unread                                              the text without its credentials
//! rewrite: emit ─ splicer, flow, block                      patches of objects made in the text; changes of bytes
//! fix                                                       a word or an element of the text changed
//! ```

pub mod comments;
mod dialect;
pub mod document;
pub mod error;
pub mod fix;
mod json;
pub mod later;
pub mod mask;
mod outline;
pub mod place;
pub mod rewrite;
mod scalar;
mod shown;
pub mod source;
mod value;
mod yaml;

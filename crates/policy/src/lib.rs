#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`read`] with `reader` and `values`: a manifest to a policy or an exemption. `advice` and [`never_applies`] warn about
//!   valid policies that probably do not do what their author means.
//! - [`rules`]: the seventeen typed rules; those about single values are made of conditions (`check`). `names` and `text` are what they share.
//! - [`put`] and [`take`]: policies and exemptions enter and leave a snapshot.
//! - [`selection`], `matching`, `namespaces`: which policies judge an object.
//! - [`judge`]: the findings of the policies in force, after exemptions ([`next_expiries`] says when those end).
//! - [`counts`]: how many objects each rule judged, and what came of it.
//! - [`defaults`]: the fields that policies fill.
//! - [`resource`], [`leftover`], [`codes`]: findings about policies and exemptions themselves.

mod advice;
pub mod codes;
pub mod counts;
pub mod defaults;
mod exempt;
pub mod judge;
pub mod leftover;
mod matching;
mod names;
mod namespaces;
pub mod never_applies;
mod places;
pub mod read;
mod reader;
pub mod resource;
pub mod rules;
pub mod selection;
mod store;
mod text;
mod values;
pub mod written;

use memgate_model::page::{Pages, unpacked};

pub use self::exempt::next_expiries;
pub use self::store::{put, take};
pub use self::values::{duration, timestamp};

/// The pages of codes and of typed rules.
static PAGES: Pages = Pages::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/pages"))));

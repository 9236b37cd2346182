//! Policies: an organisation's own rules on memory, judged over the views that platforms make.
//!
//! [`read`] makes a policy or an exemption of its manifest, once, when it enters a snapshot ([`put`]). [`judge`]
//! says what the policies in force find wrong with an object; it has no clock and looks nothing up. [`defaults`] are
//! the fields that policies fill. All of it depends on the model only: which platforms there are comes in as an
//! argument, the `families`.

mod advice;
pub mod codes;
pub mod defaults;
mod exempt;
pub mod in_cel;
pub mod judge;
pub mod leftover;
mod matching;
mod names;
mod namespaces;
pub mod read;
mod reader;
pub mod resource;
pub mod rules;
pub mod selection;
mod store;
mod text;
mod values;

pub use self::exempt::next_expiries;
pub use self::store::{put, take};
pub use self::values::{duration, timestamp};

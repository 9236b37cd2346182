//! The words that many files here use: what a face gets, what it reads, and what it answers.
//! A file with at least four of them imports them all.

pub(crate) use crate::message::fit_names;
pub(crate) use memgate_model::elsewhere::Elsewhere;
pub(crate) use memgate_model::family::Subject;
pub(crate) use memgate_model::finding::{Code, Finding, Severity, excerpt};
pub(crate) use memgate_model::injection::Injection;
pub(crate) use memgate_model::kind::Kind;
pub(crate) use memgate_model::object::{Lookup, Object};
pub(crate) use memgate_model::pod::{Container, Pod};
pub(crate) use memgate_model::reason::Reason;
pub(crate) use memgate_model::request::Operation;
pub(crate) use memgate_model::state_reader::StateReader;
pub(crate) use memgate_model::tree::Tree;
pub(crate) use memgate_primitives::budget::Budget;
pub(crate) use memgate_primitives::name::is_dns_subdomain;
pub(crate) use memgate_primitives::plain_text::{quoted, quoted_key, quoted_text};
pub(crate) use memgate_primitives::pointer::{Path, Pointer};

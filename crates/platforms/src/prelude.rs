//! The words that many files here use: what a face gets, what it reads, and what it answers.
//! A file with at least four of them imports them all.

pub(crate) use crate::message::{filled, warning};
pub(crate) use crate::url::{Endpoint, inline_credential};
pub(crate) use memgate_model::edit::{Edit, EnvSource, KeyRef, Op, Origin};
pub(crate) use memgate_model::elsewhere::Elsewhere;
pub(crate) use memgate_model::event::InvolvedObject;
pub(crate) use memgate_model::family::{Family, Subject};
pub(crate) use memgate_model::finding::{Code, Finding, Severity, excerpt};
pub(crate) use memgate_model::injection::Injection;
pub(crate) use memgate_model::kind::{CONFIG_MAP, Kind, NAMESPACE, SECRET, SERVICE};
pub(crate) use memgate_model::memory_view::{
    EndpointSource, EndpointView, InlineView, MemoryView, ReferenceView, Role, SecretView, SourceView,
    ViewValue, Why,
};
pub(crate) use memgate_model::object::index::Index;
pub(crate) use memgate_model::object::{Lookup, Object, Reference};
pub(crate) use memgate_model::pod::{Container, Pod};
pub(crate) use memgate_model::reason::Reason;
pub(crate) use memgate_model::request::Operation;
pub(crate) use memgate_model::state_reader::StateReader;
pub(crate) use memgate_model::tree::Tree;
pub(crate) use memgate_model::view::{Text, view};
pub(crate) use memgate_model::view_table::ViewTable;
pub(crate) use memgate_primitives::budget::Budget;
pub(crate) use memgate_primitives::fix::Fix;
pub(crate) use memgate_primitives::members::{ByKey, Members};
pub(crate) use memgate_primitives::name::is_dns_subdomain;
pub(crate) use memgate_primitives::plain_text::{quoted, quoted_key, quoted_text};
pub(crate) use memgate_primitives::pointer::{Path, Pointer};
pub(crate) use memgate_primitives::suggest::{did_you_mean, nearest};
pub(crate) use serde_json::value::RawValue;
pub(crate) use serde_json::{Value as Json, json};
pub(crate) use std::borrow::Cow;
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::sync::Arc;

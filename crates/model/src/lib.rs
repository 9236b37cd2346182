#![doc = include_str!("../README.md")]
//!
//! ```text
//! Request + Snapshot ──decide──▶ Decision { findings, edits, reason, unknown }
//! ```
//!
//! # Modules
//!
//! Read [`request`], [`snapshot`] and [`decision`] first.
//!
//! - What goes in: [`request`]; [`snapshot`] with its [`object`]s and [`settings`] ([`platform_settings`]), which only a
//!   [`state_reader`] reads; each lookup has an [`answer`].
//! - What comes out: [`decision`] with its [`reason`], [`finding`], [`edit`], [`event`]; [`codes`] makes tables of
//!   finding codes, each with a [`page`].
//! - Platforms: [`family`] is the row of one, with its [`kind`]s, what they refer to ([`edge`]), definitions ([`crds`]) and pod [`selector`]s.
//!   Its `inject` returns an [`injection`].
//! - Reading of objects: [`schema`], [`tree`] and [`plain_value`] for a platform's own kinds; [`view`] for borrowed JSON;
//!   [`pod`], [`workload`] and [`claim_volumes`] for core objects; [`label_selector`].
//! - Comparing of objects: [`change`], [`digest`], [`elsewhere`], [`recurring_texts`].
//! - Policies: [`policy`] with its [`policy_rule`]s and [`typed_rule`]s, the fields that it may fill ([`policy_field`]),
//!   and the views that it judges ([`memory_view`], [`view_table`]).

pub mod answer;
pub mod change;
pub mod claim_volumes;
pub mod codes;
pub mod crds;
pub mod decision;
pub mod digest;
pub mod edge;
pub mod edit;
pub mod elsewhere;
pub mod event;
pub mod family;
pub mod finding;
pub mod injection;
pub mod kind;
pub mod label_selector;
pub mod makers;
pub mod memory_view;
pub mod misfit;
pub mod object;
pub mod page;
pub mod plain_value;
pub mod platform_settings;
pub mod pod;
pub mod policy;
pub mod policy_field;
pub mod policy_rule;
pub mod possible;
pub mod reason;
pub mod recurring_texts;
pub mod request;
pub mod schema;
pub mod selector;
pub mod settings;
mod severity;
pub mod snapshot;
pub mod state_reader;
pub mod state_uses;
pub mod subject;
pub mod tree;
pub mod typed_rule;
pub mod view;
pub mod view_table;
pub mod workload;

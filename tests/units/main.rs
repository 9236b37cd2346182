//! Kustomizations and charts as real programs build them. Needs kubectl and helm, which other tests build with Go.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

#[path = "../support/mod.rs"]
mod support;

mod bad;
mod hostile;
mod layouts;
mod quiet;
mod random;
mod repository;

//! That every way to install memgate installs the same: what `memgate manifests` prints, what `kubectl
//! kustomize` makes of `deploy/kustomize/base`, and what Helm makes of `deploy/helm`.
//!
//! ```text
//! arguments     what the Deployment gives to memgate
//! objects       sets of objects, and how they are compared
//! entries       which entries of the webhook configurations each sort of pod meets
//! outage        docs/operate.md says what passes and what is refused while memgate is away
//! deletion      what of objects that a finalizer keeps is passed over
//! kustomize     the base that is made of what the renderer prints
//! names         what `memgate schema kustomize` prints keeps references right
//! helm          the chart against the renderer
//! chart         what only a chart has: labels, notes, values for typical installations, what catalogues read
//! alerts        each alert fires at the first failure and is silent otherwise: promtool runs them
//! monitoring    alerts and dashboard ask for metrics that exist
//! ```

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "../support/mod.rs"]
mod support;

mod alerts;
mod arguments;
mod chart;
mod deletion;
mod entries;
mod helm;
mod kustomize;
mod monitoring;
mod names;
mod objects;
mod outage;
mod rights;

//! Judges stored objects by policies, at an interval and after changes, and writes reports and statuses.
//!
//! ```text
//! lease ─▶ run ─▶ pass ─▶ subjects ──▶ audit ──▶ reports ──▶ apiserver
//!            ▲              (store, paged lists)   statuses ──▲
//!          store changes, time
//! ```
//!
//! `scan` counts running pods that lack their memory.
//!
//! One replica at a time audits. It writes a report or a status only if it differs from the stored one. A failed pass is
//! repeated; reviews never wait for a pass.

mod judged;
mod lease;
mod pass;
mod policies;
mod report;
mod reports;
mod scan;
mod status;
mod subjects;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep, sleep_until};

use crate::lookup::Lookups;
use crate::metrics::Metrics;
use crate::metrics::audit::LastPass;
use crate::options::AuditOptions;
use crate::shutdown::Drain;
use crate::store::Store;
use memgate_certs::clock::Clock;
use memgate_certs::kube_api::jitter;
use memgate_certs::library_error::explained;

use self::judged::Context;
use self::pass::PassResult;
use self::reports::Reports;
use self::scan::Scan;

/// The field manager of the writes.
const FIELD_MANAGER: &str = "memgate";

/// The timeout of one request to the apiserver.
const API_TIMEOUT: Duration = Duration::from_secs(15);

/// How many lookups an audit sends at a time; those of reviews are counted separately.
const LOOKUPS: usize = 4;

/// How long a pass waits after a change for further changes.
const GATHER: Duration = Duration::from_secs(1);

/// The pause between two passes.
const PAUSE: Duration = Duration::from_secs(5);

/// The pause after a pass that failed; after each further one twice as long, up to the last.
const RETRY: Duration = Duration::from_secs(15);
const LAST_RETRY: Duration = Duration::from_mins(2);

/// When a replica that has just begun to audit lists the reports once more.
const SETTLED: Duration = Duration::from_secs(30);

/// How often it checks whether the server is ending, or its state complete.
const POLL: Duration = Duration::from_millis(200);

/// Audits for as long as the server runs.
pub(super) struct Auditor {
    pub(super) client: Client,
    pub(super) store: Arc<Store>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    pub(super) drain: Drain,
    pub(super) options: AuditOptions,
    /// After how much silence a watch begins again.
    pub(super) watch_idle: Duration,
}

impl Auditor {
    /// Audits while this replica holds the Lease; never ends. It releases the Lease when the server begins to end.
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.audit() => {}
            () = self.ending() => {}
        }
        std::future::pending::<()>().await;
    }

    async fn ending(&self) {
        while !self.drain.has_begun() {
            sleep(POLL).await;
        }
    }

    async fn audit(&self) {
        while !self.store.not_synced().is_empty() {
            sleep(POLL).await;
        }
        loop {
            let lease = lease::hold(&self.client, &self.options).await;
            tokio::select! {
                () = self.turns(lease) => sleep(jitter(RETRY)).await,
                () = lease::until_gone(&self.client, &self.options) => {}
            }
            self.metrics.audit.stop();
        }
    }

    /// Audits whenever this replica holds the Lease; ends when the Lease is no longer watched.
    async fn turns(&self, mut lease: Receiver<bool>) {
        while lease.wait_for(|holds| *holds).await.is_ok() {
            tracing::info!("this replica audits stored objects");
            let scan = self.scan();
            tokio::select! {
                () = self.passes() => {}
                () = scan.run() => {}
                _ = lease.wait_for(|holds| !holds) => {}
            }
            self.metrics.audit.stop();
            tracing::info!("another replica audits stored objects");
        }
    }

    fn scan(&self) -> Scan {
        let (client, store, metrics) =
            (self.client.clone(), Arc::clone(&self.store), Arc::clone(&self.metrics));
        Scan { client, store, metrics, watch_idle: self.watch_idle }
    }

    /// One pass after the other.
    async fn passes(&self) {
        let Self { client, store, metrics, options, .. } = self;
        let lookups = Lookups::new(client.clone(), LOOKUPS, Arc::clone(metrics));
        let mut reports = Reports::new(client.clone(), &options.installation, options.max_reports);
        let mut changes = store.changes();
        let (mut last_listed, mut retry, mut is_settled): (Option<Instant>, _, _) = (None, RETRY, false);
        loop {
            let start = Instant::now();
            changes.mark_unchanged();
            let relist = last_listed.is_none_or(|listed| start - listed >= options.interval);
            if relist {
                last_listed = Some(start);
            }
            let context = Context {
                store,
                client,
                lookups: &lookups,
                rate: options.rate,
                installation: &options.installation,
                now: self.clock.timestamp(),
            };
            let is_done = self.pass(&context, &mut reports, relist).await;
            if relist && !is_settled {
                // Once more, after the previous holder of the Lease has noticed its loss.
                (is_settled, last_listed) =
                    (true, start.checked_sub(options.interval.saturating_sub(SETTLED)));
            }
            let again = last_listed.unwrap_or(start) + options.interval;
            let again = if is_done { again } else { again.min(Instant::now() + jitter(retry)) };
            retry = if is_done { RETRY } else { (retry * 2).min(LAST_RETRY) };
            wait_for_change(&mut changes, again.max(Instant::now() + PAUSE)).await;
        }
    }

    /// Runs one pass. Returns whether it was complete.
    async fn pass(&self, context: &Context<'_>, reports: &mut Reports, relist: bool) -> bool {
        let start = Instant::now();
        if let Err(error) = reports.begin(relist).await {
            tracing::warn!(error = explained(&error), "reports could not be listed, so none are written");
        }
        let is_listed = reports.is_listed;
        let outcome = match pass::run(context, reports).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::warn!(error = explained(&error), "an audit did not complete");
                self.metrics.audit.fail();
                return false;
            }
        };
        let PassResult { subjects, found, policies, is_whole } = outcome;
        let tally = reports.pass;
        let is_done = is_whole && is_listed && tally.failed == 0;
        let last = LastPass {
            at: context.now.as_second(),
            took: start.elapsed(),
            is_done,
            subjects,
            reports: tally.wanted - tally.left_out,
            left_out: tally.left_out,
        };
        let counts = found.policies.into_iter().map(|(name, found)| (name, found.counts));
        self.metrics.audit.complete(&last, &policies, counts);
        reports.log_left_out();
        if tally.written + tally.deleted > 0 {
            tracing::info!(
                subjects,
                written = tally.written,
                deleted = tally.deleted,
                "reports were written"
            );
        }
        is_done
    }
}

/// Removes null fields from an object: the apiserver does not treat them as absent.
fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// A namespace, unless it is empty.
fn given(namespace: &str) -> Option<&str> {
    Some(namespace).filter(|namespace| !namespace.is_empty())
}

/// Waits for a change and a moment for further ones, but not beyond `until`.
async fn wait_for_change(changes: &mut Receiver<u64>, until: Instant) {
    let pause = Instant::now() + PAUSE;
    tokio::select! {
        () = sleep_until(until) => {}
        _ = changes.changed() => sleep_until((Instant::now() + GATHER).max(pause)).await,
    }
}

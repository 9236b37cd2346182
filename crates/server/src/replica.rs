//! What this replica knows of itself, and how old its knowledge is: it says so in the log, in metrics and in a Lease of its own,
//! and gives way to a replica that hears more (docs/adr/0034-a-replica-knows-what-it-knows.md).
//!
//! ```text
//! store, clock ──▶ replica ──lease──▶ Lease ──▶ other replicas, doctor
//!                    │  ▲
//!                    │  └── installed: entries and rights, as the apiserver has them
//!                    └──▶ partners: who hears more?
//! ```
//!
//! No answer waits for any of this, and the loss of a Lease changes nothing.

mod installed;
mod lease;
mod partners;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::Client;
use tokio::time::sleep;

use crate::metrics::Metrics;
use crate::options::{OwnInstallation, OwnPod};
use crate::replica::partners::Partner;
use crate::store::{Stale, Store, lock};
use memgate_certs::clock::Clock;
use memgate_certs::failure_log::FailureLog;

/// After this time without a word about a kind other replicas are asked whether they hear more.
const ASK_AFTER: Duration = Duration::from_mins(5);

/// How often the age of the state is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a request to the apiserver may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// What a replica knows of itself and of the others.
pub(super) struct Replica {
    pub(super) store: Arc<Store>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    pub(super) installation: Option<OwnInstallation>,
    /// The port of health and metrics.
    pub(super) port: u16,
    pub(super) known: Mutex<Known>,
}

/// What was found out last.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The other replicas, as far as they have Leases.
    partners: Vec<Partner>,
    /// A replica that hears more.
    better: Option<SocketAddr>,
    /// How many entries of each configuration ask about something.
    entries: BTreeMap<String, i64>,
    /// The rights that are missing.
    rights_missing: Vec<String>,
}

impl Replica {
    /// The pod that this replica runs in.
    pub(super) fn pod(&self) -> Option<&OwnPod> {
        self.installation.as_ref()?.pod.as_ref()
    }

    /// Why reviews should go to another replica, if that one hears more.
    pub(super) fn gives_way(&self) -> Option<String> {
        let seconds = self.silence()?.as_secs();
        let better = lock(&self.known).better?;
        Some(format!(
            "nothing heard from the apiserver for {seconds} s, and the replica at {better} hears more"
        ))
    }

    /// For how long nothing was heard of a kind, once it is time to ask others.
    fn silence(&self) -> Option<Duration> {
        let silence = self.store.stale().iter().map(|stale| stale.heard.elapsed()).max();
        silence.filter(|silence| *silence > ASK_AFTER)
    }

    /// Watches over all of it; never ends.
    pub(super) async fn run(self: Arc<Self>, client: Client, reasons: impl Fn() -> Vec<String>) {
        let (partners, installation) = (self.ask_partners(&client), self.look_at_installation(&client));
        tokio::join!(self.listen(), partners, installation, self.keep_lease(&client, reasons));
    }

    /// Says once what is not heard of, what cannot be read and that the clock is wrong, and when that is over.
    async fn listen(&self) {
        let (mut silence, mut failures) = (Silence::default(), FailureLog::default());
        let kinds = self.store.kinds().len();
        loop {
            silence.log(&self.store.note_stale(), kinds);
            let unread = self.store.unread();
            for kind in self.store.kinds() {
                let late = unread.iter().find(|unread| unread.kind == kind && !unread.is_needed);
                let why = late.map(|unread| unread.why.clone().unwrap_or_default());
                let step = format!("answer reviews that need {} {}", kind.api_version(), kind.kind);
                failures.log(&step, why.map_or(Ok(()), Err));
            }
            let wrong =
                self.clock.wrong_by().map(|seconds| format!("it is {seconds} s ahead of the apiserver's"));
            self.metrics.clock_offset.set(self.clock.ahead());
            failures.log("use the clock of this machine", wrong.map_or(Ok(()), Err));
            sleep(LOOK).await;
        }
    }
}

/// What was logged of silence.
#[derive(Debug, Default)]
struct Silence {
    since: Option<Instant>,
    is_complete: bool,
}

impl Silence {
    /// Logs when something becomes silent, when later everything does, and when nothing is any more.
    fn log(&mut self, stale: &[Stale], kinds: usize) {
        let Some(oldest) = stale.iter().min_by_key(|stale| stale.heard) else {
            if self.since.is_some() {
                tracing::info!("heard again from the apiserver");
            }
            return *self = Self::default();
        };
        let is_complete = stale.len() == kinds;
        let is_worse =
            is_complete && !self.is_complete && self.since.is_some_and(|at| at.elapsed() > ASK_AFTER);
        self.is_complete |= is_complete;
        if self.since.is_none() || is_worse {
            self.since = Some(Instant::now());
            let (seconds, kind, group) =
                (oldest.heard.elapsed().as_secs(), oldest.kind.kind, oldest.kind.group_in_words());
            let (kinds, error) = (stale.len(), oldest.why.as_deref());
            tracing::warn!(
                seconds,
                kind,
                group,
                kinds,
                error,
                "nothing heard from the apiserver; going on with what is known"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::Lines;

    #[test]
    fn silence_is_logged_once_and_once_more_when_it_is_complete() {
        let lines = Lines::default();
        let _guard = lines.capture();
        let kinds = memgate_platforms::ark::FAMILY.kinds.watched;
        let stale = |count: usize| -> Vec<Stale> {
            let heard = Instant::now() - Duration::from_secs(130);
            kinds[..count].iter().map(|kind| Stale { kind, heard, why: Some("500".to_owned()) }).collect()
        };
        let mut silence = Silence::default();
        for count in [0, 1, 2, kinds.len(), 1, kinds.len()] {
            silence.log(&stale(count), kinds.len());
        }
        let text = "nothing heard from the apiserver; going on with what is known";
        let line = |kinds: usize| {
            format!(
                " WARN memgate_server::replica: {text} seconds=130 kind=\"Memory\" group=\"ark.mckinsey.com\" kinds={kinds} error=\"500\""
            )
        };
        assert_eq!(lines.take(), [line(1)], "one outage, which all kinds notice within minutes");
        silence.log(&[], kinds.len());
        silence.log(&[], kinds.len());
        assert_eq!(lines.take(), [" INFO memgate_server::replica: heard again from the apiserver"]);
        silence.log(&stale(1), kinds.len());
        silence.since = silence.since.map(|since| since - ASK_AFTER * 2);
        silence.log(&stale(2), kinds.len());
        silence.log(&stale(kinds.len()), kinds.len());
        silence.log(&stale(kinds.len()), kinds.len());
        assert_eq!(lines.take(), [line(1), line(kinds.len())], "first one platform, much later the rest");
    }
}

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
use std::time::Duration;

use kube::Client;
use tokio::time::sleep;

use crate::metrics::Metrics;
use crate::options::{OwnInstallation, OwnPod};
use crate::replica::partners::Partner;
use crate::store::{KindHeard, Store, lock};
use memgate_certs::clock::Clock;
use memgate_certs::failure_log::FailureLog;
use memgate_model::kind::Kind;

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

    /// Says once that something is not heard of, what cannot be read and that the clock is wrong, and when that is over.
    async fn listen(&self) {
        let (mut silence, mut failures) = (Silence::default(), FailureLog::default());
        let mut reasons = BTreeMap::<&Kind, String>::new();
        loop {
            silence.log(&self.store.note_stale());
            let unread = self.store.unread();
            // The text of an error can change with each answer, so the first one counts.
            reasons.retain(|kind, _| unread.iter().any(|unread| unread.kind == *kind));
            for kind in self.store.kinds().into_iter().filter(|kind| !self.store.is_needed(kind)) {
                let late = unread.iter().find(|unread| unread.kind == kind);
                let why = late.map(|late| &*reasons.entry(kind).or_insert_with(|| late.why().to_owned()));
                let step = format!("answer reviews that need {} {}", kind.api_version(), kind.kind);
                failures.log(&step, why.map_or(Ok(()), |why| Err(why.clone())));
            }
            let wrong = self.clock.wrong_by().map(|seconds| seconds / 60);
            let wrong = wrong.map(|minutes| format!("it is {minutes} minutes ahead of the apiserver's"));
            self.metrics.clock_offset.set(self.clock.ahead());
            failures.log("use the clock of this machine", wrong.map_or(Ok(()), Err));
            sleep(LOOK).await;
        }
    }
}

/// Whether it was logged that nothing is heard of something.
#[derive(Debug, Default)]
struct Silence(bool);

impl Silence {
    /// Logs when something becomes silent, and when nothing is any more.
    fn log(&mut self, stale: &[KindHeard]) {
        let oldest = stale.iter().min_by_key(|stale| stale.heard);
        match (oldest, std::mem::replace(&mut self.0, oldest.is_some())) {
            (Some(KindHeard { kind, heard, why }), false) => tracing::warn!(
                seconds = heard.elapsed().as_secs(),
                kind = kind.kind,
                group = kind.group_in_words(),
                error = why.as_deref(),
                "nothing heard from the apiserver; going on with what is known"
            ),
            (None, true) => tracing::info!("heard again from the apiserver"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::test_support::Lines;

    #[test]
    fn silence_is_logged_once_and_its_end() {
        let lines = Lines::default();
        let _guard = lines.capture();
        let kinds = memgate_platforms::ark::FAMILY.kinds.watched;
        let stale = |count: usize| -> Vec<KindHeard> {
            let heard =
                Instant::now().checked_sub(Duration::from_secs(130)).expect("the machine runs for longer");
            kinds[..count].iter().map(|kind| KindHeard { kind, heard, why: Some("500".to_owned()) }).collect()
        };
        let mut silence = Silence::default();
        for count in [0, 1, 2, kinds.len(), 1, 0, 0] {
            silence.log(&stale(count));
        }
        let expected = [
            " WARN memgate_server::replica: nothing heard from the apiserver; going on with what is known \
             seconds=130 kind=\"Memory\" group=\"ark.mckinsey.com\" error=\"500\"",
            " INFO memgate_server::replica: heard again from the apiserver",
        ];
        assert_eq!(lines.take(), expected);
    }
}

//! Keeps the Secret, the leaf of this replica and both `caBundle`s as `plan` says.
//!
//! One round follows another: every two seconds, and at once when a configuration has changed. A
//! round first looks at what memory and the wall clock say, so a leaf is renewed also while the
//! apiserver cannot be reached, and right after a clock has jumped. What fails is told once, tried
//! again with growing pauses, and never ends the server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, sleep, timeout};

use crate::server::certs::plan::{Authorities, Change, Held, Settled, settle, signer};
use crate::server::certs::registration::{self, Live, Which};
use crate::server::certs::secret::{CaSecret, Written};
use crate::server::certs::troubles::Troubles;
use crate::server::certs::{Builtin, said};
use crate::server::clock::Clock;
use crate::server::metrics::{CertKind, Metrics};
use crate::server::options::Timers;
use crate::server::store::watch::spread;
use crate::server::tls::{Certificate, Pair};

/// How often a lost race for the Secret is run again within one round.
const ATTEMPTS: usize = 5;

/// The longest pause after a failure: a leaf that is due is renewed within a minute.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// The least time between two writes of one configuration.
const BETWEEN_WRITES: Duration = Duration::from_secs(1);

/// The longest that a replica waits before it repairs what another one may be repairing.
const POLITENESS: Duration = Duration::from_millis(400);

/// The least time between two rounds, however often a configuration changes.
const BREATH: Duration = Duration::from_millis(100);

/// The least and the most time between two CAs made by one replica, and between two that it writes over
/// one that is not valid by its clock, whatever clocks say.
const BETWEEN_CAS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// The steps that can fail, as the log names them.
const READ: &str = "read the CA Secret";
const WRITE: &str = "write the CA Secret";
const MAKE: &str = "make a CA";
const SIGN: &str = "sign a certificate";

/// What keeps certificates in order.
pub(in crate::server) struct Keeper {
    builtin: Builtin,
    client: Client,
    secret: CaSecret,
    clock: Clock,
    timers: Timers,
    metrics: Arc<Metrics>,
    certificate: Arc<Certificate>,
    live: Sender<Live>,
    known: Option<Authorities>,
    held: Option<Held>,
    /// When a CA was made last.
    made: Option<Instant>,
    /// When a CA was last written over one that is not valid by this replica's clock.
    contested: Option<Instant>,
    /// When each configuration was written last.
    written: [Option<Instant>; 2],
    /// Whether both configurations have been seen to trust the leaf.
    trusted: bool,
    troubles: Troubles,
}

/// What the next round waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Time, or a change.
    Regular,
    /// So much time, since something is left to be done.
    Soon(Duration),
    /// More and more time: something failed.
    Later,
}

impl Next {
    /// What to wait for after both; one that waits for less time goes first.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Soon(one), Self::Soon(other)) => Self::Soon(one.min(other)),
            (one, other) => one.max(other),
        }
    }
}

impl Keeper {
    /// A keeper for a server's certificate.
    pub(in crate::server) fn new(
        builtin: Builtin,
        client: Client,
        clock: Clock,
        timers: &Timers,
        metrics: Arc<Metrics>,
        certificate: Arc<Certificate>,
    ) -> Self {
        Self {
            secret: CaSecret::new(client.clone(), &builtin),
            builtin,
            client,
            clock,
            timers: timers.clone(),
            metrics,
            certificate,
            live: Sender::default(),
            known: None,
            held: None,
            made: None,
            contested: None,
            written: [None; 2],
            trusted: false,
            troubles: Troubles::default(),
        }
    }

    /// Does so; never ends.
    pub(in crate::server) async fn keep(self) {
        let follow = |which| {
            let (client, name) = (self.client.clone(), self.builtin.configuration.clone());
            registration::follow(client, which, name, self.live.clone(), self.timers.absent_kind)
        };
        let watches = futures::future::join(follow(Which::Mutating), follow(Which::Validating));
        tokio::join!(watches, self.rounds());
    }

    async fn rounds(mut self) {
        let mut changed = self.live.subscribe();
        let mut failures = 0;
        loop {
            changed.mark_unchanged();
            let next = Box::pin(self.round()).await;
            failures = if next == Next::Later { failures + 1 } else { 0 };
            self.rest(next, failures, &mut changed).await;
        }
    }

    async fn rest(&self, next: Next, failures: u32, changed: &mut Receiver<Live>) {
        match next {
            Next::Regular => {
                sleep(BREATH).await;
                let _either_way = timeout(spread(self.timers.ca_poll), changed.changed()).await;
            }
            Next::Soon(time) => sleep(time.min(self.timers.ca_poll)).await,
            Next::Later => {
                let pause = self.timers.ca_poll * 2_u32.saturating_pow(failures.saturating_sub(1).min(4));
                sleep(spread(pause.min(LONGEST_PAUSE))).await;
            }
        }
    }

    async fn round(&mut self) -> Next {
        self.renew();
        let settled = self.settle().await;
        self.renew();
        let next = self.repair().await;
        self.tell();
        if settled { next } else { Next::Later }
    }

    /// Signs a leaf when one is needed, from what is known already.
    fn renew(&mut self) {
        let live = self.live.borrow().clone();
        let Some(known) = &self.known else { return };
        if self.held.is_none() && !live.is_known() {
            return;
        }
        let (now, terms) = (self.clock.unix_now(), &self.builtin.terms);
        let trust = live.trust(Instant::now());
        let Some(ca) = signer(known, self.held.as_ref(), &trust, self.timers.propagation, now, terms) else {
            return;
        };
        let signed = ca.sign(&self.builtin.names, now, terms);
        let made = signed.map_err(crate::server::tls::Error::Make).and_then(|leaf| {
            let held = Held { signer: leaf.signer, not_before: leaf.not_before, not_after: leaf.not_after };
            Pair::new(leaf.chain, leaf.key).map(|pair| (held, pair))
        });
        self.metrics.rotated(CertKind::Leaf, made.is_ok());
        match made {
            Ok((held, pair)) => {
                tracing::info!(not_after = held.not_after, "a new certificate is in use");
                self.certificate.install(pair);
                self.held = Some(held);
                self.troubles.over(SIGN);
            }
            Err(error) => self.troubles.note(SIGN, error.to_string()),
        }
    }

    /// Makes the Secret say what it should; whether that is so now.
    async fn settle(&mut self) -> bool {
        for _ in 0..ATTEMPTS {
            let secret = match self.secret.get().await {
                Ok(secret) => secret,
                Err(error) => {
                    self.troubles.note(READ, said(&error));
                    return false;
                }
            };
            self.troubles.over(READ);
            let held = self.held.as_ref().map(|held| &held.signer);
            let (now, terms) = (self.clock.unix_now(), &self.builtin.terms);
            let data = secret.as_ref().map(|secret| secret.data.clone().unwrap_or_default());
            let settled = match settle(data.as_ref(), self.known.as_ref(), held, now, terms) {
                Ok(settled) => settled,
                Err(error) => {
                    self.troubles.note(MAKE, error.to_string());
                    return false;
                }
            };
            let Some(change) = settled.change else {
                self.known = Some(settled.authorities);
                return true;
            };
            let last = match change {
                _ if change.is_new_ca() => self.made,
                _ if change.is_contested() => self.contested,
                _ => None,
            };
            if last.is_some_and(|last| last.elapsed() < self.between_cas()) {
                return self.do_without(settled);
            }
            if let Some(done) = self.write(secret, settled, change).await {
                return done;
            }
            sleep(up_to(POLITENESS / 8)).await;
        }
        false
    }

    fn between_cas(&self) -> Duration {
        (self.builtin.terms.ca / 100).clamp(BETWEEN_CAS.0, BETWEEN_CAS.1)
    }

    /// Whether the Secret says so now; `None` when somebody else was faster.
    async fn write(&mut self, secret: Option<Secret>, settled: Settled, change: Change) -> Option<bool> {
        match self.secret.put(secret, &settled.authorities).await {
            Ok(Written::Done) => {
                self.troubles.over(WRITE);
                self.note_change(change);
                self.known = Some(settled.authorities);
                Some(true)
            }
            Ok(Written::Lost) => None,
            Err(error) => {
                self.troubles.note(WRITE, said(&error));
                if change.is_new_ca() {
                    self.metrics.rotated(CertKind::Ca, false);
                }
                Some(self.do_without(settled))
            }
        }
    }

    /// Goes on with what the Secret says, or with what is known and the bundle of both: replicas that
    /// do not agree on a CA still want callers to trust the same ones.
    fn do_without(&mut self, settled: Settled) -> bool {
        let is_new = settled.change.is_some_and(Change::is_new_ca);
        let usable = settled.unwritten.or_else(|| (!is_new).then_some(settled.authorities));
        if let Some(usable) = usable {
            self.known = Some(usable);
        }
        false
    }

    fn note_change(&mut self, change: Change) {
        match change {
            Change::Made(broken) => tracing::warn!(reason = %broken, "made a new CA"),
            Change::Rotated => tracing::info!("the CA was due; made a new one"),
            Change::Repaired(broken) => {
                tracing::warn!(reason = %broken, "wrote the CA into its Secret again");
            }
            Change::Completed => tracing::info!("completed the bundle in the CA Secret"),
        }
        if change.is_contested() {
            self.contested = Some(Instant::now());
        }
        if change.is_new_ca() {
            self.made = Some(Instant::now());
            self.metrics.rotated(CertKind::Ca, true);
        }
    }

    /// Makes both configurations trust the bundle.
    async fn repair(&mut self) -> Next {
        let live = self.live.borrow().clone();
        let Some(known) = &self.known else { return Next::Regular };
        let drifted = Which::ALL.into_iter().filter(|which| {
            live.of(*which).registration().is_some_and(|registration| !registration.says(&known.bundle))
        });
        let drifted: Vec<_> = drifted.collect();
        let Some(wait) = drifted.iter().map(|which| self.wait(*which)).min() else { return Next::Regular };
        if !wait.is_zero() {
            return Next::Soon(wait);
        }
        // Another replica may be faster, and it may know a newer bundle.
        sleep(up_to(POLITENESS)).await;
        self.settle().await;
        let mut next = Next::Regular;
        for which in drifted {
            let wait = self.wait(which);
            next = next.and(match wait.is_zero() {
                false => Next::Soon(wait),
                true if self.repair_one(which).await => Next::Regular,
                true => Next::Later,
            });
        }
        next
    }

    /// How long a configuration must not be written.
    fn wait(&self, which: Which) -> Duration {
        let written = self.written.get(which as usize).copied().flatten();
        written.map_or(Duration::ZERO, |written| BETWEEN_WRITES.saturating_sub(written.elapsed()))
    }

    async fn repair_one(&mut self, which: Which) -> bool {
        let step = match which {
            Which::Mutating => "write caBundle into the mutating webhook configuration",
            Which::Validating => "write caBundle into the validating webhook configuration",
        };
        let (Some(known), name) = (&self.known, &self.builtin.configuration) else { return false };
        let seen = match registration::look(self.client.clone(), which, name, &self.live).await {
            Ok(seen) => seen,
            Err(error) => {
                self.troubles.note(step, said(&error));
                return false;
            }
        };
        let Some(registration) = seen.registration().filter(|there| !there.says(&known.bundle)) else {
            return true;
        };
        if let Some(written) = self.written.get_mut(which as usize) {
            *written = Some(Instant::now());
        }
        let client = self.client.clone();
        let done = registration::write(client, which, name, registration, &known.bundle, &self.live).await;
        self.metrics.repaired(which, done.is_ok());
        match &done {
            Ok(()) => {
                tracing::warn!(configuration = which.name(), "wrote caBundle");
                self.troubles.over(step);
            }
            Err(error) => self.troubles.note(step, said(error)),
        }
        done.is_ok()
    }

    /// Tells others how things are.
    fn tell(&mut self) {
        if let Some(known) = &self.known {
            self.metrics.set_not_after(CertKind::Ca, known.newest.anchor.not_after);
        }
        let live = self.live.borrow();
        let trusts = self.held.as_ref().is_some_and(|held| live.trusts(&held.signer));
        // Of what may not be read the best is assumed, for as long as it may not be read.
        self.trusted |= trusts && !live.is_denied();
        self.certificate.set_trusted(self.trusted || trusts);
    }
}

/// A random part of a duration.
fn up_to(most: Duration) -> Duration {
    // What is spread is a fifth more or less.
    spread(most).saturating_sub(most * 4 / 5) * 5 / 2
}

#[cfg(test)]
mod tests;

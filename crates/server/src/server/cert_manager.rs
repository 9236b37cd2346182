//! Keeps memgate's own certificates up to date in a cluster, without a leader.
//!
//! ```text
//! Secret ◀──ca_secret──▶ plan (pure) ◀──webhook_config── live webhook configurations
//!                          │                 ▲
//!                          ▼                 │ caBundle, path
//!                  Ca: a leaf ─▶ tls     CertManager ─▶ review_paths
//! ```
//!
//! One Secret holds the CA, the one before it, the bundle of all that may have signed a leaf that is still in use,
//! and the tokens of the paths under which reviews are sent; each replica signs a leaf of its own and keeps it in memory. `plan` decides what must be written
//! and which CA signs, from values alone; [`CertManager`] carries it out. It reads no other Secret, and
//! creates no webhook configuration.
//!
//! It reconciles every two seconds, and at once when a configuration has changed. A round starts with what is
//! in memory and with the wall clock, so a leaf is renewed also while the apiserver cannot be reached, and
//! right after the clock has jumped. A step that fails is logged once, tried again with a growing backoff, and
//! never ends the server.

mod ca_secret;
mod failure_log;
mod path_tokens;
mod plan;
mod requested;
mod webhook_config;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, sleep, timeout};

use crate::server::cert_manager::ca_secret::{CaSecret, WriteOutcome};
use crate::server::cert_manager::failure_log::FailureLog;
use crate::server::cert_manager::path_tokens::PathToken;
use crate::server::cert_manager::plan::{
    CaState, CurrentLeaf, SecretChange, SecretPlan, choose_signer, due_at, plan_secret,
};
use crate::server::cert_manager::requested::{Situation, plan_request};
use crate::server::cert_manager::webhook_config::{Observed, Wanted};
use crate::server::certs::Builtin;
use crate::server::certs::kube_api::error_message;
use crate::server::certs::rotation::{Progress, REQUESTED, Rotation, RotationRequest};
use crate::server::clock::Clock;
use crate::server::jitter::{jitter, random_up_to};
use crate::server::metrics::Metrics;
use crate::server::metrics::labels::{CertKind, WebhookKind};
use crate::server::options::Timers;
use crate::server::review_paths::{Accepted, ReviewPaths};
use crate::server::tls::{self, CertKeyPair, ServingCert};

/// How often a conflicting write of the Secret is tried again within one round.
const MAX_SECRET_WRITES: usize = 5;

/// The longest pause after a failure: a leaf that is due is renewed within a minute.
const MAX_BACKOFF: Duration = Duration::from_secs(16);

/// The least time between two writes of one configuration.
const MIN_CONFIG_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// A replica waits a random time up to this before it repairs what another one may be repairing.
const REPAIR_JITTER: Duration = Duration::from_millis(400);

/// The least time between two rounds, however often a configuration changes.
const MIN_ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// The bounds of the least time between two CAs that one replica makes, and between two CAs that it writes over
/// one that is not valid by its clock. It is a hundredth of the life of a CA.
const MIN_CA_INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// After how long a revocation no longer waits until callers have trusted the new CA for long enough: another tool
/// may keep taking it away, and the old CA is promised to be gone within a minute.
const REVOKE_PATIENCE: Duration = Duration::from_secs(45);

/// The steps that can fail, as the log names them.
const READ_SECRET: &str = "read the CA Secret";
const WRITE_SECRET: &str = "write the CA Secret";
const MAKE_CA: &str = "make a CA";
const SIGN_LEAF: &str = "sign a certificate";
const READ_REQUEST: &str = "read the request for a new CA";

/// Keeps the Secret, the leaf of this replica and both `caBundle`s as `plan` wants them.
pub(super) struct CertManager {
    builtin: Builtin,
    client: Client,
    secret: CaSecret,
    clock: Clock,
    timers: Timers,
    metrics: Arc<Metrics>,
    serving_cert: Arc<ServingCert>,
    paths: Arc<ReviewPaths>,
    observed: Sender<Observed>,
    /// The contents of the Secret, as this replica last read or wrote them.
    ca_state: Option<CaState>,
    /// How far the last request for a new CA is, by the annotations of the Secret.
    rotation: Rotation,
    /// The request whose CA is not in use yet, and when this replica saw that.
    unfinished: Option<(RotationRequest, Instant)>,
    leaf: Option<CurrentLeaf>,
    /// Since when this replica has known each token.
    tokens_since: BTreeMap<PathToken, Instant>,
    /// When this replica last made a CA.
    last_new_ca: Option<Instant>,
    /// When it last wrote a CA over one that is not valid by its clock.
    last_contested: Option<Instant>,
    /// When it learned of the last revocation.
    last_revocation: Option<Instant>,
    /// When it last wrote each configuration.
    last_config_write: [Option<Instant>; 2],
    /// Whether both configurations have ever been seen to trust the leaf.
    trusted: bool,
    failures: FailureLog,
}

/// What the next round waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Requeue {
    /// A change, or the regular interval.
    OnChange,
    /// This time: something is left to be done.
    After(Duration),
    /// A growing pause: something failed.
    Backoff,
}

impl Requeue {
    /// What to wait for after two steps; of two times the shorter one.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::After(one), Self::After(other)) => Self::After(one.min(other)),
            (one, other) => one.max(other),
        }
    }
}

impl CertManager {
    /// A manager of the certificate that the server presents, and of the paths that it serves.
    pub(super) fn new(
        builtin: Builtin,
        client: Client,
        clock: Clock,
        timers: &Timers,
        metrics: Arc<Metrics>,
        serving_cert: Arc<ServingCert>,
        paths: Arc<ReviewPaths>,
    ) -> Self {
        Self {
            secret: CaSecret::new(client.clone(), &builtin),
            builtin,
            client,
            clock,
            timers: timers.clone(),
            metrics,
            serving_cert,
            paths,
            observed: Sender::default(),
            ca_state: None,
            rotation: Rotation::default(),
            unfinished: None,
            leaf: None,
            tokens_since: BTreeMap::new(),
            last_new_ca: None,
            last_contested: None,
            last_revocation: None,
            last_config_write: [None; 2],
            trusted: false,
            failures: FailureLog::default(),
        }
    }

    /// Reconciles again and again; never ends.
    pub(super) async fn run(self) {
        let follow = |kind| {
            let (client, name) = (self.client.clone(), self.builtin.configuration.clone());
            webhook_config::follow(client, kind, name, self.observed.clone(), self.timers.discovery_interval)
        };
        let watches = futures::future::join(follow(WebhookKind::Mutating), follow(WebhookKind::Validating));
        tokio::join!(watches, self.run_rounds());
    }

    async fn run_rounds(mut self) {
        let mut changed = self.observed.subscribe();
        let mut failures = 0;
        loop {
            changed.mark_unchanged();
            let next = Box::pin(self.reconcile()).await;
            failures = if next == Requeue::Backoff { failures + 1 } else { 0 };
            self.wait(next, failures, &mut changed).await;
        }
    }

    async fn wait(&self, next: Requeue, failures: u32, changed: &mut Receiver<Observed>) {
        match next {
            Requeue::OnChange => {
                // A configuration that changes all the time must not keep this loop busy.
                sleep(MIN_ROUND_INTERVAL).await;
                let _either_way = timeout(jitter(self.timers.ca_poll), changed.changed()).await;
            }
            Requeue::After(time) => sleep(time.min(self.timers.ca_poll)).await,
            Requeue::Backoff => {
                let pause = self.timers.ca_poll * 2_u32.saturating_pow(failures.saturating_sub(1).min(4));
                sleep(jitter(pause.min(MAX_BACKOFF))).await;
            }
        }
    }

    async fn reconcile(&mut self) -> Requeue {
        self.renew_leaf();
        let done = self.reconcile_secret().await;
        // The Secret may hold another CA now, and other tokens.
        self.renew_leaf();
        self.publish_paths();
        let next = self.reconcile_configs().await;
        self.publish_status();
        if done { next } else { Requeue::Backoff }
    }

    /// Signs a leaf when one is due, without asking the apiserver.
    fn renew_leaf(&mut self) {
        let observed = self.observed.borrow().clone();
        let Some(ca_state) = &self.ca_state else { return };
        // The first leaf waits until it is known which CA callers trust.
        if self.leaf.is_none() && !observed.is_known() {
            return;
        }
        let (now, policy) = (self.clock.unix_now(), &self.builtin.policy);
        let trusted = observed.trusted_cas(Instant::now());
        let propagation = self.timers.propagation;
        let Some(ca) = choose_signer(ca_state, self.leaf.as_ref(), &trusted, propagation, now, policy) else {
            return;
        };
        let signed = ca.sign(&self.builtin.names, now, policy);
        let signed = signed.map_err(tls::Error::Make).and_then(|leaf| {
            let current =
                CurrentLeaf { signer: leaf.signer, not_before: leaf.not_before, not_after: leaf.not_after };
            CertKeyPair::new(leaf.chain, leaf.key).map(|pair| (current, pair))
        });
        self.metrics.count_cert_rotation(CertKind::Leaf, signed.is_ok());
        match signed {
            Ok((leaf, pair)) => {
                tracing::info!(not_after = leaf.not_after, "a new certificate is in use");
                self.serving_cert.install(pair);
                self.leaf = Some(leaf);
                self.failures.succeeded(SIGN_LEAF);
            }
            Err(error) => self.failures.failed(SIGN_LEAF, error.to_string()),
        }
    }

    /// Makes the Secret hold what it should; whether it does now.
    async fn reconcile_secret(&mut self) -> bool {
        for _ in 0..MAX_SECRET_WRITES {
            let secret = match self.secret.get().await {
                Ok(secret) => secret,
                Err(error) => {
                    self.failures.failed(READ_SECRET, error_message(&error));
                    return false;
                }
            };
            self.failures.succeeded(READ_SECRET);
            let leaf_signer = self.leaf.as_ref().map(|leaf| &leaf.signer);
            let (now, policy) = (self.clock.unix_now(), &self.builtin.policy);
            let data = secret.as_ref().map(|secret| secret.data.clone().unwrap_or_default());
            let plan = match plan_secret(data.as_ref(), self.ca_state.as_ref(), leaf_signer, now, policy) {
                Ok(plan) => plan,
                Err(error) => {
                    self.failures.failed(MAKE_CA, error.to_string());
                    return false;
                }
            };
            self.read_request(secret.as_ref());
            let Some(change) = plan.change else {
                match self.carry_out_request(secret, plan.state).await {
                    Some(done) => return done,
                    None => continue,
                }
            };
            // Replicas whose clocks differ, or a Secret that another tool keeps emptying, must not cause a new
            // CA in every round.
            let last = match change {
                _ if change.is_new_ca() => self.last_new_ca,
                _ if change.is_contested() => self.last_contested,
                _ => None,
            };
            if last.is_some_and(|last| last.elapsed() < self.min_ca_interval()) {
                return self.use_fallback(plan);
            }
            let rotation = self.rotation.clone();
            if let Some(done) = self.write_secret(secret, plan, change, rotation).await {
                return done;
            }
        }
        false
    }

    /// Reads how far a request for a new CA is. Where the Secret is gone, memory counts.
    fn read_request(&mut self, secret: Option<&Secret>) {
        if let Some(secret) = secret {
            let annotations = secret.metadata.annotations.as_ref();
            self.rotation = Rotation::read(annotations);
            let unread = self.rotation.requested.is_none()
                && annotations.is_some_and(|annotations| annotations.contains_key(REQUESTED));
            if unread {
                self.failures.failed(READ_REQUEST, format!("{REQUESTED} is not a time"));
            } else {
                self.failures.succeeded(READ_REQUEST);
            }
        }
        self.unfinished = match self.rotation.progress() {
            Progress::Made(made) => {
                let same = self.unfinished.take().filter(|(request, _)| *request == made.request);
                same.or_else(|| Some((made.request.clone(), Instant::now())))
            }
            Progress::Idle | Progress::Requested(_) | Progress::Done(_) => None,
        };
    }

    /// Takes the next step of a request for a new CA, of a Secret that is in order; whether it holds then what it
    /// should. `None` when another client was faster.
    async fn carry_out_request(&mut self, secret: Option<Secret>, state: CaState) -> Option<bool> {
        let observed = self.observed.borrow().clone();
        let trusted = observed.trusted_cas(Instant::now());
        let newest_token = state.tokens.iter().next();
        let situation = Situation {
            leaf_signer: self.leaf.as_ref().map(|leaf| &leaf.signer),
            trusted: &trusted,
            settled_after: self.timers.propagation * 2,
            names_newest_token: newest_token.is_some_and(|token| observed.names_everywhere(token)),
            is_overdue: self.unfinished.as_ref().is_some_and(|(_, since)| since.elapsed() >= REVOKE_PATIENCE),
        };
        let (now, policy) = (self.clock.unix_now(), &self.builtin.policy);
        let planned = plan_request(&state, &self.rotation, situation, now, policy);
        match planned {
            Ok(None) => {
                self.learn(state);
                Some(true)
            }
            Ok(Some(next)) => {
                let change = Some(next.change);
                let plan = SecretPlan { state: next.state, change, fallback: Some(state) };
                self.write_secret(secret, plan, next.change, next.rotation).await
            }
            Err(error) => {
                self.failures.failed(MAKE_CA, error.to_string());
                Some(false)
            }
        }
    }

    fn min_ca_interval(&self) -> Duration {
        (self.builtin.policy.ca / 100).clamp(MIN_CA_INTERVAL.0, MIN_CA_INTERVAL.1)
    }

    /// Writes the Secret; whether it holds the plan now. `None` when another client was faster.
    async fn write_secret(
        &mut self,
        secret: Option<Secret>,
        plan: SecretPlan,
        change: SecretChange,
        rotation: Rotation,
    ) -> Option<bool> {
        match self.secret.write(secret, &plan.state, &rotation).await {
            Ok(WriteOutcome::Written) => {
                self.failures.succeeded(WRITE_SECRET);
                self.record_change(change);
                self.learn(plan.state);
                self.rotation = rotation;
                Some(true)
            }
            Ok(WriteOutcome::Conflict) => {
                // Another replica was faster: what it wrote most likely is what this one wanted.
                sleep(random_up_to(REPAIR_JITTER / 8)).await;
                None
            }
            Err(error) => {
                self.failures.failed(WRITE_SECRET, error_message(&error));
                if change.is_new_ca() {
                    self.metrics.count_cert_rotation(CertKind::Ca, false);
                }
                Some(self.use_fallback(plan))
            }
        }
    }

    /// Uses the Secret without the change that could not be written. If its CA cannot be used, uses the plan,
    /// unless that has a new CA: no other replica would know it.
    fn use_fallback(&mut self, plan: SecretPlan) -> bool {
        let is_new = plan.change.is_some_and(SecretChange::is_new_ca);
        let usable = plan.fallback.or_else(|| (!is_new).then_some(plan.state));
        if let Some(usable) = usable {
            self.learn(usable);
        }
        false
    }

    /// Remembers what the Secret holds.
    fn learn(&mut self, state: CaState) {
        if self.ca_state.as_ref().is_some_and(|before| before.revoked != state.revoked) {
            self.last_revocation = Some(Instant::now());
        }
        self.ca_state = Some(state);
    }

    /// Logs and counts a change of the Secret, and remembers when it was.
    fn record_change(&mut self, change: SecretChange) {
        match change {
            SecretChange::Made(error) => tracing::warn!(reason = %error, "made a new CA"),
            SecretChange::Rotated => tracing::info!("the CA was due; made a new one"),
            SecretChange::Requested => tracing::info!("a new CA was asked for; made one"),
            SecretChange::Revoked => {
                tracing::warn!(
                    "revoked every CA but the newest, and every path but the newest, as was asked for"
                );
            }
            SecretChange::InUse => tracing::info!("the CA that was asked for is in use"),
            SecretChange::Repaired(error) => {
                tracing::warn!(reason = %error, "wrote the CA into its Secret again");
            }
            SecretChange::Completed => tracing::info!("completed the bundle in the CA Secret"),
            SecretChange::PathToken => tracing::info!("wrote the tokens of the paths into the CA Secret"),
        }
        if change.is_contested() {
            self.last_contested = Some(Instant::now());
        }
        if change.is_new_ca() {
            self.last_new_ca = Some(Instant::now());
            self.metrics.count_cert_rotation(CertKind::Ca, true);
        }
    }

    /// Writes bundle and path into the configurations that do not have them.
    async fn reconcile_configs(&mut self) -> Requeue {
        let observed = self.observed.borrow().clone();
        let Some(wanted) = self.wanted() else { return Requeue::OnChange };
        let drifted = WebhookKind::ALL
            .into_iter()
            .filter(|kind| observed.of(*kind).config().is_some_and(|config| !config.is_as(&wanted, *kind)));
        let drifted: Vec<_> = drifted.collect();
        let Some(wait) = drifted.iter().map(|kind| self.write_delay(*kind)).min() else {
            return Requeue::OnChange;
        };
        if !wait.is_zero() {
            return Requeue::After(wait);
        }
        // Another replica may be faster, or have written a newer bundle into the Secret.
        sleep(random_up_to(REPAIR_JITTER)).await;
        self.reconcile_secret().await;
        let mut next = Requeue::OnChange;
        for kind in drifted {
            let wait = self.write_delay(kind);
            next = next.and(match wait.is_zero() {
                false => Requeue::After(wait),
                true if self.write_config(kind).await => Requeue::OnChange,
                true => Requeue::Backoff,
            });
        }
        next
    }

    /// How long to wait before a configuration may be written again.
    fn write_delay(&self, kind: WebhookKind) -> Duration {
        let last_write = self.last_config_write.get(kind as usize).copied().flatten();
        // Time for other replicas to read of a revocation, and to change a leaf that callers are about to refuse.
        let head_start = self.timers.ca_poll * 2;
        let waits = [(last_write, MIN_CONFIG_WRITE_INTERVAL), (self.last_revocation, head_start)];
        let left = waits.into_iter().filter_map(|(last, wait)| Some(wait.saturating_sub(last?.elapsed())));
        left.max().unwrap_or_default()
    }

    /// Writes bundle and path into one configuration, as it is now; whether it has them then.
    async fn write_config(&mut self, kind: WebhookKind) -> bool {
        let step = match kind {
            WebhookKind::Mutating => "write caBundle and path into the mutating webhook configuration",
            WebhookKind::Validating => "write caBundle and path into the validating webhook configuration",
        };
        let name = &self.builtin.configuration;
        let status = match webhook_config::observe(self.client.clone(), kind, name, &self.observed).await {
            Ok(status) => status,
            Err(error) => {
                self.failures.failed(step, error_message(&error));
                return false;
            }
        };
        let Some(wanted) = self.wanted() else { return false };
        let Some(config) = status.config().filter(|config| !config.is_as(&wanted, kind)) else {
            return true;
        };
        let client = self.client.clone();
        let done = webhook_config::write(client, kind, name, config, &wanted, &self.observed).await;
        if let Some(last) = self.last_config_write.get_mut(kind as usize) {
            *last = Some(Instant::now());
        }
        self.metrics.count_cabundle_write(kind, done.is_ok());
        match &done {
            Ok(()) => {
                tracing::warn!(configuration = kind.name(), "wrote caBundle and path");
                self.failures.succeeded(step);
            }
            Err(error) => self.failures.failed(step, error_message(error)),
        }
        done.is_ok()
    }

    /// What every entry of the configurations should have; `None` before the Secret was read.
    fn wanted(&self) -> Option<Wanted<'_>> {
        let CaState { bundle, tokens, .. } = self.ca_state.as_ref()?;
        let stands = |token: &PathToken| {
            self.tokens_since.get(token).is_some_and(|since| since.elapsed() >= self.timers.propagation)
        };
        Some(Wanted { bundle, tokens, standing: tokens.iter().position(stands) })
    }

    /// Serves the paths of the two newest tokens, and of those that a configuration names and the Secret holds.
    fn publish_paths(&mut self) {
        let Some(CaState { tokens, .. }) = &self.ca_state else { return };
        let now = Instant::now();
        self.tokens_since.retain(|token, _| tokens.position(token).is_some());
        for token in tokens.iter() {
            self.tokens_since.entry(token.clone()).or_insert(now);
        }
        let observed = self.observed.borrow();
        let named = observed.named_tokens();
        let is_accepted = |(position, token): &(usize, &PathToken)| *position < 2 || named.contains(token);
        let accepted = tokens.iter().enumerate().filter(is_accepted);
        self.paths.accept(Accepted {
            tokens: accepted.map(|(_, token)| token.as_str().to_owned()).collect(),
            plain: observed.calls_a_url(),
        });
    }

    /// Updates the metrics, and whether the server is ready.
    fn publish_status(&mut self) {
        self.publish_paths();
        if let Some(ca_state) = &self.ca_state {
            let (ca, policy) = (&ca_state.newest.cert, &self.builtin.policy);
            self.metrics.set_validity(CertKind::Ca, (ca.not_before, ca.not_after));
            self.metrics.set_renewal(CertKind::Ca, due_at(ca.not_before, ca.not_after, policy));
        }
        let observed = self.observed.borrow();
        let trusts = self.leaf.as_ref().is_some_and(|leaf| observed.trusts(&leaf.signer));
        // Trust that was seen once is kept: all replicas share the configurations, so being unready for their
        // sake would take all replicas away. If a configuration may not be read trust is assumed, but only for
        // as long as that lasts.
        self.trusted |= trusts && !observed.is_forbidden();
        self.serving_cert.set_trusted(self.trusted || trusts);
    }
}

#[cfg(test)]
mod tests;

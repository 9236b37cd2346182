//! Keeps memgate's own certificates up to date in a cluster, without a leader.
//!
//! ```text
//! Secret ◀──ca_secret──▶ secret_plan (pure) ◀──webhook_config── live webhook configurations
//!                             │                     ▲
//!                             ▼                     │ caBundle, path
//!                     Ca: a leaf ─▶ tls         CertManager ─▶ review_paths
//! ```
//!
//! One Secret holds the CA, the previous CA, the bundle of all CAs that may have signed a leaf that is still in use, and
//! the tokens at the end of the review paths. Each replica signs a leaf of its own and keeps it in memory. `secret_plan`
//! decides what must be written and which CA signs, `request_plan` the next step of a request for a new CA; both are
//! pure. [`CertManager`] carries the plans out. It reads no other Secret, and creates no webhook configuration.
//!
//! It reconciles every two seconds, and at once when a configuration has changed. A round starts from memory and from
//! the wall clock, so a leaf is renewed also while the apiserver cannot be reached, and right after the clock has
//! jumped. A failed step is logged once, tried again with a growing backoff, and never ends the server.

mod ca_secret;
mod failure_log;
mod path_tokens;
mod request_plan;
mod secret_plan;
mod webhook_config;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, sleep, timeout};

use crate::Builtin;
use crate::ca::CurrentLeaf;
use crate::clock::{Clock, date};
use crate::kube_api::{jitter, random_up_to};
use crate::library_error::explained;
use crate::manager::ca_secret::CaSecret;
use crate::manager::failure_log::FailureLog;
use crate::manager::path_tokens::PathToken;
use crate::manager::request_plan::{Situation, plan_request};
use crate::manager::secret_plan::{CaState, SecretPlan, WriteReason, choose_signer, due_at, plan_secret};
use crate::manager::webhook_config::{DesiredEntry, LiveConfig, Observed};
use crate::metrics::{CertKind, CertMetrics};
use crate::review_paths::{Accepted, ReviewPaths};
use crate::rotation::{Progress, REQUESTED, Rotation, RotationRequest};
use crate::tls::{self, CertKeyPair, ServingCert};
use memgate_primitives::review_path::{Phase, config_name};

/// How often a conflicting write of the Secret is tried within one round.
const MAX_SECRET_WRITES: usize = 5;

/// The longest pause after a failure: a leaf that is due is renewed within a minute.
const MAX_BACKOFF: Duration = Duration::from_secs(16);

/// The least time between two rounds in which configurations are written.
const MIN_CONFIG_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// A replica waits a random time up to this before it repairs what another one may be repairing.
const REPAIR_JITTER: Duration = Duration::from_millis(400);

/// The least time between two rounds, however often a configuration changes.
const MIN_ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// The bounds of the least time between two CAs that one replica makes, and between two writes of a CA over one that is
/// not valid by its clock. The time is a hundredth of a CA's validity.
const MIN_CA_INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// How long a revocation waits at most until callers have trusted the new CA for long enough. Another tool may keep
/// removing the new CA, and the old CA must be revoked within a minute.
const REVOKE_PATIENCE: Duration = Duration::from_secs(45);

/// The steps that can fail, as the log names them.
const READ_SECRET: &str = "read the CA Secret";
const WRITE_SECRET: &str = "write the CA Secret";
const MAKE_CA: &str = "make a CA";
const SIGN_LEAF: &str = "sign a certificate";
const READ_REQUEST: &str = "read the request for a new CA";

/// Keeps the Secret, the leaf of this replica and both webhook configurations as planned.
pub struct CertManager {
    builtin: Builtin,
    secret: CaSecret,
    configs: [LiveConfig; 2],
    clock: Clock,
    timers: ManagerTimers,
    metrics: Arc<CertMetrics>,
    serving_cert: Arc<ServingCert>,
    paths: Arc<ReviewPaths>,
    observed: Sender<Observed>,
    /// The contents of the Secret, as this replica last read or wrote them.
    ca_state: Option<CaState>,
    /// The progress of the last request for a new CA, from the annotations of the Secret.
    rotation: Rotation,
    /// The request whose CA is not in use yet, and when this replica first saw it.
    unfinished: Option<(RotationRequest, Instant)>,
    leaf: Option<CurrentLeaf>,
    /// When this replica first saw each token.
    tokens_since: BTreeMap<PathToken, Instant>,
    /// When this replica last made a CA, or wrote one over a CA that is not valid by its clock.
    last_ca: Option<Instant>,
    /// When this replica learned of the last revocation.
    last_revocation: Option<Instant>,
    /// When this replica last wrote configurations.
    last_config_write: Option<Instant>,
    /// Whether this replica has ever seen both configurations trust its leaf.
    trusted: bool,
    failures: FailureLog,
}

/// How often the manager acts, and how long it waits.
#[derive(Debug, Clone)]
pub struct ManagerTimers {
    /// After which time a watch of a configuration that ended begins again.
    pub watch_pause: Duration,
    /// How often the Secret of the CA and the dates of certificates are checked.
    pub poll: Duration,
    /// How long webhook configurations must have trusted a CA before it signs: the time in which every apiserver learns
    /// of a change.
    pub propagation: Duration,
}

/// When the next round starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requeue {
    /// After a change, or after the regular interval.
    OnChange,
    /// After this time, to do the rest of the work.
    After(Duration),
    /// After a growing pause, since a step failed.
    Backoff,
}

impl CertManager {
    /// A manager of the certificate that the server presents, and of the paths that it serves.
    pub fn new(
        builtin: Builtin,
        client: Client,
        clock: Clock,
        timers: ManagerTimers,
        metrics: Arc<CertMetrics>,
        serving_cert: Arc<ServingCert>,
        paths: Arc<ReviewPaths>,
    ) -> Self {
        let observed = Sender::default();
        let config = |call| LiveConfig::new(client.clone(), call, &builtin.configuration, &observed);
        Self {
            configs: Phase::ALL.map(config),
            secret: CaSecret::new(client, &builtin),
            builtin,
            clock,
            timers,
            metrics,
            serving_cert,
            paths,
            observed,
            ca_state: None,
            rotation: Rotation::default(),
            unfinished: None,
            leaf: None,
            tokens_since: BTreeMap::new(),
            last_ca: None,
            last_revocation: None,
            last_config_write: None,
            trusted: false,
            failures: FailureLog::default(),
        }
    }

    /// Reconciles again and again; never ends.
    pub async fn run(self) {
        let follow = |config: LiveConfig| config.follow(self.timers.watch_pause);
        let watches = join_all(self.configs.clone().map(follow));
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
                let _either_way = timeout(jitter(self.timers.poll), changed.changed()).await;
            }
            Requeue::After(time) => sleep(time.min(self.timers.poll)).await,
            Requeue::Backoff => {
                let pause = self.timers.poll * 2_u32.saturating_pow(failures.saturating_sub(1).min(4));
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

    /// Signs a leaf when one is due, without a request to the apiserver.
    fn renew_leaf(&mut self) {
        let observed = self.observed.borrow().clone();
        let Some(ca_state) = &self.ca_state else { return };
        // Before the first leaf, the CA that callers trust must be known.
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
        let signed = signed
            .map_err(tls::Error::Make)
            .and_then(|leaf| CertKeyPair::new(leaf.chain, leaf.key).map(|pair| (leaf.current, pair)));
        self.metrics.count_rotation(CertKind::Leaf, signed.is_ok());
        match signed {
            Ok((leaf, pair)) => {
                tracing::info!(not_after = date(leaf.not_after), "a new certificate is in use");
                self.serving_cert.install(pair);
                self.leaf = Some(leaf);
                self.failures.succeeded(SIGN_LEAF);
            }
            Err(error) => self.failures.failed(SIGN_LEAF, error.to_string()),
        }
    }

    /// Makes the Secret hold the planned state. Returns whether it holds that now.
    async fn reconcile_secret(&mut self) -> bool {
        for _ in 0..MAX_SECRET_WRITES {
            let secret = match self.secret.get().await {
                Ok(secret) => secret,
                Err(error) => {
                    self.failures.failed(READ_SECRET, explained(&error));
                    return false;
                }
            };
            self.failures.succeeded(READ_SECRET);
            let plan = match self.plan_secret(secret.as_ref()) {
                Ok(plan) => plan,
                Err(error) => {
                    self.failures.failed(MAKE_CA, error.to_string());
                    return false;
                }
            };
            self.read_request(secret.as_ref());
            let done = match plan.reason {
                None => self.carry_out_request(secret, plan.state).await,
                Some(reason) if self.is_too_soon(reason) => return self.use_fallback(plan),
                Some(reason) => self.write_secret(secret, plan, reason, self.rotation.clone()).await,
            };
            if let Some(done) = done {
                return done;
            }
        }
        false
    }

    fn plan_secret(&self, secret: Option<&Secret>) -> Result<SecretPlan, rcgen::Error> {
        let leaf_signer = self.leaf.as_ref().map(|leaf| &leaf.signer);
        let (now, policy) = (self.clock.unix_now(), &self.builtin.policy);
        let data = secret.map(|secret| secret.data.clone().unwrap_or_default());
        plan_secret(data.as_ref(), self.ca_state.as_ref(), leaf_signer, now, policy)
    }

    /// Whether the last write of this kind was too recent: replicas whose clocks differ, or a Secret that another tool
    /// keeps emptying, must not cause a new CA in every round.
    fn is_too_soon(&self, reason: WriteReason) -> bool {
        let last = self.last_ca.filter(|_| reason.is_new_ca() || reason.is_contested());
        let min_interval = (self.builtin.policy.ca / 100).clamp(MIN_CA_INTERVAL.0, MIN_CA_INTERVAL.1);
        last.is_some_and(|last| last.elapsed() < min_interval)
    }

    /// Reads the progress of a request for a new CA. If the Secret was deleted, memory counts.
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

    /// Takes the next step of a request for a new CA, in a Secret that is as planned. Returns whether the Secret holds the
    /// result; `None` when another client was faster.
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
                let reason = Some(next.reason);
                let plan = SecretPlan { state: next.state, reason, fallback: Some(state) };
                self.write_secret(secret, plan, next.reason, next.rotation).await
            }
            Err(error) => {
                self.failures.failed(MAKE_CA, error.to_string());
                Some(false)
            }
        }
    }

    /// Writes the Secret. Returns whether it holds the plan now; `None` when another client was faster.
    async fn write_secret(
        &mut self,
        secret: Option<Secret>,
        plan: SecretPlan,
        reason: WriteReason,
        rotation: Rotation,
    ) -> Option<bool> {
        match self.secret.write(secret, &plan.state, &rotation).await {
            Ok(true) => {
                self.failures.succeeded(WRITE_SECRET);
                self.record_write(reason);
                self.learn(plan.state);
                self.rotation = rotation;
                Some(true)
            }
            Ok(false) => {
                // Another replica was faster, and has most likely written the same.
                sleep(random_up_to(REPAIR_JITTER / 8)).await;
                None
            }
            Err(error) => {
                self.failures.failed(WRITE_SECRET, explained(&error));
                if reason.is_new_ca() {
                    self.metrics.count_rotation(CertKind::Ca, false);
                }
                Some(self.use_fallback(plan))
            }
        }
    }

    /// Uses the stored state when the plan could not be written. If the stored CA cannot be used, uses the plan, unless it
    /// has a new CA: no other replica would know it. Returns `false`: the Secret does not hold the plan.
    fn use_fallback(&mut self, plan: SecretPlan) -> bool {
        let is_new = plan.reason.is_some_and(WriteReason::is_new_ca);
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

    /// Logs and counts a write of the Secret, and remembers its time.
    fn record_write(&mut self, reason: WriteReason) {
        if reason.is_unexpected() {
            tracing::warn!(wrote = %reason, "wrote to the CA Secret");
        } else {
            tracing::info!(wrote = %reason, "wrote to the CA Secret");
        }
        if reason.is_new_ca() || reason.is_contested() {
            self.last_ca = Some(Instant::now());
        }
        if reason.is_new_ca() {
            self.metrics.count_rotation(CertKind::Ca, true);
        }
    }

    /// Writes bundle and path into the configurations whose entries differ.
    async fn reconcile_configs(&mut self) -> Requeue {
        let observed = self.observed.borrow().clone();
        let Some(desired) = self.desired_entry() else { return Requeue::OnChange };
        let is_drifted = |config: &&LiveConfig| {
            observed.of(config.kind).config().is_some_and(|found| !found.is_as(&desired, config.kind))
        };
        let drifted: Vec<_> = self.configs.iter().filter(is_drifted).cloned().collect();
        if drifted.is_empty() {
            return Requeue::OnChange;
        }
        if let Some(wait) = self.write_delay() {
            return Requeue::After(wait);
        }
        // Another replica may have repaired them meanwhile, or have written a newer bundle into the Secret.
        sleep(random_up_to(REPAIR_JITTER)).await;
        self.reconcile_secret().await;
        if let Some(wait) = self.write_delay() {
            return Requeue::After(wait);
        }
        let mut next = Requeue::OnChange;
        for config in &drifted {
            if !self.write_config(config).await {
                next = Requeue::Backoff;
            }
        }
        self.last_config_write = Some(Instant::now());
        next
    }

    /// How long to wait before configurations may be written again.
    fn write_delay(&self) -> Option<Duration> {
        // Other replicas need time to read of a revocation and to replace a leaf that callers will refuse.
        let head_start = self.timers.poll * 2;
        let waits = [(self.last_config_write, MIN_CONFIG_WRITE_INTERVAL), (self.last_revocation, head_start)];
        let left = waits.into_iter().filter_map(|(last, wait)| Some(wait.saturating_sub(last?.elapsed())));
        left.max().filter(|left| !left.is_zero())
    }

    /// Reads one configuration, and writes bundle and path into it. Returns whether it has them now.
    async fn write_config(&mut self, live: &LiveConfig) -> bool {
        let step =
            format!("write caBundle and path into the {} webhook configuration", config_name(live.kind));
        let status = match live.observe().await {
            Ok(status) => status,
            Err(error) => {
                self.failures.failed(&step, explained(&error));
                return false;
            }
        };
        let Some(desired) = self.desired_entry() else { return false };
        let Some(config) = status.config().filter(|config| !config.is_as(&desired, live.kind)) else {
            return true;
        };
        let done = live.write(config, &desired).await;
        self.metrics.count_cabundle_write(live.kind, done.is_ok());
        match &done {
            Ok(()) => {
                tracing::info!(configuration = config_name(live.kind), "wrote caBundle and path");
                self.failures.succeeded(&step);
            }
            Err(error) => self.failures.failed(&step, explained(error)),
        }
        done.is_ok()
    }

    /// The bundle and the tokens that every entry should have; `None` before the Secret was read.
    fn desired_entry(&self) -> Option<DesiredEntry<'_>> {
        let CaState { bundle, tokens, .. } = self.ca_state.as_ref()?;
        let is_propagated = |token: &PathToken| {
            self.tokens_since.get(token).is_some_and(|since| since.elapsed() >= self.timers.propagation)
        };
        Some(DesiredEntry { bundle, tokens, propagated: tokens.iter().position(is_propagated) })
    }

    /// Serves the paths of the two newest tokens, and of tokens of the Secret that a configuration names.
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
        // Once seen, trust counts for good: all replicas share the configurations, so if lost trust made a replica
        // unready, none would be left. If a configuration may not be read, trust is assumed for as long as that lasts.
        self.trusted |= trusts && !observed.is_forbidden();
        self.serving_cert.set_trusted(self.trusted || trusts);
    }
}

#[cfg(test)]
mod tests;

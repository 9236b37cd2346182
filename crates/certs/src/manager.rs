//! Keeps memgate's own certificates up to date in a cluster, without a leader.
//!
//! ```text
//! Secret ◀──ca_secret──▶ secret_plan (pure) ◀──webhook_config── live webhook configurations
//!                             │                     ▲
//!                             ▼                     │ caBundle
//!                     Ca: a leaf ─▶ tls         CertManager
//! ```
//!
//! One Secret holds the CA, the previous CA, and the bundle of all CAs that may have signed a leaf that is still in use.
//! Each replica signs a leaf of its own and keeps it in memory. `secret_plan` decides what must be written and which CA
//! signs; it is pure. [`CertManager`] carries the plans out. It reads no other Secret, and creates no webhook
//! configuration.
//!
//! It reconciles every two seconds, and at once when a configuration has changed. A round starts from memory and from
//! the wall clock, so a leaf is renewed also while the apiserver cannot be reached, and right after the clock has
//! jumped. A failed step is logged once, tried again with a growing backoff, and never ends the server.

mod ca_secret;
mod failure_log;
mod secret_plan;
mod webhook_config;

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
use crate::manager::secret_plan::{CaState, SecretPlan, WriteReason, choose_signer, due_at, plan_secret};
use crate::manager::webhook_config::{LiveConfig, Observed};
use crate::metrics::{CertKind, CertMetrics};
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

/// The steps that can fail, as the log names them.
const READ_SECRET: &str = "read the CA Secret";
const WRITE_SECRET: &str = "write the CA Secret";
const MAKE_CA: &str = "make a CA";
const SIGN_LEAF: &str = "sign a certificate";

/// Keeps the Secret, the leaf of this replica and both webhook configurations as planned.
pub struct CertManager {
    builtin: Builtin,
    secret: CaSecret,
    configs: [LiveConfig; 2],
    clock: Clock,
    timers: ManagerTimers,
    metrics: Arc<CertMetrics>,
    serving_cert: Arc<ServingCert>,
    observed: Sender<Observed>,
    /// The contents of the Secret, as this replica last read or wrote them.
    ca_state: Option<CaState>,
    leaf: Option<CurrentLeaf>,
    /// When this replica last made a CA, or wrote one over a CA that is not valid by its clock.
    last_ca: Option<Instant>,
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
    /// A manager of the certificate that the server presents.
    pub fn new(
        builtin: Builtin,
        client: Client,
        clock: Clock,
        timers: ManagerTimers,
        metrics: Arc<CertMetrics>,
        serving_cert: Arc<ServingCert>,
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
            observed,
            ca_state: None,
            leaf: None,
            last_ca: None,
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
        // The Secret may hold another CA now.
        self.renew_leaf();
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
            let done = match plan.reason {
                None => {
                    self.ca_state = Some(plan.state);
                    Some(true)
                }
                Some(reason) if self.is_too_soon(reason) => return self.use_fallback(plan),
                Some(reason) => self.write_secret(secret, plan, reason).await,
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

    /// Writes the Secret. Returns whether it holds the plan now; `None` when another client was faster.
    async fn write_secret(
        &mut self,
        secret: Option<Secret>,
        plan: SecretPlan,
        reason: WriteReason,
    ) -> Option<bool> {
        match self.secret.write(secret, &plan.state).await {
            Ok(true) => {
                self.failures.succeeded(WRITE_SECRET);
                self.record_write(reason);
                self.ca_state = Some(plan.state);
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
        if usable.is_some() {
            self.ca_state = usable;
        }
        false
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

    /// Writes the bundle into the configurations whose entries differ.
    async fn reconcile_configs(&mut self) -> Requeue {
        let observed = self.observed.borrow().clone();
        let Some(ca_state) = &self.ca_state else { return Requeue::OnChange };
        let is_drifted = |config: &&LiveConfig| {
            observed.of(config.kind).config().is_some_and(|found| !found.has_bundle(&ca_state.bundle))
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
        let left = MIN_CONFIG_WRITE_INTERVAL.saturating_sub(self.last_config_write?.elapsed());
        Some(left).filter(|left| !left.is_zero())
    }

    /// Reads one configuration, and writes the bundle into it. Returns whether it has it now.
    async fn write_config(&mut self, live: &LiveConfig) -> bool {
        let step = format!("write caBundle into the {} webhook configuration", config_name(live.kind));
        let status = match live.observe().await {
            Ok(status) => status,
            Err(error) => {
                self.failures.failed(&step, explained(&error));
                return false;
            }
        };
        let Some(CaState { bundle, .. }) = &self.ca_state else { return false };
        let Some(config) = status.config().filter(|config| !config.has_bundle(bundle)) else {
            return true;
        };
        let done = live.write(config, bundle).await;
        self.metrics.count_cabundle_write(live.kind, done.is_ok());
        match &done {
            Ok(()) => {
                tracing::info!(configuration = config_name(live.kind), "wrote caBundle");
                self.failures.succeeded(&step);
            }
            Err(error) => self.failures.failed(&step, explained(error)),
        }
        done.is_ok()
    }

    /// Updates the metrics, and whether the server is ready.
    fn publish_status(&mut self) {
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

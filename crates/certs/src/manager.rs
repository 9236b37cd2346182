//! Keeps memgate's own certificates up to date in a cluster: one replica writes, all replicas read.
//!
//! ```text
//! Secret ◀────▶ plan (pure) ◀── lease: the writer alone
//!   │             │
//!   │             ▼
//!   │       webhook_config ◀──▶ live webhook configurations
//!   ▼
//! tls: what this replica presents
//! ```
//!
//! One Secret holds the CA, the next CA, the certificate that all replicas present, and the bundle of all CAs that entries
//! trust. The holder of a Lease decides with `plan` what must be written, into the Secret and into `caBundle`. It reads no
//! other Secret, and creates no webhook configuration. Other replicas present what the Secret has, once entries trust it.
//!
//! A round takes place every two seconds, and at once when a configuration has changed. A failed step is logged once,
//! tried again in the next round, and never ends the server.

mod lease;
mod plan;
mod webhook_config;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch::Sender;
use tokio::time::{Instant, sleep, timeout};

use crate::Builtin;
use crate::ca::{Ca, Leaf};
use crate::ca_bundle::CaCert;
use crate::clock::{Clock, date};
use crate::failure_log::FailureLog;
use crate::kube_api::jitter;
use crate::manager::plan::{CertSet, Data, Trusted, due_at, plan};
use crate::manager::webhook_config::{LiveConfig, Observed, bundles};
use crate::metrics::{CertKind, CertMetrics};
use crate::tls::{CertKeyPair, ServingCert};
use memgate_primitives::review_path::{Phase, config_name};

/// The least time between two rounds, however often a configuration changes: a tool that takes `caBundle` away again and
/// again must not keep this loop busy.
const MIN_ROUND_INTERVAL: Duration = Duration::from_millis(500);

/// How long the Secret may lack current certificates before a replica that does not write says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// The field manager of writes of the Secret.
const FIELD_MANAGER: &str = "memgate-ca";

/// Keeps the Secret, the certificate of this replica and both webhook configurations as planned.
pub struct CertManager {
    builtin: Builtin,
    secrets: Api<Secret>,
    client: Client,
    configs: [LiveConfig; 2],
    clock: Clock,
    timers: ManagerTimers,
    metrics: Arc<CertMetrics>,
    serving_cert: Arc<ServingCert>,
    observed: Sender<Observed>,
    /// Whether this replica is the writer.
    writes: Sender<bool>,
    /// The contents of the Secret, as this replica last read or wrote them.
    known: Option<CertSet>,
    /// What this replica presents, and the CA that signed it.
    presented: Option<(Leaf, CaCert)>,
    /// The CAs that all entries trust, and since when.
    trusted_since: BTreeMap<CaCert, Instant>,
    /// When this replica last wrote the Secret, or found current certificates in it.
    current: Instant,
    /// Whether this replica has ever seen all entries trust what it presents.
    trusted: bool,
    failures: FailureLog,
}

/// How often the manager acts, and how long it waits.
#[derive(Debug, Clone)]
pub struct ManagerTimers {
    /// How often the Secret and the dates of certificates are checked.
    pub poll: Duration,
    /// How long entries must have trusted a CA before it signs: the time in which every apiserver learns of a change.
    pub propagation: Duration,
}

impl CertManager {
    /// A manager of the certificate that the server presents. `client` gives up requests without an answer.
    pub fn new(
        builtin: Builtin,
        client: Client,
        clock: Clock,
        timers: ManagerTimers,
        metrics: Arc<CertMetrics>,
        serving_cert: Arc<ServingCert>,
    ) -> Self {
        let observed = Sender::default();
        let config = |call| LiveConfig::new(&client, call, &builtin.configuration, &observed);
        Self {
            configs: Phase::ALL.map(config),
            secrets: Api::namespaced(client.clone(), &builtin.namespace),
            client,
            builtin,
            clock,
            timers,
            metrics,
            serving_cert,
            observed,
            writes: Sender::default(),
            known: None,
            presented: None,
            trusted_since: BTreeMap::new(),
            current: Instant::now(),
            trusted: false,
            failures: FailureLog::default(),
        }
    }

    /// Follows the Lease and both configurations, and acts; never ends.
    pub async fn run(self) {
        let [mutating, validating] = self.configs.clone().map(LiveConfig::follow);
        let held =
            lease::hold(self.client.clone(), self.builtin.clone(), self.clock.clone(), self.writes.clone());
        tokio::join!(mutating, validating, held, self.run_rounds());
    }

    async fn run_rounds(mut self) {
        let (mut observed, mut writes) = (self.observed.subscribe(), self.writes.subscribe());
        loop {
            observed.mark_unchanged();
            writes.mark_unchanged();
            Box::pin(self.reconcile()).await;
            sleep(MIN_ROUND_INTERVAL.min(self.timers.poll)).await;
            let changed = async {
                tokio::select! { _ = observed.changed() => {}, _ = writes.changed() => {} }
            };
            let _either_way = timeout(jitter(self.timers.poll), changed).await;
        }
    }

    async fn reconcile(&mut self) {
        let writes = *self.writes.borrow() && self.clock.wrong_by().is_none();
        let secret = self.secrets.get_opt(&self.builtin.secret).await;
        let trusted = self.trusted();
        let is_current = match self.failures.log("read the CA Secret", secret) {
            Some(secret) if writes => self.write_secret(secret, &trusted).await,
            Some(secret) => {
                self.read_secret(secret, &trusted);
                false
            }
            None => false,
        };
        self.present(&trusted);
        // What was known before may be older than what another replica wrote since.
        if is_current {
            self.write_configs().await;
        }
        self.publish_status();
    }

    /// The CAs that entries trust, as last seen.
    fn trusted(&mut self) -> Trusted {
        let observed = self.observed.borrow();
        let bundles = bundles(&observed);
        let by_any = bundles.iter().copied().flatten().cloned().collect();
        let (now, before) = (Instant::now(), std::mem::take(&mut self.trusted_since));
        let common = bundles.first().copied().into_iter().flatten();
        for cert in common.filter(|cert| bundles.iter().all(|bundle| bundle.contains(cert))) {
            self.trusted_since.insert(cert.clone(), before.get(cert).copied().unwrap_or(now));
        }
        let long = |since: &Instant| now.duration_since(*since) >= self.timers.propagation;
        let by_all = self.trusted_since.iter().filter(|(_, since)| long(since));
        Trusted { by_any, by_all: by_all.map(|(cert, _)| cert.clone()).collect() }
    }

    /// Makes the Secret hold what is planned. Returns whether entries may get what is known now.
    async fn write_secret(&mut self, secret: Option<Secret>, trusted: &Trusted) -> bool {
        let empty = Data::default();
        let stored = secret.as_ref().map(|secret| secret.data.as_ref().unwrap_or(&empty));
        let planned = plan(stored, self.known.as_ref(), trusted, self.clock.unix_now(), &self.builtin);
        let Some((set, step)) = self.failures.log("make a certificate", planned) else {
            self.metrics.count_rotation(CertKind::Leaf, false);
            return false;
        };
        // The bundle must have what entries trust, since other replicas may present certificates of those CAs.
        if self.known.is_none() && self.observed.borrow().contains(&None) {
            return false;
        }
        if let Some(step) = step {
            let written = self.put_secret(secret, &set).await;
            if step.is_new_ca() {
                self.metrics.count_rotation(CertKind::Ca, written.is_ok());
            }
            let is_older = matches!(&written, Err(kube::Error::Api(status)) if status.code == 409);
            if self.failures.log("write the CA Secret", written).is_none() {
                return !is_older;
            }
            if step.is_unexpected() {
                tracing::warn!(wrote = %step, "wrote to the CA Secret");
            } else {
                tracing::info!(wrote = %step, "wrote to the CA Secret");
            }
        }
        self.current = Instant::now();
        self.known = Some(set);
        true
    }

    async fn put_secret(&self, read: Option<Secret>, set: &CertSet) -> Result<(), kube::Error> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let exists = read.is_some();
        let mut secret = read.unwrap_or_else(|| self.empty_secret());
        set.write(secret.data.get_or_insert_default());
        // The apiserver compares the resourceVersion of a replacement, and refuses to create an existing object.
        let written = if exists {
            self.secrets.replace(&self.builtin.secret, &params, &secret).await
        } else {
            self.secrets.create(&params, &secret).await
        };
        written.map(drop)
    }

    fn empty_secret(&self) -> Secret {
        let labels = [("app.kubernetes.io/name".to_owned(), "memgate".to_owned())];
        Secret {
            metadata: ObjectMeta {
                name: Some(self.builtin.secret.clone()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        }
    }

    /// Takes over what the writer has written.
    fn read_secret(&mut self, secret: Option<Secret>, trusted: &Trusted) {
        let now = self.clock.unix_now();
        let data = secret.and_then(|secret| secret.data);
        let set = data.and_then(|data| CertSet::read(&data, now));
        let due = |set: &CertSet| set.due_step(trusted, now, self.service_name(), &self.builtin.policy);
        if set.as_ref().is_some_and(|set| due(set).is_none()) {
            self.current = Instant::now();
        }
        let found = if self.current.elapsed() < PATIENCE {
            Ok(())
        } else {
            Err(format!("the holder of the Lease {} does not write them", self.builtin.secret))
        };
        self.failures.log("find current certificates in the CA Secret", found);
        let known = self.known.take();
        let is_used = |set: &CertSet| known.as_ref().is_none_or(|known| !set.is_foreign(known, trusted));
        self.known = set.filter(is_used).or(known);
    }

    /// During an update the writer may know fewer names than this replica: that of the Service is enough.
    fn service_name(&self) -> &[String] {
        self.builtin.names.get(..1).unwrap_or_default()
    }

    /// Presents the certificate of the Secret, if callers trust it; the first one, one in place of an expired one, and one of
    /// the CA whose certificate is presented already, also before that.
    fn present(&mut self, trusted: &Trusted) {
        let Some(CertSet { ca, leaf: Some(leaf), .. }) = &self.known else { return };
        let now = self.clock.unix_now();
        let is_needed = |(current, of): &(Leaf, CaCert)| now >= current.not_after || *of == ca.cert;
        let is_trusted = self.presented.as_ref().is_none_or(is_needed) || trusted.by_all.contains(&ca.cert);
        let is_current = self.presented.as_ref().is_some_and(|(current, _)| current == leaf);
        if is_current || !is_trusted || !ca.is_issuer(leaf, self.service_name(), now) {
            return;
        }
        let pair = CertKeyPair::from_pem(leaf.cert_pem.as_bytes(), leaf.key_pem.as_bytes());
        self.metrics.count_rotation(CertKind::Leaf, pair.is_ok());
        if let Some(pair) = self.failures.log("use the certificate", pair) {
            tracing::info!(not_after = date(leaf.not_after), "a new certificate is in use");
            self.serving_cert.install(pair);
            self.presented = Some((leaf.clone(), ca.cert.clone()));
        }
    }

    /// Writes the bundle into the configurations whose entries differ.
    async fn write_configs(&mut self) {
        let Some(CertSet { bundle, .. }) = &self.known else { return };
        for config in &self.configs {
            let name = config_name(config.kind);
            let Some(written) = config.write(bundle).await else { continue };
            self.metrics.count_cabundle_write(config.kind, written.is_ok());
            let step = format!("write caBundle into the {name} webhook configuration");
            if self.failures.log(&step, written).is_some() {
                tracing::info!(configuration = name, "wrote caBundle");
            }
        }
    }

    /// Updates the metrics, and whether the server is ready.
    fn publish_status(&mut self) {
        if let Some(CertSet { ca: Ca { cert, .. }, .. }) = &self.known {
            let dates = (cert.not_before, cert.not_after);
            self.metrics.set_validity(CertKind::Ca, dates);
            self.metrics.set_renewal(CertKind::Ca, due_at(dates.0, dates.1, &self.builtin.policy));
        }
        let presented = self.presented.as_ref();
        // Once seen, trust counts for good: all replicas share the configurations, so if lost trust made a replica
        // unready, none would be left.
        self.trusted |= presented.is_some_and(|(_, ca)| self.trusted_since.contains_key(ca));
        self.serving_cert.set_trusted(self.trusted);
    }
}

#[cfg(test)]
mod tests;

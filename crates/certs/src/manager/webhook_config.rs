//! The two live webhook configurations: the CAs that they trust, and `caBundle`, which memgate writes.
//!
//! They are read and watched by name, since memgate may not list them. `caBundle` is patched with a field manager of its
//! own. Only entries that exist and still have the name with which they were
//! read are patched: memgate never creates a configuration or an entry.
//!
//! The patch is a JSON patch, not server-side apply. An applied entry belongs to every manager that applied a field of
//! it. If a tool then applied a configuration without that entry, half of the entry would stay, and the apiserver would
//! refuse the tool's requests. A field that was written by a JSON patch is deleted with its entry.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt as _;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as Operations, PatchOperation, TestOperation};
use kube::api::{DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch::Sender;
use tokio::time::Instant;

use crate::ca_bundle::{self, CaBundle, CaCert};
use crate::kube_api::{jitter, webhook_configs, with_timeout};
use crate::library_error::explained;
use crate::manager::failure_log::FailureLog;
use crate::manager::secret_plan::TrustedCas;
use memgate_primitives::review_path::{Phase, config_name};

/// The field manager of `caBundle`.
pub(super) const FIELD_MANAGER: &str = "memgate-cabundle";

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one watch lasts. Then the object is read again, in case the connection of the watch was lost without
/// notice.
const WATCH_TIMEOUT_SECONDS: u32 = 60;

/// The least time between two watches, however soon they end.
const MIN_WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The status of one configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ConfigStatus {
    /// It was not read yet.
    #[default]
    Unknown,
    /// The account may not read it.
    Forbidden,
    /// It does not exist.
    NotFound,
    /// It exists.
    Found(WebhookConfig),
}

/// The fields of one configuration that memgate reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebhookConfig {
    uid: String,
    resource_version: String,
    /// Its entries, in order.
    pub(super) entries: Vec<WebhookEntry>,
    /// The CAs that all entries trust, and when this replica first saw that.
    trusted: BTreeMap<CaCert, Instant>,
}

/// The trusted CAs of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebhookEntry {
    name: String,
    /// The CAs in its `caBundle`.
    pub(super) bundle: CaBundle,
}

/// The status of both configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// The configuration of the mutating calls.
    pub(super) mutating: ConfigStatus,
    /// The configuration of the validating calls.
    pub(super) validating: ConfigStatus,
}

impl Observed {
    /// The status of one configuration.
    pub(super) fn of(&self, kind: Phase) -> &ConfigStatus {
        match kind {
            Phase::Mutate => &self.mutating,
            Phase::Validate => &self.validating,
        }
    }

    fn of_mut(&mut self, kind: Phase) -> &mut ConfigStatus {
        match kind {
            Phase::Mutate => &mut self.mutating,
            Phase::Validate => &mut self.validating,
        }
    }

    /// Whether the status of both is known.
    pub(super) fn is_known(&self) -> bool {
        Phase::ALL.iter().all(|kind| *self.of(*kind) != ConfigStatus::Unknown)
    }

    /// Whether one of them may not be read.
    pub(super) fn is_forbidden(&self) -> bool {
        Phase::ALL.iter().any(|kind| *self.of(*kind) == ConfigStatus::Forbidden)
    }

    /// The CAs that both configurations trust. If only one exists, its CAs count; if one may not be read, no CA is known
    /// to be trusted.
    pub(super) fn trusted_cas(&self, now: Instant) -> TrustedCas {
        if self.is_forbidden() {
            return TrustedCas::default();
        }
        let found = Phase::ALL.iter().filter_map(|kind| self.of(*kind).config());
        let found: Vec<_> = found.filter(|config| !config.entries.is_empty()).collect();
        let Some((first, others)) = found.split_first() else { return TrustedCas::default() };
        // Trust counts from the moment when the second of the two trusted the CA.
        let for_how_long = |cert: &CaCert| {
            let since = found.iter().map(|config| config.trusted.get(cert).copied());
            let latest = since.collect::<Option<Vec<_>>>()?.into_iter().max()?;
            Some(now.saturating_duration_since(latest))
        };
        let both = first.trusted.keys().filter(|cert| others.iter().all(|other| other.trusts(cert)));
        TrustedCas(both.filter_map(|cert| Some((cert.clone(), for_how_long(cert)?))).collect())
    }

    /// Whether both configurations trust a CA; one that may not be read is assumed to.
    pub(super) fn trusts(&self, cert: &CaCert) -> bool {
        Phase::ALL.iter().all(|kind| match self.of(*kind) {
            ConfigStatus::Found(config) => config.trusts(cert),
            ConfigStatus::Forbidden => true,
            ConfigStatus::Unknown | ConfigStatus::NotFound => false,
        })
    }
}

impl ConfigStatus {
    /// The configuration, if it was found.
    pub(super) fn config(&self) -> Option<&WebhookConfig> {
        match self {
            Self::Found(config) => Some(config),
            Self::Unknown | Self::Forbidden | Self::NotFound => None,
        }
    }

    /// The status after an object was read. A CA that was trusted before keeps its time.
    fn after(&self, object: &DynamicObject, now: Instant) -> Self {
        let before = self.config();
        let mut config = WebhookConfig::read(object);
        let since = |cert: &CaCert| before.and_then(|before| before.trusted.get(cert)).copied();
        for (cert, trusted) in &mut config.trusted {
            *trusted = since(cert).unwrap_or(now);
        }
        Self::Found(config)
    }
}

impl WebhookConfig {
    /// Reads an object; its CAs are trusted since now.
    pub(super) fn read(object: &DynamicObject) -> Self {
        let webhooks = object.data.get("webhooks").and_then(Value::as_array);
        let entries: Vec<_> = webhooks.into_iter().flatten().map(WebhookEntry::read).collect();
        let sets: Vec<BTreeSet<&CaCert>> = entries.iter().map(WebhookEntry::certs).collect();
        let mut common = sets.iter();
        let first = common.next().cloned().unwrap_or_default();
        let common = common.fold(first, |all, set| all.intersection(set).copied().collect());
        let now = Instant::now();
        let trusted = common.into_iter().map(|cert| (cert.clone(), now)).collect();
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            resource_version: object.metadata.resource_version.clone().unwrap_or_default(),
            entries,
            trusted,
        }
    }

    /// A configuration without entries trusts every CA, since it makes no calls.
    fn trusts(&self, cert: &CaCert) -> bool {
        self.entries.is_empty() || self.trusted.contains_key(cert)
    }

    /// Whether every entry trusts exactly these CAs, in any order.
    pub(super) fn has_bundle(&self, bundle: &[CaCert]) -> bool {
        let bundle = bundle.iter().collect();
        self.entries.iter().all(|entry| entry.certs() == bundle)
    }

    /// The operations that change the entries that differ. The `test` operations make the patch fail if the object was
    /// created again or its entries were reordered since it was read.
    fn patch(&self, bundle: &[CaCert]) -> Operations {
        let text = Value::String(BASE64_STANDARD.encode(ca_bundle::pem(bundle)));
        let uid = Value::String(self.uid.clone());
        let mut operations = vec![test(&["metadata", "uid"], uid)];
        let bundle: BTreeSet<_> = bundle.iter().collect();
        for (index, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.certs() != bundle) {
            let index = index.to_string();
            operations.push(test(&["webhooks", &index, "name"], Value::String(entry.name.clone())));
            let path = PointerBuf::from_tokens(["webhooks", &index, "clientConfig", "caBundle"]);
            operations.push(PatchOperation::Add(AddOperation { path, value: text.clone() }));
        }
        Operations(operations)
    }
}

impl WebhookEntry {
    fn read(webhook: &Value) -> Self {
        let name = webhook.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { name, bundle: ca_bundle::of_entry(webhook) }
    }

    fn certs(&self) -> BTreeSet<&CaCert> {
        self.bundle.certs.iter().collect()
    }
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

/// One of the two live configurations.
#[derive(Clone)]
pub(super) struct LiveConfig {
    pub(super) kind: Phase,
    name: String,
    api: Api<DynamicObject>,
    observed: Sender<Observed>,
}

impl LiveConfig {
    /// The configuration of this name. Its status is sent to `observed`.
    pub(super) fn new(client: Client, kind: Phase, name: &str, observed: &Sender<Observed>) -> Self {
        Self { kind, name: name.to_owned(), api: webhook_configs(client, kind), observed: observed.clone() }
    }

    /// Reads it, and publishes its status.
    pub(super) async fn observe(&self) -> Result<ConfigStatus, kube::Error> {
        match with_timeout(REQUEST_TIMEOUT, self.api.get_opt(&self.name)).await {
            Ok(Some(object)) => Ok(self.publish_found(&object)),
            Ok(None) => Ok(self.publish(ConfigStatus::NotFound)),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(self.publish(ConfigStatus::Forbidden)),
            Err(error) => Err(error),
        }
    }

    /// Writes the bundle into every entry that differs.
    pub(super) async fn write(&self, config: &WebhookConfig, bundle: &[CaCert]) -> Result<(), kube::Error> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::<()>::Json(config.patch(bundle));
        let object = with_timeout(REQUEST_TIMEOUT, self.api.patch(&self.name, &params, &patch)).await?;
        self.publish_found(&object);
        Ok(())
    }

    /// Keeps its status up to date; never ends.
    pub(super) async fn follow(self, pause: Duration) {
        let mut failures = FailureLog::default();
        loop {
            let status = self.observe().await;
            log_failure(&mut failures, self.kind, &status);
            let Ok(ConfigStatus::Found(config)) = status else {
                tokio::time::sleep(jitter(pause)).await;
                continue;
            };
            // The watch starts at the version that was read, so no change is missed.
            let started = Instant::now();
            match self.watch(&config.resource_version).await {
                Ok(()) => tokio::time::sleep(MIN_WATCH_INTERVAL.saturating_sub(started.elapsed())).await,
                Err(error) => {
                    let (configuration, error) = (config_name(self.kind), explained(&error));
                    tracing::debug!(configuration, error, "a watch ended");
                    tokio::time::sleep(jitter(pause) / 4).await;
                }
            }
        }
    }

    async fn watch(&self, resource_version: &str) -> Result<(), kube::Error> {
        let only = format!("metadata.name={}", self.name);
        let params = WatchParams::default().fields(&only).timeout(WATCH_TIMEOUT_SECONDS);
        let mut events =
            with_timeout(REQUEST_TIMEOUT, self.api.watch(&params, resource_version)).await?.boxed();
        let end = Instant::now() + Duration::from_secs(WATCH_TIMEOUT_SECONDS.into()) + REQUEST_TIMEOUT;
        while let Ok(Some(event)) = tokio::time::timeout_at(end, events.next()).await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => self.publish_found(&object),
                WatchEvent::Deleted(_) => self.publish(ConfigStatus::NotFound),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
        }
        Ok(())
    }

    fn publish_found(&self, object: &DynamicObject) -> ConfigStatus {
        let status = self.observed.borrow().of(self.kind).after(object, Instant::now());
        self.publish(status)
    }

    /// Replaces the published status, and notifies receivers if it differs.
    fn publish(&self, status: ConfigStatus) -> ConfigStatus {
        self.observed.send_if_modified(|observed| {
            let current = observed.of_mut(self.kind);
            let differ = *current != status;
            current.clone_from(&status);
            differ
        });
        status
    }
}

/// Logs once why a configuration cannot be read.
fn log_failure(failures: &mut FailureLog, kind: Phase, status: &Result<ConfigStatus, kube::Error>) {
    let step = format!("read the {} webhook configuration", config_name(kind));
    match status {
        Ok(ConfigStatus::Forbidden) => {
            let help = "memgate's account has no right to; `memgate manifests` prints the role that gives it";
            failures.failed(&step, help.to_owned());
        }
        Ok(_) => failures.succeeded(&step),
        Err(error) => failures.failed(&step, explained(error)),
    }
}

#[cfg(test)]
mod tests;

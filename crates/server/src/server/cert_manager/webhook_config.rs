//! The two live webhook configurations: which CAs they trust, and the one field that memgate writes.
//!
//! They are read and watched by name, since memgate may not list them. `caBundle` is patched with a field
//! manager of its own, in entries that exist and still have the name they were read with: no configuration
//! and no entry is ever created.
//!
//! With a JSON patch, not server-side apply: an applied entry belongs to every manager that applied a field
//! of it, so a tool that applies a configuration without an entry it once had would leave half an entry
//! behind, and the apiserver would refuse everything that the tool applies. A patched field goes with its
//! entry.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt as _;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as Operations, PatchOperation, TestOperation};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch::Sender;
use tokio::time::Instant;

use crate::server::cert_manager::failure_log::FailureLog;
use crate::server::cert_manager::plan::TrustedCas;
use crate::server::certs::ca_bundle::{self, CaBundle, CaCert};
use crate::server::certs::kube_api::{error_message, webhook_configs, with_timeout};
use crate::server::jitter::jitter;
use crate::server::metrics::labels::WebhookKind;

/// The field manager of `caBundle`.
pub(super) const FIELD_MANAGER: &str = "memgate-cabundle";

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one watch lasts. Then the object is read again, in case the connection of the watch had died
/// unnoticed.
const WATCH_TIMEOUT_SECONDS: u32 = 60;

/// The least time between two watches, however soon they end.
const MIN_WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of one configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ConfigStatus {
    /// Nothing yet.
    #[default]
    Unknown,
    /// The account may not read it.
    Forbidden,
    /// It does not exist.
    NotFound,
    /// It exists.
    Found(WebhookConfig),
}

/// What one configuration says about trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebhookConfig {
    uid: String,
    resource_version: String,
    /// The name and `caBundle` of each entry, in order.
    pub(super) entries: Vec<(String, CaBundle)>,
    /// The CAs that all entries trust, and since when this replica has seen that.
    trusted: BTreeMap<CaCert, Instant>,
}

/// What is known of both configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// The configuration of the mutating calls.
    pub(super) mutating: ConfigStatus,
    /// The configuration of the validating calls.
    pub(super) validating: ConfigStatus,
}

impl Observed {
    /// What is known of one of them.
    pub(super) fn of(&self, kind: WebhookKind) -> &ConfigStatus {
        match kind {
            WebhookKind::Mutating => &self.mutating,
            WebhookKind::Validating => &self.validating,
        }
    }

    fn of_mut(&mut self, kind: WebhookKind) -> &mut ConfigStatus {
        match kind {
            WebhookKind::Mutating => &mut self.mutating,
            WebhookKind::Validating => &mut self.validating,
        }
    }

    /// Whether something was found out about both.
    pub(super) fn is_known(&self) -> bool {
        WebhookKind::ALL.iter().all(|kind| *self.of(*kind) != ConfigStatus::Unknown)
    }

    /// Whether one of them may not be read.
    pub(super) fn is_forbidden(&self) -> bool {
        WebhookKind::ALL.iter().any(|kind| *self.of(*kind) == ConfigStatus::Forbidden)
    }

    /// The CAs that both configurations trust. If only one exists that one decides; if one may not be read, no
    /// CA is known to be trusted.
    pub(super) fn trusted_cas(&self, now: Instant) -> TrustedCas {
        if self.is_forbidden() {
            return TrustedCas::default();
        }
        let found = WebhookKind::ALL.iter().filter_map(|kind| self.of(*kind).config());
        let found: Vec<_> = found.filter(|config| !config.entries.is_empty()).collect();
        let Some((first, others)) = found.split_first() else { return TrustedCas::default() };
        // Trust counts from when the later one of the two learned of the CA.
        let for_how_long = |cert: &CaCert| {
            let since = found.iter().map(|config| config.trusted.get(cert).copied());
            let latest = since.collect::<Option<Vec<_>>>()?.into_iter().max()?;
            Some(now.saturating_duration_since(latest))
        };
        let both = first.trusted.keys().filter(|cert| others.iter().all(|other| other.trusts(cert)));
        TrustedCas(both.filter_map(|cert| Some((cert.clone(), for_how_long(cert)?))).collect())
    }

    /// Whether callers trust a CA, as far as that can be known.
    pub(super) fn trusts(&self, cert: &CaCert) -> bool {
        WebhookKind::ALL.iter().all(|kind| match self.of(*kind) {
            ConfigStatus::Found(config) => config.trusts(cert),
            ConfigStatus::Forbidden => true,
            ConfigStatus::Unknown | ConfigStatus::NotFound => false,
        })
    }
}

impl ConfigStatus {
    /// The configuration, when it is there.
    pub(super) fn config(&self) -> Option<&WebhookConfig> {
        match self {
            Self::Found(config) => Some(config),
            Self::Unknown | Self::Forbidden | Self::NotFound => None,
        }
    }

    /// The status after an object was read. A CA that was trusted before keeps the time since when.
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
        let entries: Vec<_> = webhooks.into_iter().flatten().map(entry).collect();
        let sets: Vec<BTreeSet<&CaCert>> =
            entries.iter().map(|(_, bundle)| bundle.certs.iter().collect()).collect();
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

    /// A configuration without entries makes no calls, and so refuses no CA.
    fn trusts(&self, cert: &CaCert) -> bool {
        self.entries.is_empty() || self.trusted.contains_key(cert)
    }

    /// Whether every entry trusts exactly these CAs, in any order.
    pub(super) fn has_bundle(&self, bundle: &[CaCert]) -> bool {
        let wanted: BTreeSet<_> = bundle.iter().collect();
        let is_equal =
            |(_, found): &(String, CaBundle)| found.certs.iter().collect::<BTreeSet<_>>() == wanted;
        self.entries.iter().all(is_equal)
    }

    /// The operations that make every entry trust these. The tests fail the patch when the object was made
    /// anew or its entries were reordered since it was read.
    fn patch(&self, bundle: &[CaCert]) -> Operations {
        let text = Value::String(BASE64_STANDARD.encode(ca_bundle::pem(bundle)));
        let uid = Value::String(self.uid.clone());
        let mut operations = vec![test(&["metadata", "uid"], uid)];
        let wanted: BTreeSet<_> = bundle.iter().collect();
        for (index, (name, found)) in self.entries.iter().enumerate() {
            if found.certs.iter().collect::<BTreeSet<_>>() == wanted {
                continue;
            }
            let index = index.to_string();
            operations.push(test(&["webhooks", &index, "name"], Value::String(name.clone())));
            let path = PointerBuf::from_tokens(["webhooks", &index, "clientConfig", "caBundle"]);
            operations.push(PatchOperation::Add(AddOperation { path, value: text.clone() }));
        }
        Operations(operations)
    }
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn entry(webhook: &Value) -> (String, CaBundle) {
    let text = |pointer| webhook.pointer(pointer).and_then(Value::as_str);
    let bundle = text("/clientConfig/caBundle").and_then(|text| BASE64_STANDARD.decode(text).ok());
    (text("/name").unwrap_or_default().to_owned(), ca_bundle::parse(&bundle.unwrap_or_default()))
}

/// Reading a configuration, as the log names it.
const fn reading(kind: WebhookKind) -> &'static str {
    match kind {
        WebhookKind::Mutating => "read the mutating webhook configuration",
        WebhookKind::Validating => "read the validating webhook configuration",
    }
}

/// Reads a configuration and publishes what was found.
pub(super) async fn observe(
    client: Client,
    kind: WebhookKind,
    name: &str,
    observed: &Sender<Observed>,
) -> Result<ConfigStatus, kube::Error> {
    let status = match with_timeout(REQUEST_TIMEOUT, webhook_configs(client, kind).get_opt(name)).await {
        Ok(Some(object)) => status_of(observed, kind, &object),
        Ok(None) => ConfigStatus::NotFound,
        Err(kube::Error::Api(status)) if status.code == 403 => ConfigStatus::Forbidden,
        Err(error) => return Err(error),
    };
    observed.send_if_modified(|observed| replace(observed.of_mut(kind), &status));
    Ok(status)
}

/// Writes the bundle into every entry of a configuration.
pub(super) async fn write(
    client: Client,
    kind: WebhookKind,
    name: &str,
    config: &WebhookConfig,
    bundle: &[CaCert],
    observed: &Sender<Observed>,
) -> Result<(), kube::Error> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::<()>::Json(config.patch(bundle));
    let api = webhook_configs(client, kind);
    let object = with_timeout(REQUEST_TIMEOUT, api.patch(name, &params, &patch)).await?;
    let status = status_of(observed, kind, &object);
    observed.send_if_modified(|observed| replace(observed.of_mut(kind), &status));
    Ok(())
}

fn status_of(observed: &Sender<Observed>, kind: WebhookKind, object: &DynamicObject) -> ConfigStatus {
    observed.borrow().of(kind).after(object, Instant::now())
}

/// Replaces `current`; whether that changes it.
fn replace(current: &mut ConfigStatus, status: &ConfigStatus) -> bool {
    let differ = current != status;
    current.clone_from(status);
    differ
}

/// Keeps what is known of a configuration up to date; never ends.
pub(super) async fn follow(
    client: Client,
    kind: WebhookKind,
    name: String,
    observed: Sender<Observed>,
    pause: Duration,
) {
    let (mut failures, step) = (FailureLog::default(), reading(kind));
    loop {
        let status = observe(client.clone(), kind, &name, &observed).await;
        log_failure(&mut failures, step, &status);
        let Ok(ConfigStatus::Found(config)) = status else {
            tokio::time::sleep(jitter(pause)).await;
            continue;
        };
        // From the version just read, so that no change in between is missed.
        let started = Instant::now();
        match watch(client.clone(), kind, &name, &config.resource_version, &observed).await {
            Ok(()) => tokio::time::sleep(MIN_WATCH_INTERVAL.saturating_sub(started.elapsed())).await,
            Err(error) => {
                tracing::debug!(configuration = kind.name(), error = error_message(&error), "a watch ended");
                tokio::time::sleep(jitter(pause) / 4).await;
            }
        }
    }
}

/// Logs once why a configuration cannot be read.
fn log_failure(failures: &mut FailureLog, step: &'static str, status: &Result<ConfigStatus, kube::Error>) {
    match status {
        Ok(ConfigStatus::Forbidden) => {
            let help = "memgate's account has no right to; `memgate manifests` prints the role that gives it";
            failures.failed(step, help.to_owned());
        }
        Ok(_) => failures.succeeded(step),
        Err(error) => failures.failed(step, error_message(error)),
    }
}

async fn watch(
    client: Client,
    kind: WebhookKind,
    name: &str,
    resource_version: &str,
    observed: &Sender<Observed>,
) -> Result<(), kube::Error> {
    let params =
        WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH_TIMEOUT_SECONDS);
    let api = webhook_configs(client, kind);
    let mut events = with_timeout(REQUEST_TIMEOUT, api.watch(&params, resource_version)).await?.boxed();
    let end = Instant::now() + Duration::from_secs(WATCH_TIMEOUT_SECONDS.into()) + REQUEST_TIMEOUT;
    while let Ok(Some(event)) = tokio::time::timeout_at(end, events.next()).await {
        let status = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => status_of(observed, kind, &object),
            WatchEvent::Deleted(_) => ConfigStatus::NotFound,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        observed.send_if_modified(|observed| replace(observed.of_mut(kind), &status));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

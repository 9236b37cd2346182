//! The two live webhook configurations: the CAs that they trust, and the two fields that memgate writes.
//!
//! They are read and watched by name, since memgate may not list them. `caBundle` and `service.path` are patched
//! together, with a field manager of their own. Only entries that exist and still have the name with which they were
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
use crate::manager::path_tokens::{PathToken, PathTokens};
use crate::manager::secret_plan::TrustedCas;
use memgate_primitives::review_path;
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

/// The target and the trusted CAs of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebhookEntry {
    name: String,
    /// The CAs in its `caBundle`.
    pub(super) bundle: CaBundle,
    target: Target,
}

/// Where an entry sends reviews.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// To a URL, which memgate does not change.
    Url,
    /// To a Service, at this path.
    Service(Option<String>),
}

/// The bundle and the path that every entry should have.
#[derive(Debug, Clone, Copy)]
pub(super) struct DesiredEntry<'a> {
    /// The CAs in its `caBundle`.
    pub(super) bundle: &'a [CaCert],
    /// The tokens; its path ends in one of them.
    pub(super) tokens: &'a PathTokens,
    /// The position of the newest token that every replica had time to read. It replaces older tokens.
    pub(super) propagated: Option<usize>,
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
        let found = self.configs().map(|(_, config)| config);
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

    /// The tokens in the entries of both configurations.
    pub(super) fn named_tokens(&self) -> BTreeSet<PathToken> {
        self.entries().filter_map(|(kind, entry)| entry.token(kind)).collect()
    }

    /// Whether each entry that calls a Service names this token.
    pub(super) fn names_everywhere(&self, token: &PathToken) -> bool {
        let mut services = self.entries().filter(|(_, entry)| entry.target != Target::Url);
        services.all(|(kind, entry)| entry.token(kind).as_ref() == Some(token))
    }

    /// Whether an entry calls a URL.
    pub(super) fn calls_a_url(&self) -> bool {
        self.entries().any(|(_, entry)| entry.target == Target::Url)
    }

    fn configs(&self) -> impl Iterator<Item = (Phase, &WebhookConfig)> {
        Phase::ALL.into_iter().filter_map(|kind| Some((kind, self.of(kind).config()?)))
    }

    fn entries(&self) -> impl Iterator<Item = (Phase, &WebhookEntry)> {
        self.configs().flat_map(|(kind, config)| config.entries.iter().map(move |entry| (kind, entry)))
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

    /// Whether every entry trusts exactly these CAs, in any order, and names a token that is new enough.
    pub(super) fn is_as(&self, desired: &DesiredEntry<'_>, kind: Phase) -> bool {
        let bundle = desired.bundle.iter().collect();
        self.entries.iter().all(|entry| entry.certs() == bundle && entry.has_path_of(desired, kind))
    }

    /// The operations that change the entries that differ. The `test` operations make the patch fail if the object was
    /// created again or its entries were reordered since it was read.
    fn patch(&self, desired: &DesiredEntry<'_>, kind: Phase) -> Operations {
        let text = Value::String(BASE64_STANDARD.encode(ca_bundle::pem(desired.bundle)));
        let uid = Value::String(self.uid.clone());
        let mut operations = vec![test(&["metadata", "uid"], uid)];
        let bundle: BTreeSet<_> = desired.bundle.iter().collect();
        for (index, entry) in self.entries.iter().enumerate() {
            let index = index.to_string();
            let client_config = ["webhooks", index.as_str(), "clientConfig"];
            let mut changes = Vec::new();
            if entry.certs() != bundle {
                changes.push(add(client_config.into_iter().chain(["caBundle"]), text.clone()));
            }
            if let Some(token) = desired.token().filter(|_| !entry.has_path_of(desired, kind)) {
                let path = Value::String(review_path::with_token(kind, token.as_str()));
                changes.push(add(client_config.into_iter().chain(["service", "path"]), path));
            }
            if !changes.is_empty() {
                operations.push(test(&["webhooks", &index, "name"], Value::String(entry.name.clone())));
                operations.extend(changes);
            }
        }
        Operations(operations)
    }
}

impl DesiredEntry<'_> {
    /// The token for an entry without a token, or with one that is too old: the newest that every replica had time to
    /// read, else the second newest, which most replicas know.
    fn token(&self) -> Option<&PathToken> {
        let propagated = self.propagated.and_then(|propagated| self.tokens.iter().nth(propagated));
        propagated.or_else(|| self.tokens.iter().nth(1)).or_else(|| self.tokens.iter().next())
    }
}

impl WebhookEntry {
    fn read(webhook: &Value) -> Self {
        let text = |pointer| webhook.pointer(pointer).and_then(Value::as_str);
        let target = match webhook.pointer("/clientConfig/service") {
            Some(_) => Target::Service(text("/clientConfig/service/path").map(str::to_owned)),
            None => Target::Url,
        };
        Self {
            name: text("/name").unwrap_or_default().to_owned(),
            bundle: ca_bundle::of_entry(webhook),
            target,
        }
    }

    fn certs(&self) -> BTreeSet<&CaCert> {
        self.bundle.certs.iter().collect()
    }

    /// The token in its path, if the path has the form that memgate writes.
    fn token(&self, kind: Phase) -> Option<PathToken> {
        let Target::Service(Some(path)) = &self.target else { return None };
        let (of, token) = review_path::token_call(path)?;
        PathToken::parse(token).filter(|_| of == kind)
    }

    /// Whether its path is as desired. A token newer than the propagated one was written by another replica, which has
    /// known it for longer.
    fn has_path_of(&self, desired: &DesiredEntry<'_>, kind: Phase) -> bool {
        if self.target == Target::Url {
            return true;
        }
        let position = self.token(kind).and_then(|token| desired.tokens.position(&token));
        position.is_some_and(|position| desired.propagated.is_none_or(|propagated| position <= propagated))
    }
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn add<'t>(path: impl Iterator<Item = &'t str>, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value })
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

    /// Writes bundle and path into every entry that differs.
    pub(super) async fn write(
        &self,
        config: &WebhookConfig,
        desired: &DesiredEntry<'_>,
    ) -> Result<(), kube::Error> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::<()>::Json(config.patch(desired, self.kind));
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

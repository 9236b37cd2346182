//! The two live webhook configurations: the CAs that their entries trust, and `caBundle`, which memgate writes.
//!
//! They are read and watched by name. `caBundle` is patched with a field manager of its own, and only in entries of the
//! version that was read: memgate never creates a configuration or an entry.
//!
//! The patch is not server-side apply. An applied entry belongs to every manager that applied a field of it. If a tool
//! then applied a configuration without that entry, half of the entry would stay, and the apiserver would refuse the
//! tool's requests. A field that was written by another patch is deleted with its entry.

use std::collections::BTreeSet;
use std::pin::pin;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch::Sender;

use crate::ca_bundle::{self, CaCert};
use crate::failure_log::FailureLog;
use crate::kube_api::webhook_configs;
use memgate_primitives::review_path::{Phase, config_name};

/// The field manager of `caBundle`.
pub(super) const FIELD_MANAGER: &str = "memgate-cabundle";

/// What was last seen of the configurations, in the order of [`Phase::ALL`]; `None` before the first answer.
pub(super) type Observed = [Option<WebhookConfig>; 2];

/// What memgate reads of one configuration; of one that does not exist, nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WebhookConfig {
    version: String,
    /// The names of its entries with the CAs that they trust.
    entries: Vec<(String, BTreeSet<CaCert>)>,
}

/// The CAs that each entry trusts; none before both configurations have been seen.
pub(super) fn bundles(observed: &Observed) -> Vec<&BTreeSet<CaCert>> {
    let [Some(mutating), Some(validating)] = observed else { return Vec::new() };
    mutating.entries.iter().chain(&validating.entries).map(|(_, bundle)| bundle).collect()
}

impl WebhookConfig {
    fn read(object: &DynamicObject) -> Self {
        let webhooks = object.data.get("webhooks").and_then(Value::as_array);
        let entry = |webhook: &Value| {
            let name = webhook.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            (name, ca_bundle::of_entry(webhook).into_iter().collect())
        };
        Self {
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            entries: webhooks.into_iter().flatten().map(entry).collect(),
        }
    }

    /// The patch after which each entry trusts exactly these CAs; `None` when each does. The version makes it fail if
    /// another client has changed the object since.
    fn patch(&self, bundle: &[CaCert]) -> Option<Value> {
        let text = BASE64_STANDARD.encode(ca_bundle::pem(bundle));
        let bundle = bundle.iter().cloned().collect();
        let differ = self.entries.iter().filter(|(_, certs)| *certs != bundle);
        let webhooks: Vec<_> =
            differ.map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": text}})).collect();
        let patch = json!({"metadata": {"resourceVersion": self.version}, "webhooks": webhooks});
        (!webhooks.is_empty()).then_some(patch)
    }
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
    /// The configuration of this name. What is seen of it is sent to `observed`.
    pub(super) fn new(client: &Client, kind: Phase, name: &str, observed: &Sender<Observed>) -> Self {
        let api = webhook_configs(client.clone(), kind);
        Self { kind, name: name.to_owned(), api, observed: observed.clone() }
    }

    /// Follows it; never ends.
    pub(super) async fn follow(self) {
        let (mut failures, step) =
            (FailureLog::default(), format!("read the {} webhook configuration", config_name(self.kind)));
        let mut seen = pin!(watch_object(self.api.clone(), &self.name).default_backoff());
        while let Some(object) = seen.next().await {
            failures.log(&step, object.map(|object| self.publish(object.as_ref())));
        }
    }

    /// Writes the bundle into every entry that differs; `None` when none does.
    pub(super) async fn write(&self, bundle: &[CaCert]) -> Option<Result<(), kube::Error>> {
        let config = self.seen()?;
        let patch = Patch::Strategic(config.patch(bundle)?);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let written = self.api.patch(&self.name, &params, &patch).await;
        Some(written.map(|object| self.publish(Some(&object))))
    }

    /// What was last seen of it; `None` before the first answer.
    pub(super) fn seen(&self) -> Option<WebhookConfig> {
        let [mutating, validating] = self.observed.borrow().clone();
        if self.kind == Phase::Mutate { mutating } else { validating }
    }

    /// Reads it once.
    #[cfg(test)]
    pub(super) async fn observe(&self) -> Result<(), kube::Error> {
        self.api.get_opt(&self.name).await.map(|object| self.publish(object.as_ref()))
    }

    fn publish(&self, object: Option<&DynamicObject>) {
        let config = Some(object.map(WebhookConfig::read).unwrap_or_default());
        self.observed.send_if_modified(|[mutating, validating]| {
            let seen = if self.kind == Phase::Mutate { mutating } else { validating };
            let differs = *seen != config;
            *seen = config;
            differs
        });
    }
}

#[cfg(test)]
mod tests;

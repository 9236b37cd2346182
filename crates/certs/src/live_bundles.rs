//! The CAs that each entry of the live webhook configurations trusts, for the command that waits for a new CA.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::ca_bundle;
use crate::kube_api::{webhook_configs, with_timeout};
use memgate_primitives::plain_text::plain;
use memgate_primitives::review_path::{Phase, config_name};

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The annotation that makes cert-manager write `caBundle`.
const CERT_MANAGER: &str = "cert-manager.io/inject-ca-from";

/// The entries of both configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveBundles {
    /// Their entries; empty when there is neither.
    pub entries: Vec<EntryBundle>,
    /// Whether cert-manager writes `caBundle` of one of them.
    pub from_cert_manager: bool,
}

/// The CAs that one entry trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryBundle {
    /// `mutating` or `validating`.
    pub configuration: &'static str,
    /// The name of the webhook.
    pub name: String,
    /// The SHA-256 of each CA in its `caBundle`, in hexadecimal digits.
    pub cas: BTreeSet<String>,
}

/// Reads both configurations; one that does not exist has no entries.
///
/// # Errors
/// When a configuration cannot be read.
pub async fn live_bundles(client: &Client, configuration: &str) -> Result<LiveBundles, kube::Error> {
    let mut live = LiveBundles::default();
    for kind in Phase::ALL {
        let api = webhook_configs(client.clone(), kind);
        if let Some(object) = with_timeout(REQUEST_TIMEOUT, api.get_opt(configuration)).await? {
            live.add(kind, &object);
        }
    }
    Ok(live)
}

impl LiveBundles {
    fn add(&mut self, kind: Phase, object: &DynamicObject) {
        let annotations = object.metadata.annotations.as_ref();
        self.from_cert_manager |= annotations.is_some_and(|all| all.contains_key(CERT_MANAGER));
        let webhooks = object.data.get("webhooks").and_then(Value::as_array);
        self.entries.extend(webhooks.into_iter().flatten().map(|webhook| EntryBundle::read(kind, webhook)));
    }

    /// The titles of the entries that do not trust a CA.
    pub fn without(&self, sha256: &str) -> Vec<String> {
        self.titles(|cas| !cas.contains(sha256))
    }

    /// The titles of the entries that trust another CA.
    pub fn beyond(&self, sha256: &str) -> Vec<String> {
        self.titles(|cas| cas.iter().any(|ca| ca != sha256))
    }

    fn titles(&self, is_wanted: impl Fn(&BTreeSet<String>) -> bool) -> Vec<String> {
        let wanted = self.entries.iter().filter(|entry| is_wanted(&entry.cas));
        wanted.map(|entry| format!("{} ({})", plain(&entry.name), entry.configuration)).collect()
    }
}

impl EntryBundle {
    fn read(kind: Phase, webhook: &Value) -> Self {
        Self {
            configuration: config_name(kind),
            name: webhook.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            cas: ca_bundle::of_entry(webhook).certs.iter().map(ca_bundle::CaCert::sha256).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    use super::*;
    use crate::CertPolicy;
    use crate::ca::Ca;
    use crate::ca_bundle::CaCert;

    fn configuration(annotation: &str, bundles: &[&[CaCert]]) -> DynamicObject {
        let entry = |certs: &&[CaCert]| {
            let bundle = BASE64_STANDARD.encode(ca_bundle::pem(certs));
            json!({"name": format!("{}.memgate.dev", certs.len()), "clientConfig": {"caBundle": bundle}})
        };
        let webhooks: Vec<_> = bundles.iter().map(entry).collect();
        let metadata = json!({"name": "memgate", "annotations": {annotation: "a/b"}});
        serde_json::from_value(json!({"metadata": metadata, "webhooks": webhooks})).expect("an object")
    }

    #[test]
    fn finds_entries_by_the_cas_that_they_trust() {
        let [new, old] = [0, 1].map(|now| Ca::generate(now, &CertPolicy::default()).expect("a CA").cert);
        let mut live = LiveBundles::default();
        live.add(Phase::Mutate, &configuration("other", &[&[], &[new.clone(), old.clone()]]));
        live.add(Phase::Validate, &configuration("other", &[std::slice::from_ref(&new)]));
        assert!(!live.from_cert_manager);
        let (new, old) = (new.sha256(), old.sha256());
        assert_eq!(new.len(), 64);
        assert_eq!(live.without(&new), ["0.memgate.dev (mutating)"]);
        assert_eq!(live.beyond(&new), ["2.memgate.dev (mutating)"]);
        assert_eq!(live.without(&old).len(), 2);
        live.add(Phase::Validate, &configuration(CERT_MANAGER, &[]));
        assert!(live.from_cert_manager);
    }
}

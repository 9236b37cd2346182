//! Certificates that memgate makes for itself in a cluster, without a leader.
//!
//! ```text
//! Secret ◀──secret──▶ plan (pure) ◀──registration── live webhook configurations
//!                       │                 ▲
//!                       ▼                 │ caBundle
//!                 ca: a leaf ─▶ tls     keeper
//! ```
//!
//! One Secret holds the CA, the one before it and the bundle of all that may still have signed a
//! leaf; each replica signs a leaf of its own and keeps it in memory. `plan` decides what is to be
//! written and who signs, from values alone; `keeper` carries it out. Nothing in here reads any
//! other Secret, or makes a webhook configuration.

pub(super) mod anchor;
pub(super) mod ca;
pub(super) mod keeper;
pub mod made;
pub(super) mod plan;
pub(super) mod registration;
pub(super) mod secret;
#[cfg(test)]
mod stub;
mod troubles;
pub mod verify;

use std::time::Duration;

/// What certificates of memgate's own making need to know.
#[derive(Debug, Clone)]
pub struct Builtin {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The name that both webhook configurations bear.
    pub configuration: String,
    /// The names and addresses that callers ask for.
    pub names: Vec<String>,
    /// How long certificates are valid, and what keys they have.
    pub terms: Terms,
}

/// How long certificates are valid, and what keys they have.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How long a CA is valid.
    pub ca: Duration,
    /// How long the certificate of a replica is valid.
    pub leaf: Duration,
    /// After which part of its life a certificate is replaced, in hundredths.
    pub renew_percent: u8,
    /// The kind of all keys.
    pub key: KeyKind,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            ca: Duration::from_hours(365 * 24),
            leaf: Duration::from_hours(7 * 24),
            renew_percent: 66,
            key: KeyKind::P256,
        }
    }
}

/// A kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA over P-256: its handshakes are the cheapest.
    P256,
    /// ECDSA over P-384.
    P384,
}

/// The answer of an apiserver, or an error when it does not come in time.
async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let late = |_| kube::Error::Service(format!("no answer within {} s", time.as_secs()).into());
    tokio::time::timeout(time, answer).await.map_err(late)?
}

/// What an apiserver said, or why it did not say anything.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// The names by which a Service is called from within a cluster.
#[must_use]
pub fn service_names(service: &str, namespace: &str) -> Vec<String> {
    ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}")).to_vec()
}

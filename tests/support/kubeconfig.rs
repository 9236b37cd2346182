//! Kubeconfig files: one cluster, one user, everything inline.

use std::path::PathBuf;

use anyhow::Result;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{certs::Pair, scratch::Scratch};

/// How a user proves who it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential<'a> {
    /// By a client certificate.
    Certificate(&'a Pair),
    /// By a bearer token.
    Token(&'a str),
}

/// Writes `<name>.kubeconfig`. It is JSON, which every reader takes as YAML.
pub(crate) fn write(
    scratch: &Scratch,
    name: &str,
    server: &str,
    ca_pem: &str,
    credential: Credential<'_>,
) -> Result<PathBuf> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": server,
            "certificate-authority-data": BASE64_STANDARD.encode(ca_pem),
        }}],
        "users": [{"name": "test", "user": user(credential)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    });
    scratch.write(&format!("{name}.kubeconfig"), &config.to_string())
}

fn user(credential: Credential<'_>) -> Value {
    match credential {
        Credential::Certificate(pair) => json!({
            "client-certificate-data": BASE64_STANDARD.encode(&pair.cert),
            "client-key-data": BASE64_STANDARD.encode(&pair.key),
        }),
        Credential::Token(token) => json!({ "token": token }),
    }
}

//! A memgate that looks after its own certificates, with the rights that it needs and no others.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use axum::http::{Method, Request};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    deploy::renamed::manifests,
    installed::{MEMGATE, register},
    request::{create, send},
    samples::pod,
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Serve},
    },
};

/// The kinds of webhook configurations, as kubectl knows them.
pub(crate) const CONFIGURATIONS: [&str; 2] =
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// Where they are.
const REGISTRATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// The Secret of the CA, and the Lease of its writer.
pub(crate) const SECRET: &str = "memgate-ca";

/// The parts of one trial; everything cluster-wide bears the name of the namespace.
pub(crate) struct Installation<'w> {
    pub(crate) cluster: &'w ControlPlane,
    /// memgate's namespace, and the one that it is asked about.
    pub(crate) home: String,
    /// memgate's identity.
    pub(crate) kubeconfig: PathBuf,
}

impl<'w> Installation<'w> {
    /// The account and its rights; nothing runs yet.
    pub(crate) fn new(cluster: &'w ControlPlane, purpose: &str) -> Result<Self> {
        let installation = Self::without_own_rights(cluster, purpose)?;
        installation.grant()?;
        Ok(installation)
    }

    /// The account with the rights on its families' kinds only.
    pub(crate) fn without_own_rights(cluster: &'w ControlPlane, purpose: &str) -> Result<Self> {
        let home = cluster.fresh_namespace(purpose)?;
        for object in manifests(&home, &["--only", "rbac"])? {
            // The role of its namespace is what it needs for its certificates.
            let is_own = ["Role", "RoleBinding"].iter().any(|kind| object["kind"] == **kind);
            if !is_own {
                cluster.admin().apply(&object.to_string())?;
            }
        }
        let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate")?;
        Ok(Self { cluster, home, kubeconfig })
    }

    /// Gives it what it needs for its certificates.
    pub(crate) fn grant(&self) -> Result<()> {
        for object in own_rights(&self.home) {
            self.cluster.admin().apply(&object.to_string())?;
        }
        Ok(())
    }

    /// A replica; `--tls-name` since the apiserver of the tests calls by address.
    pub(crate) fn serve(&self) -> Serve {
        let own = ["--certs", "builtin", "--namespace", &self.home, "--webhook-configuration", &self.home];
        // What is tried and refused is seen only at this level.
        let names = ["--tls-name", "127.0.0.1", "--log", "info,memgate=debug"];
        let serve = Serve::new(MEMGATE).own_certificate().kubeconfig(&self.kubeconfig);
        own.iter().chain(&names).fold(serve, |serve, argument| serve.arg(*argument))
    }

    /// Registers both configurations, without a `caBundle`.
    pub(crate) fn register(&self, endpoint: &Endpoint) -> Result<()> {
        let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [self.home]});
        register(self.cluster, endpoint, &self.home, &only)
    }

    /// Whether the apiserver gets an answer of memgate's about a pod.
    pub(crate) fn is_asked(&self) -> Result<bool> {
        let pod = pod("asked", "absent", &[("memgate.dev/inject", "required")]);
        let client = self.cluster.client();
        let answer = self.cluster.block_on(create(&client, &self.home, &pod, "?dryRun=All"))?;
        Ok(answer.webhook_message().is_some_and(|message| !message.contains("failed calling webhook")))
    }

    /// Waits until the apiserver gets an answer.
    pub(crate) fn wait_until_asked(&self) -> Result<()> {
        wait::until("memgate to be asked", || Ok(self.is_asked()?.then_some(())))
    }

    /// A configuration as it is, with all that the apiserver knows of it.
    pub(crate) fn configuration(&self, kind: &str) -> Result<Value> {
        let path = format!("{REGISTRATIONS}/{kind}/{}", self.home);
        self.cluster.block_on(send(&self.cluster.client(), Method::GET, &path, None))?.object()
    }

    /// The `caBundle` of each entry of both configurations, as text; empty where there is none.
    pub(crate) fn bundles(&self) -> Result<Vec<String>> {
        let mut bundles = Vec::new();
        for kind in CONFIGURATIONS {
            let configuration = self.configuration(kind)?;
            for webhook in configuration["webhooks"].as_array().context("there are webhooks")? {
                let text = webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
                bundles.push(String::from_utf8(BASE64_STANDARD.decode(text)?)?);
            }
        }
        ensure!(bundles.len() > 2, "{bundles:?}");
        Ok(bundles)
    }

    /// Patches every entry of both configurations: `None` removes the `caBundle`.
    pub(crate) fn overwrite_bundles(&self, ca: Option<&str>) -> Result<()> {
        for kind in CONFIGURATIONS {
            let entries = self.configuration(kind)?["webhooks"].as_array().map_or(0, Vec::len);
            let path = |index| format!("/webhooks/{index}/clientConfig/caBundle");
            let text = ca.map(|ca| BASE64_STANDARD.encode(ca)).unwrap_or_default();
            let operation = |index| json!({"op": "add", "path": path(index), "value": text});
            let operations: Vec<_> = (0..entries).map(operation).collect();
            self.patch(kind, &json!(operations))?;
        }
        Ok(())
    }

    /// Sends a JSON patch for a configuration.
    pub(crate) fn patch(&self, kind: &str, operations: &Value) -> Result<()> {
        let request = Request::patch(format!("{REGISTRATIONS}/{kind}/{}", self.home))
            .header("Content-Type", "application/json-patch+json")
            .body(operations.to_string().into_bytes())?;
        self.cluster.block_on(self.cluster.client().request_text(request))?;
        Ok(())
    }

    /// Waits until every entry of both configurations trusts exactly what the Secret says.
    pub(crate) fn wait_until_repaired(&self) -> Result<()> {
        wait::until("caBundle to be repaired", || {
            let wanted = self.secret("bundle.crt")?;
            let repaired = !wanted.is_empty() && self.bundles()?.iter().all(|bundle| *bundle == wanted);
            Ok(repaired.then_some(()))
        })
    }

    /// A text in the Secret; empty when there is none.
    pub(crate) fn secret(&self, key: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{}/secrets/{SECRET}", self.home);
        let answer = self.cluster.block_on(send(&self.cluster.client(), Method::GET, &path, None))?;
        let text = answer.body["data"][key].as_str().unwrap_or_default();
        Ok(String::from_utf8_lossy(&BASE64_STANDARD.decode(text)?).into_owned())
    }

    /// Writes texts into the Secret.
    pub(crate) fn write_secret(&self, entries: &[(&str, &str)]) -> Result<()> {
        let data = entries.iter().map(|(key, text)| ((*key).to_owned(), json!(BASE64_STANDARD.encode(text))));
        let patch = json!({"data": Value::Object(data.collect())}).to_string();
        let merge = ["patch", "secret", SECRET, "-n", &self.home, "--type=merge", "-p", &patch];
        self.cluster.kubectl(&merge)?.ok()?;
        Ok(())
    }
}

/// What memgate needs besides its families' kinds.
fn own_rights(home: &str) -> [Value; 4] {
    let subjects = json!([{"kind": "ServiceAccount", "name": "memgate", "namespace": home}]);
    let own = format!("{home}-certs");
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "memgate", "namespace": home},
            "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET],
                 "verbs": ["get", "update"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [SECRET],
                 "verbs": ["get", "patch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "memgate", "namespace": home}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "memgate"},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": own},
            "rules": [{
                "apiGroups": ["admissionregistration.k8s.io"], "resources": CONFIGURATIONS,
                "resourceNames": [home], "verbs": ["get", "list", "watch", "patch"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": own}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": own},
        }),
    ]
}

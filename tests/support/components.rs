//! The command lines of the three components. Everything listens on loopback or on a socket file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{
    assets::Assets,
    certs::{self, Authority},
    scratch::Scratch,
};

/// The controllers that lead from a workload to its Pods, the one that fills the roles `view`, `edit` and `admin`, and the
/// one that checks the types in ValidatingAdmissionPolicies. Every other one would only cost time; without them nothing is
/// garbage collected, and a deleted namespace stays.
const CONTROLLERS: [&str; 7] = [
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "statefulset-controller",
    "daemonset-controller",
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
];

/// Those of a cluster in which things come and go as in a real one: with a namespace goes what is in it,
/// with a Deployment its pods, and a Service knows which of them are ready.
pub(crate) const FURTHER: [&str; 3] =
    ["namespace-controller", "garbage-collector-controller", "endpointslice-controller"];

/// Stands where etcd insists on a host and port although it is never called there.
const UNUSED_URL: &str = "http://localhost:1";

/// What ends up in the audit log: writes, once answered, with the annotations of the webhooks.
const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "omitStages": ["RequestReceived"], "omitManagedFields": true,
  "rules": [
    {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "", "resources": ["events"]}]},
    {"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}
  ]
}"#;

/// The files that the apiserver is started with, the same ones at every start.
#[derive(Debug)]
pub(crate) struct ApiServerFiles {
    socket: PathBuf,
    client_ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
    token_private: PathBuf,
    token_public: PathBuf,
    audit_policy: PathBuf,
    /// One JSON object a line, `audit.k8s.io/v1` Event.
    pub(crate) audit_log: PathBuf,
    /// Through whom the apiserver calls webhooks that are not on loopback.
    proxy: Option<SocketAddr>,
}

impl ApiServerFiles {
    /// Writes them all.
    pub(crate) fn write(scratch: &Scratch, authority: &Authority, proxy: Option<SocketAddr>) -> Result<Self> {
        let (cert, key) = authority.server("kube-apiserver")?.write(scratch, "apiserver")?;
        let (private, public) = certs::token_keys()?;
        Ok(Self {
            socket: etcd_socket(scratch),
            client_ca: scratch.write("ca.crt", &authority.pem())?,
            cert,
            key,
            token_private: scratch.write("token.key", &private)?,
            token_public: scratch.write("token.pub", &public)?,
            audit_policy: scratch.write("audit-policy.json", AUDIT_POLICY)?,
            audit_log: scratch.path().join("audit.log"),
            proxy,
        })
    }
}

/// etcd as short-lived as it gets. It listens on a socket file, so that no port can be taken, and
/// no other user of the machine reads the store.
pub(crate) fn etcd(assets: &Assets, scratch: &Scratch) -> Command {
    let mut command = Command::new(&assets.etcd);
    command
        .args(["--name=test", "--log-level=warn", "--unsafe-no-fsync"])
        .arg(flag("--data-dir", &scratch.path().join("etcd")))
        .arg(flag("--listen-client-urls", &socket_url(&etcd_socket(scratch))))
        .arg(flag("--listen-peer-urls", &socket_url(&scratch.path().join("peer.sock"))))
        .arg(format!("--advertise-client-urls={UNUSED_URL}"))
        .arg(format!("--initial-advertise-peer-urls={UNUSED_URL}"))
        .arg(format!("--initial-cluster=test={UNUSED_URL}"))
        .current_dir(scratch.path());
    command
}

/// The apiserver with RBAC, client certificates and service account tokens. Pods can exist without their
/// service account, since there is no controller that would make one.
pub(crate) fn apiserver(assets: &Assets, files: &ApiServerFiles, port: u16) -> Command {
    let mut command = Command::new(&assets.apiserver);
    command
        .arg(flag("--etcd-servers", &socket_url(&files.socket)))
        .args(["--bind-address=127.0.0.1", "--external-hostname=127.0.0.1"])
        .arg(format!("--secure-port={port}"))
        .arg(flag("--tls-cert-file", &files.cert))
        .arg(flag("--tls-private-key-file", &files.key))
        .arg(flag("--client-ca-file", &files.client_ca))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(flag("--service-account-key-file", &files.token_public))
        .arg(flag("--service-account-signing-key-file", &files.token_private))
        .arg("--authorization-mode=RBAC")
        // No controller here lets go of a claim that is protected.
        .arg("--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection")
        .arg(flag("--audit-policy-file", &files.audit_policy))
        .arg(flag("--audit-log-path", &files.audit_log))
        // In MB. By default a new file begins at 100, which a run of all trials writes.
        .arg("--audit-log-maxsize=10000")
        // A loopback address may not be an endpoint of the Service `kubernetes`.
        .arg("--endpoint-reconciler-type=none")
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        .args(["--allow-privileged=true", "--profiling=false"]);
    if let Some(proxy) = files.proxy {
        command.env("HTTPS_PROXY", format!("http://{proxy}"));
    }
    command
}

/// The controller manager. Its controllers act as their own service accounts, as in a real
/// cluster, so a webhook sees the user names that it would see there.
pub(crate) fn controller_manager(assets: &Assets, kubeconfig: &Path, more: &[&str]) -> Command {
    let controllers = [&CONTROLLERS[..], more].concat();
    let mut command = Command::new(&assets.controller_manager);
    command
        .arg(flag("--kubeconfig", kubeconfig))
        .arg(format!("--controllers={}", controllers.join(",")))
        .args(["--use-service-account-credentials", "--leader-elect=false"])
        .args(["--secure-port=0", "--profiling=false"]);
    command
}

/// Where etcd listens. The path of a socket holds some 100 bytes, so it is kept short.
pub(crate) fn etcd_socket(scratch: &Scratch) -> PathBuf {
    scratch.path().join("etcd.sock")
}

fn socket_url(path: &Path) -> PathBuf {
    PathBuf::from(format!("unix://{}", path.display()))
}

fn flag(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}

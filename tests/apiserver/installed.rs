//! memgate installed in a cluster as its own `manifests` and `crds` say, and nothing more.
//!
//! It runs as a process outside the cluster, with the identity of its service account. What differs
//! from a real installation: it is called by URL, only about the namespaces of tests, and each
//! webhook is to fail when memgate does not answer, with more patience, so that nothing passes by
//! accident and nothing fails of a busy machine. One user, [`EXEMPT_USER`], is spared: it puts what
//! memgate would refuse or change into the cluster.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use kube::Client;
use memgate_manifest::{document::parse, source::Source};
use serde_json::{Value, json};

use crate::{
    request::create,
    samples::{memory_of, pod},
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Serve, Webhook, push},
    },
};

/// The binary under test.
pub(crate) const MEMGATE: &str = env!("CARGO_BIN_EXE_memgate");

/// The user about whose requests memgate is not asked.
const EXEMPT_USER: &str = "exempt";

/// The label of namespaces about which memgate is asked.
pub(crate) const GUARDED: (&str, &str) = ("test.memgate.dev/guarded", "true");

/// The namespace in which Orloj runs the Jobs of agents, in addition to the usual one.
pub(crate) const JOBS: &str = "agent-jobs";

/// The command that prints an installation, with an image that no trial starts.
pub(crate) const MANIFESTS: [&str; 3] = ["manifests", "--image", "registry.example.com/memgate:0.1.0"];

/// The arguments with which memgate prints the rights of its account, with those for policies about ark's memory service.
pub(crate) const RIGHTS: [&str; 5] = ["manifests", "--only", "rbac", "--component", "ark-brokers"];

/// More than a busy machine needs; the most that Kubernetes allows.
const WEBHOOK_SECONDS: u8 = 30;

/// A cluster's memgate.
pub(crate) struct Installed {
    /// The running process.
    pub(crate) webhook: Webhook,
    /// memgate's own identity.
    pub(crate) kubeconfig: PathBuf,
    exempt: Client,
}

impl Installed {
    /// Installs the CRDs, the rights and the webhooks, starts memgate, and waits until the
    /// apiserver asks it.
    pub(crate) fn new(cluster: &ControlPlane) -> Result<Self> {
        install_crds(cluster)?;
        let kubeconfig = install_account(cluster)?;
        let settings = json!({"orloj": {"jobNamespaces": ["orloj", JOBS], "sharedSecrets": ["shared-*"]}});
        let serve = Serve::new(MEMGATE).arg("--settings").arg(settings.to_string());
        let serve = serve.arg("--ark-brokers");
        let webhook = serve.kubeconfig(&kubeconfig).ready()?;
        let exempt = exempt_client(cluster)?;
        let installed = Self { webhook, kubeconfig, exempt };
        let only = json!({"key": GUARDED.0, "operator": "Exists"});
        register(cluster, &installed.webhook.endpoint(), "memgate", &only)?;
        let namespace = cluster.labelled_namespace("asked", &[GUARDED])?;
        wait_until_asked(cluster, &namespace)?;
        guarded_namespace(cluster, JOBS)?;
        Ok(installed)
    }

    /// A client whose requests memgate is not asked about.
    pub(crate) fn exempt_client(&self) -> Client {
        self.exempt.clone()
    }

    /// How many objects of families, and how many policies, memgate knows.
    pub(crate) fn known_objects(&self) -> Result<u64> {
        Ok(known_objects(&self.webhook)? + counted(&self.webhook, "memgate_policies{")?)
    }
}

/// A namespace of this name about which memgate is asked.
pub(crate) fn guarded_namespace(cluster: &ControlPlane, name: &str) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {GUARDED.0: GUARDED.1}},
    });
    cluster.admin().apply(&namespace.to_string())?;
    Ok(())
}

/// How many objects of families a memgate knows, by its own word.
pub(crate) fn known_objects(webhook: &Webhook) -> Result<u64> {
    counted(webhook, "memgate_store_objects{")
}

/// The sum of a metric.
fn counted(webhook: &Webhook, metric: &str) -> Result<u64> {
    let (_, metrics) = webhook.probe("/metrics").context("memgate has no metrics")?;
    let counts = metrics.lines().filter(|line| line.starts_with(metric));
    let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    Ok(counts.sum())
}

/// Applies what `memgate crds` prints, with what later versions of the platforms have and memgate knows, and waits
/// until it is served.
pub(crate) fn install_crds(cluster: &ControlPlane) -> Result<()> {
    let kubectl = cluster.admin();
    kubectl.apply(&memgate(&["crds"])?)?;
    let text = json!({"type": "string"});
    let default_memory = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": text, "namespace": text},
    });
    for (crd, field, value) in [
        ("arkconfigs.ark.mckinsey.com", "defaultMemory", default_memory),
        ("swarmmemories.kubeswarm.io", "vectorStore/properties/provider/enum/-", json!("pgvector")),
    ] {
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let patch = json!([{"op": "add", "path": format!("{spec}/{field}"), "value": value}]).to_string();
        kubectl.run(&["patch", "crd", crd, "--type=json", "-p", &patch])?.ok()?;
    }
    kubectl.run(&["wait", "--for=condition=Established", "crd", "--all"])?.ok()?;
    Ok(())
}

/// Gives memgate its service account and its rights; the kubeconfig file of that account.
pub(crate) fn install_account(cluster: &ControlPlane) -> Result<PathBuf> {
    let home = cluster.fresh_namespace("memgate")?;
    // Under the name that the configurations of a first installation have.
    let rbac = memgate(&[&RIGHTS[..], &["-n", &home, "--name", "memgate"]].concat())?;
    cluster.admin().apply(&rbac)?;
    cluster.service_account_kubeconfig(&home, "memgate")
}

/// Registers memgate's webhooks for the namespaces that fulfil a requirement of a label selector.
pub(crate) fn register(cluster: &ControlPlane, endpoint: &Endpoint, name: &str, only: &Value) -> Result<()> {
    let not_staged = json!({
        "name": "not-exempt", "expression": format!("request.userInfo.username != '{EXEMPT_USER}'"),
    });
    for mut configuration in documents(&memgate(&["manifests", "--only", "webhooks"])?) {
        endpoint.adopt_where(&mut configuration, name, only)?;
        let webhooks = configuration["webhooks"].as_array_mut();
        for webhook in webhooks.context("the configuration has no webhooks")? {
            if only["key"] != GUARDED.0
                && let Some(rules) = webhook["rules"].as_array_mut()
            {
                // No selector keeps objects outside of namespaces away from a trial's own memgate.
                rules.retain(|rule| rule["scope"] != "Cluster");
            }
            webhook["failurePolicy"] = json!("Fail");
            webhook["timeoutSeconds"] = json!(WEBHOOK_SECONDS);
            push(&mut webhook["matchConditions"], not_staged.clone());
        }
        cluster.admin().apply(&configuration.to_string())?;
    }
    Ok(())
}

/// Waits until the apiserver asks memgate about a namespace: configurations reach the admission
/// chain through a watch, the mutating and the validating ones each by itself.
pub(crate) fn wait_until_asked(cluster: &ControlPlane, namespace: &str) -> Result<()> {
    wait_until_asked_about_pods(cluster, namespace)?;
    wait_until_refused(cluster, namespace, &memory_of("asked", &json!({"backend": "redis"})))
}

/// The same for the mutating calls, which do not need CRDs.
pub(crate) fn wait_until_asked_about_pods(cluster: &ControlPlane, namespace: &str) -> Result<()> {
    wait_until_refused(cluster, namespace, &pod("asked", "absent", &[("memgate.dev/inject", "required")]))
}

fn wait_until_refused(cluster: &ControlPlane, namespace: &str, object: &Value) -> Result<()> {
    wait::until("memgate to be asked", || {
        let answer = cluster.block_on(create(&cluster.client(), namespace, object, "?dryRun=All"))?;
        Ok(answer.webhook_message().map(|_| ()))
    })
}

/// A client that may do anything, and about whose requests memgate is not asked.
pub(crate) fn exempt_client(cluster: &ControlPlane) -> Result<Client> {
    let kubeconfig: &Path = &cluster.user_kubeconfig(EXEMPT_USER, &["system:masters"])?;
    let config = cluster.config(kubeconfig)?;
    cluster.block_on(async { Client::try_from(config).context("failed to make a client") })
}

/// What memgate prints.
pub(crate) fn memgate(args: &[&str]) -> Result<String> {
    let output = Command::new(MEMGATE).args(args).env_clear().output().context("memgate does not start")?;
    ensure!(output.status.success(), "memgate {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("memgate prints no text")
}

/// The objects in a YAML text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let parsed = parse(&Arc::new(Source::new("memgate manifests", text)));
    parsed.documents.iter().map(|document| document.value().clone()).collect()
}

//! A cluster in which what refers to each other comes in any order. For how long pods wait says what namespace they
//! are in: a label of it leads to a memgate with another grace time.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    installed::{MEMGATE, install_account, install_crds, register, wait_until_asked},
    request::{Answer, create, path, send},
    support::{
        balancer::Balancer,
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Identity, Serve, Webhook},
    },
};

/// The label of namespaces by whose value a memgate is asked about them.
const MEMGATE_LABEL: &str = "test.memgate.dev/grace";

/// A grace time that a test can wait for.
pub(crate) const SHORT_GRACE: i64 = 6;

/// A cluster with several memgates, each for other namespaces.
pub(crate) struct OrderCluster {
    /// As it is installed.
    pub(crate) usual: Webhook,
    /// With [`SHORT_GRACE`].
    pub(crate) short: Webhook,
    /// Whose pods never wait.
    _off: Webhook,
    /// Two replicas with [`SHORT_GRACE`], and what is in front of them.
    _replicas: (Balancer, [Webhook; 2]),
    // Ends after those that talk to it.
    pub(crate) cluster: ControlPlane,
}

impl OrderCluster {
    pub(crate) fn start() -> Result<Self> {
        let cluster = ControlPlane::start()?;
        install_crds(&cluster)?;
        let kubeconfig = install_account(&cluster)?;
        let serve = |grace: &str| {
            let serve = Serve::new(MEMGATE).kubeconfig(&kubeconfig);
            if grace.is_empty() { serve } else { serve.arg("--reference-grace").arg(grace) }
        };
        let short = format!("{SHORT_GRACE}s");
        let (usual, short_lived, off) = (serve("").ready()?, serve(&short).ready()?, serve("0").ready()?);
        let identity = Identity::new()?;
        let replica = || serve(&short).identity(&identity).ready();
        let (balancer, replicas) = (Balancer::start(cluster.runtime())?, [replica()?, replica()?]);
        for replica in &replicas {
            balancer.add(replica.addresses());
        }
        let two = Endpoint::new(balancer.address(), identity.ca());
        let endpoints = [("short", short_lived.endpoint()), ("off", off.endpoint()), ("two", two)];
        for (value, endpoint) in endpoints {
            let only = json!({"key": MEMGATE_LABEL, "operator": "In", "values": [value]});
            register(&cluster, &endpoint, value, &only)?;
        }
        // The examples bring namespaces without the label.
        let only = json!({"key": MEMGATE_LABEL, "operator": "DoesNotExist"});
        register(&cluster, &usual.endpoint(), "usual", &only)?;
        let order = Self { usual, short: short_lived, _off: off, _replicas: (balancer, replicas), cluster };
        for value in ["", "short", "off", "two"] {
            wait_until_asked(&order.cluster, &order.namespace(value)?)?;
        }
        Ok(order)
    }

    /// A namespace that the memgate of this label, or the usual one, is asked about.
    pub(crate) fn namespace(&self, value: &str) -> Result<String> {
        let label = [(MEMGATE_LABEL, value)];
        self.cluster.labelled_namespace("order", if value.is_empty() { &[] } else { &label })
    }

    pub(crate) fn create(&self, namespace: &str, object: &Value) -> Result<Value> {
        self.cluster.block_on(create(&self.cluster.client(), namespace, object, ""))?.object()
    }

    /// The answer to creating an object.
    pub(crate) fn answer(&self, namespace: &str, object: &Value) -> Result<Answer> {
        self.cluster.block_on(create(&self.cluster.client(), namespace, object, ""))
    }

    /// An object as it is stored.
    pub(crate) fn get(&self, namespace: &str, object: &Value) -> Result<Value> {
        self.send(Method::GET, namespace, object)
    }

    pub(crate) fn delete(&self, namespace: &str, object: &Value) -> Result<()> {
        self.send(Method::DELETE, namespace, object)?;
        Ok(())
    }

    fn send(&self, method: Method, namespace: &str, object: &Value) -> Result<Value> {
        let path = path(object, namespace, object["metadata"]["name"].as_str())?;
        self.cluster.block_on(send(&self.cluster.client(), method, &path, None))?.object()
    }

    pub(crate) fn list(&self, path: &str) -> Result<Vec<Value>> {
        let list = self.cluster.block_on(send(&self.cluster.client(), Method::GET, path, None))?.object()?;
        Ok(list["items"].as_array().context("a list has items")?.clone())
    }

    /// The pods of a namespace that controllers have made.
    pub(crate) fn pods(&self, namespace: &str) -> Result<Vec<Value>> {
        let mut pods = self.list(&format!("/api/v1/namespaces/{namespace}/pods"))?;
        pods.retain(|pod| pod["metadata"]["ownerReferences"][0]["controller"] == true);
        Ok(pods)
    }

    /// The same, once there are so many.
    pub(crate) fn wait_for_pods(&self, namespace: &str, count: usize) -> Result<Vec<Value>> {
        wait::until(&format!("{count} pods in {namespace}"), || {
            let pods = self.pods(namespace)?;
            Ok((pods.len() >= count).then_some(pods))
        })
    }

    /// Changes an object.
    pub(crate) fn patch(&self, namespace: &str, object: &Value, patch: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let kind = object["kind"].as_str().context("no kind")?;
        let (api_version, patch) = (object["apiVersion"].as_str().unwrap_or_default(), patch.to_string());
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let what = format!("{kind}.{group}/{name}").to_lowercase();
        let arguments = ["patch", &what, "-n", namespace, "--type=merge", "--patch", &patch];
        self.cluster.kubectl(&arguments)?.ok()?;
        Ok(())
    }
}

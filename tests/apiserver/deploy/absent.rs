//! An installation whose memgate is away.
//!
//! The entries are as they are printed, for every namespace, save where they lead: to a port where
//! nothing listens, which is what an apiserver finds behind a Service without replicas.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::renamed::{manifests, name, text};
use crate::{
    request::create,
    samples::pod,
    support::{control_plane::ControlPlane, wait, webhook::Endpoint},
};

/// What refuses writes of the whole cluster, of all accounts but memgate's own.
const REFUSING: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations";

/// An installation without a memgate; what refuses anything goes when the value does.
pub(crate) struct Absent<'c> {
    cluster: &'c ControlPlane,
    /// Its own namespace.
    pub(super) home: String,
    pub(super) objects: Vec<Value>,
}

impl<'c> Absent<'c> {
    /// Installs everything, with further arguments, and waits until the apiserver asks in vain.
    pub(crate) fn new(cluster: &'c ControlPlane, arguments: &[&str]) -> Result<Self> {
        let home = cluster.fresh_namespace("home")?;
        let mut objects = manifests(&home, arguments)?;
        lead(&mut objects, &unserved(cluster));
        let absent = Self { cluster, home, objects };
        cluster.admin().apply(&text(&absent.objects))?;
        let probe = cluster.fresh_namespace("probe")?;
        wait::until("memgate to be missed", || Ok(absent.refused(&probe)?.then_some(())))?;
        Ok(absent)
    }

    /// Whether a pod that insists on its memory is refused.
    pub(super) fn refused(&self, namespace: &str) -> Result<bool> {
        let insists = pod("insists", "scout", &[("memgate.dev/inject", "required")]);
        let answer =
            self.cluster.block_on(create(&self.cluster.client(), namespace, &insists, "?dryRun=All"))?;
        ensure!(
            answer.granted()
                || answer.message().contains("failed calling webhook \"required.pods.memgate.dev\""),
            "{}",
            answer.message()
        );
        Ok(!answer.granted())
    }

    /// Has the apiserver ask there from now on.
    pub(super) fn lead(&mut self, endpoint: &Endpoint) -> Result<()> {
        lead(&mut self.objects, endpoint);
        let configurations = self.objects.iter().filter(|object| object["webhooks"].is_array()).cloned();
        self.cluster.admin().apply(&text(&configurations.collect::<Vec<_>>()))?;
        Ok(())
    }
}

impl Drop for Absent<'_> {
    fn drop(&mut self) {
        // The test is over either way; what remains shows in those that come after it.
        let _ = self.cluster.kubectl(&["delete", REFUSING, &name(&self.home)]);
    }
}

fn lead(objects: &mut [Value], endpoint: &Endpoint) {
    for webhook in objects.iter_mut().filter_map(|object| object["webhooks"].as_array_mut()).flatten() {
        let path = if webhook["reinvocationPolicy"].is_string() { "/mutate" } else { "/validate" };
        webhook["clientConfig"] = endpoint.client_config(path);
    }
}

/// Where nothing listens.
pub(super) fn unserved(cluster: &ControlPlane) -> Endpoint {
    Endpoint::new(([127, 0, 0, 1], 1).into(), &cluster.authority().pem())
}

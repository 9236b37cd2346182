//! The way to a cluster: a kubeconfig, one of its contexts, or the service account.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Where a service account finds its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of `memgate manifests` when nobody says otherwise.
pub const DEFAULT_NAMESPACE: &str = "memgate-system";

/// Which cluster is meant.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The kubeconfig; without it KUBECONFIG, `~/.kube/config`, or the service account.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    pub context: Option<String>,
}

impl Cluster {
    /// A client of the cluster; nothing is called yet.
    ///
    /// # Errors
    /// When there is no such kubeconfig, or it cannot be used.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let failed = || format!("failed to use the kubeconfig {}", path.display());
                let kubeconfig = Kubeconfig::read_from(path).map_err(said).with_context(failed)?;
                let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
                config.map_err(said).with_context(failed)?
            }
            (None, Some(context)) => {
                let config = kube::Config::from_kubeconfig(&options).await;
                config.map_err(said).with_context(|| format!("failed to use the context {context}"))?
            }
            (None, None) => {
                let config = kube::Config::infer().await;
                config.map_err(said).context("found no cluster; give --kubeconfig or --context")?
            }
        };
        kube::Client::try_from(config).context("failed to make a client of the cluster")
    }
}

/// The namespace that this process runs in, or the usual one outside of a cluster.
#[must_use]
pub fn own_namespace() -> String {
    let namespace = std::fs::read_to_string(Path::new(NAMESPACE_FILE)).unwrap_or_default();
    let namespace = namespace.trim();
    if namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { namespace.to_owned() }
}

/// The text of an error that repeats its causes in it.
fn said(error: impl std::error::Error) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}

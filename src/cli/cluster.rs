//! The way to a cluster: from a kubeconfig, a context, or the service account.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which cluster a command asks.
#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// The kubeconfig; without it KUBECONFIG, ~/.kube/config, or the service account
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// The settings of a client.
    ///
    /// # Errors
    /// When there is no cluster, or what leads to it is no good.
    pub async fn config(&self) -> anyhow::Result<kube::Config> {
        config(self.kubeconfig.as_deref(), self.context.as_deref(), "found no cluster; give --kubeconfig")
            .await
    }
}

/// The settings of a client; `missing` is what to say when nothing leads to a cluster.
///
/// # Errors
/// When there is no cluster, or what leads to it is no good.
pub async fn config(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    missing: &'static str,
) -> anyhow::Result<kube::Config> {
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    match (kubeconfig, context) {
        (Some(path), _) => {
            let failed = || format!("failed to use the kubeconfig {}", path.display());
            let kubeconfig = Kubeconfig::read_from(path).map_err(said).with_context(failed)?;
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
            config.map_err(said).with_context(failed)
        }
        (None, Some(context)) => {
            let config = kube::Config::from_kubeconfig(&options).await;
            config.map_err(said).with_context(|| format!("failed to use the context {context}"))
        }
        (None, None) => kube::Config::infer().await.map_err(said).context(missing),
    }
}

/// A client with these settings.
///
/// # Errors
/// When a certificate or a proxy of the settings is no good.
pub fn client(config: kube::Config) -> anyhow::Result<kube::Client> {
    kube::Client::try_from(config).context("failed to make a client of the cluster")
}

/// The text of an error that repeats its causes in it.
fn said(error: impl std::error::Error) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}

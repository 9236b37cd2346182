//! `--kubeconfig` and `--context`: which cluster a command asks.

use std::path::PathBuf;

use crate::cluster::client::{Error, KubeContext};

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
    /// Whether a cluster was named.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// A client of the cluster; nothing is called yet.
    ///
    /// # Errors
    /// When there is no cluster, or what leads to it is no good.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        let context = KubeContext { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        context.client().await
    }
}

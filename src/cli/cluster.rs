//! `--kubeconfig` and `--context`: the cluster of a command.

use std::path::PathBuf;

use anyhow::Context as _;
use tokio::runtime::Runtime;

use memgate_cluster::client::{Error, KubeContext};

/// The cluster of a command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArgs {
    /// Whether a flag names a cluster.
    pub const fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Whether the environment names a cluster.
    pub fn is_in_environment() -> bool {
        std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty())
    }

    /// A client of the cluster. It has made no call yet.
    ///
    /// # Errors
    /// When there is no kubeconfig and no service account, or one of them cannot be used.
    pub(crate) async fn client(&self) -> Result<kube::Client, Error> {
        let context = KubeContext { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        context.client().await
    }
}

/// Makes the calls of a command to a cluster, and abandons what runs in the background after them.
///
/// # Errors
/// Those of the calls, and when the runtime cannot start.
pub fn block_on<T>(calls: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = Runtime::new().context("failed to start the runtime")?;
    let result = runtime.block_on(calls);
    runtime.shutdown_background();
    result
}

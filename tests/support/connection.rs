//! The client with which a test calls the apiserver from within its own process.

use std::path::Path;

use anyhow::{Context, Result};
use axum::http::Request;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::runtime::{Builder, Handle, Runtime};

use super::process::Process;

/// A client, and the runtime that it needs.
pub(crate) struct Connection {
    client: Client,
    runtime: Runtime,
}

impl Connection {
    /// Prepares a client; nothing is called yet.
    pub(crate) fn new(kubeconfig: &Path) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("failed to start a runtime")?;
        let client = runtime.block_on(async {
            let config = config(kubeconfig).await?;
            Client::try_from(config).context("failed to make a client")
        })?;
        Ok(Self { client, runtime })
    }

    /// The client, sharing its connections.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The runtime, for what runs during the test.
    pub(crate) fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Runs a future to its end.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits until the apiserver says that it is ready, which includes the built-in roles.
    pub(crate) fn wait_until_ready(&self, apiserver: &mut Process) -> Result<()> {
        apiserver.until("kube-apiserver to be ready", || {
            let request = Request::get("/readyz").body(Vec::new())?;
            let answer = self.block_on(self.client.request_text(request));
            Ok(answer.is_ok().then_some(()))
        })
    }
}

/// The settings in a kubeconfig file.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("failed to read {}", kubeconfig.display()))?;
    Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

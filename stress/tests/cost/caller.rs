//! One caller with a connection that is kept, as an apiserver has it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::support::https::{self, Connection, post};

/// How long an answer may take; far more than any bound.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection, made anew when the server has closed it.
pub(crate) struct Caller {
    runtime: Runtime,
    to: https::Caller,
    connection: Connection,
}

impl Caller {
    /// Connects to a server whose certificate the CA has signed.
    pub(crate) fn new(address: SocketAddr, ca: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let to = https::Caller::new(address, ca)?;
        let connection = runtime.block_on(to.connect())?;
        Ok(Self { runtime, to, connection })
    }

    /// The status and the body of the answer.
    pub(crate) fn exchange(&mut self, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let request = post(&format!("{path}?timeout=30s"), body);
        self.runtime.block_on(async {
            let answer =
                timeout(PATIENCE, self.connection.exchange(&request)).await.context("no answer")??;
            if answer.closes() {
                self.connection = self.to.connect().await?;
            }
            Ok((answer.status_for_client(), answer.body))
        })
    }
}

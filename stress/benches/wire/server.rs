//! The servers that are measured: each a process of its own, on a core of its own.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use super::certificates::Certificates;
use crate::support::https::Caller;
use crate::support::memory::kib;
use crate::support::process::{Process, threads};

/// The core of the server that is measured; `tools/bench.sh` keeps the load on another one.
const SERVER_CORE: &str = "0";

/// How long a server may take to answer first, with the largest state.
const LONGEST_START: Duration = Duration::from_mins(1);

/// A program that can serve.
#[derive(Clone)]
pub(crate) struct Program {
    /// As tables call it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// How it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This program, answering a constant.
    Limit,
    Memgate,
    /// stress/benches/peers/controller-runtime.
    Peer,
    /// `openssl s_server`, for handshakes alone.
    OpenSsl,
}

/// A server that answers.
pub(crate) struct Server {
    pub(crate) program: Program,
    pub(crate) caller: Caller,
    /// From its start to its first answer.
    pub(crate) started_in: Duration,
    process: Process,
}

impl Server {
    /// Starts it, and waits until it has answered the request.
    pub(crate) fn start(
        program: &Program,
        state: &Path,
        certificates: &Certificates,
        (runtime, request): (&Runtime, &Arc<[u8]>),
    ) -> Result<Self> {
        let (listen, health) = (free_address()?, free_address()?.to_string());
        let text = listen.to_string();
        let mut command = Command::new("taskset");
        command.args(["-c", SERVER_CORE]).arg(&program.path);
        match program.kind {
            Kind::Limit => command.args(["limit", &text]).arg(certificates.folder.path()),
            Kind::Memgate => command
                .arg("serve")
                .arg("--state")
                .arg(state)
                .arg("--tls-cert")
                .arg(certificates.path("tls.crt"))
                .arg("--tls-key")
                .arg(certificates.path("tls.key"))
                .args(["--listen", &text, "--health", &health]),
            Kind::Peer => command
                .arg("--state")
                .arg(state)
                .arg("--certs")
                .arg(certificates.folder.path())
                .args(["--listen", &text]),
            Kind::OpenSsl => command
                .args(["s_server", "-quiet", "-www", "-num_tickets", "0", "-accept", &text, "-cert"])
                .arg(certificates.path("tls.crt"))
                .arg("-key")
                .arg(certificates.path("tls.key")),
        };
        let log = certificates.path(&format!("{}.log", listen.port()));
        let mut process = Process::start(&program.name, &command, &log)?;
        // Not the start of the shell that watches it.
        while process.id().is_none() && process.exited()?.is_none() {
            std::thread::yield_now();
        }
        let start = Instant::now();
        let caller = Caller::new(listen, &certificates.ca)?;
        while !matches!(runtime.block_on(async { caller.connect().await?.call(request).await }), Ok(Some(_)))
        {
            must_live(&mut process, &program.name)?;
            if start.elapsed() > LONGEST_START {
                bail!("{} does not answer: {}", program.name, process.log_tail());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { program: program.clone(), caller, started_in: start.elapsed(), process })
    }

    /// The CPU time of all its threads until now.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        Ok(Duration::from_nanos(threads(self.id()?)?.values().sum()))
    }

    /// Resident memory now, in MiB.
    #[allow(clippy::cast_precision_loss, reason = "less than a terabyte")]
    pub(crate) fn resident(&self) -> Result<f64> {
        Ok(kib(self.id()?, "VmRSS:").context("no VmRSS")? as f64 / 1024.0)
    }

    /// Fails with its last words when it has ended.
    pub(crate) fn must_live(&mut self) -> Result<()> {
        must_live(&mut self.process, &self.program.name)
    }

    fn id(&self) -> Result<u32> {
        self.process.id().with_context(|| format!("{} has ended", self.program.name))
    }
}

fn must_live(process: &mut Process, name: &str) -> Result<()> {
    match process.exited()? {
        None => Ok(()),
        Some(status) => bail!("{name} ended, {status}: {}", process.log_tail()),
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

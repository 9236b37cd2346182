//! The servers that are measured: each a process of its own, on a core of its own.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use super::certificates::Certificates;
use super::load::Caller;

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
        command.stdout(File::create(&log)?).stderr(File::options().append(true).open(&log)?);
        let start = Instant::now();
        let child = command.spawn().context("failed to run taskset")?;
        let mut process = Process { child, log };
        let caller = Caller::new(listen, &certificates.ca)?;
        while !matches!(runtime.block_on(async { caller.connect().await?.call(request).await }), Ok(Some(_)))
        {
            process.must_live(&program.name)?;
            if start.elapsed() > LONGEST_START {
                bail!("{} does not answer: {}", program.name, process.said());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { program: program.clone(), caller, started_in: start.elapsed(), process })
    }

    /// The CPU time of all its threads until now.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.process.child.id()))? {
            let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += statistics.split(' ').next().context("no CPU time")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Resident memory now, in MiB.
    pub(crate) fn resident(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Fails with its last words when it has ended.
    pub(crate) fn must_live(&mut self) -> Result<()> {
        self.process.must_live(&self.program.name)
    }
}

/// A process that is ended with this value.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn must_live(&mut self, name: &str) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{name} ended, {status}: {}", self.said()),
        }
    }

    fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().rev().take(5).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

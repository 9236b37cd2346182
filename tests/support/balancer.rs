//! A balancer as a Service is one: new connections go round the replicas that are ready, which it
//! learns a moment late. What is connected stays connected, whatever becomes of the readiness, and a
//! replica that refuses a connection is not made up for by another one.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Handle,
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

use super::{wait, webhook::Addresses};

/// How often readiness is looked at, and how late new connections follow it.
const READINESS_INTERVAL: Duration = Duration::from_millis(200);

/// The replicas that are ready, by the address of their webhook; each gets its turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endpoints(Arc<Mutex<(Vec<SocketAddr>, usize)>>);

impl Endpoints {
    /// From now on new connections go to these.
    pub(crate) fn set(&self, ready: Vec<SocketAddr>) {
        self.lock().0 = ready;
    }

    /// Where the next connection goes.
    pub(crate) fn next(&self) -> Option<SocketAddr> {
        let mut state = self.lock();
        state.1 = state.1.wrapping_add(1);
        let turn = state.1.checked_rem(state.0.len())?;
        state.0.get(turn).copied()
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<SocketAddr>, usize)> {
        // A panic with the lock leaves a whole list behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes on what a caller and a replica send each other, until both have learned that it ended.
pub(crate) async fn relay(mut caller: TcpStream, mut replica: TcpStream) {
    let _ = (caller.set_nodelay(true), replica.set_nodelay(true));
    let _ = copy_bidirectional(&mut caller, &mut replica).await;
}

/// A running balancer, ended on drop; its connections end with their peers.
pub(crate) struct Balancer {
    address: SocketAddr,
    replicas: Replicas,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Clone, Debug, Default)]
struct Replicas {
    all: Arc<Mutex<Vec<Addresses>>>,
    ready: Endpoints,
    unanswered: Arc<AtomicU64>,
}

impl Balancer {
    /// Listens on a free port, for no replica yet.
    pub(crate) fn start(runtime: &Handle) -> Result<Self> {
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let replicas = Replicas::default();
        let tasks = [
            runtime.spawn(accept(listener, replicas.clone())),
            runtime.spawn(follow_readiness(replicas.clone())),
        ];
        Ok(Self { address, replicas, tasks })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// One more replica, which gets connections once it is ready.
    pub(crate) fn add(&self, replica: Addresses) {
        self.replicas.lock().push(replica);
    }

    /// Nothing more is asked of a replica that has ended.
    pub(crate) fn forget(&self, replica: Addresses) {
        self.replicas.lock().retain(|other| other.listen != replica.listen);
    }

    /// How many connections led nowhere: there was no replica, or none any more.
    pub(crate) fn unanswered(&self) -> u64 {
        self.replicas.unanswered.load(Relaxed)
    }

    /// Whether new connections go to a replica.
    pub(crate) fn uses(&self, replica: Addresses) -> bool {
        self.replicas.ready.lock().0.contains(&replica.listen)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Replicas {
    fn lock(&self) -> MutexGuard<'_, Vec<Addresses>> {
        // A panic with the lock leaves a whole list behind.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, replicas: Replicas) {
    while let Ok((caller, _)) = listener.accept().await {
        let replicas = replicas.clone();
        tokio::spawn(async move {
            match connect(&replicas.ready).await {
                Some(replica) => relay(caller, replica).await,
                None => _ = replicas.unanswered.fetch_add(1, Relaxed),
            }
        });
    }
}

async fn connect(ready: &Endpoints) -> Option<TcpStream> {
    TcpStream::connect(ready.next()?).await.ok()
}

async fn follow_readiness(replicas: Replicas) {
    loop {
        let all = replicas.lock().clone();
        let seen = spawn_blocking(move || {
            let ready = all.into_iter().filter(|at| is_ready(*at)).map(|at| at.listen);
            ready.collect::<Vec<_>>()
        });
        let Ok(ready) = seen.await else { return };
        sleep(READINESS_INTERVAL).await;
        replicas.ready.set(ready);
    }
}

fn is_ready(replica: Addresses) -> bool {
    wait::http_get(replica.health, "/readyz").is_some_and(|(status, _)| status == 200)
}

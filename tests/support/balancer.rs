//! A balancer as a Service is one: new connections go round the replicas that are ready, which it
//! learns a moment late. What is connected stays connected, whatever becomes of the readiness, and a
//! replica that refuses a connection is not made up for by another one.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
const LOOK: Duration = Duration::from_millis(200);

/// A running balancer, ended on drop; its connections end with their peers.
pub(crate) struct Balancer {
    address: SocketAddr,
    replicas: Replicas,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Clone, Debug, Default)]
struct Replicas(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    all: Vec<Addresses>,
    ready: Vec<SocketAddr>,
    turn: usize,
    in_vain: u64,
}

impl Balancer {
    /// Listens on a free port, for no replica yet.
    pub(crate) fn start(runtime: &Handle) -> Result<Self> {
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let replicas = Replicas::default();
        let tasks =
            [runtime.spawn(accept(listener, replicas.clone())), runtime.spawn(look(replicas.clone()))];
        Ok(Self { address, replicas, tasks })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// One more replica, which gets connections once it is ready.
    pub(crate) fn add(&self, replica: Addresses) {
        self.replicas.lock().all.push(replica);
    }

    /// Nothing more is asked of a replica that has ended.
    pub(crate) fn forget(&self, replica: Addresses) {
        self.replicas.lock().all.retain(|other| other.listen != replica.listen);
    }

    /// How many connections led nowhere: there was no replica, or none any more.
    pub(crate) fn in_vain(&self) -> u64 {
        self.replicas.lock().in_vain
    }

    /// Whether new connections go to a replica.
    pub(crate) fn uses(&self, replica: Addresses) -> bool {
        self.replicas.lock().ready.contains(&replica.listen)
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
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked with the lock left whole lists behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<SocketAddr> {
        let mut state = self.lock();
        state.turn += 1;
        let turn = state.turn.checked_rem(state.ready.len())?;
        state.ready.get(turn).copied()
    }
}

async fn accept(listener: TcpListener, replicas: Replicas) {
    while let Ok((mut caller, _)) = listener.accept().await {
        let replicas = replicas.clone();
        tokio::spawn(async move {
            let Some(mut replica) = connect(&replicas).await else {
                replicas.lock().in_vain += 1;
                return;
            };
            let _ = (caller.set_nodelay(true), replica.set_nodelay(true));
            // However it ends, both sides learn of it by the end of their connection.
            let _ = copy_bidirectional(&mut caller, &mut replica).await;
        });
    }
}

async fn connect(replicas: &Replicas) -> Option<TcpStream> {
    TcpStream::connect(replicas.next()?).await.ok()
}

async fn look(replicas: Replicas) {
    loop {
        let all = replicas.lock().all.clone();
        let seen = spawn_blocking(move || {
            let ready = all.into_iter().filter(|at| is_ready(*at)).map(|at| at.listen);
            ready.collect::<Vec<_>>()
        });
        let Ok(ready) = seen.await else { return };
        sleep(LOOK).await;
        replicas.lock().ready = ready;
    }
}

fn is_ready(replica: Addresses) -> bool {
    wait::http_get(replica.health, "/readyz").is_some_and(|(status, _)| status == 200)
}

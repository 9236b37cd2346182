//! What a cluster's network does for webhooks: from the name of a Service to a replica.
//!
//! The apiserver is started with a proxy for HTTPS, which is this. It asks for
//! `memgate.memgate-system.svc:443`, and its connection goes, byte by byte, to a replica that was ready
//! a moment ago, each in turn. What is connected stays connected, as it does through a real Service.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The longest request for a connection.
const REQUEST: usize = 4096;

/// The replicas that are ready, by the address of their webhook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endpoints(Arc<Mutex<(Vec<SocketAddr>, usize)>>);

impl Endpoints {
    /// From now on new connections go to these.
    pub(crate) fn set(&self, ready: Vec<SocketAddr>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = ready;
    }

    fn next(&self) -> Option<SocketAddr> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = state.1.wrapping_add(1);
        let turn = state.1.checked_rem(state.0.len())?;
        state.0.get(turn).copied()
    }
}

/// A running network.
pub(crate) struct Network {
    /// Where it listens, as a proxy.
    pub(crate) address: SocketAddr,
    /// Where it leads.
    pub(crate) endpoints: Endpoints,
    _runtime: Runtime,
}

impl Network {
    /// Listens on a free port, for no replica yet.
    pub(crate) fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let (address, endpoints) = (listener.local_addr()?, Endpoints::default());
        runtime.spawn(accept(listener, endpoints.clone()));
        Ok(Self { address, endpoints, _runtime: runtime })
    }
}

async fn accept(listener: TcpListener, endpoints: Endpoints) {
    while let Ok((caller, _)) = listener.accept().await {
        let endpoints = endpoints.clone();
        tokio::spawn(async move {
            // However it ends, both sides learn of it by the end of their connection.
            let _ended = connect(caller, &endpoints).await;
        });
    }
}

async fn connect(mut caller: TcpStream, endpoints: &Endpoints) -> std::io::Result<()> {
    let head = timeout(Duration::from_secs(10), head(&mut caller)).await??;
    let to_memgate = head.starts_with("CONNECT memgate.memgate-system.svc:443 ");
    let Some(replica) = endpoints.next().filter(|_| to_memgate) else {
        return caller.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").await;
    };
    let Ok(mut replica) = TcpStream::connect(replica).await else {
        return caller.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    };
    caller.set_nodelay(true)?;
    replica.set_nodelay(true)?;
    caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut caller, &mut replica).await.map(|_| ())
}

/// The head of the request, byte by byte: what follows it is for the replica.
async fn head(caller: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < REQUEST {
        head.push(caller.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

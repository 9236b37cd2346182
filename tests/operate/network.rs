//! What a cluster's network does for webhooks: from the name of a Service to a replica.
//!
//! The apiserver is started with a proxy for HTTPS, which is this. It asks for
//! `memgate.memgate-system.svc:443`, or for the address of that Service, and its connection goes, byte by byte, to a replica that was ready
//! a moment ago, each in turn. What is connected stays connected, as it does through a real Service.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::support::balancer::{Endpoints, relay};

/// How the apiserver names memgate's Service: up to 1.36 by its name, from 1.37 on by its address, which no other
/// Service with webhooks has here.
const SERVICE: [&str; 2] = ["CONNECT memgate.memgate-system.svc:443 ", "CONNECT 10.0.0."];

/// The longest request for a connection.
const MAX_REQUEST_BYTES: usize = 4096;

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
    let to_memgate = SERVICE.iter().any(|service| head.starts_with(service));
    let Some(replica) = endpoints.next().filter(|_| to_memgate) else {
        return caller.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").await;
    };
    let Ok(replica) = TcpStream::connect(replica).await else {
        return caller.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    };
    caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    relay(caller, replica).await;
    Ok(())
}

/// The head of the request, byte by byte: what follows it is for the replica.
async fn head(caller: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_REQUEST_BYTES {
        head.push(caller.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

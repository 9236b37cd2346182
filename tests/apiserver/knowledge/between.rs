//! What stands between a memgate and its apiserver, and does not pass on what it hears: dates of years ago, refusals, half a
//! body, or nothing. It speaks plain HTTP, and asks the apiserver with the identity of a kubeconfig file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, DATE},
    },
    response::{IntoResponse, Response},
};
use futures::stream;
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};
use kube::Client;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::support::control_plane::ControlPlane;

/// What becomes of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are passed on.
    Honest,
    /// They are passed on with a date that is so many seconds off.
    Dated(i64),
    /// Each is this refusal.
    Refuses(u16),
    /// Each ends in the middle of its body.
    Halves,
    /// Each is this text.
    Says(&'static str),
    /// None comes.
    Hangs,
}

/// A running one, ended on drop.
pub(crate) struct Between {
    address: SocketAddr,
    mode: Arc<Mutex<Mode>>,
    task: JoinHandle<()>,
}

impl Between {
    /// Listens on a free port.
    pub(crate) fn start(cluster: &ControlPlane, kubeconfig: &Path, mode: Mode) -> Result<Self> {
        let config = cluster.config(kubeconfig)?;
        let mode = Arc::new(Mutex::new(mode));
        let shared = Arc::clone(&mode);
        let (address, task) = cluster.block_on(async {
            let client = Client::try_from(config)?;
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?;
            let router = Router::new().fallback(answer).with_state((client, shared));
            let serve = async move { axum::serve(listener, router).await.unwrap_or_default() };
            anyhow::Ok((address, cluster.runtime().spawn(serve)))
        })?;
        Ok(Self { address, mode, task })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on.
    pub(crate) fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// A kubeconfig file that leads here.
    pub(crate) fn kubeconfig(&self, cluster: &ControlPlane) -> Result<PathBuf> {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "it", "user": {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        let name = format!("between-{}.kubeconfig", self.address.port());
        cluster.scratch().write(&name, &config.to_string()).context("no kubeconfig")
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State((client, mode)): State<(Client, Arc<Mutex<Mode>>)>, request: Request) -> Response {
    let mode = *mode.lock().unwrap_or_else(PoisonError::into_inner);
    match mode {
        Mode::Hangs => std::future::pending().await,
        Mode::Says(text) => text.into_response(),
        Mode::Refuses(code) => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
                "reason": if code == 410 { "Expired" } else { "Unknown" }, "message": "not today",
            });
            let json = [(CONTENT_TYPE, "application/json")];
            (StatusCode::from_u16(code).unwrap_or_default(), json, status.to_string()).into_response()
        }
        Mode::Honest | Mode::Dated(_) | Mode::Halves => {
            pass_on(&client, mode, request).await.unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
        }
    }
}

async fn pass_on(client: &Client, mode: Mode, request: Request) -> Result<Response> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().context("a path")?.to_string();
    head.uri = path.parse()?;
    for hop in ["host", "authorization", "connection"] {
        head.headers.remove(hop);
    }
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(head, kube::client::Body::from(body.to_vec()));
    let (mut head, body) = client.send(request).await?.into_parts();
    head.headers.remove("transfer-encoding");
    if let Mode::Dated(seconds) = mode {
        let date = Timestamp::now() + SignedDuration::from_secs(seconds);
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&date)?;
        head.headers.insert(DATE, HeaderValue::from_str(&date)?);
    }
    if mode == Mode::Halves {
        head.headers.remove("content-length");
        let whole = tokio::time::timeout(Duration::from_secs(2), body.collect()).await??.to_bytes();
        let half =
            stream::iter([Ok(whole.slice(..whole.len() / 2)), Err(std::io::Error::other("half a body"))]);
        return Ok(Response::from_parts(head, Body::from_stream(half)));
    }
    Ok(Response::from_parts(head, Body::from_stream(body.into_data_stream())))
}

//! One connection from its first byte to its last.

mod guard;
pub(super) mod seats;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::server::connection::guard::Guarded;
use crate::server::connection::seats::Seat;
use crate::server::drain::Drain;
use crate::server::metrics::{Handshake, Metrics};
use crate::server::options::Timers;

/// The most that is read from a connection that was closed before its peer had sent everything:
/// twice the largest body.
const LINGER_BYTES: usize = 16 << 20;

/// The largest read buffer of a connection. hyper would let it grow to 400 KiB and keep it while
/// the connection is idle; TLS delivers 16 KiB at a time anyway.
const BUFFER: usize = 64 << 10;

/// What all connections of one listener have in common.
pub(super) struct House {
    /// What answers requests.
    pub(super) router: Router,
    /// The way into TLS; `None` for plain HTTP.
    pub(super) tls: Option<TlsAcceptor>,
    /// The largest head of a request, in bytes.
    pub(super) head: usize,
    pub(super) timers: Arc<Timers>,
    pub(super) drain: Drain,
    pub(super) metrics: Arc<Metrics>,
}

/// Serves a connection until it ends or must go.
pub(super) async fn serve(house: Arc<House>, stream: TcpStream, seat: Seat) {
    let activity = Arc::clone(&seat.activity);
    tokio::select! {
        () = shake_hands_and_serve(&house, stream, &seat) => {}
        () = activity.evicted() => tracing::debug!("a connection had to go for another one"),
    }
}

async fn shake_hands_and_serve(house: &House, stream: TcpStream, seat: &Seat) {
    let Some(acceptor) = &house.tls else {
        return serve_http(house, stream, seat).await;
    };
    let handshake = match timeout(house.timers.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            house.metrics.shook_hands(Handshake::Done);
            return Box::pin(serve_http(house, stream, seat)).await;
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            if is_refusal(&error) { Handshake::ClientRefused } else { Handshake::Failed }
        }
        Err(_) => Handshake::TimedOut,
    };
    house.metrics.shook_hands(handshake);
}

/// Whether a handshake failed of what the caller showed, or did not show.
fn is_refusal(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented))
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin>(house: &House, stream: S, seat: &Seat) {
    let stream = Guarded::new(stream, Arc::clone(&seat.activity), Arc::clone(&house.timers));
    let answer = |request| answer(house, seat, request);
    let connection = http1::Builder::new()
        .max_header_size(house.head)
        .max_buf_size(BUFFER.max(house.head))
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .without_shutdown();
    match connection.await {
        Ok(parts) => linger(parts.io.into_inner().into_inner(), house.timers.linger).await,
        Err(error) => tracing::debug!(%error, "a connection ended early"),
    }
}

async fn answer(house: &House, seat: &Seat, request: Request<Incoming>) -> Result<Response, Infallible> {
    seat.activity.busy();
    let mut response = house.router.clone().oneshot(request.map(Body::new)).await?;
    if house.drain.has_begun() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    seat.activity.answered(in_earnest(response.status()));
    Ok(response)
}

/// Whether an answer is one that only a caller with a review gets.
fn in_earnest(status: StatusCode) -> bool {
    !status.is_client_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Says goodbye, and reads what the peer was still sending: closing before that would reset the
/// connection, and the last answer could be lost with it.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, time: Duration) {
    let reading = async {
        stream.shutdown().await?;
        let mut scrap = vec![0; 8 << 10];
        let mut left = LINGER_BYTES;
        while left > 0 {
            match stream.read(&mut scrap).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        Ok::<_, std::io::Error>(())
    };
    let _whatever_came = timeout(time, reading).await;
}

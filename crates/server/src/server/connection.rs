//! Serves one connection: TLS, then HTTP/1.1 requests until one side closes it.

mod socket;
mod timeout_stream;

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
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::server::concurrency_limiter::ConcurrencyLimiter;
use crate::server::connection::socket::Socket;
use crate::server::connection::timeout_stream::TimeoutStream;
use crate::server::connection_limiter::{ConnectionPhase, ConnectionSlot, Peer};
use crate::server::deadline::FirstByte;
use crate::server::drain::Drain;
use crate::server::handshake_limiter::{HandshakeLimiter, HandshakePermit};
use crate::server::metrics::Metrics;
use crate::server::metrics::labels::{HandshakeOutcome, ShedCause};
use crate::server::options::Timers;

/// How much is read from a connection that was closed before its peer had sent everything: twice the
/// largest body.
const MAX_LINGER_BYTES: usize = 16 << 20;

/// The largest read buffer of a connection. hyper would let it grow to 400 KiB and keep it while
/// the connection is idle; TLS delivers 16 KiB at a time anyway.
const MAX_READ_BUFFER_BYTES: usize = 64 << 10;

/// How much of an answer waits in TLS to be written, encrypted and not: two records. rustls would keep four, and
/// the bytes that an answer claims do not include these.
const TLS_BUFFER_BYTES: usize = 32 << 10;

/// What all connections of one listener share.
pub(super) struct ListenerContext {
    /// Answers the requests.
    pub(super) router: Router,
    /// Accepts TLS; `None` for plain HTTP.
    pub(super) tls: Option<TlsAcceptor>,
    /// The largest head of a request, in bytes.
    pub(super) head: usize,
    /// Rations the handshakes of TLS.
    pub(super) handshakes: Arc<HandshakeLimiter>,
    pub(super) timers: Arc<Timers>,
    /// Bounds the bytes of answers that are not read; `None` where they are few and small.
    pub(super) concurrency: Option<Arc<ConcurrencyLimiter>>,
    pub(super) drain: Drain,
    pub(super) metrics: Arc<Metrics>,
}

/// Serves a connection until it ends, or is closed for another one.
pub(super) async fn serve(context: Arc<ListenerContext>, stream: TcpStream, slot: ConnectionSlot) {
    let activity = Arc::clone(&slot.activity);
    let socket = Socket::new(stream, Arc::clone(&activity));
    tokio::select! {
        () = serve_tls(&context, socket, &slot) => {}
        () = activity.evicted() => tracing::debug!("a connection was closed for another one"),
    }
}

async fn serve_tls(context: &ListenerContext, socket: Socket, slot: &ConnectionSlot) {
    let Some(acceptor) = &context.tls else {
        return serve_http(context, socket, slot, None).await;
    };
    let shaking = timeout(context.timers.handshake, shake_hands(context, acceptor, socket, slot));
    let outcome = match shaking.await {
        Ok(Ok((stream, permit))) => {
            context.metrics.count_handshake(HandshakeOutcome::Done);
            return Box::pin(serve_http(context, stream, slot, Some(&permit))).await;
        }
        Ok(Err(outcome)) => outcome,
        Err(_) => HandshakeOutcome::TimedOut,
    };
    context.metrics.count_handshake(outcome);
}

/// Waits for the first byte and for a permit, and shakes hands.
async fn shake_hands(
    context: &ListenerContext,
    acceptor: &TlsAcceptor,
    socket: Socket,
    slot: &ConnectionSlot,
) -> Result<(TlsStream<Socket>, HandshakePermit), HandshakeOutcome> {
    // Who connects and says nothing, like a probe, uses up nothing of what others need.
    if !socket.begins().await {
        return Err(HandshakeOutcome::Failed);
    }
    let permit = context.handshakes.begin(slot.peer, &slot.activity).await;
    let permit = permit.ok_or(HandshakeOutcome::Rationed)?;
    if permit.displaces {
        context.metrics.count_handshake(HandshakeOutcome::Rationed);
    }
    // A caller that has hung up by now is not worth the cryptography.
    if !socket.begins().await {
        permit.give_back();
        return Err(HandshakeOutcome::Failed);
    }
    slot.activity.handshake_begins();
    let accept = acceptor.accept_with(socket, |tls| tls.set_buffer_limit(Some(TLS_BUFFER_BYTES)));
    let accepted = accept.await;
    permit.end();
    match accepted {
        Ok(stream) => Ok((stream, permit)),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            let refused = is_client_rejected(&error);
            Err(if refused { HandshakeOutcome::ClientRefused } else { HandshakeOutcome::Failed })
        }
    }
}

/// Whether a handshake failed because of the client certificate, or for want of one.
fn is_client_rejected(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented))
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin>(
    context: &ListenerContext,
    stream: S,
    slot: &ConnectionSlot,
    handshake: Option<&HandshakePermit>,
) {
    let (activity, timers) = (Arc::clone(&slot.activity), Arc::clone(&context.timers));
    let stream = TimeoutStream::new(stream, activity, timers, context.concurrency.clone());
    let respond = |request| respond(context, slot, handshake, request);
    let connection = http1::Builder::new()
        .max_header_size(context.head)
        .max_buf_size(MAX_READ_BUFFER_BYTES.max(context.head))
        .serve_connection(TokioIo::new(stream), service_fn(respond))
        .without_shutdown();
    match connection.await {
        Ok(parts) => linger(parts.io.into_inner().into_inner(), context.timers.linger).await,
        Err(error) => {
            tracing::debug!(%error, "a connection ended early");
            if is_timeout(&error) && slot.activity.phase().0 == ConnectionPhase::Writing {
                context.metrics.count_shed(ShedCause::Unread);
            }
        }
    }
}

/// Whether the peer took too long.
fn is_timeout(error: &hyper::Error) -> bool {
    let error = std::error::Error::source(error).and_then(|error| error.downcast_ref::<std::io::Error>());
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
}

async fn respond(
    context: &ListenerContext,
    slot: &ConnectionSlot,
    handshake: Option<&HandshakePermit>,
    mut request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let began = slot.activity.request_received();
    request.extensions_mut().insert(FirstByte(began));
    request.extensions_mut().insert(Peer(slot.peer.to_canonical()));
    let mut response = context.router.clone().oneshot(request.map(Body::new)).await?;
    if context.drain.has_begun() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let (Some(permit), true) = (handshake, response.status().is_success()) {
        permit.reviewed();
    }
    slot.activity.answered(is_review(response.status()));
    Ok(response)
}

/// Whether only a caller that sent a review gets an answer with this status.
fn is_review(status: StatusCode) -> bool {
    !status.is_client_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Closes the sending side, and reads what the peer still sends: closing a socket with unread bytes resets
/// the connection, and the peer could lose the last answer with it.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, time: Duration) {
    let reading = async {
        stream.shutdown().await?;
        let mut discarded = vec![0; 8 << 10];
        let mut remaining = MAX_LINGER_BYTES;
        while remaining > 0 {
            match stream.read(&mut discarded).await? {
                0 => break,
                count => remaining = remaining.saturating_sub(count),
            }
        }
        Ok::<_, std::io::Error>(())
    };
    let _either_way = timeout(time, reading).await;
}

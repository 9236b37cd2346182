//! Serves one connection: TLS, then HTTP/1.1 requests until one side closes it.

mod socket;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use futures::future::BoxFuture;
use governor::DefaultDirectRateLimiter;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::connection::socket::Socket;
use crate::connection_limiter::{Activity, Caller, ConnectionPhase, ConnectionSlot};
use crate::metrics::Metrics;
use crate::metrics::labels::{ResultLabel, ShedCause};
use crate::options::Timers;
use crate::shutdown::Drain;
use memgate_certs::library_error::explained;
use memgate_certs::tls::ServingCert;

/// How much is read from a closed connection whose peer goes on sending: twice the largest body.
const MAX_LINGER_BYTES: usize = 40 << 20;

/// The largest read buffer of a connection. hyper's default is 400 KiB, which it keeps while the connection is idle.
/// TLS delivers at most 16 KiB at a time.
const MAX_READ_BUFFER_BYTES: usize = 64 << 10;

/// How much of an answer waits in TLS to be written: two records. The default of rustls is four. The claim of an answer
/// does not include these bytes.
const TLS_BUFFER_BYTES: usize = 32 << 10;

/// Answers a request of a caller.
pub type Service = Arc<dyn Fn(Request, Caller) -> BoxFuture<'static, Response> + Send + Sync>;

/// Answers with these routes. A request has its caller as an extension.
pub fn routed(routes: Router) -> Service {
    Arc::new(move |mut request, caller| {
        request.extensions_mut().insert(caller);
        let answer = routes.clone().oneshot(request);
        Box::pin(async move { answer.await.unwrap_or_else(|never| match never {}) })
    })
}

/// Accepts TLS.
pub(super) struct Tls {
    pub(super) certificate: Arc<ServingCert>,
    /// A token for each handshake. A handshake takes as much time as several reviews, and a caller can cause it with a
    /// copy of another caller's first message.
    pub(super) handshakes: DefaultDirectRateLimiter,
}

/// What all connections of one listener share.
pub(super) struct ListenerContext {
    /// Answers the requests.
    pub(super) service: Service,
    /// `None` for plain HTTP.
    pub(super) tls: Option<Tls>,
    /// The largest head of a request, in bytes.
    pub(super) head: usize,
    pub(super) timers: Arc<Timers>,
    pub(super) drain: Drain,
    pub(super) metrics: Arc<Metrics>,
}

/// Serves a connection until it ends, takes too long, or is closed for another one.
pub(super) async fn serve(
    context: Arc<ListenerContext>,
    stream: TcpStream,
    peer: IpAddr,
    slot: ConnectionSlot,
) {
    let socket = Socket::new(stream, Arc::clone(&slot.activity));
    tokio::select! {
        () = serve_tls(&context, socket, peer, &slot.activity) => {}
        () = slot.activity.evicted() => tracing::debug!("a connection was closed for another one"),
        phase = too_slow(&slot.activity, &context.timers) => {
            tracing::debug!(?phase, "a connection was closed because its peer took too long");
            if phase == ConnectionPhase::Writing {
                context.metrics.admission.count_shed(ShedCause::Unread);
            }
        }
    }
}

/// Waits until the peer has taken too long in one phase, and returns the phase. The router has the timeouts of the body
/// and of the decision.
///
/// Between requests a connection may be idle for long, but not while it receives a head or writes an answer. An answer
/// holds memory until its peer has read it, so its timeout is for the whole answer: one byte a second does not prolong
/// it. hyper's own header timer stays off. It starts with the connection, so it would also close an idle one at the
/// moment when the next review may be on its way.
async fn too_slow(activity: &Activity, timers: &Timers) -> ConnectionPhase {
    // A phase that begins meanwhile is seen before its time is over.
    let shortest = timers.idle.min(timers.head).min(timers.write);
    loop {
        let (phase, since) = activity.phase();
        let now = Instant::now();
        let end = match phase {
            ConnectionPhase::Idle => since + timers.idle,
            ConnectionPhase::Head => since + timers.head,
            ConnectionPhase::Writing => since + timers.write,
            ConnectionPhase::Body | ConnectionPhase::Answering => now + shortest,
        };
        if end <= now {
            return phase;
        }
        sleep_until(end.min(now + shortest)).await;
    }
}

async fn serve_tls(context: &ListenerContext, socket: Socket, peer: IpAddr, activity: &Arc<Activity>) {
    let Some(tls) = &context.tls else {
        return serve_http(context, socket, peer, activity).await;
    };
    let shaken = timeout(context.timers.handshake, shake_hands(tls, socket)).await;
    match shaken.unwrap_or(Err(ResultLabel::TimedOut)) {
        Ok(stream) => {
            context.metrics.count_handshake(ResultLabel::Done);
            Box::pin(serve_http(context, stream, peer, activity)).await;
        }
        Err(outcome) => context.metrics.count_handshake(outcome),
    }
}

/// Waits for the first byte, takes a token, and shakes hands. A caller that connects and sends nothing takes no token.
async fn shake_hands(tls: &Tls, socket: Socket) -> Result<TlsStream<Socket>, ResultLabel> {
    if !socket.has_first_byte().await {
        return Err(ResultLabel::Failed);
    }
    tls.handshakes.check().map_err(|_| ResultLabel::Rationed)?;
    let limit_buffer = |tls: &mut rustls::ServerConnection| tls.set_buffer_limit(Some(TLS_BUFFER_BYTES));
    let config = tls.certificate.server_config().ok_or(ResultLabel::Failed)?;
    let accepted = TlsAcceptor::from(Arc::new(config)).accept_with(socket, limit_buffer).await;
    let stream = accepted.map_err(|error| {
        tracing::debug!(error = explained(&error), "a TLS handshake failed");
        let refused = is_client_rejected(&error);
        if refused { ResultLabel::ClientRefused } else { ResultLabel::Failed }
    })?;
    if !tls.certificate.accepts(stream.get_ref().1) {
        tracing::debug!("a caller was refused: its certificate has none of the names of --client-name");
        return Err(ResultLabel::ClientRefused);
    }
    Ok(stream)
}

/// Whether a handshake failed because the client certificate is missing or not accepted.
fn is_client_rejected(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented))
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin>(
    context: &ListenerContext,
    stream: S,
    peer: IpAddr,
    activity: &Arc<Activity>,
) {
    activity.http_begins();
    let peer = peer.to_canonical();
    let respond = |request| respond(context, peer, activity, request);
    let connection = http1::Builder::new()
        .max_header_size(context.head)
        .max_buf_size(MAX_READ_BUFFER_BYTES.max(context.head))
        .serve_connection(TokioIo::new(stream), service_fn(respond))
        .without_shutdown();
    match connection.await {
        Ok(parts) => linger(parts.io.into_inner(), context.timers.linger).await,
        Err(error) => tracing::debug!(error = explained(&error), "a connection ended early"),
    }
}

async fn respond(
    context: &ListenerContext,
    peer: IpAddr,
    activity: &Arc<Activity>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let first_byte = activity.head_received();
    let caller = Caller { peer, first_byte, activity: Arc::clone(activity) };
    let mut response = (context.service)(request.map(Body::new), caller).await;
    if context.drain.has_begun() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    activity.answered();
    Ok(response)
}

/// Closes the sending side, and reads what the peer still sends. To close a socket with unread bytes would reset the
/// connection, and the peer could lose the last answer.
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

//! Accepts connections, each on a task of its own, up to a fixed number.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::connection::{ListenerContext, serve};
use crate::connection_limiter::{ConnectionLimiter, ConnectionSlot};
use crate::logs::{LogRate, LogRateLimiter};
use crate::metrics::labels::ShedCause;
use memgate_certs::library_error::explained;

/// How long the listener waits after file descriptors or memory have run out: a connection has to end first.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// The errors of `accept` when file descriptors or memory have run out: ENOMEM, ENFILE, EMFILE and ENOBUFS. Source: Linux, errno(3) and
/// accept(2). All other errors concern only the connection that could not be accepted.
const EXHAUSTED_ERRNOS: [i32; 4] = [12, 23, 24, 105];

/// How many lines about failed accepts are logged.
const ACCEPT_LOG_RATE: LogRate = LogRate { burst: 5, refill: Duration::from_secs(1) };

/// How many connections wait to be accepted: a tenth of a second of 10,000 a second. Beyond it the kernel does not
/// answer, and the caller tries again after a second. The default of the library is 128.
const BACKLOG: i32 = 1_024;

/// How many connections are accepted before other tasks have their turn: half a millisecond.
const MAX_ACCEPTED_IN_A_ROW: usize = 64;

/// How much of an answer the kernel holds for a peer that does not read. The kernel doubles the value for its own
/// bookkeeping; its default is 4 MiB. Nearly all answers are smaller.
const SEND_BUFFER_BYTES: usize = 32 << 10;

/// How much the kernel holds of what has arrived and was not read yet. The kernel doubles the value; its default is
/// 6 MiB. A review of 3 MiB takes 50 round trips with it.
const RECEIVE_BUFFER_BYTES: usize = 64 << 10;

/// Binds a socket. On a machine without IPv6, `[::]` becomes `0.0.0.0`. After `unread` without progress the kernel drops
/// what it still has to send.
pub(super) fn bind(address: SocketAddr, unread: Duration) -> io::Result<std::net::TcpListener> {
    let bound = match std::net::TcpListener::bind(address) {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() => {
            std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).map_err(|_| error)
        }
        bound => bound,
    }?;
    bound.set_nonblocking(true)?;
    // Connections inherit these from the socket that accepts them.
    let socket = SockRef::from(&bound);
    socket.listen(BACKLOG)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(unread))?;
    #[cfg(not(target_os = "linux"))]
    let _unlimited = unread;
    Ok(bound)
}

/// Accepts connections for as long as it is polled; dropping it closes all of them.
pub(super) async fn run(
    listener: TcpListener,
    context: Arc<ListenerContext>,
    limiter: Arc<ConnectionLimiter>,
) {
    let mut connections = JoinSet::new();
    let log_limiter = LogRateLimiter::new(ACCEPT_LOG_RATE);
    let mut accepted_in_a_row = 0;
    loop {
        if accepted_in_a_row >= MAX_ACCEPTED_IN_A_ROW {
            accepted_in_a_row = 0;
            yield_now().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    accepted_in_a_row += 1;
                    if let Some(slot) = slot_for(&context, &limiter, &stream, peer.ip()) {
                        connections.spawn(serve(Arc::clone(&context), stream, peer.ip(), slot));
                    }
                }
                Err(error) => {
                    if let Ok(suppressed) = log_limiter.take("accept") {
                        tracing::warn!(error = explained(&error), suppressed, "no connection can be accepted");
                    }
                    // `accept` would fail again at once, and the queue of the kernel stays full. Closing a
                    // connection frees what the next one needs.
                    if is_exhausted(&error) {
                        if limiter.evict_one() {
                            context.metrics.admission.count_shed(ShedCause::Connections);
                        }
                        sleep(EXHAUSTED_PAUSE).await;
                    }
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED_ERRNOS.contains(&code))
}

/// A slot for a new connection; `None` when the connection is dropped, without a slot or because it has ended.
fn slot_for(
    context: &ListenerContext,
    limiter: &Arc<ConnectionLimiter>,
    stream: &TcpStream,
    peer: IpAddr,
) -> Option<ConnectionSlot> {
    // An answer is written in one piece and should leave at once; without this it can wait 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = explained(&error), "a connection ended before it was served");
        return None;
    }
    let acquired = limiter.acquire(peer);
    if !matches!(acquired, Some((_, false))) {
        context.metrics.admission.count_shed(ShedCause::Connections);
    }
    acquired.map(|(slot, _)| slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_ended_too_soon_closes_no_other_one() {
        let [too_many_files, aborted] = [24, 103].map(io::Error::from_raw_os_error);
        assert_eq!(aborted.kind(), io::ErrorKind::ConnectionAborted);
        assert!(!is_exhausted(&aborted));
        assert!(is_exhausted(&too_many_files));
    }
}

//! Accepts connections, each on a task of its own, up to a fixed number.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::server::connection::seats::{Seat, Seats};
use crate::server::connection::{House, serve};
use crate::server::limits::Shed;
use crate::server::ration::{Rate, Ration};

/// How long nothing is accepted when file descriptors or memory have run out: a connection has to end
/// first.
const PAUSE: Duration = Duration::from_millis(50);

/// The errors that say so: ENOMEM, ENFILE, EMFILE and ENOBUFS. Source: Linux, errno(3) and accept(2). All
/// others are about the one connection that could not be accepted.
const EXHAUSTED: [i32; 4] = [12, 23, 24, 105];

/// How many lines a second may tell of that.
const FAILURES: Rate = Rate { burst: 5, per_second: 1 };

/// Binds a socket. Where the machine knows no IPv6, all addresses of both families are those of
/// IPv4.
pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let bound = match std::net::TcpListener::bind(address) {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() => {
            std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).map_err(|_| error)
        }
        bound => bound,
    }?;
    bound.set_nonblocking(true)?;
    Ok(bound)
}

/// Accepts connections for as long as it is polled; all of them end with it.
pub(super) async fn run(listener: TcpListener, house: Arc<House>, seats: Arc<Seats>) {
    let mut connections = JoinSet::new();
    let lines = Ration::new(FAILURES);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    if let Some(seat) = seat(&house, &seats, &stream, peer) {
                        connections.spawn(serve(Arc::clone(&house), stream, seat));
                    }
                }
                Err(error) => {
                    if let Some(withheld) = lines.take("accept") {
                        let withheld = (withheld > 0).then_some(withheld);
                        tracing::warn!(%error, withheld, "no connection can be accepted");
                    }
                    if is_exhausted(&error) {
                        if seats.make_room() {
                            house.metrics.shed(Shed::Connections);
                        }
                        sleep(PAUSE).await;
                    }
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

fn seat(house: &House, seats: &Arc<Seats>, stream: &TcpStream, peer: SocketAddr) -> Option<Seat> {
    // An answer is written in one piece and should leave at once; without this it can wait 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended before it began");
        return None;
    }
    let taken = seats.take(peer.ip());
    if !matches!(taken, Some((_, false))) {
        house.metrics.shed(Shed::Connections);
    }
    taken.map(|(seat, _)| seat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_ended_too_soon_costs_no_other_one() {
        let [too_many_files, aborted] = [24, 103].map(io::Error::from_raw_os_error);
        assert_eq!(aborted.kind(), io::ErrorKind::ConnectionAborted);
        assert!(!is_exhausted(&aborted));
        assert!(is_exhausted(&too_many_files));
    }
}

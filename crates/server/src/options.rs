//! What can be set about a server, with defaults that suit a webhook in a cluster.
//!
//! What callers can cause is bounded by these settings. A review beyond the limit of bodies, and a large one for which there
//! is no room, is refused; another request beyond a limit gets 413 (body), 431 (headers), 429 (requests, bytes, overload) or
//! 504 (deadline). Beyond the connections the address with the most loses one (an IPv6 /64 counts as one): without a complete
//! request head, else idle the longest. Handshakes have one token bucket for all callers.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use crate::tls;
use memgate_certs::clock::Clock;
use memgate_core::decide::decide;
use memgate_model::decision::Decision;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;

/// The port of the webhook: GKE's control plane may reach 10250 on nodes and pods without a
/// firewall rule of its own, any other port needs one.
pub const PORT: u16 = 10250;

/// File descriptors for everything but connections, so that a flood of them leaves some for probes and scrapers, watches,
/// lookups and files.
const RESERVED_FDS: usize = 128;

/// The port of health and metrics.
pub const HEALTH_PORT: u16 = 8081;

/// The unit in which bytes of bodies and answers are counted. Memory is allocated in pages.
pub(super) const PAGE_BYTES: usize = 4 << 10;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where reviews are answered, over TLS. Default: [`PORT`] on all addresses of both families.
    pub listen: SocketAddr,
    /// Where `/livez`, `/readyz` and `/metrics` are answered, in plain HTTP. Default:
    /// [`HEALTH_PORT`] on all addresses of both families.
    pub health: SocketAddr,
    /// Where the certificate comes from.
    pub tls: tls::CertSource,
    /// Which client certificates are required. Default: none.
    pub client_auth: Option<tls::ClientAuth>,
    /// The wall clock. Default: the machine's.
    pub clock: Clock,
    /// How much is accepted at once.
    pub limits: Limits,
    /// How long things may take.
    pub timers: Timers,
    /// Decides reviews. Default: [`decide`]; tests use functions that panic or take long.
    pub decide: Decide,
    /// Whether Events are written about pods that are admitted without their memory. Default: yes.
    pub events: bool,
    /// Whether policies are watched and judged by. Default: yes.
    pub policies: bool,
    /// For how long pods are held because an object that they refer to is missing, from when it was found missing.
    /// Default: 30 s, which is enough for people and tools to apply related objects; with zero, pods are not held.
    pub reference_grace: Duration,
    /// The installation that the server is a part of. Default: none, so that no replica is known.
    pub installation: Option<OwnInstallation>,
}

/// The installation that a server is a part of.
#[derive(Debug, Clone)]
pub struct OwnInstallation {
    /// The namespace of memgate.
    pub namespace: String,
    /// The name of both webhook configurations.
    pub configuration: String,
    /// The arguments of the server.
    pub arguments: Vec<String>,
    /// The pod that it runs in; without one it has no Lease.
    pub pod: Option<OwnPod>,
}

/// The pod that a server runs in.
#[derive(Debug, Clone)]
pub struct OwnPod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its address.
    pub address: IpAddr,
}

impl Options {
    /// The defaults, with a certificate from `tls`.
    pub fn new(tls: tls::CertSource) -> Self {
        Self {
            listen: SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)),
            health: SocketAddr::from((Ipv6Addr::UNSPECIFIED, HEALTH_PORT)),
            tls,
            client_auth: None,
            clock: Clock::default(),
            limits: Limits::default(),
            timers: Timers::default(),
            decide,
            events: true,
            policies: true,
            reference_grace: Duration::from_secs(30),
            installation: None,
        }
    }
}

/// The type of [`decide`].
pub type Decide = fn(&Request<'_>, &Snapshot) -> Decision;

/// How much is accepted at once; what exceeds a limit is refused, or rejected with 413, 429 or 431.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest body, in bytes. A review holds two objects, each of up to 1.5 MiB in etcd and 3 MiB in a request, and an
    /// apiserver writes some bytes as six. A larger review is refused.
    pub body: usize,
    /// The most bytes of bodies and answers in memory, of all requests together. A burst of large reviews, or callers
    /// that do not read, cannot exhaust a memory limit of 256 MiB.
    pub body_bytes: usize,
    /// The most requests between the end of their body and their answer. Each has a connection, so half of
    /// [`Limits::connections`] is left for other connections.
    pub requests: usize,
    /// The most connections. At about 20 KiB each (TLS and HTTP buffers) they take 40 MiB. An apiserver keeps 25 idle
    /// ones and opens more only for bursts.
    pub connections: usize,
    /// The most TLS handshakes a second, and the most at once. Each takes about 125 µs of a processor, so all of them
    /// take at most half of one.
    pub handshakes: NonZeroU32,
    /// The largest head of a request, in bytes; an apiserver sends less than 1 KiB.
    pub head: usize,
    /// How long a request waits for a permit or for bytes before it gets 429.
    pub wait: Duration,
    /// The most lookups at the apiserver at once.
    pub lookups: usize,
    /// The most bytes of the state; objects beyond are looked up.
    pub state: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 20 << 20,
            body_bytes: 40 << 20,
            requests: 1024,
            connections: 2048,
            handshakes: NonZeroU32::MIN.saturating_add(3_999),
            head: 32 << 10,
            wait: Duration::from_millis(4),
            lookups: 16,
            state: 128 << 20,
        }
    }
}

/// How long things may take.
#[derive(Debug, Clone)]
pub struct Timers {
    /// A TLS handshake.
    pub handshake: Duration,
    /// The head of a request, from its first byte.
    pub head: Duration,
    /// The body of a request, from the end of its head.
    pub body: Duration,
    /// The answer to a request, until the kernel has all of it. An apiserver reads at once and gives up after at most
    /// 30 s.
    pub write: Duration,
    /// How long a connection is kept between requests. An apiserver closes its side after 90 s. A server that closes
    /// earlier can lose a review that is just being sent.
    pub idle: Duration,
    /// The timeout of a request without `?timeout=`: the default `timeoutSeconds` of Kubernetes.
    pub request: Duration,
    /// How long a closed connection is read to its end, so that the last answer is not lost to a
    /// reset.
    pub linger: Duration,
    /// How often certificate files are read again. The kubelet itself needs up to a minute to
    /// update a mounted Secret.
    pub reload: Duration,
    /// How long a server that shuts down goes on serving. Longer than the 90 s after which an
    /// apiserver closes an idle connection.
    pub drain_grace: Duration,
    /// How long there must be no connection before a server that shuts down ends. Callers need a moment to learn that
    /// they should connect to another replica.
    pub drain_quiet: Duration,
    /// After how long without running any task the runtime counts as stalled, and `/livez` fails.
    pub stall: Duration,
    /// How often the apiserver is asked for its API groups, and for kinds that did not exist.
    pub discovery_interval: Duration,
    /// How often the Secret of the CA and the dates of certificates are checked.
    pub ca_poll: Duration,
    /// How long webhook configurations must have trusted a CA before it signs: the time in which
    /// every apiserver learns of a change.
    pub propagation: Duration,
    /// How long a watch may be silent before it is resumed on another connection. An apiserver sends
    /// bookmarks about every 60 s on the watches of kinds that change.
    pub watch_idle: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            write: Duration::from_secs(10),
            idle: Duration::from_mins(2),
            request: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            reload: Duration::from_secs(5),
            drain_grace: Duration::from_secs(100),
            drain_quiet: Duration::from_secs(5),
            stall: Duration::from_secs(10),
            discovery_interval: Duration::from_secs(3),
            ca_poll: Duration::from_secs(2),
            propagation: Duration::from_secs(10),
            watch_idle: Duration::from_secs(75),
        }
    }
}

/// The limits, lowered if this process may not have enough file descriptors.
pub(super) fn fit_to_fd_limit(limits: &Limits) -> Limits {
    let fitted = fit_to(limits, max_files().unwrap_or(usize::MAX));
    if fitted.connections < limits.connections {
        tracing::warn!(
            connections = fitted.connections,
            requests = fitted.requests,
            "fewer connections than asked for: this process may have too few file descriptors"
        );
    }
    fitted
}

/// How many file descriptors this process may have; `None` without `/proc`.
fn max_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn fit_to(limits: &Limits, descriptors: usize) -> Limits {
    let max = descriptors.saturating_sub(RESERVED_FDS).max(descriptors / 4).max(1);
    if limits.connections <= max {
        return limits.clone();
    }
    Limits { connections: max, requests: limits.requests.min(max.div_ceil(2)), ..limits.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_descriptors_for_the_rest() {
        let limits = Limits { connections: 2048, requests: 1024, ..Limits::default() };
        for (descriptors, connections, requests) in [
            (usize::MAX, 2048, 1024),
            (2176, 2048, 1024),
            (1024, 896, 448),
            (256, 128, 64),
            (64, 16, 8),
            (0, 1, 1),
        ] {
            let fitted = fit_to(&limits, descriptors);
            assert_eq!((fitted.connections, fitted.requests), (connections, requests), "{descriptors}");
        }
    }
}

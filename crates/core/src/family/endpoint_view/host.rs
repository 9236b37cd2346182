//! What a host is: the pod itself, a private address, a name of the cluster.

use std::net::IpAddr;

use crate::family::url;
use crate::model::kind::SERVICE;
use crate::model::memory_view::HostView;
use crate::model::object::Lookup;
use crate::model::state_reader::StateReader;

/// Whether a text is an address of IPv4 or IPv6, as hosts are written.
pub(super) fn is_address(host: &str) -> bool {
    url::ip(host).is_some()
}

/// The view of a host, as it is written and without brackets. `namespace` is that of the object that names it.
pub(super) fn host_view(
    host: &str,
    port: Option<u16>,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> HostView {
    let host = host.trim().to_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    match url::ip(&host) {
        Some(ip) => HostView {
            port,
            loopback: ip.is_loopback() || ip.is_unspecified(),
            private: match ip {
                IpAddr::V4(ip) => ip.is_private(),
                IpAddr::V6(ip) => ip.is_unique_local(),
            },
            link_local: match ip {
                IpAddr::V4(ip) => ip.is_link_local(),
                IpAddr::V6(ip) => ip.is_unicast_link_local(),
            },
            in_cluster: false,
            host,
        },
        None => {
            let loopback = is_own_name(&host);
            let in_cluster = !loopback && is_in_cluster(&host, namespace, state);
            HostView { port, loopback, private: false, link_local: false, in_cluster, host }
        }
    }
}

/// Whether a name leads to the pod itself: `localhost`, an empty host, or the socket of a process.
fn is_own_name(host: &str) -> bool {
    host.is_empty() || host.starts_with(['/', '@']) || host == "localhost" || host.ends_with(".localhost")
}

/// Whether a Service exists. In a cluster it is looked up, since Services are not watched. Among files a missing
/// Service does not make the decision unknown.
fn is_service(namespace: &str, name: &str, state: &mut StateReader<'_>) -> bool {
    if state.in_cluster(&SERVICE) {
        return matches!(state.get(&SERVICE, namespace, name), Lookup::Found(_));
    }
    state.peek(&SERVICE, namespace, name).is_some()
}

/// Whether a name is resolved inside the cluster. `service.namespace` without `svc` counts only if the namespace is
/// the object's own or the Service exists.
fn is_in_cluster(host: &str, namespace: &str, state: &mut StateReader<'_>) -> bool {
    let Some((name, rest)) = host.split_once('.') else { return true };
    let domain = state.cluster_domain().trim_matches('.').to_lowercase();
    let service = host.strip_suffix(&domain).and_then(|host| host.strip_suffix('.')).unwrap_or(host);
    if service.rsplit_once('.').is_some_and(|(_, last)| last == "svc") {
        return true;
    }
    !rest.contains('.') && (rest == namespace || is_service(rest, name, state))
}

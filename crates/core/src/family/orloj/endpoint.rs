//! Reads the endpoint of a Memory or ModelEndpoint. memgate never connects to one.

mod database;
mod password;
mod withheld;

use std::net::{IpAddr, Ipv6Addr};

use crate::family::url::Endpoint;

pub(super) use self::database::database;
pub(super) use self::password::{contains_password, password_position};
pub(super) use self::withheld::{Copying, withheld};

/// Whether this is an absolute http or https URL with a host.
pub(super) fn is_http(endpoint: &str) -> bool {
    Endpoint::parse(endpoint).is_http()
}

/// Whether this is a URL that Postgres drivers know.
pub(super) fn is_postgres(endpoint: &str) -> bool {
    endpoint.starts_with("postgres://") || endpoint.starts_with("postgresql://")
}

/// Whether a Postgres driver can read this at all: a URL of its own, or `key=value` pairs.
pub(super) fn is_connection_string(endpoint: &str) -> bool {
    is_postgres(endpoint) || (!starts_with_scheme(endpoint) && endpoint.contains('='))
}

/// Whether a text starts with `scheme://` (RFC 3986, section 3.1).
fn starts_with_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// The class of an address that Orloj's dialer refuses, in its own word, with the address.
/// Source: OrlojHQ/orloj, runtime/safenet.go.
pub(super) fn blocked_address(endpoint: &str) -> Option<(&'static str, String)> {
    let host = Endpoint::parse(endpoint).host;
    if is_localhost(host) {
        return Some(("loopback", host.to_owned()));
    }
    let address = address(endpoint)?;
    Some((address_class(address)?, address.to_string()))
}

/// Whether the host is the machine itself.
pub(super) fn is_loopback(endpoint: &str) -> bool {
    is_localhost(Endpoint::parse(endpoint).host)
        || address(endpoint).is_some_and(|address| address.is_loopback())
}

fn is_localhost(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
}

/// The IP address in place of a host: a dotted quad, or IPv6 in brackets. An IPv4
/// address mapped into IPv6 counts as itself.
fn address(endpoint: &str) -> Option<IpAddr> {
    let host = Endpoint::parse(endpoint).host;
    match host.parse::<IpAddr>().ok()? {
        // Only what stood in brackets can hold a colon.
        IpAddr::V6(address) => Some(IpAddr::V6(address).to_canonical()),
        IpAddr::V4(_) if endpoint.contains(&format!("[{host}]")) => None,
        address @ IpAddr::V4(_) => Some(address),
    }
}

fn address_class(address: IpAddr) -> Option<&'static str> {
    /// The metadata service of EC2, over IPv6.
    const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let metadata = match address {
        IpAddr::V4(address) => address.octets() == [169, 254, 169, 254],
        IpAddr::V6(address) => address == METADATA_V6,
    };
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.segments().first() == Some(&0xff02),
    };
    let classes = [
        (address.is_loopback(), "loopback"),
        (metadata, "cloud metadata"),
        (link_local, "link-local"),
        (address.is_unspecified(), "unspecified"),
    ];
    classes.into_iter().find(|(is, _)| *is).map(|(_, class)| class)
}

/// Whether a request to the host stays inside the cluster, as seen from an object of `namespace`.
pub(super) fn is_in_cluster(endpoint: &str, namespace: &str) -> bool {
    match address(endpoint) {
        Some(IpAddr::V4(address)) => return address.is_private(),
        Some(IpAddr::V6(address)) => return address.is_unique_local(),
        None => {}
    }
    let host = Endpoint::parse(endpoint).host.trim_end_matches('.').to_ascii_lowercase();
    match host.split_once('.') {
        None => true,
        Some((_, rest)) => rest == namespace || rest.split('.').any(|label| label == "svc"),
    }
}

/// Whether a bearer token would travel in clear text.
pub(super) fn is_plain_http(endpoint: &str) -> bool {
    Endpoint::parse(endpoint).scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_refused_addresses() {
        for (endpoint, expected) in [
            ("http://127.8.0.1/", Some(("loopback", "127.8.0.1"))),
            ("http://[::1]:80", Some(("loopback", "::1"))),
            ("http://LocalHost", Some(("loopback", "LocalHost"))),
            ("http://[::ffff:127.0.0.1]", Some(("loopback", "127.0.0.1"))),
            ("http://169.254.169.254/latest", Some(("cloud metadata", "169.254.169.254"))),
            ("http://[fd00:ec2::254]", Some(("cloud metadata", "fd00:ec2::254"))),
            ("http://169.254.1.1", Some(("link-local", "169.254.1.1"))),
            ("http://[fe80::1]", Some(("link-local", "fe80::1"))),
            ("http://[febf::1]", Some(("link-local", "febf::1"))),
            ("http://224.0.0.251", Some(("link-local", "224.0.0.251"))),
            ("http://[ff02::fb]", Some(("link-local", "ff02::fb"))),
            ("http://0.0.0.0:80", Some(("unspecified", "0.0.0.0"))),
            ("http://[::]", Some(("unspecified", "::"))),
            ("http://10.0.0.1", None),
            ("http://224.0.1.1", None),
            ("http://[fd00::1]", None),
            ("http://[fec0::1]", None),
            ("http://[127.0.0.1]", None),
            ("http://127.0.0.01", None),
            ("http://2130706433", None),
            ("http://localhost.", None),
        ] {
            let expected = expected.map(|(class, host)| (class, host.to_owned()));
            assert_eq!(blocked_address(endpoint), expected, "{endpoint}");
        }
    }

    #[test]
    fn knows_what_stays_in_the_cluster() {
        for (endpoint, stays) in [
            ("http://kb", true),
            ("http://kb.team", true),
            ("http://kb.team.", true),
            ("http://kb.other", false),
            ("http://kb.other.svc:80", true),
            ("http://kb.other.SVC.cluster.local", true),
            ("http://svc.example.com", false),
            ("http://10.1.2.3", true),
            ("http://[fd00::1]", true),
            ("http://8.8.8.8", false),
            ("http://[2001:db8::1]", false),
        ] {
            assert_eq!(is_in_cluster(endpoint, "team"), stays, "{endpoint}");
        }
    }
}

//! Whether clients read the host of an endpoint in the same way.
//!
//! An allow list of hosts is worth nothing if memgate reads one host and the client connects to another: Node and
//! urllib3 read `https://a.example\@b.example` as `a.example`, others as `b.example`. Only what all clients read the
//! same way is compared. `tests/library/policies/hosts.rs` compares this module with Go, Python, Node and curl.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::url;
use memgate_primitives::percent::is_percent_encoded;

/// How clients read the host of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reading {
    /// All in the same way.
    Same,
    /// Some refuse it: a zone, or a colon without a port.
    Unusual,
    /// An address for some and a name for others, as numbers in odd forms are.
    Odd,
    /// In different ways.
    Different,
}

/// The most hosts of an endpoint that are compared.
pub(crate) const MAX_HOSTS: usize = 64;

/// The most bytes of a host. Source: RFC 1035, section 2.3.4, without the length bytes at both ends.
const MAX_HOST_BYTES: usize = 253;

/// The most bytes of a label. Source: RFC 1035, section 2.3.4.
const MAX_LABEL_BYTES: usize = 63;

/// The schemes for which browsers and Node have rules of their own: slashes may be missing or too many, and a
/// backslash is one. Source: WHATWG URL, special scheme.
const WEB_SCHEMES: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];

/// The characters of userinfo besides letters and digits. Source: Go, net/url, validUserinfo.
const USERINFO_MARKS: &[u8] = b"-._~!$&'()*+,;=:%";

/// Whether URLs of this scheme are read by clients for the web, which know no hosts in a query.
pub(crate) fn is_web(scheme: &str) -> bool {
    WEB_SCHEMES.iter().any(|web| web.eq_ignore_ascii_case(scheme))
}

/// How clients read the authority of a URL, or of an endpoint without scheme.
pub(crate) fn of_url(text: &str) -> Reading {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text.strip_prefix("//").unwrap_or(text)),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let tail = rest.get(authority.len()..).unwrap_or_default();
    // libpq looks for userinfo up to the first slash.
    let behind = tail.split('/').next().unwrap_or_default();
    // Source: go-sql-driver/mysql, ParseDSN, which looks for the last slash, and for `@` and `(` before it.
    let (has_at, has_bracket) = (tail.contains('@'), tail.contains('('));
    let is_dsn = if scheme.is_some() { has_at && has_bracket } else { has_at || has_bracket };
    if text.trim() != text
        || text.contains(char::is_control)
        || scheme.is_some_and(|scheme| !is_scheme(scheme))
        || behind.contains('@')
        || is_dsn
        // Drivers of databases know no fragment.
        || (scheme.is_some_and(|scheme| !is_web(scheme)) && text.contains('#'))
    {
        return Reading::Different;
    }
    let (userinfo, servers) = authority.rsplit_once('@').unwrap_or(("", authority));
    if !is_userinfo(userinfo) {
        return Reading::Different;
    }
    if scheme.is_some_and(is_web) {
        return if servers.is_empty() { Reading::Different } else { of_server(servers) };
    }
    // Of a bare `http:80`, Node reads an address.
    let bare = servers.split_once(':').filter(|_| scheme.is_none());
    if bare.is_some_and(|(host, _)| is_web(host)) || (servers.is_empty() && text.starts_with("//")) {
        return Reading::Different;
    }
    of_list(servers, of_server)
}

/// How clients read a list of hosts that stands in a parameter: without ports and brackets.
pub(crate) fn of_hosts(list: &str) -> Reading {
    of_list(list, |host| {
        let is_address = host.parse::<Ipv6Addr>().is_ok();
        // The socket of a process.
        let is_socket = host.starts_with(['/', '@']) && !host.contains(char::is_control);
        if is_address || is_socket { Reading::Same } else { of_host(host) }
    })
}

fn of_list(list: &str, of_one: impl Fn(&str) -> Reading) -> Reading {
    if list.split(',').nth(MAX_HOSTS).is_some() {
        return Reading::Different;
    }
    let readings = list.split(',').filter(|one| !one.is_empty()).map(of_one);
    readings.max().unwrap_or(Reading::Same)
}

/// Whether this is a scheme without a dot, which urllib3 takes for a host (RFC 3986, section 3.1), or one of JDBC,
/// which has two parts.
pub(crate) fn is_scheme(text: &str) -> bool {
    let is_jdbc = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("jdbc:"));
    let scheme = if is_jdbc { text.get(5..).unwrap_or_default() } else { text };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'))
}

/// Whether clients agree where userinfo ends. One `@` at its end was cut off.
fn is_userinfo(text: &str) -> bool {
    const ENDS: [&str; 3] = ["%2f", "%5c", "%40"];
    let lower = text.to_ascii_lowercase();
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || USERINFO_MARKS.contains(&byte))
        && is_percent_encoded(text)
        && !ENDS.iter().any(|end| lower.contains(end))
}

/// How clients read a host with its port, if it has one.
fn of_server(server: &str) -> Reading {
    let (host, port) = match server.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => (of_address(address), port),
        Some(None) => return Reading::Different,
        None => {
            let (host, port) = server.split_at(server.find(':').unwrap_or(server.len()));
            // Without a host, it is the machine of the client.
            (if host.is_empty() { Reading::Same } else { of_host(host) }, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => Reading::Same,
        Some("") => Reading::Unusual,
        Some(digits) if is_port(digits) => Reading::Same,
        _ => Reading::Different,
    };
    host.max(port)
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// How clients read the text in brackets.
fn of_address(text: &str) -> Reading {
    match text.split_once('%') {
        None if text.parse::<Ipv6Addr>().is_ok() => Reading::Same,
        Some((address, zone)) if address.parse::<Ipv6Addr>().is_ok() && is_name(zone) => Reading::Unusual,
        _ => Reading::Different,
    }
}

/// How clients read a name or an address of IPv4.
fn of_host(host: &str) -> Reading {
    let without_dot = host.strip_suffix('.').unwrap_or(host);
    if host.len() > MAX_HOST_BYTES || !without_dot.split('.').all(is_name) {
        return Reading::Different;
    }
    // What ends in a number is an address for some clients, and a name for others.
    let last = without_dot.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_hex = last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|it| it.is_ascii_hexdigit()));
    if !is_hex && !last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Reading::Same;
    }
    match url::ipv4(host) {
        _ if host.parse::<Ipv4Addr>().is_ok() => Reading::Same,
        Some(_) => Reading::Odd,
        None => Reading::Different,
    }
}

/// Whether this can be a label of a name. Clusters use names with an underscore.
fn is_name(label: &str) -> bool {
    let is_mark = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(is_mark)
}

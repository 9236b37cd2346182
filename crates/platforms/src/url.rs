//! The parts of a URL that rules on endpoints need: scheme, userinfo, hosts, path and query. memgate never connects
//! to the URL.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use memgate_model::memory_view::InlineView;
use memgate_primitives::credential::has_credential_parameter;
use memgate_primitives::percent::percent_decoded;
use memgate_primitives::pointer::Pointer;

/// The parts of an endpoint, whether it is a URL or a bare `host:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endpoint<'u> {
    /// The text before `://`.
    pub(crate) scheme: Option<&'u str>,
    /// Whether the host has userinfo before it, such as `user@`.
    pub(crate) userinfo: bool,
    /// The user of the userinfo, without a password; may be empty.
    pub(crate) user: &'u str,
    /// The host with its port, or several separated by commas, for [`server`]; may be empty.
    pub(crate) servers: &'u str,
    /// The host without port and brackets; may be empty.
    pub(crate) host: &'u str,
    /// The path with its slash; may be empty.
    pub(crate) path: &'u str,
    /// The query without its question mark; may be empty.
    pub(crate) query: &'u str,
    /// Whether the text after the host is empty, or a colon with or without a port.
    pub(crate) port_is_good: bool,
}

impl<'u> Endpoint<'u> {
    /// Parses an endpoint. This never fails, since every part may be missing.
    pub(crate) fn parse(text: &'u str) -> Self {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (userinfo, servers) = match authority.rsplit_once('@') {
            Some((userinfo, servers)) => (Some(userinfo), servers),
            None => (None, authority),
        };
        let user = userinfo.and_then(|userinfo| userinfo.split(':').next()).unwrap_or_default();
        let (host, port) = split_port(servers);
        let before_fragment = rest.split('#').next().unwrap_or_default();
        let (path, query) = before_fragment.split_once('?').unwrap_or((before_fragment, ""));
        let (userinfo, port_is_good) = (userinfo.is_some(), is_port(port));
        Self { scheme, userinfo, user, servers, host, path, query, port_is_good }
    }

    /// The parameters of the query. Names are decoded, values are not.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (Cow<'u, str>, &'u str)> + use<'u> {
        let parameters = self.query.split('&').filter_map(|parameter| parameter.split_once('='));
        parameters.map(|(name, value)| (percent_decoded(name), value))
    }

    /// Whether the scheme is `http` or `https`, in any case, and there is a host, with or without a port.
    pub(crate) fn is_http(&self) -> bool {
        let http = |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        self.scheme.is_some_and(http) && self.has_host() && self.port_is_good
    }

    /// Whether there is a host without white space.
    pub(crate) fn has_host(&self) -> bool {
        !self.host.is_empty() && !self.host.contains(char::is_whitespace)
    }

    /// The port of an HTTP server, by the scheme if none is given.
    pub(crate) fn port(&self) -> u16 {
        let is_https = self.scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        server(self.servers).1.parse().unwrap_or(if is_https { 443 } else { 80 })
    }

    /// Whether the host ends in one of these suffixes, in any case, with or without a final dot.
    pub(crate) fn host_ends_with(&self, suffixes: &[&str]) -> bool {
        let host = self.host.trim_end_matches('.').to_ascii_lowercase();
        suffixes.iter().any(|suffix| host.ends_with(suffix))
    }
}

/// The host without brackets, and the text after it. A bracket that is not closed makes the port invalid.
fn split_port(host_and_port: &str) -> (&str, &str) {
    if let Some(bracketed) = host_and_port.strip_prefix('[') {
        return bracketed.split_once(']').unwrap_or((bracketed, "["));
    }
    let at = host_and_port.find(':').unwrap_or(host_and_port.len());
    host_and_port.split_at(at)
}

/// The host and the port of one entry of a list, as Postgres and Kafka write them. In such lists an IPv6 address may
/// have no brackets.
pub(crate) fn server(host_and_port: &str) -> (&str, &str) {
    if let Some((host, port)) = host_and_port.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, port.strip_prefix(':').unwrap_or_default());
    }
    match host_and_port.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, port),
        _ => (host_and_port, ""),
    }
}

/// The IP address of a host: IPv4 in any spelling, IPv6 with or without a zone. An IPv4 address mapped into IPv6 is
/// returned as IPv4.
pub(crate) fn ip(host: &str) -> Option<IpAddr> {
    if let Some(ip) = ipv4(host) {
        return Some(IpAddr::V4(ip));
    }
    let without_zone = host.split('%').next().unwrap_or_default();
    let ip: Ipv6Addr = without_zone.parse().ok()?;
    Some(ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4))
}

/// Whether this is empty, or `:` with or without digits, as Go reads URLs.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':').unwrap_or(text);
    digits.bytes().all(|digit| digit.is_ascii_digit()) && (text.is_empty() || text.starts_with(':'))
}

/// Parses an IPv4 address in every spelling that the C library accepts: one to four numbers, decimal,
/// octal or hexadecimal, the last of which fills the remaining bytes; with or without a final dot. Source: inet_aton(3).
pub(crate) fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let numbers: Vec<u32> = host.split('.').map(parse_number).collect::<Option<_>>()?;
    let (last, bytes) = numbers.split_last()?;
    let rest = 8 * u32::try_from(4_usize.checked_sub(bytes.len())?).ok()?;
    let head =
        bytes.iter().try_fold(0_u32, |head, byte| Some(head << 8 | u32::from(u8::try_from(*byte).ok()?)))?;
    let fits = rest == 32 || (rest > 0 && *last < 1 << rest);
    let address = head.checked_shl(rest).unwrap_or_default() | *last;
    fits.then(|| Ipv4Addr::from(address))
}

fn parse_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let plain = digits.chars().all(|digit| digit.is_digit(radix));
    plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

/// The credential in the URL at this place: userinfo, or a parameter whose name means a credential.
pub(crate) fn inline_credential(text: &str, field: Pointer) -> Option<InlineView> {
    let url = Endpoint::parse(text);
    (url.userinfo || has_credential_parameter(url.query)).then(|| InlineView::new(field, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_an_address_in_any_spelling() {
        let loopback = Some(Ipv4Addr::LOCALHOST);
        for host in [
            "127.0.0.1", "127.0.0.1.", "2130706433", "0177.0.0.1", "0x7f.1", "127.1", "127.0.1", "0X7F000001",
        ] {
            assert_eq!(ipv4(host), loopback, "{host}");
        }
        assert_eq!(ipv4("4294967295"), Some(Ipv4Addr::BROADCAST));
        assert_eq!(ipv4("0"), Some(Ipv4Addr::UNSPECIFIED));
        for host in [
            "", ".", "localhost", "256.1", "1.2.3.256", "1.2.3.4.5", "08.1", "0x.1", "1..2", "4294967296",
            "+1", "1.16777216",
        ] {
            assert_eq!(ipv4(host), None, "{host}");
        }
    }

    #[test]
    fn parses_endpoints() {
        for (text, http, userinfo, host) in [
            ("http://qdrant.data.svc:6333", true, false, "qdrant.data.svc"),
            ("HTTPS://Host/path@x", true, false, "Host"),
            ("https://user:pass@host:1/", true, true, "host"),
            ("http://[::1]:6333", true, false, "::1"),
            ("qdrant:6333", false, false, "qdrant"),
            ("http://", false, false, ""),
            ("http://:80", false, false, ""),
            ("http://a b", false, false, "a b"),
            ("ftp://host", false, false, "host"),
            ("http://host:", true, false, "host"),
            ("http://host:65535/x", true, false, "host"),
            ("http://host:http", false, false, "host"),
            ("http://host:65536", true, false, "host"),
            ("http://host:+80", false, false, "host"),
            ("http://host:80:81", false, false, "host"),
            ("http://[::1]80", false, false, "::1"),
            ("http://[::1", false, false, "::1"),
        ] {
            let endpoint = Endpoint::parse(text);
            assert_eq!(
                (endpoint.is_http(), endpoint.userinfo, endpoint.host),
                (http, userinfo, host),
                "{text}"
            );
        }
    }

    #[test]
    fn compares_hosts_without_case() {
        assert!(Endpoint::parse("https://X.Pinecone.IO.:443/a").host_ends_with(&[".pinecone.io"]));
        assert!(!Endpoint::parse("https://pinecone.io.example").host_ends_with(&[".pinecone.io"]));
    }

    #[test]
    fn finds_credentials() {
        for (text, holds) in [
            ("https://u:p@h", true),
            ("https://u@h/x", true),
            ("u:p@h:80", true),
            ("https://h/x?api_key=a", true),
            ("https://h/x?b=c&api%5Fkey=a#d", true),
            ("https://h/x?b=c;sig=a", true),
            ("https://h/x?token=$(TOKEN)", false),
            ("https://h/x?token=", false),
            ("https://h/x?b=token", false),
            ("https://h:80/u:p@x", false),
            ("https://h/x#token=a", false),
            ("", false),
        ] {
            let found = inline_credential(text, Pointer::new("/spec/endpoint"));
            assert_eq!(found.is_some(), holds, "{text}");
        }
    }
}

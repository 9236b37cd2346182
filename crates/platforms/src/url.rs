//! The one reader of URLs and hosts: the parts of an endpoint, and how clients read them. memgate never connects to it.
//!
//! An endpoint is a URL or a bare `host:port`; pairs `key=value` are for `endpoint_view`. Clients differ: what Go's
//! `net/url` refuses is [`Endpoint::for_go`]. An allow list of hosts is worth nothing if memgate reads one host and the
//! client connects to another: Node and urllib3 read `https://a.example\@b.example` as `a.example`, others as
//! `b.example`. Only what all clients read the same way is compared (`Reading`). `tests/library/policies/hosts.rs`
//! compares this module with Go, Python, Node and curl.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use memgate_model::memory_view::InlineView;
use memgate_primitives::credential::has_credential_parameter;
use memgate_primitives::percent::{is_percent_encoded, percent_decoded};
use memgate_primitives::pointer::Pointer;

/// The parts of an endpoint, whether it is a URL or a bare `host:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint<'u> {
    /// The text before `://`.
    pub(crate) scheme: Option<&'u str>,
    /// The text before the `@` of the host.
    pub(crate) userinfo: Option<&'u str>,
    /// The host with its port, or several separated by commas, for [`server`]; may be empty.
    pub(crate) servers: &'u str,
    /// The host without port and brackets; may be empty.
    pub(crate) host: &'u str,
    /// What follows the host: nothing, or a colon with or without a port.
    port: &'u str,
    /// All that follows: path, query and fragment.
    pub(crate) tail: &'u str,
    /// The path with its slash; may be empty.
    pub(crate) path: &'u str,
    /// The query without its question mark; may be empty.
    pub(crate) query: &'u str,
}

impl<'u> Endpoint<'u> {
    /// Parses an endpoint. This never fails, since every part may be missing.
    pub(crate) fn parse(text: &'u str) -> Self {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (userinfo, servers) = match authority.rsplit_once('@') {
            Some((userinfo, servers)) => (Some(userinfo), servers),
            None => (None, authority),
        };
        let (host, port) = split_port(servers);
        let before_fragment = tail.split('#').next().unwrap_or_default();
        let (path, query) = before_fragment.split_once('?').unwrap_or((before_fragment, ""));
        Self { scheme, userinfo, servers, host, port, tail, path, query }
    }

    /// Parses an `http` or `https` URL that Go's client can use; `None` for any other. Source: Go, net/url.
    pub fn for_go(text: &'u str) -> Option<Self> {
        const HOST_MARKS: &[u8] = b"-_.~!$&'()*+,;=:]<>\"%";
        const USERINFO_MARKS: &[u8] = b"-._:~!$&'()*+,;=%@";
        let has_only = |text: &str, marks: &[u8]| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
        };
        let url = Self::parse(text);
        let bracketed = url.servers.strip_prefix('[');
        let (host, port) = bracketed.map_or(Some((url.host, url.port)), |rest| rest.rsplit_once(']'))?;
        let (name, zone) =
            host.split_at(host.find("%25").filter(|_| bracketed.is_some()).unwrap_or(host.len()));
        // In a name, an escape may only stand for a character beyond ASCII, or for the percent sign.
        let is_in_name = |escape: &str| escape.starts_with("25") || !escape.starts_with(|c: char| c < '8');
        // In a zone, one may only stand for what a host can contain, or for a blank.
        let is_in_zone = |escape: &str| {
            let byte = u8::from_str_radix(escape.get(..2).unwrap_or_default(), 16);
            byte.is_ok_and(|it| it.is_ascii_alphanumeric() || b" [".contains(&it) || HOST_MARKS.contains(&it))
        };
        let is_host = match bracketed {
            Some(_) => {
                name.parse::<Ipv6Addr>().is_ok() && zone != "%25" && zone.split('%').skip(1).all(is_in_zone)
            }
            None => !name.is_empty() && name.split('%').skip(1).all(is_in_name),
        };
        let userinfo = url.userinfo.unwrap_or_default();
        let fragment = url.tail.split_once('#').map_or("", |(_, fragment)| fragment);
        let usable = (url.has_scheme("http") || url.has_scheme("https"))
            && is_host
            && has_only(&host.replace(|c: char| !c.is_ascii(), ""), HOST_MARKS)
            && has_only(userinfo, USERINFO_MARKS)
            && (matches!(port, "" | ":") || port.strip_prefix(':').and_then(port_number) > Some(0))
            && [host, userinfo, url.path, fragment].into_iter().all(is_percent_encoded)
            && !text.bytes().any(|byte| byte.is_ascii_control());
        usable.then_some(Self { host, ..url })
    }

    /// The user of the userinfo, without a password; may be empty.
    pub(crate) fn user(&self) -> &'u str {
        self.userinfo.and_then(|userinfo| userinfo.split(':').next()).unwrap_or_default()
    }

    /// The parameters of the query. Names are decoded, values are not.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (Cow<'u, str>, &'u str)> + use<'u> {
        let parameters = self.query.split('&').filter_map(|parameter| parameter.split_once('='));
        parameters.map(|(name, value)| (percent_decoded(name), value))
    }

    /// Whether the scheme is `http` or `https`, in any case, and there is a host, with or without a port.
    pub(crate) fn is_http(&self) -> bool {
        let has_port =
            || self.port.strip_prefix(':').is_some_and(|port| port.bytes().all(|it| it.is_ascii_digit()));
        (self.has_scheme("http") || self.has_scheme("https"))
            && self.has_host()
            && (self.port.is_empty() || has_port())
    }

    /// Whether this is the scheme, in any case.
    pub(crate) fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.is_some_and(|own| own.eq_ignore_ascii_case(scheme))
    }

    /// Whether there is a host without white space.
    pub(crate) fn has_host(&self) -> bool {
        !self.host.is_empty() && !self.host.contains(char::is_whitespace)
    }

    /// The host as it is compared: in small letters, without final dots.
    pub(crate) fn name(&self) -> String {
        self.host.trim_end_matches('.').to_ascii_lowercase()
    }

    /// The port of an HTTP server, by the scheme if none is given.
    pub(crate) fn port(&self) -> u16 {
        let default = if self.has_scheme("https") { 443 } else { 80 };
        server(self.servers).1.parse().unwrap_or(default)
    }

    /// Whether the host ends in one of these suffixes, in any case, with or without a final dot.
    pub(crate) fn host_ends_with(&self, suffixes: &[&str]) -> bool {
        let host = self.name();
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

/// A port, if the text is one.
pub(crate) fn port_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
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

/// Parses an IPv4 address in every spelling that the C library accepts: one to four numbers, decimal,
/// octal or hexadecimal, the last of which fills the remaining bytes; with or without a final dot. Source: inet_aton(3).
fn ipv4(host: &str) -> Option<Ipv4Addr> {
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

/// The range that a literal address is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressRange {
    /// It leads to the caller itself: loopback or unspecified.
    pub(crate) loopback: bool,
    /// It is private: RFC 1918, ULA, or what carriers, and some clouds for their pods, share (RFC 6598).
    pub(crate) private: bool,
    /// It is link-local.
    pub(crate) link_local: bool,
}

impl AddressRange {
    /// The range of a host, in any spelling; `None` for a name. Where a gateway translates IPv6 (RFC 6052, section 2.1), the
    /// IPv4 address counts at which a packet arrives.
    pub(crate) fn of(host: &str) -> Option<Self> {
        let ip = match ip(host)? {
            IpAddr::V6(v6) if matches!(v6.segments(), [0x64, 0xff9b, 0, 0, 0, 0, ..]) => {
                let [.., a, b, c, d] = v6.octets();
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            other => other,
        };
        let (private, link_local) = match ip {
            IpAddr::V4(ip) => {
                (ip.is_private() || matches!(ip.octets(), [100, 64..=127, ..]), ip.is_link_local())
            }
            IpAddr::V6(ip) => (ip.is_unique_local(), ip.is_unicast_link_local()),
        };
        Some(Self { loopback: ip.is_loopback() || ip.is_unspecified(), private, link_local })
    }
}

/// The credential in the URL at this place: userinfo, or a parameter whose name means a credential.
pub(crate) fn inline_credential(text: &str, field: Pointer) -> Option<InlineView> {
    let url = Endpoint::parse(text);
    (url.userinfo.is_some() || has_credential_parameter(url.query)).then(|| InlineView::new(field, text))
}

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
pub(crate) fn reading_of_url(text: &str) -> Reading {
    let Endpoint { scheme, userinfo, servers, tail, .. } =
        Endpoint::parse(text.strip_prefix("//").unwrap_or(text));
    let is_of_web = scheme.is_some_and(is_web);
    // libpq looks for userinfo up to the first slash.
    let behind = tail.split('/').next().unwrap_or_default();
    // Source: go-sql-driver/mysql, ParseDSN, which looks for the last slash, and for `@` and `(` before it.
    let (has_at, has_bracket) = (tail.contains('@'), tail.contains('('));
    let is_dsn = if scheme.is_some() { has_at && has_bracket } else { has_at || has_bracket };
    // Of a bare `http:80`, Node reads an address.
    let bare = servers.split_once(':').filter(|_| scheme.is_none());
    if text.trim() != text
        || text.contains(char::is_control)
        || scheme.is_some_and(|scheme| !is_scheme(scheme))
        || behind.contains('@')
        || is_dsn
        // Drivers of databases know no fragment.
        || (scheme.is_some() && !is_of_web && text.contains('#'))
        || !is_userinfo(userinfo.unwrap_or_default())
        || bare.is_some_and(|(host, _)| is_web(host))
        || (servers.is_empty() && is_of_web)
        || (text.starts_with("//") && (servers.is_empty() || scheme.is_some()))
    {
        return Reading::Different;
    }
    if is_of_web { of_server(servers) } else { of_list(servers, of_server) }
}

/// How clients read a list of hosts that stands in a parameter: without ports and brackets.
pub(crate) fn reading_of_hosts(list: &str) -> Reading {
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
    let (host, port) = split_port(server);
    let host = match host {
        address if server.starts_with('[') => of_address(address),
        // Without a host, it is the machine of the client.
        "" => Reading::Same,
        name => of_host(name),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => Reading::Same,
        Some("") => Reading::Unusual,
        // Some clients take more digits, with zeros in front, for no port.
        Some(digits) if digits.len() <= 5 && port_number(digits).is_some() => Reading::Same,
        _ => Reading::Different,
    };
    host.max(port)
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
    match ipv4(host) {
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
                (endpoint.is_http(), endpoint.userinfo.is_some(), endpoint.host),
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

    #[test]
    fn knows_what_go_can_use() {
        for good in [
            "http://ark-broker",
            "HTTPS://Host:443/a?b#c",
            "http://h:/",
            "http://user:pass@h:1/p@q",
            "http://[::1]:8080/",
            "http://[fe80::1%25eth0]",
            "http://h/a b",
            "http://h/%20%c3%a9?%#%23",
            "http://h?",
            "http://b%C3%BC",
            "http://b\u{fc}",
            "http://a%25b",
            "http://h_1.~!$&'()*+,;=<>\"]:80",
            "http://us%20er:p@ss@h",
            "http://@h",
            "http://[::ffff:10.0.0.1]",
            "http://[fe80::1%25a%20b%5b]",
            "http://h:000080",
        ] {
            assert!(Endpoint::for_go(good).is_some(), "{good}");
        }
        for bad in [
            "", "ark-broker:8080", "http:host", "http:///x", "http://", "http://:80", "ftp://h", "//h",
            "http://h:0", "http://h:65536", "http://h:http", "http://h:+1", "http://a b/", " http://h",
            "http://h\n", "http://h/\u{7f}", "http://[::1", "http://[::1]x", "http://::1:80", "http://h/%",
            "http://h/%2", "http://h/%2x", "http://h/\u{20}%g0", "http://h#%", "http://a%41", "http://a%",
            "http://a\\b", "http://a\\@b", "http://a^b", "http://a`b", "http://{a}", "http://a|b",
            "http://user%@h", "http://u ser@h", "http://\u{fc}ser@h", "http://user@", "http://h:80:80",
            "http://h:8\u{664}", "http://h[1]", "http://[]", "http://[h]", "http://[10.0.0.1]",
            "http://[::1]]", "http://[[::1]]", "http://[fe80::1%eth0]", "http://[fe80::1%25]",
            "http://[fe80::1%25a b]", "http://[fe80::1%25%0a]", "http://[fe80::1%25%c3%bc]",
            "http://[::1%20]", "http://h:000000", "http://h:0065536",
        ] {
            assert!(Endpoint::for_go(bad).is_none(), "{bad}");
        }
    }
}

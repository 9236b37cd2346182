//! The URL of a memory service, as the platform's client reads it. memgate never connects to it.

use std::net::{IpAddr, Ipv6Addr};

use crate::url;
use memgate_primitives::percent::is_percent_encoded;

/// The parts of an absolute `http` or `https` URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'u> {
    /// Whether the scheme is `https`.
    pub(crate) encrypted: bool,
    /// Whether the host has userinfo before it, such as `user@`.
    pub(crate) userinfo: bool,
    /// The host without port and brackets.
    pub(crate) host: &'u str,
    /// The path, query and fragment.
    pub(crate) rest: &'u str,
}

impl<'u> Address<'u> {
    /// Parses a URL. `None` if the client could not use it: another scheme, a missing host, an invalid port,
    /// a control character, or anything else that Go's `net/url` refuses.
    pub fn parse(text: &'u str) -> Option<Self> {
        let (scheme, behind) = text.split_once("://")?;
        let encrypted = scheme.eq_ignore_ascii_case("https");
        if !encrypted && !scheme.eq_ignore_ascii_case("http") || text.bytes().any(|b| b.is_ascii_control()) {
            return None;
        }
        let (authority, rest) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
        let (userinfo, host_and_port) = match authority.rsplit_once('@') {
            Some((userinfo, host_and_port)) => (Some(userinfo), host_and_port),
            None => (None, authority),
        };
        let (host, port) = split_port(host_and_port)?;
        let usable = userinfo.is_none_or(is_userinfo)
            && is_host(host)
            && (port.is_empty() || is_port(port))
            && is_rest(rest);
        let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
        usable.then_some(Self { encrypted, userinfo: userinfo.is_some(), host, rest })
    }

    /// Whether the URL has a query string or a fragment. The client appends paths to the URL, so they would
    /// become part of it.
    pub(crate) fn has_suffix(&self) -> bool {
        self.rest.contains(['?', '#'])
    }

    /// Whether the URL contains no possible secret: neither userinfo nor a query string.
    pub(crate) fn is_public(&self) -> bool {
        let before_fragment = self.rest.split('#').next().unwrap_or_default();
        !self.userinfo && !before_fragment.contains('?')
    }

    /// Whether the host is the caller itself or link-local.
    pub(crate) fn is_local(&self) -> bool {
        match self.ip() {
            Some(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_unspecified() || ip.is_link_local(),
            Some(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unspecified() || ip.is_unicast_link_local(),
            None => self.name().eq_ignore_ascii_case("localhost"),
        }
    }

    /// Whether the host is in a private network, by its name or address alone.
    pub(crate) fn is_inside(&self) -> bool {
        match self.ip() {
            Some(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private(),
            Some(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
            None => {
                let name = self.name().to_ascii_lowercase();
                let labels = || name.split('.');
                !name.contains('.')
                    || labels().skip(1).any(|label| label == "svc")
                    || labels().next_back().is_some_and(|last| matches!(last, "local" | "internal"))
            }
        }
    }

    /// The name and the namespace of the Service, for a host of two labels.
    pub(crate) fn service(&self) -> Option<(&'u str, &'u str)> {
        let (name, namespace) = self.name().split_once('.')?;
        (self.ip().is_none() && !namespace.contains('.')).then_some((name, namespace))
    }

    fn name(&self) -> &'u str {
        self.host.strip_suffix('.').unwrap_or(self.host)
    }

    fn ip(&self) -> Option<IpAddr> {
        url::ip(self.host)
    }
}

/// Whether a text is a port number, 1 to 65535.
pub(crate) fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// The host, with its brackets if it has any, and the port, which may be empty.
fn split_port(host_and_port: &str) -> Option<(&str, &str)> {
    let end_of_brackets = host_and_port.starts_with('[').then(|| host_and_port.rfind(']'));
    let end = match end_of_brackets {
        Some(bracket) => bracket? + 1,
        None => host_and_port.find(':').unwrap_or(host_and_port.len()),
    };
    let (host, behind) = host_and_port.split_at(end);
    let port = if behind.is_empty() { behind } else { behind.strip_prefix(':')? };
    Some((host, port))
}

/// Whether path and fragment have no invalid escapes. Go accepts any query string.
fn is_rest(rest: &str) -> bool {
    let (path_and_query, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let path = path_and_query.split('?').next().unwrap_or_default();
    is_percent_encoded(path) && is_percent_encoded(fragment)
}

/// The characters that a host can contain besides letters, digits and characters beyond ASCII.
const HOST_MARKS: &[u8] = b"-_.~!$&'()*+,;=:[]<>\"";

/// The characters that userinfo can contain besides letters and digits.
const USERINFO_MARKS: &[u8] = b"-._:~!$&'()*+,;=%@";

/// Whether a text is a user name, or a user name and a password.
pub(super) fn is_userinfo(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || USERINFO_MARKS.contains(&byte))
        && is_percent_encoded(text)
}

/// Whether a text without a port is a name, an IPv4 address, or an IPv6 address in brackets.
pub(super) fn is_host(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(ip) => is_ipv6(ip),
        None => !text.is_empty() && !text.contains('[') && is_plain_host(text) && escapes(text).all(in_host),
    }
}

/// In a name, an escape may only stand for a character beyond ASCII, or for the percent sign.
fn in_host(escape: Option<u8>) -> bool {
    escape.is_some_and(|byte| !byte.is_ascii() || byte == b'%')
}

/// An IPv6 address, with or without a zone after an escaped percent sign.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = match text.split_once("%25") {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(is_zone)
}

fn is_zone(text: &str) -> bool {
    let in_zone = |byte: u8| matches!(byte, b'%' | b' ') || is_host_byte(byte) && byte.is_ascii();
    !text.is_empty()
        && !text.contains('[')
        && is_plain_host(text)
        && escapes(text).all(|escape| escape.is_some_and(in_zone))
}

/// Whether a host may contain all characters outside the escapes.
fn is_plain_host(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'%' || is_host_byte(byte))
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || HOST_MARKS.contains(&byte)
}

/// The byte of each escape; `None` for an invalid escape.
fn escapes(text: &str) -> impl Iterator<Item = Option<u8>> + '_ {
    text.split('%').skip(1).map(|behind| {
        let digits =
            behind.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        u8::from_str_radix(digits, 16).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_the_client_can_use() {
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
            "http://[fe80::1%25a%20b]",
        ] {
            assert!(Address::parse(good).is_some(), "{good}");
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
            "http://[fe80::1%25%0a]", "http://[fe80::1%25a b]", "http://[::1%20]",
        ] {
            assert!(Address::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn tells_public_urls_from_those_with_secrets() {
        for (url, public) in [
            ("http://h", true),
            ("http://h/a#b?c", true),
            ("http://h?a", false),
            ("http://h/a?", false),
            ("http://u@h", false),
            ("http://@h", false),
        ] {
            assert_eq!(Address::parse(url).expect(url).is_public(), public, "{url}");
        }
    }

    #[test]
    fn tells_hosts_apart() {
        let address = |host: &str| format!("http://{host}:80/");
        for local in [
            "localhost", "LOCALHOST.", "127.9.9.9", "0.0.0.0", "169.254.1.1", "[::1]", "[::]", "[fe80::1]",
            "2130706433", "0177.1", "[::ffff:127.0.0.1]", "0xa9fea9fe",
        ] {
            assert!(Address::parse(&address(local)).expect(local).is_local(), "{local}");
        }
        for inside in [
            "broker", "broker.team-a.svc", "b.a.svc.cluster.local", "b.a.svc.example.com", "b.local",
            "B.Internal.", "10.0.0.1", "192.168.1.1", "172.16.0.1", "[fd00::1]", "[::ffff:10.0.0.1]",
        ] {
            assert!(Address::parse(&address(inside)).expect(inside).is_inside(), "{inside}");
        }
        for outside in ["example.com", "broker.team-a", "svc.example", "8.8.8.8", "[2001:db8::1]"] {
            let text = address(outside);
            let parsed = Address::parse(&text).expect(outside);
            assert!(!parsed.is_inside() && !parsed.is_local(), "{outside}");
        }
        assert_eq!(Address::parse("http://b.team-a:80").expect("good").service(), Some(("b", "team-a")));
        assert_eq!(Address::parse("http://b.c.d").expect("good").service(), None);
    }
}

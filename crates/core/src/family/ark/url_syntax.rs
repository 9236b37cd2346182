//! Which characters the parts of a URL may have, as Go reads them. The platform's client is written in Go,
//! and what Go refuses never reaches a memory service.
//! Source: Go, net/url, `parseAuthority`, `parseHost` and `unescape`.

use std::net::Ipv6Addr;

/// The characters of a host besides letters, digits and those beyond ASCII.
const HOST_MARKS: &[u8] = b"-_.~!$&'()*+,;=:[]<>\"";

/// The characters of userinfo besides letters and digits.
const USERINFO_MARKS: &[u8] = b"-._:~!$&'()*+,;=%@";

/// Whether each percent sign starts an escape of two digits.
pub(super) fn is_well_escaped(text: &str) -> bool {
    escapes(text).all(|byte| byte.is_some())
}

/// Whether a text is a user name, or a user name and a password.
pub(super) fn is_userinfo(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || USERINFO_MARKS.contains(&byte))
        && is_well_escaped(text)
}

/// Whether a text without a port is a name, an IPv4 address, or an IPv6 address in brackets.
pub(super) fn is_host(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(ip) => is_ipv6(ip),
        None => !text.is_empty() && !text.contains('[') && is_plain_host(text) && escapes(text).all(in_host),
    }
}

/// An escape in a name stands for a character beyond ASCII, or for the percent sign.
fn in_host(escape: Option<u8>) -> bool {
    escape.is_some_and(|byte| !byte.is_ascii() || byte == b'%')
}

/// An IPv6 address, with a zone behind an escaped percent sign if it has one.
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

/// Whether all characters but those of escapes may stand in a host.
fn is_plain_host(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'%' || is_host_byte(byte))
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || HOST_MARKS.contains(&byte)
}

/// What each escape stands for; `None` for a broken one.
fn escapes(text: &str) -> impl Iterator<Item = Option<u8>> + '_ {
    text.split('%').skip(1).map(|behind| {
        let digits =
            behind.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        u8::from_str_radix(digits, 16).ok()
    })
}

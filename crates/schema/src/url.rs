//! URLs as Go reads those of requests. Source: Go, package net/url, `ParseRequestURI`.

/// Whether a text is an absolute URL, or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        // `mailto:x` is opaque; a relative path is not a request URI.
        return !scheme.is_empty();
    }
    let (authority, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    is_authority(authority) && has_good_escapes(path)
}

/// The scheme, empty for a URL without one, and the rest; `None` when the URL begins with the colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((text.get(..index)?, text.get(index + 1..)?)),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let in_userinfo = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    userinfo.bytes().all(in_userinfo) && has_good_escapes(userinfo) && is_host(host)
}

/// A host with or without a port.
fn is_host(host: &str) -> bool {
    let port = match host.strip_prefix('[') {
        Some(bracketed) => {
            let Some((inner, port)) = bracketed.rsplit_once(']') else { return false };
            return is_port(port) && has_good_escapes(inner) && inner.bytes().all(in_host);
        }
        None => host.rfind(':').and_then(|colon| host.get(colon..)).unwrap_or_default(),
    };
    // Only bytes beyond ASCII may be escaped in a host.
    let escapes = host.split('%').skip(1).all(|rest| rest.bytes().next().is_some_and(|byte| byte > b'7'));
    is_port(port) && escapes && has_good_escapes(host) && host.bytes().all(in_host)
}

fn in_host(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte)
}

/// Nothing, or a colon with digits, if any.
fn is_port(port: &str) -> bool {
    port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether two hexadecimal digits follow every `%`.
fn has_good_escapes(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|rest| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

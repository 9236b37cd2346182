//! The formats of texts that are checked; an apiserver checks some more, which no API for memory uses.
//! Source: k8s.io/apiextensions-apiserver, `apiserver/validation/formats.go`; k8s.io/kube-openapi,
//! `validation/strfmt`.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr as _;
use std::sync::LazyLock;

use jiff::civil::Date;

use crate::crd::{Format, FormatRule, Pattern};
use crate::scalar::matches_pattern;
use crate::uri::is_uri;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::name::{is_dns_label, is_dns_subdomain};

/// A name and what a text of that format is like.
type TextFormat = (&'static str, fn(&str) -> bool);

const FORMATS: [TextFormat; 13] = [
    ("uri", is_uri),
    ("hostname", |text| text.len() <= 255 && matches_pattern(&HOSTNAME, text)),
    ("ipv4", |text| text.contains('.') && ip(text).is_some()),
    ("ipv6", |text| Ipv6Addr::from_str(text).is_ok()),
    ("cidr", is_cidr),
    ("uuid", |text| matches_pattern(&UUID, text)),
    ("byte", |text| matches_pattern(&BASE64, text) && text.len().is_multiple_of(4)),
    ("password", |_| true),
    ("date", is_date),
    ("duration", |text| nanoseconds(text).is_some() || matches_pattern(&NAMED_UNIT, text)),
    ("date-time", is_date_time),
    ("k8s-short-name", is_dns_label),
    ("k8s-long-name", is_dns_subdomain),
];

/// The format of this name; hyphens in it do not count.
pub(super) fn find(name: &str) -> Option<Format> {
    let plain = |name: &str| name.replace('-', "");
    let found = FORMATS.iter().find(|(known, _)| plain(known) == plain(name));
    found.map(|(name, holds)| Format { name, rule: FormatRule::Text(*holds) })
}

static BASE64: LazyLock<Pattern> = LazyLock::new(|| Pattern::new("^[0-9A-Za-z+/]+={0,2}$"));
static HOSTNAME: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
});
/// A number with a unit: `7 days`, `1w`.
static NAMED_UNIT: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?i)[0-9]\s*(ns|us|µs|ms|s|m|h|hr|d|w|wk|(nano|micro|milli|sec|min|hour|day|week)[a-z]*)([^a-z]|$)",
    )
});
static TIME: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
static UUID: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new("^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$")
});

/// An address; zeros in front are read as decimal.
fn ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return IpAddr::from_str(text).ok();
    }
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        digits => digits.to_owned(),
    };
    if text.split('.').count() != 4 {
        return None;
    }
    IpAddr::from_str(&text.split('.').map(plain).collect::<Vec<_>>().join(".")).ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match ip(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// `2006-01-02`, a day that exists.
fn is_date(text: &str) -> bool {
    text.len() == "2006-01-02".len() && Date::from_str(text).is_ok()
}

/// A time of RFC 3339, as loosely as the apiserver reads it.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let fields = [time.get(0..2), time.get(3..5), time.get(6..8)];
    let within = |(field, most): (Option<&str>, &str)| field.is_some_and(|field| field <= most);
    is_date(date) && matches_pattern(&TIME, time) && fields.into_iter().zip(["23", "59", "59"]).all(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_what_the_apiserver_checks() {
        for (format, good, bad) in [
            (
                "date-time",
                &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"][..],
                &["2014-12-15", "2014-02-30T00:00:00Z", "2014-12-15T24:00:00Z", "", "x"][..],
            ),
            ("datetime", &["2014-12-15T19:30:20Z"], &["2014-12-15 19:30:20Z"]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-9", "2024-13-01", ""]),
            (
                "duration",
                &["5m", "1.5h", "22 ns", "7 days", "1w", "3 weeks"],
                &["", "5", "x", "five minutes"],
            ),
            ("uri", &["http://a/b", "/a", "mailto:x@y", "*"], &["", "a", "a/b", "http://a b/", "::"]),
            ("hostname", &["a", "a.example", "1a.example.com"], &["", "-a", "a_b", "a..b"]),
            ("ipv4", &["127.0.0.1", "010.0.0.1"], &["", "1.2.3", "256.0.0.1", "::1"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1.2.3.4", "", "::g"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", ""]),
            (
                "uuid",
                &["f47ac10b-58cc-0372-8567-0e02b2c3d479", "F47AC10B58CC037285670E02B2C3D479"],
                &["f47ac10b", ""],
            ),
            ("byte", &["YQ==", "YWI=", "YWJj"], &["", "YQ", "YQ=", "Y Q=", "===="]),
            ("password", &["", "x"], &[]),
            ("k8s-short-name", &["a-b"], &["a.b", "A", ""]),
            ("k8s-long-name", &["a.b-c"], &["a..b", "A.b", ""]),
        ] {
            let Some(Format { rule: FormatRule::Text(holds), .. }) = find(format) else {
                panic!("{format} is not known");
            };
            for text in good {
                assert!(holds(text), "{format}: {text:?} is good");
            }
            for text in bad {
                assert!(!holds(text), "{format}: {text:?} is bad");
            }
        }
        assert!(find("time").is_none());
    }
}

//! The formats of texts that an apiserver checks. It passes over all others.
//! Source: k8s.io/apiextensions-apiserver, `apiserver/validation/formats.go`; k8s.io/kube-openapi,
//! `validation/strfmt`.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr as _;
use std::sync::LazyLock;

use crate::crd::{Format, FormatRule, Pattern};
use crate::pattern::matches;
use crate::url;
use memgate_primitives::duration::nanoseconds;

/// A row of the table of formats.
macro_rules! formats {
    ($($name:literal => $holds:expr,)+) => {
        /// The format of this name; hyphens in it do not count.
        pub(super) fn find(name: &str) -> Option<Format> {
            let plain = |name: &str| name.replace('-', "");
            let wanted = plain(name);
            $(if wanted == plain($name) {
                return Some(Format { name: $name, rule: FormatRule::Text($holds) });
            })+
            None
        }
    };
}

formats! {
    "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
    "uri" => url::is_request_uri,
    "email" => is_email,
    "hostname" => is_hostname,
    "ipv4" => |text| text.contains('.') && ip(text).is_some(),
    "ipv6" => |text| Ipv6Addr::from_str(text).is_ok(),
    "cidr" => is_cidr,
    "mac" => is_mac,
    "uuid" => |text| is_uuid(text, None, false),
    "uuid3" => |text| is_uuid(text, Some(b'3'), false),
    "uuid4" => |text| is_uuid(text, Some(b'4'), true),
    "uuid5" => |text| is_uuid(text, Some(b'5'), true),
    "isbn" => |text| is_isbn10(text) || is_isbn13(text),
    "isbn10" => is_isbn10,
    "isbn13" => is_isbn13,
    "creditcard" => is_credit_card,
    "ssn" => |text| text.len() == 11 && matches(&SSN, text),
    "hexcolor" => |text| matches(&HEX_COLOR, text),
    "rgbcolor" => is_rgb_color,
    "byte" => is_base64,
    "password" => |_| true,
    "date" => is_date,
    "duration" => is_duration,
    "date-time" => is_date_time,
    "k8s-short-name" => is_label,
    "k8s-long-name" => |text| text.len() <= 253 && text.split('.').all(is_label_of_any_length),
}

static SSN: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"));
static HEX_COLOR: LazyLock<Pattern> = LazyLock::new(|| Pattern::new("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static CREDIT_CARD: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$",
    )
});
static TIME: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
static HOSTNAME: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
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

/// Six, eight or twenty bytes in hexadecimal, joined by colons, hyphens, or by dots in pairs of bytes.
fn is_mac(text: &str) -> bool {
    /// Twenty bytes with the separators between them.
    const MAX_BYTES: usize = 59;
    if text.len() > MAX_BYTES {
        return false;
    }
    let (separator, width) = match text {
        _ if text.contains('.') => ('.', 4),
        _ if text.contains('-') => ('-', 2),
        _ => (':', 2),
    };
    let parts: Vec<_> = text.split(separator).collect();
    let hexadecimal = |part: &&str| part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().all(hexadecimal) && [6, 8, 20].contains(&(parts.len() * width / 2))
}

/// 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12; each hyphen between them may be missing.
fn is_uuid(text: &str, version: Option<u8>, has_variant: bool) -> bool {
    let mut rest = text.as_bytes();
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((digits, behind)) = rest.split_at_checked(length) else { return false };
        let first = digits.first().copied().unwrap_or_default();
        let right = match group {
            2 => version.is_none_or(|version| first == version),
            3 => !has_variant || b"89abAB".contains(&first),
            _ => true,
        };
        if !right || !digits.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

/// The digits of a number, without white space and hyphens; of more than any number has, the first ones.
fn without_separators(text: &str) -> Vec<u8> {
    const MAX_DIGITS: usize = 14;
    let digits = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
    digits.map(|c| u8::try_from(c).unwrap_or(0)).take(MAX_DIGITS).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let value = |(index, byte): (usize, &u8)| match byte {
        b'0'..=b'9' => Some(u32::from(byte - b'0')),
        b'X' if index == 9 => Some(10),
        _ => None,
    };
    let values: Option<Vec<_>> = digits.iter().enumerate().map(value).collect();
    values.is_some_and(|values| {
        values.len() == 10 && (1..).zip(values).map(|(n, v)| n * v).sum::<u32>() % 11 == 0
    })
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 =
        digits.iter().zip(weights).map(|(byte, weight)| u32::from(byte.wrapping_sub(b'0')) * weight).sum();
    digits.len() == 13 && digits.iter().all(u8::is_ascii_digit) && sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    /// One more than any number has.
    const MAX_DIGITS: usize = 20;
    let digits: String = text.chars().filter(char::is_ascii_digit).take(MAX_DIGITS).collect();
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip([1, 2].into_iter().cycle())
        .map(|(byte, weight)| u32::from(byte - b'0') * weight)
        .map(|value| if value > 9 { value - 9 } else { value })
        .sum();
    matches(&CREDIT_CARD, &digits) && sum.is_multiple_of(10)
}

fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let byte = |part: &str| {
        let part = part.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let plain = part == "0" || !part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
        plain && part.parse::<u8>().is_ok()
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(byte))
}

/// Padded base64 of at least one byte.
fn is_base64(text: &str) -> bool {
    let padding = text.len() - text.trim_end_matches('=').len();
    let body = text.trim_end_matches('=');
    let in_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && body.bytes().all(in_alphabet)
}

/// `2006-01-02`, a day that exists.
fn is_date(text: &str) -> bool {
    if text.len() != "2006-01-02".len() {
        return false;
    }
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |part: &str, digits| {
        let plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| part.parse::<u16>().ok()).flatten()
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A time of RFC 3339, as loosely as the apiserver reads it.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let fields = [time.get(0..2), time.get(3..5), time.get(6..8)];
    let within = |(field, most): (Option<&str>, &str)| field.is_some_and(|field| field <= most);
    is_date(date) && matches(&TIME, time) && fields.into_iter().zip(["23", "59", "59"]).all(within)
}

/// A duration of Go, or numbers with the unit names of Scala.
fn is_duration(text: &str) -> bool {
    nanoseconds(text).is_some() || has_named_unit(text)
}

/// Whether a number with a unit stands anywhere: `7 days`, `1w`.
fn has_named_unit(text: &str) -> bool {
    const EXACT: [&str; 13] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "sec", "min"];
    const STARTS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let is_unit = |word: &str| {
        let word = word.to_lowercase();
        EXACT.contains(&word.as_str()) || STARTS.iter().any(|start| word.starts_with(start))
    };
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == 'µ';
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (_, from_digits) = rest.split_at(start);
        let digits = from_digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(from_digits.len());
        let (number, behind) = from_digits.split_at(digits);
        let behind = behind.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let end = behind.find(|c: char| !is_letter(c)).unwrap_or(behind.len());
        let (word, after) = behind.split_at(end);
        if !word.is_empty() && number.parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(word);
        rest = after;
    }
    found
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

fn is_label_of_any_length(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| alphanumeric(byte) || byte == b'-';
    let (first, last) = (text.bytes().next(), text.bytes().last());
    first.is_some_and(alphanumeric) && last.is_some_and(alphanumeric) && text.bytes().all(inner)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && matches(&HOSTNAME, text)
}

/// One address of RFC 5322, with or without a name in front, as far as people write them.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.split_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    (quoted || local.split('.').all(atom)) && domain.split('.').all(atom)
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
            (
                "uri",
                &["http://a/b", "/a", "mailto:x@y", "*"],
                &["", "a", "a/b", "http://a b/", "http://a:x/", "http://%zz/", "::"],
            ),
            ("email", &["a@b.c", "Ann <a@b.c>"], &["", "a", "a@", "@b", "a b@c", "<a@b"]),
            ("hostname", &["a", "a.example", "1a.example.com"], &["", "-a", "a_b", "a..b"]),
            ("ipv4", &["127.0.0.1", "010.0.0.1"], &["", "1.2.3", "256.0.0.1", "::1"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1.2.3.4", "", "::g"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", ""]),
            (
                "mac",
                &["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab"],
                &["01:23", "", "0g:23:45:67:89:ab"],
            ),
            (
                "uuid",
                &["f47ac10b-58cc-0372-8567-0e02b2c3d479", "F47AC10B58CC037285670E02B2C3D479"],
                &["f47ac10b", ""],
            ),
            (
                "uuid4",
                &["f47ac10b-58cc-4372-a567-0e02b2c3d479"],
                &["f47ac10b-58cc-0372-8567-0e02b2c3d479", "f47ac10b-58cc-4372-c567-0e02b2c3d479"],
            ),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751042", "978-0321751042", ""]),
            ("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112", ""]),
            ("ssn", &["111-22-3333"], &["11-222-3333", "111223333"]),
            ("hexcolor", &["#FFFFFF", "abc"], &["#FFFF", ""]),
            ("rgbcolor", &["rgb(0, 1,255)"], &["rgb(0,1,256)", "rgb(0,1)", "rgb(00,1,2)"]),
            ("byte", &["YQ==", "YWI=", "YWJj"], &["", "YQ", "YQ=", "Y Q=", "===="]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77", "507f1f77bcf86cd79943901g"]),
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

//! The names that objects of the Kubernetes API can have, and what people write in their place.

use crate::credential;

/// Whether an object of the API can have this name, a DNS-1123 subdomain:
/// parts of `a-z`, `0-9` and `-` joined by dots, each starting and ending with a letter or digit,
/// at most 253 characters in all.
/// Source: Kubernetes documentation, Object Names and IDs, DNS Subdomain Names.
pub fn is_dns_subdomain(name: &str) -> bool {
    // Each part begins and ends with a letter or a digit.
    let mut before = b'.';
    let mut fits = |byte: u8| {
        let fits = match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' => before != b'.',
            b'.' => !matches!(before, b'-' | b'.'),
            _ => false,
        };
        before = byte;
        fits
    };
    name.len() <= 253 && name.bytes().all(&mut fits) && !matches!(before, b'-' | b'.')
}

/// Whether an object of the API can have this name, a DNS-1123 label: as [`is_dns_subdomain`], without dots and with at
/// most 63 characters. Namespaces do.
/// Source: Kubernetes documentation, Object Names and IDs, RFC 1123 Label Names.
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && !name.contains('.') && is_dns_subdomain(name)
}

/// The name that a person meant by a text that cannot be one, `notes-a` for `Notes_A`: in lower case, with `-` in place of
/// `_` and blank. `None` for a name, and for what may be a key.
pub fn meant_name(text: &str) -> Option<String> {
    /// Most keys of services are longer.
    const MAX_BYTES: usize = 40;
    // Programs that make passwords make groups of letters.
    let groups: Vec<usize> = text.split(['-', '_', ' ']).map(str::len).collect();
    let is_made = groups.len() > 2 && groups.iter().all(|it| *it > 3 && groups.first() == Some(it));
    let is_other = text.len() > MAX_BYTES || is_made || is_dns_subdomain(text);
    let meant = text.trim_matches(' ').to_ascii_lowercase().replace(['_', ' '], "-");
    // People rarely write capitals and several digits in a long name; licences and identifiers have them.
    let is_mixed = text.bytes().any(|b| b.is_ascii_uppercase())
        && text.bytes().filter(u8::is_ascii_digit).count() > 1
        && text.len() >= 12;
    let is_slip =
        !is_other && !is_mixed && is_dns_subdomain(&meant) && credential::value_spans(text).is_empty();
    is_slip.then_some(meant)
}

/// Whether a text could be the key of a mapping: the name of a field, of a variable or of a file, or a key of labels with
/// a DNS-1123 subdomain before its `/`.
pub fn is_key(key: &str) -> bool {
    let part =
        |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && part(name),
        None => part(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_dns_labels() {
        let longest = "a".repeat(63);
        for good in ["a", "team-a", "1", longest.as_str()] {
            assert!(is_dns_label(good), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", "a.b", "Team", "-a", "a-", "a_b", "a\n", "a'b", long.as_str()] {
            assert!(!is_dns_label(bad), "{bad}");
        }
    }

    #[test]
    fn knows_the_name_that_was_meant() {
        for (text, meant) in [
            ("Notes_A", Some("notes-a")),
            ("My Memory", Some("my-memory")),
            ("notes ", Some("notes")),
            ("TEAM.v2", Some("team.v2")),
            ("notes-a", None),
            ("", None),
            (" ", None),
            ("_notes", None),
            ("team/Notes", None),
            ("notes?", None),
            ("Notes-of-the-team-that-has-forty-one-char", None),
            ("AKIAIOSFODNN7EXAMPLE", None),
            ("Qx7Lm2Vb9Kt4Rw8Zn1Hc6Jd3Fg5Sy0PaTeUiOoXk", None),
            ("Ab password=x", None),
        ] {
            assert_eq!(meant_name(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn knows_keys() {
        for good in ["", "apiKey", "API_KEY", "tls.crt", "a.b/C_d", "x-y"] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["a b", "redis://:x@y", "wJalr/K7/bPx", "Ab/c", "a/b/c", "a+b", "ab="] {
            assert!(!is_key(bad), "{bad}");
        }
    }

    #[test]
    fn knows_dns_subdomains() {
        for good in ["a", "a-b", "a.b", "1", "notes-redis.v2"] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        let long = "a".repeat(254);
        for bad in ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a b", long.as_str()] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
    }
}

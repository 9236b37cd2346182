//! The names that objects of the Kubernetes API can have.

/// Whether an object of the API can have this name, a DNS-1123 subdomain:
/// parts of `a-z`, `0-9` and `-` joined by dots, each starting and ending with a letter or digit,
/// at most 253 characters in all.
/// Source: Kubernetes documentation, Object Names and IDs, DNS Subdomain Names.
pub fn is_dns_subdomain(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

/// Whether an object of the API can have this name, a DNS-1123 label: as [`is_dns_subdomain`], without dots and with at
/// most 63 characters. Namespaces do.
/// Source: Kubernetes documentation, Object Names and IDs, RFC 1123 Label Names.
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && !name.contains('.') && is_dns_subdomain(name)
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

//! Whether the live webhook configurations trust memgate's certificate, for `memgate certs verify`.

use memgate_certs::verify::{CertInfo, TrustVerdict, WebhookReport};

/// How long before it expires a certificate is warned about, in seconds: a week, but at most a fifth of its
/// life, since one that lives for a week is replaced before that.
const MAX_EXPIRY_WARNING_SECONDS: i64 = 7 * 24 * 3600;

/// The results for all entries.
#[derive(Debug)]
pub struct Verification {
    /// The entries of both configurations; none when there is no configuration.
    pub entries: Vec<WebhookReport>,
    /// The time that they were judged by, in seconds since 1970.
    pub now: i64,
}

impl Verification {
    /// Whether every certificate is trusted; `None` when that is unknown.
    pub fn is_trusted(&self) -> Option<bool> {
        let has = |wanted: fn(&TrustVerdict) -> bool| self.entries.iter().any(|entry| wanted(&entry.verdict));
        match () {
            () if has(|verdict| matches!(verdict, TrustVerdict::Refused(_))) => Some(false),
            () if has(|verdict| !matches!(verdict, TrustVerdict::Trusted)) => None,
            () => Some(true),
        }
    }

    /// Whether the result for a server is unknown, although a connection was tried.
    pub fn has_unknown(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.verdict, TrustVerdict::Unknown(_)))
    }

    /// The warning about the dates of a certificate, if there is one.
    pub fn warning(&self, facts: &CertInfo) -> Option<&'static str> {
        match facts.not_after - self.now {
            left if left <= 0 => Some("expired"),
            left if left < MAX_EXPIRY_WARNING_SECONDS.min((facts.not_after - facts.not_before) / 5) => {
                Some("expires soon")
            }
            _ if facts.not_before > self.now => Some("not valid yet"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_of_what_should_have_been_replaced() {
        let day = 24 * 3600;
        let lives = |from: i64, to: i64| CertInfo {
            subject: String::new(),
            issuer: String::new(),
            names: Vec::new(),
            not_before: from * day,
            not_after: to * day,
        };
        let verification = Verification { entries: Vec::new(), now: 0 };
        for (facts, expected) in [
            (lives(-1, 6), None),
            (lives(-6, 1), Some("expires soon")),
            (lives(-300, 65), None),
            (lives(-359, 6), Some("expires soon")),
            (lives(-7, 0), Some("expired")),
            (lives(1, 8), Some("not valid yet")),
        ] {
            assert_eq!(verification.warning(&facts), expected, "{facts:?}");
        }
    }
}

//! Patterns of hosts: `*` for any text within one label, a leading `**.` for one or more labels.

use memgate_model::finding::Cause;
use memgate_primitives::budget::Budget;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::quoted_text;

/// A pattern of hosts.
#[derive(Debug)]
pub(super) struct HostGlob(Glob);

impl HostGlob {
    /// The pattern that a policy writes, or what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, (Cause, String)> {
        let fault = |why: &str| (Cause::Invalid, format!("{} fits no host; {why}", quoted_text(text)));
        if !text.bytes().all(|byte| is_of_host(byte) || b"*?[]".contains(&byte)) {
            return Err(fault("write a name or an address, without scheme and path"));
        }
        Self::new(text).ok_or_else(|| fault("** stands in front only, as in **.example.com"))
    }

    /// The pattern of this text; `None` when `**` stands anywhere but in front, as a label.
    pub(super) fn new(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let lower = lower.strip_suffix('.').unwrap_or(&lower);
        // An address of IPv6, as URLs write it.
        let inner = lower.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let lower = inner.filter(|inner| inner.contains(':')).unwrap_or(lower);
        let rest = lower.strip_prefix("**.").unwrap_or(lower);
        (!rest.contains("**") && !rest.is_empty()).then(|| Self(Glob::within(lower, '.')))
    }

    /// Whether a host in small letters, without final dot, fits. Nothing but names and addresses does: neither the
    /// socket of a process nor an empty host.
    pub(super) fn matches(&self, host: &str, budget: &Budget<'_>) -> bool {
        let is_host = !host.is_empty() && !host.starts_with('.') && host.bytes().all(is_of_host);
        self.0.matches(host, budget) && is_host
    }
}

/// Whether a host can have a character.
const fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':')
}

#[cfg(test)]
mod tests {
    use super::{Budget, HostGlob};

    #[test]
    fn fits_hosts() {
        for (pattern, host, fits) in [
            ("redis", "redis", true),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", false),
            ("*.example.com", "example.com", false),
            ("**.example.com", "a.example.com", true),
            ("**.example.com", "a.b.c.example.com", true),
            ("**.example.com", "example.com", false),
            ("**.example.com", ".example.com", false),
            ("**.example.com", "badexample.com", false),
            ("**.*.svc", "a.b.svc", true),
            ("**.*.svc", "b.svc", false),
            ("red?s", "redis", true),
            ("a?b", "a.b", false),
            ("*", "redis", true),
            ("*", "a.b", false),
            ("EXAMPLE.com.", "example.com", true),
            ("10.0.*.*", "10.0.3.4", true),
            ("*", "", false),
            ("*", "/run/pg", false),
            ("*", "::1", true),
            ("[fd00::1]", "fd00::1", true),
            ("[fd00::*]", "fd00::2", true),
        ] {
            assert_eq!(
                HostGlob::new(pattern).is_some_and(|glob| glob.matches(host, &Budget::default())),
                fits,
                "{pattern} {host}"
            );
        }
        for wrong in ["**", "a.**", "a**", "**.", "**.a.**.b", ""] {
            assert!(HostGlob::new(wrong).is_none(), "{wrong}");
        }
    }
}

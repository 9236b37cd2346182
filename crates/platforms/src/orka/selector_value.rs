//! Turns a name into a label value, as Orka does.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

/// The longest value of a label. Source: Kubernetes documentation, Labels and Selectors.
const MAX_LABEL_BYTES: usize = 63;

/// How many bytes of a longer name are kept, before a part of its hash.
const NAME_PREFIX_BYTES: usize = 50;

/// How many bytes of the hash are kept, as two digits each.
const HASH_BYTES: usize = 6;

/// The label value for a name. Source: orka-agents/orka, the function of this name.
pub(crate) fn selector_value(name: &str) -> String {
    let name = name.trim();
    if name.len() <= MAX_LABEL_BYTES && is_label_value(name) {
        return name.to_owned();
    }
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
    let plain: String = name.to_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let value = match trim_separators(&plain) {
        "" => "label",
        value => value,
    };
    if value.len() <= MAX_LABEL_BYTES {
        return value.to_owned();
    }
    let start = trim_separators(value.get(..NAME_PREFIX_BYTES).unwrap_or(value));
    let hash = digest(&SHA256, name.as_bytes());
    hash.as_ref().iter().take(HASH_BYTES).fold(format!("{start}-"), |mut value, byte| {
        let _ = write!(value, "{byte:02x}");
        value
    })
}

fn trim_separators(value: &str) -> &str {
    value.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// Source: Kubernetes documentation, Labels and Selectors, syntax.
fn is_label_value(value: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    trim_separators(value) == value && value.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_fits_and_hashes_the_rest() {
        let long = format!("a{}.end", "b".repeat(70));
        for (name, value) in [
            ("cut-release", "cut-release"),
            (" Cut_Release ", "Cut_Release"),
            ("", ""),
            ("-a", "a"),
            ("Räksmörgås", "r-ksm-rg-s"),
            ("---", "label"),
        ] {
            assert_eq!(selector_value(name), value, "{name}");
        }
        let value = selector_value(&long);
        assert_eq!(value.len(), MAX_LABEL_BYTES);
        assert!(value.starts_with(&format!("a{}-", "b".repeat(49))));
        // The ends of the first fifty characters are stripped once more.
        let dotted = format!("{}.{}", "a".repeat(49), "b".repeat(30));
        assert!(selector_value(&dotted).starts_with(&format!("{}-", "a".repeat(49))));
        assert_eq!(selector_value(&dotted).len(), 62);
    }

    #[test]
    fn hashes_the_trimmed_name() {
        let name = "x".repeat(64);
        // printf 'xxx…' | sha256sum, 64 of them.
        let value = selector_value(&format!(" {name}\n"));
        assert_eq!(value, format!("{}-7ce100971f64", "x".repeat(50)));
    }
}

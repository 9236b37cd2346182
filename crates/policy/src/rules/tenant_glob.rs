//! Patterns of names of a tenant.

use memgate_primitives::budget::Budget;

/// Whether a text fits a pattern in which `{tenant}` stands for the tenant and `*` for anything. Each part between
/// two `*` is looked for once, from left to right.
pub(super) fn fits(pattern: &str, tenant: &str, text: &str, budget: &Budget<'_>) -> bool {
    if !budget.bytes(pattern.len() + text.len()) {
        return false;
    }
    let mut parts = pattern.split('*').map(|part| part.replace("{tenant}", tenant)).peekable();
    let first = parts.next().unwrap_or_default();
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    if parts.peek().is_none() {
        return text.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part.as_str());
        }
        let Some(at) = text.find(part.as_str()) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{Budget, fits};

    #[test]
    fn fits_names_of_tenants() {
        for (pattern, tenant, text, expected) in [
            ("{tenant}-*", "a", "a-notes", true),
            ("{tenant}-*", "a", "a-b-notes", true),
            ("{tenant}-*", "a", "ab-notes", false),
            ("{tenant}", "a", "a", true),
            ("{tenant}", "a", "aa", false),
            ("*-{tenant}-*", "a", "x-a-y", true),
            ("*-{tenant}-*", "a", "x-b-y", false),
            ("*", "a", "", true),
            ("a*a", "x", "a", false),
            ("{tenant}-*", "*", "b-notes", false),
            ("{tenant}{tenant}", "a", "aa", true),
        ] {
            assert_eq!(
                fits(pattern, tenant, text, &Budget::default()),
                expected,
                "{pattern} {tenant} {text}"
            );
        }
    }
}

//! Patterns of names of a tenant.

use memgate_primitives::budget::Budget;

/// Whether a text fits a pattern in which `{tenant}` stands for the tenant and `*` for anything. Each part between
/// two `*` is looked for once, from left to right.
pub(super) fn fits(pattern: &str, tenant: &str, text: &str, budget: &Budget<'_>) -> bool {
    if !budget.bytes(pattern.len() + text.len()) {
        return false;
    }
    let parts: Vec<String> = pattern.split('*').map(|part| part.replace("{tenant}", tenant)).collect();
    let [first, rest @ ..] = parts.as_slice() else { return false };
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    let [middle @ .., last] = rest else { return text.is_empty() };
    for part in middle {
        let Some(at) = text.find(part.as_str()) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(last.as_str())
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

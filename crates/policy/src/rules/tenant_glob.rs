//! Patterns of names of a tenant.

use memgate_primitives::budget::Budget;

/// Whether a text fits a pattern in which `{tenant}` stands for the tenant and `*` for anything. Each part between
/// two `*` is looked for once, from left to right.
pub(super) fn fits(pattern: &str, tenant: &str, text: &str, budget: &Budget<'_>) -> bool {
    if !budget.bytes(pattern.len() + text.len()) {
        return false;
    }
    let of_tenant = |part: &str| part.replace("{tenant}", tenant);
    let Some((first, rest)) = pattern.split_once('*') else { return of_tenant(pattern) == text };
    let Some(mut text) = text.strip_prefix(&*of_tenant(first)) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').map(of_tenant) {
        let Some(at) = text.find(&*part) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(&*of_tenant(last))
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

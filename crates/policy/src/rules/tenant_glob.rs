//! Patterns of names of a tenant.

use memgate_primitives::budget::Budget;

/// A pattern in which `{tenant}` stands for one tenant and `*` for anything.
#[derive(Debug)]
pub(super) struct TenantGlob(Vec<String>);

impl TenantGlob {
    pub(super) fn new(pattern: &str, tenant: &str) -> Self {
        Self(pattern.split('*').map(|part| part.replace("{tenant}", tenant)).collect())
    }

    /// Whether a text fits. Its end is compared before each part between two `*` is looked for once, from left to right.
    pub(super) fn matches(&self, text: &str, budget: &Budget<'_>) -> bool {
        let parts = self.0.iter().map(String::len).sum::<usize>() + self.0.len() - 1;
        if !budget.bytes(parts + text.len()) {
            return false;
        }
        let [first, middle @ .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|only| only == text);
        };
        let between = text.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last));
        let rest = middle.iter().try_fold(between, |text, part| {
            let (_, behind) = text?.split_once(&**part)?;
            Some(Some(behind))
        });
        rest.flatten().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, TenantGlob};

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
                TenantGlob::new(pattern, tenant).matches(text, &Budget::default()),
                expected,
                "{pattern} {tenant} {text}"
            );
        }
    }
}

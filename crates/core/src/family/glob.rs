//! Patterns of names, as settings hold them: `*` for any text, `?` for one character.

/// Whether a name fits a pattern. Costs at most their product: only the last `*` is ever tried again.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // What to go on with, should the text behind the last `*` not fit here: both behind one more character.
    let mut retry = None;
    loop {
        let before = name.clone();
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                name = before;
                retry = Some((pattern.clone(), name.clone()));
                continue;
            }
            (Some('?'), Some(_)) => continue,
            (Some(wanted), Some(found)) if wanted == found => continue,
            _ => {}
        }
        let Some((behind_star, mut rest)) = retry.take() else { return false };
        if rest.next().is_none() {
            return false;
        }
        (pattern, name) = (behind_star.clone(), rest.clone());
        retry = Some((behind_star, rest));
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn fits_patterns() {
        for (pattern, name, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("ab", "a", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "orloj-runtime", true),
            ("team-*", "team-", true),
            ("team-*", "team-a-pg", true),
            ("team-*", "my-team-a", false),
            ("*-pg", "acme-pg", true),
            ("*-pg", "acme-pg-2", false),
            ("*-pg", "a-pg-pg", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a**", "a", true),
            ("?", "", false),
            ("kb-?", "kb-1", true),
            ("kb-?", "kb-12", false),
            ("k?-*", "kb-12", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn gives_up_soon_where_nothing_fits() {
        assert!(!matches(&format!("{}b", "*a".repeat(120)), &"a".repeat(253)));
    }
}

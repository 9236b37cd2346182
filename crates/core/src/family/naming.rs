//! How messages name several things.

/// These names, at most `most` of them: `a, b, c and 2 more`.
#[must_use]
pub fn and_more(names: &[String], most: usize) -> String {
    let shown = names.get(..most).unwrap_or(names).join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::and_more;

    #[test]
    fn counts_what_it_does_not_name() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(and_more(&names, 3), "a, b, c");
        assert_eq!(and_more(&names, 1), "a and 2 more");
        assert_eq!(and_more(&[], 3), "");
    }
}

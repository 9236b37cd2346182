//! Lists of names in messages.

use crate::model::number::more;

/// Lists these names, at most `most` of them: `a, b, c and 2 more`.
#[must_use]
pub fn and_more(names: &[String], max_names: usize) -> String {
    first_of(names.get(..max_names).unwrap_or(names), names.len())
}

/// Lists these names as the first of `all`.
#[must_use]
pub fn first_of(names: &[String], all: usize) -> String {
    format!("{}{}", names.join(", "), more(all.saturating_sub(names.len())))
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

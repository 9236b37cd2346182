//! Patterns of names, as settings and policies hold them: `*` for any text, `?` for one character.
//!
//! A pattern may have a separator, at which `*` and `?` stop and `**` does not.

use std::mem;

use serde::Deserialize;

use crate::budget::Budget;

/// A pattern of names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Glob {
    text: String,
    /// How many bytes stand in front of the first wildcard and behind the last one; `None` without any.
    ends: Option<(usize, usize)>,
    /// The part between them, with both wildcards.
    tokens: Vec<Token>,
    separator: Option<char>,
    /// How many characters a name has that fits, at least.
    least: usize,
}

/// Stand for any text, and for any one character.
const WILDCARDS: [char; 2] = ['*', '?'];

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// This character.
    Char(char),
    /// Any one character but the separator.
    One,
    /// Any text without the separator.
    Many,
    /// Any text.
    All,
}

impl From<String> for Glob {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl Glob {
    /// A pattern without separator.
    pub fn new(text: impl Into<String>) -> Self {
        Self::of(text.into(), None, &WILDCARDS)
    }

    /// A pattern without separator in which only `*` is a wildcard.
    pub fn stars(text: impl Into<String>) -> Self {
        Self::of(text.into(), None, &['*'])
    }

    /// A pattern in which only `**` stands for a text with the separator in it.
    pub fn within(text: impl Into<String>, separator: char) -> Self {
        Self::of(text.into(), Some(separator), &WILDCARDS)
    }

    fn of(text: String, separator: Option<char>, wildcards: &[char]) -> Self {
        let is_wildcard = |c: char| wildcards.contains(&c);
        let ends = text.find(is_wildcard).zip(text.rfind(is_wildcard));
        let between = ends.and_then(|(one, other)| text.get(one..=other)).unwrap_or_default();
        let mut tokens: Vec<Token> = Vec::with_capacity(between.len());
        for c in between.chars() {
            match (c, tokens.last_mut()) {
                ('*', Some(last @ (Token::Many | Token::All))) => *last = Token::All,
                ('*', _) => tokens.push(Token::Many),
                ('?', _) if is_wildcard(c) => tokens.push(Token::One),
                (c, _) => tokens.push(Token::Char(c)),
            }
        }
        let ends = ends.map(|(one, other)| (one, text.len() - other - 1));
        let least = text.chars().filter(|c| *c != '*').count();
        Self { text, ends, tokens, separator, least }
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether every name fits.
    pub fn is_anything(&self) -> bool {
        let is_any =
            |token: &Token| *token == Token::All || self.separator.is_none() && *token == Token::Many;
        self.ends == Some((0, 0)) && matches!(self.tokens.as_slice(), [token] if is_any(token))
    }

    /// Whether a name fits. All ways to read the pattern are followed at once, so no way is tried again, and the cost
    /// grows with the name as it grows with the pattern. It counts for the budget; once that has ended, nothing fits.
    pub fn matches(&self, name: &str, budget: &Budget<'_>) -> bool {
        /// The budget counts so many comparisons at once.
        const COUNTED: usize = 1_000;
        /// To follow a way by one character takes as long as comparing so many bytes.
        const BYTES_PER_WAY: usize = 2;
        let Some((before, behind)) = self.ends else { return budget.bytes(1) && name == self.text };
        // Most names that do not fit differ in front of the first wildcard, or behind the last one.
        let text = self.text.as_bytes();
        let between = text.get(..before).and_then(|begin| name.as_bytes().strip_prefix(begin));
        let between = between.filter(|_| name.len() >= self.least);
        let end = text.get(text.len() - behind..).unwrap_or_default();
        let Some(between) = between.and_then(|rest| rest.strip_suffix(end)) else {
            budget.bytes(1);
            return false;
        };
        let between = name.get(before..before + between.len()).unwrap_or_default();
        if let [only @ (Token::Many | Token::All)] = self.tokens.as_slice() {
            let stops = |separator| *only == Token::Many && between.contains::<char>(separator);
            return budget.bytes(name.len()) && !self.separator.is_some_and(stops);
        }
        let mut compared = before + behind;
        let (mut here, mut next) = (Vec::new(), Vec::new());
        self.enter(0, &mut here);
        for c in between.chars() {
            compared += here.len() * BYTES_PER_WAY;
            if compared > COUNTED && !budget.bytes(mem::take(&mut compared)) {
                return false;
            }
            for &position in &here {
                match self.tokens.get(position) {
                    Some(Token::Char(wanted)) if *wanted == c => self.enter(position + 1, &mut next),
                    Some(Token::One) if self.separator != Some(c) => self.enter(position + 1, &mut next),
                    Some(Token::Many) if self.separator != Some(c) => self.enter(position, &mut next),
                    Some(Token::All) => self.enter(position, &mut next),
                    _ => {}
                }
            }
            mem::swap(&mut here, &mut next);
            next.clear();
            if here.is_empty() {
                budget.bytes(compared);
                return false;
            }
        }
        budget.bytes(compared) && here.last() == Some(&self.tokens.len())
    }

    /// Adds a position in the pattern, and the positions behind it that match the empty text. Positions come in their order.
    fn enter(&self, mut position: usize, positions: &mut Vec<usize>) {
        while positions.last().is_none_or(|last| *last < position) {
            positions.push(position);
            if !matches!(self.tokens.get(position), Some(Token::Many | Token::All)) {
                return;
            }
            position += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Glob};
    use crate::budget::MAX_STEPS;

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
            assert_eq!(Glob::new(pattern).matches(name, &Budget::default()), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn stops_at_a_separator() {
        for (pattern, name, fits) in [
            ("docker.io/*", "docker.io/redis", true),
            ("docker.io/*", "docker.io/library/redis", false),
            ("docker.io/**", "docker.io/library/redis", true),
            ("**/redis", "docker.io/library/redis", true),
            ("**/redis", "redis", false),
            ("*/*/redis", "docker.io/library/redis", true),
            ("a/**/z", "a/b/c/z", true),
            ("a/**/z", "a/z", false),
            ("a?b", "a/b", false),
            ("**", "", true),
            ("***", "a/b", true),
        ] {
            assert_eq!(
                Glob::within(pattern, '/').matches(name, &Budget::default()),
                fits,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn gives_up_soon_where_nothing_fits() {
        let glob = Glob::new(format!("{}b*", "*a".repeat(120)));
        assert!(!glob.matches(&"a".repeat(10_000), &Budget::default()));
    }

    #[test]
    fn counts_what_it_compares() {
        let glob = Glob::new("*a*a*b");
        let budget = Budget::default();
        assert!(glob.matches(&format!("{}b", "a".repeat(300_000)), &budget) && !budget.has_ended());
        let used = (1..10_000_000).take_while(|_| budget.step()).count();
        assert!(used < MAX_STEPS as usize, "{used} steps are left");
        assert!(!glob.matches("ab", &budget), "nothing fits after the end");
    }
}

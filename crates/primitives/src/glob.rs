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

/// The tokens behind a wildcard, and the text that it has not taken.
type Way<'a> = (&'a [Token], &'a str);

/// The way on when the wildcard takes one character more, which it cannot at the end or where it stops.
fn longer((tokens, rest): Way<'_>, stop: Option<char>) -> Option<Way<'_>> {
    let mut chars = rest.chars();
    chars.next().filter(|c| Some(*c) != stop)?;
    Some((tokens, chars.as_str()))
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

    /// Whether a name fits. It counts for the budget; once that has ended, nothing fits.
    pub fn matches(&self, name: &str, budget: &Budget<'_>) -> bool {
        /// The budget counts so many comparisons at once.
        const COUNTED: usize = 1_000;
        /// To go on by one character takes as long as comparing so many bytes.
        const BYTES_PER_STEP: usize = 2;
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
        let (mut tokens, mut rest) =
            (self.tokens.as_slice(), name.get(before..before + between.len()).unwrap_or_default());
        // From the last wildcard of each kind. An earlier one never helps: the last one can take as well what it could take,
        // but for `*` in front of a separator and `**` before it.
        let (mut many, mut all): (Option<Way<'_>>, Option<Way<'_>>) = (None, None);
        let mut compared = before + behind;
        loop {
            compared += BYTES_PER_STEP;
            if compared > COUNTED && !budget.bytes(mem::take(&mut compared)) {
                return false;
            }
            let mut chars = rest.chars();
            match (tokens.split_first(), chars.next()) {
                (None, None) => return budget.bytes(compared),
                (Some((Token::Many, behind)), _) => {
                    many = Some((behind, rest));
                    tokens = behind;
                }
                (Some((Token::All, behind)), _) => {
                    (many, all) = (None, Some((behind, rest)));
                    tokens = behind;
                }
                (Some((token, behind)), Some(c)) if token.is(c, self.separator) => {
                    (tokens, rest) = (behind, chars.as_str());
                }
                _ => {
                    many = many.and_then(|way| longer(way, self.separator));
                    if many.is_none() {
                        all = all.and_then(|way| longer(way, None));
                    }
                    let Some(way) = many.or(all) else {
                        budget.bytes(compared);
                        return false;
                    };
                    (tokens, rest) = way;
                }
            }
        }
    }
}

impl Token {
    /// Whether it stands for this one character.
    fn is(self, c: char, separator: Option<char>) -> bool {
        self == Self::Char(c) || self == Self::One && separator != Some(c)
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Glob};
    use crate::budget::MAX_STEPS;

    /// What a pattern means, tried in all ways.
    fn fits(pattern: &[char], name: &[char]) -> bool {
        let longer = |rest: &[char], stops: bool| {
            (0..=name.len())
                .take_while(|end| !stops || !name[..*end].contains(&'/'))
                .any(|end| fits(rest, &name[end..]))
        };
        match (pattern, name) {
            ([], []) => true,
            (['*', '*', rest @ ..], _) => longer(rest, false),
            (['*', rest @ ..], _) => longer(rest, true),
            (['?', rest @ ..], [c, name @ ..]) if *c != '/' => fits(rest, name),
            ([one, rest @ ..], [other, name @ ..]) if one == other => fits(rest, name),
            _ => false,
        }
    }

    /// All texts of at most so many of these characters.
    fn texts(of: &[char], most: usize) -> Vec<Vec<char>> {
        let mut all = vec![Vec::new()];
        let mut begin = 0;
        for _ in 0..most {
            let end = all.len();
            for text in begin..end {
                all.extend(of.iter().map(|c| [all[text].as_slice(), &[*c]].concat()).collect::<Vec<_>>());
            }
            begin = end;
        }
        all
    }

    #[test]
    fn fits_what_fits_in_any_way() {
        let names = texts(&['a', '/'], 6);
        for pattern in texts(&['a', '/', '*', '?'], 6) {
            let glob = Glob::within(pattern.iter().collect::<String>(), '/');
            for name in &names {
                let matches = glob.matches(&name.iter().collect::<String>(), &Budget::default());
                assert_eq!(matches, fits(&pattern, name), "{pattern:?} {name:?}");
            }
        }
    }

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
            ("**a/*b", "a/x/a/b", true),
            ("*/**/*b*c", "a/b/xb-b/c/x-bc", true),
            ("*/**/*b*c", "a/b/xb-b/c/x-b/c", false),
            ("a*/b", "a/x/b", false),
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
        let budget = Budget::default();
        assert!(!glob.matches(&"a".repeat(10_000), &budget));
        let left = (1..10_000_000).take_while(|_| budget.step()).count();
        assert!(left + 2_000 > MAX_STEPS as usize, "{left} steps are left");
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

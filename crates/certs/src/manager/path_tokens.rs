//! The tokens at the end of the review paths, as the Secret of the CA holds them. Pure functions; only new tokens are
//! random.
//!
//! A caller that reaches the port without the token gets no answer (docs/adr/0017-paths-with-a-secret-token.md). The
//! newest tokens come first. A configuration names a token only after every replica had time to read it. Older tokens
//! stay in the list, so that an old configuration still works when another tool restores it.

use std::fmt::{self, Write};

use crate::provider;
use memgate_primitives::review_path::{TOKEN_ALPHABET, TOKEN_CHARS, is_token};

/// The key of the tokens in the Secret: a line for each, with the time when it was made, in seconds since 1970.
pub(super) const PATH_TOKENS: &str = "path-tokens";

/// How many tokens are kept at most: those of a month.
const MAX_TOKENS: usize = 32;

/// After how many seconds the newest token is replaced.
const RENEW_AFTER_SECONDS: i64 = 24 * 60 * 60;

/// The last segment of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathToken(String);

impl PathToken {
    /// Makes one.
    fn generate() -> Result<Self, rcgen::Error> {
        let mut bytes = [0; TOKEN_CHARS];
        provider().secure_random.fill(&mut bytes).map_err(|_| rcgen::Error::RingUnspecified)?;
        let character = |byte: &u8| TOKEN_ALPHABET.get(usize::from(byte % 32)).copied().map(char::from);
        Ok(Self(bytes.iter().filter_map(character).collect()))
    }

    /// Reads one; `None` if the text has another form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        is_token(text).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Does not show the token, so that logs never contain it.
impl fmt::Debug for PathToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathToken")
    }
}

/// The tokens of the Secret, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PathTokens(Vec<MadeToken>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MadeToken {
    token: PathToken,
    /// In seconds since 1970.
    made: i64,
}

impl PathTokens {
    /// Reads what the Secret holds, and whether all of it could be read.
    pub(super) fn read(text: &[u8]) -> (Self, bool) {
        let text = String::from_utf8_lossy(text);
        let lines: Vec<_> = text.lines().map(MadeToken::read).collect();
        let whole = text.is_empty() || text.ends_with('\n');
        let intact = whole && lines.len() <= MAX_TOKENS && lines.iter().all(Option::is_some);
        (Self(lines.into_iter().flatten().take(MAX_TOKENS).collect()), intact)
    }

    /// The text for the Secret.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for MadeToken { token, made } in &self.0 {
            let _infallible = writeln!(text, "{} {made}", token.as_str());
        }
        text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each token, the newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PathToken> {
        self.0.iter().map(|made| &made.token)
    }

    /// Only the newest token.
    pub(super) fn newest(&self) -> Self {
        Self(self.0.iter().take(1).cloned().collect())
    }

    /// The position of a token; the newest has 0.
    pub(super) fn position(&self, token: &PathToken) -> Option<usize> {
        self.iter().position(|other| other == token)
    }

    /// These and the `others` that are not among them.
    pub(super) fn with(&self, others: &Self) -> Self {
        let new = others.0.iter().filter(|made| self.position(&made.token).is_none());
        let mut all: Vec<_> = self.0.iter().chain(new).cloned().collect();
        all.truncate(MAX_TOKENS);
        Self(all)
    }

    /// Adds a new token if none was made within a day, or if there is a `new_ca`. A token from the future does not count
    /// as old: replicas whose clocks differ would replace each other's tokens.
    pub(super) fn renewed(mut self, new_ca: bool, now: i64) -> Result<Self, rcgen::Error> {
        let is_old = |made: &MadeToken| now.saturating_sub(made.made) >= RENEW_AFTER_SECONDS;
        if new_ca || self.0.iter().all(is_old) {
            self.0.insert(0, MadeToken { token: PathToken::generate()?, made: now });
            self.0.truncate(MAX_TOKENS);
        }
        Ok(self)
    }
}

impl MadeToken {
    fn read(line: &str) -> Option<Self> {
        let (token, made) = line.split_once(' ')?;
        Some(Self { token: PathToken::parse(token)?, made: made.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn one() -> PathTokens {
        PathTokens::default().renewed(false, NOW).unwrap()
    }

    #[test]
    fn a_token_has_43_characters_that_an_apiserver_takes() {
        let token = PathToken::generate().unwrap();
        assert_eq!(token.as_str().len(), 43);
        assert!(token.as_str().bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')));
        assert_eq!(PathToken::parse(token.as_str()), Some(token.clone()));
        assert_ne!(PathToken::generate().unwrap(), token);
        let upper = token.as_str().to_uppercase();
        for other in ["", "short", &token.as_str()[1..], &format!("{}a", token.as_str()), &upper] {
            assert_eq!(PathToken::parse(other), None, "{other}");
        }
    }

    #[test]
    fn is_renewed_after_a_day_and_with_a_ca() {
        let first = one();
        let later = |seconds, new_ca| first.clone().renewed(new_ca, NOW + seconds).unwrap();
        assert_eq!(later(RENEW_AFTER_SECONDS - 1, false), first);
        for renewed in [later(RENEW_AFTER_SECONDS, false), later(0, true)] {
            assert_eq!(renewed.iter().count(), 2);
            assert_eq!(renewed.position(first.iter().next().unwrap()), Some(1));
        }
        assert_eq!(later(-RENEW_AFTER_SECONDS * 400, false), first, "one from the future stays");
    }

    #[test]
    fn reads_tokens_as_they_were_written_and_reports_other_texts() {
        let mut tokens = one();
        for day in 1..40 {
            tokens = tokens.renewed(false, NOW + day * RENEW_AFTER_SECONDS).unwrap();
        }
        assert_eq!(tokens.iter().count(), MAX_TOKENS);
        assert_eq!(PathTokens::read(tokens.text().as_bytes()), (tokens.clone(), true));
        let broken = format!("{}x\n", tokens.text());
        assert_eq!(PathTokens::read(broken.as_bytes()), (tokens.clone(), false));
        let cut = &tokens.text()[..100];
        let (read, intact) = PathTokens::read(cut.as_bytes());
        assert!(!intact && read.iter().all(|token| tokens.position(token).is_some()));
        assert_eq!(PathTokens::read(b"\xff\xfe\n\0"), (PathTokens::default(), false));
        assert_eq!(PathTokens::read(b""), (PathTokens::default(), true));
    }

    #[test]
    fn what_is_remembered_comes_after_what_is_stored() {
        let (stored, remembered) = (one(), one());
        let all = stored.with(&remembered).with(&stored);
        assert_eq!(
            all.iter().collect::<Vec<_>>(),
            stored.iter().chain(remembered.iter()).collect::<Vec<_>>()
        );
    }

    #[test]
    fn debug_output_does_not_show_it() {
        let tokens = one();
        let shown = format!("{tokens:?}");
        assert!(!shown.contains(tokens.iter().next().unwrap().as_str()), "{shown}");
    }
}

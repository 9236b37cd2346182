//! The paths under which reviews are accepted.
//!
//! With built-in certificates a path ends in a token that only the apiserver and the Secret of the CA know;
//! [`manager`](crate::manager) keeps the tokens up to date. Otherwise the path is `/mutate` or `/validate`, with any token or without
//! one: a configuration keeps the token of memgate when its certificates come from another source later.

use arc_swap::ArcSwap;
use subtle::ConstantTimeEq;

use memgate_primitives::review_path::{Phase, plain_call, token_call};

/// Why no review is accepted under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    /// Reviews have no such path.
    NotAReview,
    /// The token is not known here: the configuration may be a moment older or newer than this replica.
    UnknownToken,
}

/// Which paths are served.
#[derive(Debug)]
pub struct ReviewPaths(Mode);

#[derive(Debug)]
enum Mode {
    /// `/mutate` and `/validate`, with any token or without one.
    Plain,
    /// `/mutate` and `/validate`, each with an accepted token.
    Tokens(ArcSwap<Accepted>),
}

/// What is accepted at the end of a path.
#[derive(Debug, Default)]
pub struct Accepted {
    /// The tokens; few, since each is compared with each request.
    pub tokens: Vec<String>,
    /// Whether paths without a token are served as well: a configuration calls a URL, which memgate does not change.
    pub plain: bool,
}

impl ReviewPaths {
    /// Without tokens.
    pub fn plain() -> Self {
        Self(Mode::Plain)
    }

    /// With tokens, before any token is known.
    pub fn with_tokens() -> Self {
        Self(Mode::Tokens(ArcSwap::default()))
    }

    /// Accepts these from now on, if this server uses tokens.
    pub fn accept(&self, accepted: Accepted) {
        if let Mode::Tokens(current) = &self.0 {
            current.store(accepted.into());
        }
    }

    /// Whether reviews can be answered.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            Mode::Plain => true,
            Mode::Tokens(current) => !current.load().tokens.is_empty(),
        }
    }

    /// Which call a path is for. A path without the right token gets one and the same answer, whatever it is, and an
    /// apiserver whose configuration is a moment older or newer than this replica's knowledge tries again.
    ///
    /// # Errors
    /// When no review is accepted there.
    pub fn phase(&self, path: &str) -> Result<Phase, PathFault> {
        match &self.0 {
            Mode::Plain => {
                let with_token = || token_call(path).map(|(call, _)| call);
                plain_call(path).or_else(with_token).ok_or(PathFault::NotAReview)
            }
            Mode::Tokens(current) => {
                let accepted = current.load();
                let plain = plain_call(path).filter(|_| accepted.plain);
                plain.or_else(|| accepted.phase(path)).ok_or(PathFault::UnknownToken)
            }
        }
    }
}

impl Accepted {
    fn phase(&self, path: &str) -> Option<Phase> {
        let (phase, token) = token_call(path)?;
        // In a time that does not depend on how much of it is right.
        let is_known = |known: &String| bool::from(known.as_bytes().ct_eq(token.as_bytes()));
        self.tokens.iter().any(is_known).then_some(phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_primitives::review_path::with_token;

    /// Three tokens.
    fn tokens() -> [String; 3] {
        ["new", "old", "other"].map(|word| word.repeat(15)[..43].to_owned())
    }

    fn phase(paths: &ReviewPaths, path: &str) -> Result<Phase, PathFault> {
        paths.phase(path)
    }

    #[test]
    fn without_tokens_of_its_own_it_serves_two_paths_with_whatever_token() {
        let paths = ReviewPaths::plain();
        let [token, ..] = tokens();
        paths.accept(Accepted { tokens: vec![token.clone()], plain: false });
        assert!(paths.is_ready());
        assert_eq!(phase(&paths, "/mutate"), Ok(Phase::Mutate));
        assert_eq!(phase(&paths, "/validate"), Ok(Phase::Validate));
        for token in tokens() {
            assert_eq!(phase(&paths, &with_token(Phase::Mutate, &token)), Ok(Phase::Mutate));
            assert_eq!(phase(&paths, &with_token(Phase::Validate, &token)), Ok(Phase::Validate));
        }
        for other in ["/", "/mutate/", "/mutate/t", "/MUTATE", "/metrics", &format!("/other/{token}")] {
            assert_eq!(phase(&paths, other), Err(PathFault::NotAReview), "{other}");
        }
    }

    #[test]
    fn with_tokens_every_other_path_gets_one_answer() {
        let paths = ReviewPaths::with_tokens();
        let [new, old, _] = tokens();
        assert!(!paths.is_ready());
        assert_eq!(phase(&paths, &with_token(Phase::Mutate, &new)), Err(PathFault::UnknownToken));
        paths.accept(Accepted { tokens: vec![new.clone(), old.clone()], plain: false });
        assert!(paths.is_ready());
        for token in [&new, &old] {
            assert_eq!(phase(&paths, &with_token(Phase::Mutate, token)), Ok(Phase::Mutate));
            assert_eq!(phase(&paths, &with_token(Phase::Validate, token)), Ok(Phase::Validate));
        }
        let wrong = [
            "/mutate/OTHER", "/mutate/NEW/", "/mutate//NEW", "/mutate/NEW/OLD", "/Mutate/NEW", "/NEW", "NEW",
        ];
        let wrong =
            wrong.map(|path| path.replace("NEW", &new).replace("OLD", &old).replace("OTHER", &tokens()[2]));
        let others = ["", "/", "/mutate", "/validate", "/mutate/", "/mutate/short"].map(str::to_owned);
        for other in wrong.into_iter().chain(others).chain([with_token(Phase::Mutate, &new.to_uppercase())]) {
            assert_eq!(phase(&paths, &other), Err(PathFault::UnknownToken), "{other}");
        }
    }

    #[test]
    fn a_configuration_that_calls_a_url_keeps_the_plain_paths() {
        let paths = ReviewPaths::with_tokens();
        let [new, old, _] = tokens();
        paths.accept(Accepted { tokens: vec![new.clone()], plain: true });
        assert_eq!(phase(&paths, "/mutate"), Ok(Phase::Mutate));
        assert_eq!(phase(&paths, &with_token(Phase::Mutate, &new)), Ok(Phase::Mutate));
        assert_eq!(phase(&paths, &with_token(Phase::Mutate, &old)), Err(PathFault::UnknownToken));
    }
}

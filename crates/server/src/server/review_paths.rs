//! The paths under which reviews are taken.
//!
//! With certificates of memgate's own a path ends in a token that only the apiserver and the Secret of the CA know;
//! `cert_manager` keeps the tokens up to date. Otherwise it is `/mutate` or `/validate`.

use arc_swap::ArcSwap;
use subtle::ConstantTimeEq;

use crate::model::finding::Phase;
use crate::server::rejection::Rejection;

/// Which paths are served.
#[derive(Debug)]
pub(super) struct ReviewPaths(Mode);

#[derive(Debug)]
enum Mode {
    /// `/mutate` and `/validate`.
    Plain,
    /// These, each with a token after it.
    Tokens(ArcSwap<Accepted>),
}

/// What is accepted at the end of a path.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    /// The tokens; few, since each is compared with each request.
    pub(super) tokens: Vec<String>,
    /// Whether paths without one are served as well: a configuration calls a URL, in which memgate writes nothing.
    pub(super) plain: bool,
}

impl ReviewPaths {
    /// Without tokens.
    pub(super) fn plain() -> Self {
        Self(Mode::Plain)
    }

    /// With tokens, none of which is known yet.
    pub(super) fn with_tokens() -> Self {
        Self(Mode::Tokens(ArcSwap::default()))
    }

    /// Accepts these from now on, if this server uses tokens.
    pub(super) fn accept(&self, accepted: Accepted) {
        if let Mode::Tokens(current) = &self.0 {
            current.store(accepted.into());
        }
    }

    /// Whether reviews can be answered.
    pub(super) fn is_ready(&self) -> bool {
        match &self.0 {
            Mode::Plain => true,
            Mode::Tokens(current) => !current.load().tokens.is_empty(),
        }
    }

    /// Which call a path is for. A path without the right token gets one and the same answer, whatever it is, and an
    /// apiserver whose configuration is a moment older or newer than this replica's knowledge tries again.
    pub(super) fn phase(&self, path: &str) -> Result<Phase, Rejection> {
        match &self.0 {
            Mode::Plain => plain(path).ok_or(Rejection::Path),
            Mode::Tokens(current) => {
                let accepted = current.load();
                let plain = plain(path).filter(|_| accepted.plain);
                plain.or_else(|| accepted.phase(path)).ok_or(Rejection::UnknownPath)
            }
        }
    }
}

impl Accepted {
    fn phase(&self, path: &str) -> Option<Phase> {
        let (head, token) = path.rsplit_once('/')?;
        let phase = plain(head)?;
        // In a time that does not depend on how much of it is right.
        let is_known = |known: &String| bool::from(known.as_bytes().ct_eq(token.as_bytes()));
        self.tokens.iter().any(is_known).then_some(phase)
    }
}

fn plain(path: &str) -> Option<Phase> {
    match path {
        "/mutate" => Some(Phase::Mutate),
        "/validate" => Some(Phase::Validate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(paths: &ReviewPaths, path: &str) -> Result<Phase, u16> {
        paths.phase(path).map_err(|rejection| rejection.status().as_u16())
    }

    #[test]
    fn without_tokens_two_paths_are_served() {
        let paths = ReviewPaths::plain();
        paths.accept(Accepted { tokens: vec!["t".to_owned()], plain: false });
        assert!(paths.is_ready());
        assert_eq!(phase(&paths, "/mutate"), Ok(Phase::Mutate));
        assert_eq!(phase(&paths, "/validate"), Ok(Phase::Validate));
        for other in ["/", "/mutate/", "/mutate/t", "/MUTATE", "/metrics"] {
            assert_eq!(phase(&paths, other), Err(404), "{other}");
        }
    }

    #[test]
    fn with_tokens_every_other_path_gets_one_answer() {
        let paths = ReviewPaths::with_tokens();
        assert!(!paths.is_ready());
        assert_eq!(phase(&paths, "/mutate/new"), Err(503));
        paths.accept(Accepted { tokens: vec!["new".to_owned(), "old".to_owned()], plain: false });
        assert!(paths.is_ready());
        for token in ["new", "old"] {
            assert_eq!(phase(&paths, &format!("/mutate/{token}")), Ok(Phase::Mutate));
            assert_eq!(phase(&paths, &format!("/validate/{token}")), Ok(Phase::Validate));
        }
        for other in
            ["", "/", "/mutate", "/validate", "/mutate/", "/mutate/ne", "/mutate/neww", "/new", "new"]
        {
            assert_eq!(phase(&paths, other), Err(503), "{other}");
        }
        for other in ["/mutate/new/", "/mutate//new", "/mutate/new/old", "/Mutate/new", "/mutate/NEW"] {
            assert_eq!(phase(&paths, other), Err(503), "{other}");
        }
    }

    #[test]
    fn a_configuration_that_calls_a_url_keeps_the_plain_paths() {
        let paths = ReviewPaths::with_tokens();
        paths.accept(Accepted { tokens: vec!["new".to_owned()], plain: true });
        assert_eq!(phase(&paths, "/mutate"), Ok(Phase::Mutate));
        assert_eq!(phase(&paths, "/mutate/new"), Ok(Phase::Mutate));
        assert_eq!(phase(&paths, "/mutate/other"), Err(503));
    }
}

//! `--ignore`: the codes that do not count in one run.
//!
//! Findings are left out last, so comments and rules of the repository that are about them have an effect.

use std::collections::BTreeSet;

use globset::{Glob, GlobMatcher};

use crate::build::rules::{fault_of_code, nearest_code};
use memgate_core::decide::codes;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The code of errors in texts. They always count, so it may be named without an effect on them.
const SYNTAX: &str = "syntax";

/// The codes that do not count.
#[derive(Debug, Clone, Default)]
pub struct IgnoredCodes {
    globs: Vec<GlobMatcher>,
    /// The globs that fit only rules of policies.
    of_policies: Vec<GlobMatcher>,
}

impl IgnoredCodes {
    /// Reads codes and globs of codes.
    ///
    /// # Errors
    /// When no code fits one of them, with the code that may be meant. Whether a policy has a rule that fits is only known
    /// once it was read.
    pub fn new(codes: &[String]) -> Result<Self, String> {
        let mut all = Self::default();
        for code in codes {
            let glob = Glob::new(code).map_err(|_| fault_of_code(code).unwrap_or_default())?;
            let matcher = glob.compile_matcher();
            let fits = codes::all(&memgate_platforms::ALL).any(|known| matcher.is_match(known.name));
            let fits = fits || code == SYNTAX;
            let is_glob = code.contains(['*', '?', '[', '{']);
            if let Some(fault) = fault_of_code(code).filter(|_| !is_glob && code != SYNTAX) {
                return Err(fault);
            }
            if !fits {
                all.of_policies.push(matcher.clone());
            }
            all.globs.push(matcher);
        }
        Ok(all)
    }

    /// Whether all codes count.
    pub const fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Why a code fits nothing: neither a code of memgate nor, of those that policies have, one of `codes`.
    pub fn fault(&self, codes: &BTreeSet<String>) -> Option<String> {
        let fits_none = |glob: &&GlobMatcher| !codes.iter().any(|code| glob.is_match(code));
        let code = self.of_policies.iter().find(fits_none)?.glob().glob();
        let meant = nearest(code, codes.iter().map(String::as_str)).or_else(|| nearest_code(code));
        let meant = meant.map(str::to_owned).or_else(|| in_nearest_family(code));
        Some(format!("no code fits {}{}", quoted_text(code), did_you_mean(meant.as_deref())))
    }

    /// Whether findings of a code do not count.
    pub fn has(&self, code: &str) -> bool {
        self.globs.iter().any(|glob| glob.is_match(code))
    }
}

/// A glob with the part before its first `/` that is likely meant.
fn in_nearest_family(glob: &str) -> Option<String> {
    let (family, rest) = glob.split_once('/')?;
    let all = codes::all(&memgate_platforms::ALL).filter_map(|code| Some(code.name.split_once('/')?.0));
    Some(format!("{}/{rest}", nearest(family, all.collect::<BTreeSet<_>>())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_errors_in_texts_can_be_named() {
        let ignored = IgnoredCodes::new(&[SYNTAX.to_owned()]).unwrap();
        assert_eq!(ignored.fault(&BTreeSet::new()), None);
        assert!(!ignored.has("memory/unknown"));
        assert!(IgnoredCodes::new(&["syntaks".to_owned()]).is_err());
    }
}

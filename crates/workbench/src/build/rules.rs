//! The rules of `.memgate.yaml`: which severity a finding has in a repository.
//!
//! The decision stays: a cluster still denies what a rule makes a warning or a note, and the finding says so. What only the
//! check of a branch denies, a reference that the branch broke, has the severity of the rule, and `off` leaves it out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::build::exclude::fault;
use crate::paths::normal;
use memgate_core::decide::codes;
use memgate_model::finding::{DeniedBy, Finding, Severity, presentable};
use memgate_model::policy_rule::PolicyStatus;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The reason in the message of a finding.
const REASON: &str = "a rule of the repository";

/// The rules of a repository; of several that fit, the last one counts.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Arc<[Rule]>,
    /// The directory to which paths are relative, as it is written and without links.
    base: [PathBuf; 2],
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    codes: GlobSet,
    /// `None` for all files.
    paths: Option<GlobSet>,
    /// `None` for findings that are left out.
    severity: Option<Severity>,
}

impl Rule {
    /// A rule for codes and paths that [`fault_of_code`] and [`fault_of_path`] accept.
    ///
    /// # Errors
    /// When a glob is malformed.
    pub fn new(
        codes: &[String],
        paths: Option<&[String]>,
        severity: Option<Severity>,
    ) -> Result<Self, globset::Error> {
        let codes = set(codes.iter().map(|code| Glob::new(code)))?;
        let paths = paths.map(|paths| set(paths.iter().flat_map(|path| path_globs(path)))).transpose()?;
        Ok(Self { codes, paths, severity })
    }
}

/// The globs of a path and of what is below it. Without `/` the path is a name at any depth.
fn path_globs(path: &str) -> [Result<Glob, globset::Error>; 2] {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let path = if path.contains('/') { path.to_owned() } else { format!("**/{path}") };
    [path.clone(), path + "/**"].map(|glob| GlobBuilder::new(&glob).literal_separator(true).build())
}

fn set(globs: impl Iterator<Item = Result<Glob, globset::Error>>) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(glob?);
    }
    set.build()
}

/// Why no finding has this code, or a code that fits this glob. Codes of the rules of policies are not known here.
pub fn fault_of_code(code: &str) -> Option<String> {
    let glob = match set(std::iter::once(Glob::new(code))) {
        Ok(glob) => glob,
        Err(error) => return Some(format!("{}: {}", quoted_text(code), fault(&error))),
    };
    let is_policy_rule = code.strip_prefix("policy/").is_some_and(|rest| rest.contains('/'));
    if is_policy_rule || codes::all(&memgate_platforms::ALL).any(|known| glob.is_match(known.name)) {
        return None;
    }
    Some(format!("no code fits {}{}", quoted_text(code), did_you_mean(nearest_code(code))))
}

/// The code that is likely meant by a wrong one. Users often leave out the family.
pub fn nearest_code(code: &str) -> Option<&'static str> {
    let all = || codes::all(&memgate_platforms::ALL).map(|code| code.name);
    let in_family = all().find(|known| known.split_once('/').is_some_and(|(_, rest)| rest == code));
    in_family.or_else(|| nearest(code, all()))
}

/// Why a glob of files is malformed.
pub fn fault_of_path(path: &str) -> Option<String> {
    let error = set(path_globs(path).into_iter()).err()?;
    Some(format!("{}: {}", quoted_text(path), fault(&error)))
}

impl Rules {
    /// Rules with paths relative to a directory.
    pub fn new(rules: &Arc<[Rule]>, directory: &Path) -> Self {
        Self { rules: Arc::clone(rules), base: names(directory) }
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule for a code in a file.
    pub fn find(&self, file: &str, code: &str) -> Option<&Rule> {
        let files = names(Path::new(file));
        let below: Vec<&Path> =
            files.iter().zip(&self.base).filter_map(|(file, base)| file.strip_prefix(base).ok()).collect();
        let fits = |paths: &GlobSet| below.iter().any(|below| paths.is_match(below));
        let mut rules = self.rules.iter().filter(|rule| rule.codes.is_match(code));
        rules.rfind(|rule| rule.paths.as_ref().is_none_or(fits))
    }
}

/// A path as it is written and without links, both absolute.
fn names(path: &Path) -> [PathBuf; 2] {
    let written = normal(path);
    let real = fs::canonicalize(path).unwrap_or_else(|_| written.clone());
    [written, real]
}

impl Rule {
    /// Gives a finding its severity, and counts it in `lowered` by its code if it counts less now. What a cluster
    /// denies stays at least a note, and what a policy exempts stays as it is. Returns whether the finding stays at all.
    pub fn apply(&self, finding: &mut Finding, lowered: &mut BTreeMap<String, usize>) -> bool {
        if finding.policy.as_ref().is_some_and(|policy| policy.status == PolicyStatus::Exempt) {
            return true;
        }
        let (before, is_off) = (finding.severity, self.severity.is_none());
        change(finding, self.severity.unwrap_or(Severity::Note), REASON);
        let stays = !is_off || before == Severity::Deny && finding.denied_by == DeniedBy::Cluster;
        if finding.severity < before || !stays {
            *lowered.entry(finding.code_name().to_owned()).or_default() += 1;
        }
        stays
    }
}

/// Gives a finding another severity, and its message the reason.
pub(crate) fn change(finding: &mut Finding, severity: Severity, reason: &str) {
    let effect = match (finding.severity, severity) {
        (before, after) if before == after => return,
        (Severity::Deny, _) if finding.denied_by == DeniedBy::Report => "",
        (Severity::Deny, _) => "; the cluster still denies it",
        (_, Severity::Deny) => "; the cluster does not deny it",
        _ => "",
    };
    if severity == Severity::Deny {
        finding.denied_by = DeniedBy::Report;
    }
    // The reason can be a user's text.
    let reason = presentable(reason);
    let message = format!("{} ({reason}{effect})", finding.message());
    *finding = finding.clone().with_message(message);
    finding.severity = severity;
    if severity == Severity::Note
        && let Some(policy) = &mut finding.policy
    {
        policy.is_assumed = false;
    }
}

/// The code of errors in texts. They always count, so it may be named without an effect on them.
const SYNTAX: &str = "syntax";

/// The codes that do not count, as globs.
#[derive(Debug, Clone, Default)]
pub struct IgnoredCodes(GlobSet);

impl IgnoredCodes {
    /// Reads codes and globs of codes.
    ///
    /// # Errors
    /// When no code fits one of them, with the code that may be meant.
    pub fn new(codes: &[String]) -> Result<Self, String> {
        let mut faults = codes.iter().filter(|code| *code != SYNTAX).filter_map(|code| fault_of_code(code));
        if let Some(fault) = faults.next() {
            return Err(fault);
        }
        set(codes.iter().map(|code| Glob::new(code))).map(Self).map_err(|error| fault(&error))
    }

    /// Whether findings of a code do not count.
    pub fn has(&self, code: &str) -> bool {
        self.0.is_match(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_errors_in_texts_can_be_named() {
        let ignored = IgnoredCodes::new(&[SYNTAX.to_owned()]).unwrap();
        assert!(!ignored.has("memory/unknown"));
        assert!(IgnoredCodes::new(&["syntaks".to_owned()]).is_err());
    }
}

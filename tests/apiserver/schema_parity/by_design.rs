//! Where the two differ on purpose: check allows what the apiserver refuses. There is no place where it is
//! the other way round.

use anyhow::Result;

use super::{definitions, verdict::Verdicts};

/// What is known of the differences on purpose.
#[derive(Debug)]
pub(super) struct Designs {
    /// The messages of all rules in CEL of the bundled CRDs.
    rules: Vec<String>,
}

/// Codes of findings of a check that say why it allows what it reports.
const BY_CODE: [(&[&str], &str); 4] = [
    (
        &["memgate/version-unknown"],
        "a version that the bundled CRDs do not serve may be that of a newer release",
    ),
    (
        &["sympozium/crd-required"],
        "the documentation of Sympozium shows objects without what its CRDs require",
    ),
    (
        &["sympozium/legacy-personas", "sympozium/skills-object-form"],
        "objects of older releases of Sympozium, and of its documentation, are read as what they mean",
    ),
    (
        &["orka/backend-name", "orka/backend-endpoint"],
        "MemoryBackend is in no release of Orka, so its CRD may still change",
    ),
];

const IN_CEL: &str = "rules in CEL are left to the apiserver";

const GENERATED: &str = "the name that will be generated is not known, so its length is not judged";

impl Designs {
    /// Those of the bundled CRDs.
    pub(super) fn new() -> Result<Self> {
        Ok(Self { rules: definitions::rule_messages()? })
    }

    /// Whether the verdicts differ although they should not.
    pub(super) fn differ(&self, verdicts: &Verdicts) -> bool {
        verdicts.check.allowed != verdicts.apiserver.allowed && self.reason(verdicts).is_none()
    }

    /// Why they differ, when that is on purpose.
    pub(super) fn reason(&self, verdicts: &Verdicts) -> Option<&'static str> {
        if !verdicts.check.allowed || verdicts.apiserver.allowed {
            return None;
        }
        let reported = |codes: &[&str]| codes.iter().any(|code| verdicts.check.codes.contains(code));
        let by_code = BY_CODE.iter().find(|(codes, _)| reported(codes)).map(|(_, reason)| *reason);
        let causes = &verdicts.apiserver.causes;
        let all = |is: &dyn Fn(&str) -> bool| !causes.is_empty() && causes.iter().all(|cause| is(cause));
        let in_cel = |cause: &str| self.rules.iter().any(|rule| cause.ends_with(rule.as_str()));
        let generated = verdicts.mutant.has_generated_name() && all(&|cause| cause.contains(": Too long"));
        by_code.or_else(|| all(&in_cel).then_some(IN_CEL)).or_else(|| generated.then_some(GENERATED))
    }
}

//! Where the two differ on purpose.

use super::verdict::Verdicts;

/// A difference on purpose: where `check` reports one of these codes, it may allow what the apiserver
/// refuses.
struct Design {
    codes: &'static [&'static str],
    reason: &'static str,
}

const DESIGNS: [Design; 4] = [
    Design {
        codes: &["memgate/version-unknown"],
        reason: "a version that the bundled CRDs do not serve may be one of a newer release",
    },
    Design {
        codes: &["sympozium/crd-required"],
        reason: "the documentation of Sympozium shows objects without what its CRDs require",
    },
    Design {
        codes: &["sympozium/legacy-personas", "sympozium/skills-object-form"],
        reason: "manifests of older releases of Sympozium, and of its documentation, are read as what they mean",
    },
    Design {
        codes: &[
            "orka/backend-name",
            "orka/backend-endpoint",
            "orka/backend-protocol-immutable",
            "orka/backend-store-immutable",
        ],
        reason: "MemoryBackend is in no release of Orka, so its CRD may still change",
    },
];

/// Whether the verdicts differ although they should not.
pub(super) fn differ(verdicts: &Verdicts) -> bool {
    verdicts.check.allowed != verdicts.apiserver.allowed && reason(verdicts).is_none()
}

/// Why they differ, when that is on purpose.
pub(super) fn reason(verdicts: &Verdicts) -> Option<&'static str> {
    let differ = verdicts.check.allowed && !verdicts.apiserver.allowed;
    let is = |design: &&Design| design.codes.iter().any(|code| verdicts.check.codes.contains(code));
    DESIGNS.iter().find(is).filter(|_| differ).map(|design| design.reason)
}

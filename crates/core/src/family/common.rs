//! The finding codes that belong to no family.

use crate::family::codes::codes;

codes! { "memgate";
    /// A pod that requires its memory and is not recognised by any enabled family.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
    /// An object that is larger than what memgate reads, or whose patch would be.
    OVER_LIMIT = "over-limit", Invalid;
    /// A version of a kind that its definition does not serve.
    VERSION_UNKNOWN = "version-unknown", NotSupported;
}

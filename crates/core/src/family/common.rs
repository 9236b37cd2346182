//! The finding codes about pods that do not belong to a family.

use crate::family::codes::codes;

codes! { "memgate";
    /// A pod that requires its memory and is not recognised by any enabled family.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
}

//! The finding codes of no family: they are about pods that no family knows.

use crate::family::codes::codes;

codes! { "memgate";
    /// A pod that requires its memory, and no enabled family knows it.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
}

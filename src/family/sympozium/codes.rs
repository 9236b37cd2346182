//! The finding codes of the family.

use crate::family::codes::codes;

codes! { "sympozium";
    /// A value of the inject label that means nothing.
    INJECT_LABEL_UNKNOWN = "inject-label-unknown", NotSupported;
}

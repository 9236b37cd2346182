//! Why CEL cannot read something of a view, in the words that several families use.

/// An address of memory.
pub const ADDRESS: &str =
    "addresses are read here as each platform reads them, and CEL has one grammar for all URLs";

/// Credentials in clear text.
pub const CREDENTIALS: &str = "what is a credential is decided by lists of names that CEL does not have";

/// What depends on other objects.
pub const OTHER_OBJECTS: &str = "a ValidatingAdmissionPolicy sees no other object";

/// Operations that a Namespace or an Agent switches.
pub const SWITCHES: &str = "annotations of the Namespace and of other objects count too, and a ValidatingAdmissionPolicy does not see them";

//! What a case expects.

use serde_json::Value;

/// The assertions of a case. What is `None` or empty is not asserted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// Whether the request is allowed.
    pub allowed: Option<bool>,
    /// Texts that the message of a refusal contains.
    pub message_contains: Vec<String>,
    /// Texts of which each stands in one of the warnings.
    pub warnings_contain: Vec<String>,
    /// The codes of all findings, in any order and each once.
    pub codes: Option<Vec<String>>,
    /// `true` if the object must stay unchanged, `false` if there must be a patch.
    pub unchanged: Option<bool>,
    /// Values in the object as it would be stored, by JSON pointer.
    pub after: Vec<(String, Value)>,
    /// JSON pointers to what is absent from the object as it would be stored.
    pub absent: Vec<String>,
    /// Values of environment variables, by container and name.
    pub env: Vec<(String, Vec<(String, Value)>)>,
    /// Environment variables that are not there, by container.
    pub env_absent: Vec<(String, Vec<String>)>,
    /// Containers that are there, init containers included.
    pub containers_present: Vec<String>,
}

impl Expect {
    /// Whether nothing is asserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

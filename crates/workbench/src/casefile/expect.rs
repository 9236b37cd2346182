//! What a case expects.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

/// The assertions of a case. What is `None` or empty is not asserted.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct Expect {
    /// Whether the request is allowed.
    pub allowed: Option<bool>,
    /// Texts that the message of a refusal contains.
    #[serde(deserialize_with = "texts")]
    pub message_contains: Vec<String>,
    /// Texts of which each stands in one of the warnings.
    #[serde(deserialize_with = "texts")]
    pub warnings_contain: Vec<String>,
    /// The codes of all findings, in any order and each once.
    #[serde(deserialize_with = "given_texts")]
    pub codes: Option<Vec<String>>,
    /// `true` if the object must stay unchanged, `false` if there must be a patch.
    pub unchanged: Option<bool>,
    /// Values in the object as it would be stored, by JSON pointer.
    pub after: BTreeMap<String, Value>,
    /// JSON pointers to what is absent from the object as it would be stored.
    #[serde(deserialize_with = "texts")]
    pub absent: Vec<String>,
    /// Values of environment variables, by container and name.
    pub env: BTreeMap<String, BTreeMap<String, Value>>,
    /// Environment variables that are not there, by container.
    #[serde(deserialize_with = "texts_by_name")]
    pub env_absent: BTreeMap<String, Vec<String>>,
    /// Containers that are there, init containers included.
    #[serde(deserialize_with = "texts")]
    pub containers_present: Vec<String>,
}

impl Expect {
    /// Whether nothing is asserted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A list of texts; a single text is a list of one.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
}

impl From<Texts> for Vec<String> {
    fn from(texts: Texts) -> Self {
        match texts {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        }
    }
}

pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Texts::deserialize(deserializer).map(Vec::from)
}

fn given_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    texts(deserializer).map(Some)
}

fn texts_by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let texts: BTreeMap<String, Texts> = BTreeMap::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|(name, texts)| (name, texts.into())).collect())
}

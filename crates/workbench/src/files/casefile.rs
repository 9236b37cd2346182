//! Case files: what `memgate test` runs, and what memgate's own tests are written in.
//!
//! ```text
//! value of a file ──read──▶ Case { state, request, expect }
//! Case ──request::{state, review}──▶ Snapshot, AdmissionReview JSON
//!      ──(any way in)──▶ CaseOutcome ──compare──▶ failures
//! ```
//!
//! Whatever answers an AdmissionReview can run a case: the library, the command, the server, a real
//! apiserver. Nothing in here decides, reads a file or knows YAML; places are JSON pointers into the value
//! of the file.

pub mod compare;
pub mod read;
pub mod request;

use std::collections::BTreeMap;

use jiff::Timestamp;
use memgate_model::request::{Occasion, Operation, Point, User};
use memgate_primitives::pointer::Pointer;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Map, Value};

/// One case.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Where in the file.
    #[serde(skip)]
    pub pointer: Pointer,
    /// The name, a claim such as `rejects-missing-secret`.
    #[serde(default)]
    pub name: String,
    /// Why it is so, in one line; may be empty.
    #[serde(default)]
    pub why: String,
    /// What is being done.
    #[serde(default = "creation", deserialize_with = "operation")]
    pub operation: Operation,
    /// The objects in the cluster.
    #[serde(default)]
    pub state: Vec<Value>,
    /// The new object.
    pub object: Option<Value>,
    /// The stored object.
    pub old_object: Option<Value>,
    /// Whether the request is a dry run.
    #[serde(default)]
    pub dry_run: bool,
    /// The namespace of the request, where it is not the object's.
    pub namespace: Option<String>,
    /// Where and when the decision is made.
    #[serde(flatten, deserialize_with = "occasion")]
    pub occasion: Occasion<'static>,
    /// Who makes the request: a name and groups.
    #[serde(default, deserialize_with = "user")]
    pub user: Option<User>,
    /// The subresource; empty for the object itself.
    #[serde(default)]
    pub subresource: String,
    /// What has to come out.
    #[serde(default, deserialize_with = "read_later")]
    pub expect: Expect,
}

/// What is wrong with a case file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFileError {
    /// Where in the value of the file.
    pub pointer: Pointer,
    /// What is wrong, without a full stop.
    pub message: String,
}

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

const fn creation() -> Operation {
    Operation::Create
}

fn operation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
    let operation = Operation::from_name(&String::deserialize(deserializer)?);
    operation.ok_or_else(|| D::Error::custom("not an operation"))
}

#[derive(serde::Deserialize)]
struct WrittenOccasion {
    at: Option<String>,
    point: Option<String>,
}

fn occasion<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Occasion<'static>, D::Error> {
    let WrittenOccasion { at, point } = WrittenOccasion::deserialize(deserializer)?;
    let now = at.map_or(Some(Timestamp::MIN), |at| memgate_policy::timestamp(&at));
    let point = point.map_or(Some(Point::Admission), |point| Point::from_name(&point));
    let occasion = point.zip(now).map(|(point, now)| Occasion::new(point, now));
    occasion.ok_or_else(|| D::Error::custom("not a time or a point"))
}

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenUser {
    name: String,
    #[serde(deserialize_with = "texts")]
    groups: Vec<String>,
}

fn user<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<User>, D::Error> {
    let WrittenUser { name, groups } = WrittenUser::deserialize(deserializer)?;
    Ok(Some(User { name, groups }))
}

/// Any map: what it says is read by itself, so that each error in it is reported.
fn read_later<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Expect, D::Error> {
    Map::<String, Value>::deserialize(deserializer).map(|_| Expect::default())
}

/// A list of texts; a single text is a list of one.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    OneOrMany::deserialize(deserializer).map(Vec::from)
}

fn given_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    texts(deserializer).map(Some)
}

fn texts_by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let texts: BTreeMap<String, OneOrMany> = BTreeMap::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|(name, texts)| (name, texts.into())).collect())
}

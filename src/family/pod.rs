//! What families share on pods: the one place that inserts env, and the marker annotation.

use serde::Serialize;

use crate::model::decision::Reason;
use crate::model::edit::{Edit, Entry, EnvVar, Op, Origin, Value};
use crate::model::finding::Finding;
use crate::model::pod;
use crate::model::pointer::Pointer;
use crate::model::settings::Family;

/// The label by which a pod or a namespace opts out of injection, or a pod insists on it.
pub const INJECT_LABEL: &str = "memgate.dev/inject";

/// The annotation that says what memgate added. Informative only: nothing is decided by it.
pub const INJECTED_ANNOTATION: &str = "memgate.dev/injected";

/// What a family does to an agent pod.
#[derive(Debug)]
pub struct Injection {
    /// Why, in one word.
    pub reason: Reason,
    /// Why the pod does not get its memory; refuses a pod that requires it.
    pub unmet: Option<Finding>,
    /// Whether `unmet` is worth a word to a pod that does not require memory.
    pub quiet: bool,
    /// What is worth a warning although the pod has its memory.
    pub warnings: Vec<Finding>,
    /// The changes, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// The memory resource, as `Kind/name`.
    pub memory: String,
    /// The container that gets the env, and the names.
    pub env: Option<(&'static str, Vec<&'static str>)>,
}

impl Injection {
    /// Nothing is changed and there is nothing to say.
    #[must_use]
    pub const fn nothing(reason: Reason) -> Self {
        Self {
            reason,
            unmet: None,
            quiet: false,
            warnings: Vec::new(),
            edits: Vec::new(),
            memory: String::new(),
            env: None,
        }
    }

    /// Nothing is changed, because of `finding`.
    #[must_use]
    pub const fn unmet(reason: Reason, finding: Finding) -> Self {
        Self {
            reason,
            unmet: Some(finding),
            quiet: false,
            warnings: Vec::new(),
            edits: Vec::new(),
            memory: String::new(),
            env: None,
        }
    }
}

/// Where a block of variables goes in a container's `env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before all others, so that these can refer to it and later duplicates win.
    Front,
    /// Behind all others, so that it can refer to them.
    End,
}

/// The edits that insert a block of variables into the container of this index: one `add` each, or
/// one for the whole list where the container has none.
#[must_use]
pub fn insert_env(
    container: usize,
    existing: Option<&[pod::EnvVar<'_>]>,
    block: Vec<(EnvVar, Origin)>,
    place: Place,
) -> Vec<Edit> {
    if block.is_empty() {
        return Vec::new();
    }
    let list = env_pointer(container);
    let Some(existing) = existing else {
        let (variables, origins) = block.into_iter().unzip();
        return vec![Edit { op: Op::Add, pointer: list, value: Value::EnvList(variables), origins }];
    };
    let start = match place {
        Place::Front => 0,
        Place::End => existing.len(),
    };
    let numbered = (start..).zip(block);
    let add = |(index, (variable, origin))| Edit {
        op: Op::Add,
        pointer: list.index(index),
        value: Value::Env(variable),
        origins: vec![origin],
    };
    numbered.map(add).collect()
}

/// The pointer to the `env` of the container of this index.
#[must_use]
pub fn env_pointer(container: usize) -> Pointer {
    Pointer::new(format!("/spec/containers/{container}/env"))
}

/// What the marker annotation says, as compact JSON.
#[derive(Serialize)]
struct Marker<'a> {
    version: &'static str,
    family: &'static str,
    memory: &'a str,
    #[serde(serialize_with = "one_entry", skip_serializing_if = "Option::is_none")]
    env: &'a Option<(&'static str, Vec<&'static str>)>,
}

#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
fn one_entry<S: serde::Serializer>(
    entry: &Option<(&'static str, Vec<&'static str>)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entry.iter().map(|(container, names)| (container, names)))
}

/// The edit that writes the marker annotation of an injection.
#[must_use]
pub fn marker(pod: &pod::Pod<'_>, family: Family, injection: &Injection) -> Edit {
    let marker = Marker {
        version: env!("CARGO_PKG_VERSION"),
        family: family.name(),
        memory: &injection.memory,
        env: &injection.env,
    };
    let text = serde_json::to_string(&marker).unwrap_or_default();
    let annotations = Pointer::new("/metadata/annotations");
    let origins =
        vec![Origin { resource: "".into(), field: "".into(), rule: "what memgate added to this pod" }];
    let has_map = pod.metadata.as_ref().is_some_and(|metadata| metadata.annotations.is_some());
    let (op, pointer, value) = if !has_map {
        (Op::Add, annotations, Value::Entry(Entry(INJECTED_ANNOTATION.to_owned(), text)))
    } else if pod.annotation(INJECTED_ANNOTATION).is_some() {
        (Op::Replace, annotations.key(INJECTED_ANNOTATION), Value::Text(text))
    } else {
        (Op::Add, annotations.key(INJECTED_ANNOTATION), Value::Text(text))
    };
    Edit { op, pointer, value, origins }
}

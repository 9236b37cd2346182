//! What families share on pods: the one place that inserts env, containers, volumes and mounts; the
//! marker annotation is in [`marker`].
//!
//! Everything is added and nothing replaced. Edits come in an order in which each one's pointer is
//! right when its turn comes; edits inside a list element come before inserts into that list.

pub mod marker;

use std::borrow::Cow;

use serde::Serialize;

use crate::model::decision::Reason;
use crate::model::edit::{Edit, EnvVar, Op, Origin, Value};
use crate::model::event::InvolvedObject;
use crate::model::finding::Finding;
use crate::model::name::is_dns_subdomain;
use crate::model::pod;
use crate::model::pointer::Pointer;
use crate::model::view;

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
    pub unmet: Vec<Finding>,
    /// Whether `unmet` is worth a word to a pod that does not require memory.
    pub quiet: bool,
    /// What is worth a warning, whether the pod has its memory or not.
    pub warnings: Vec<Finding>,
    /// The changes, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// What the edits add, as the marker annotation says it.
    pub added: Added,
}

/// What was added to a pod; the marker annotation says it as compact JSON.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    /// The memory resources, each as `Kind/name`, or as the family's facts have it.
    #[serde(serialize_with = "one_or_many")]
    pub memory: Vec<String>,
    /// The variables, by container.
    #[serde(serialize_with = "by_key", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, Vec<Cow<'static, str>>)>,
    /// The init containers, native sidecars among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<String>,
    /// The volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The paths of mounts, by container.
    #[serde(serialize_with = "by_key", skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<(String, Vec<Cow<'static, str>>)>,
}

/// One memory resource is a string, several are a list.
fn one_or_many<S: serde::Serializer>(memory: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    match memory {
        [one] => serializer.serialize_str(one),
        many => serializer.collect_seq(many),
    }
}

fn by_key<S: serde::Serializer>(
    lists: &[(String, Vec<Cow<'static, str>>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(lists.iter().map(|(key, list)| (key, list)))
}

impl Injection {
    /// Nothing is changed, because of `finding`.
    #[must_use]
    pub fn unmet(reason: Reason, finding: Finding) -> Self {
        Self { unmet: vec![finding], ..Self::nothing(reason) }
    }

    /// Nothing is changed and there is nothing to say.
    #[must_use]
    pub fn nothing(reason: Reason) -> Self {
        Self {
            reason,
            unmet: Vec::new(),
            quiet: false,
            warnings: Vec::new(),
            edits: Vec::new(),
            added: Added::default(),
        }
    }
}

/// The longest text in a good owner reference: a group of 253 characters, a slash and a version of 63.
const LONGEST_OF_OWNER: usize = 317;

/// The object that made a pod, by the pod's own word: what to look at where no object of a family is
/// known. `None` for a pod that was made by hand.
#[must_use]
pub fn maker(pod: &pod::Pod<'_>, namespace: &str) -> Option<InvolvedObject> {
    let owners: Vec<pod::Owner<'_>> = pod::read(pod.metadata.as_ref()?.owner_references)?;
    let maker = owners.into_iter().find(|owner| owner.controller == Some(true))?;
    // Nobody has checked the pod yet, and this is kept for a while.
    let text = |text: Option<view::Text<'_>>| {
        text.filter(|text| text.len() <= LONGEST_OF_OWNER).map(|text| text.0.into_owned())
    };
    let name = text(maker.name).filter(|name| is_dns_subdomain(name))?;
    let (api_version, kind, uid) = (text(maker.api_version)?, text(maker.kind)?, text(maker.uid)?);
    let (kind, namespace) = (kind.into(), namespace.to_owned());
    Some(InvolvedObject { api_version, kind, namespace, name, uid, known: false })
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
    let list = env_pointer(container);
    let Some(existing) = existing else {
        let (variables, origins): (Vec<_>, Vec<_>) = block.into_iter().unzip();
        let whole = Edit { op: Op::Add, pointer: list, value: Value::EnvList(variables), origins };
        return if whole.origins.is_empty() { Vec::new() } else { vec![whole] };
    };
    let start = match place {
        Place::Front => 0,
        Place::End => existing.len(),
    };
    let add = |(index, (variable, origin))| Edit {
        op: Op::Add,
        pointer: list.index(index),
        value: Value::Env(variable),
        origins: vec![origin],
    };
    (start..).zip(block).map(add).collect()
}

/// The edits that insert trees (containers, volumes, mounts) into the list at `list`, before the
/// element of index `start`: one `add` each, or one for the whole list where there is none
/// (`existing` is `None`).
#[must_use]
pub fn insert_trees(
    list: &Pointer,
    existing: Option<usize>,
    start: usize,
    block: Vec<(serde_json::Value, Origin)>,
) -> Vec<Edit> {
    if existing.is_none() {
        let (trees, origins): (Vec<_>, Vec<_>) = block.into_iter().unzip();
        let value = Value::Tree(serde_json::Value::Array(trees));
        let whole = Edit { op: Op::Add, pointer: list.clone(), value, origins };
        return if whole.origins.is_empty() { Vec::new() } else { vec![whole] };
    }
    let add = |(index, (tree, origin))| Edit {
        op: Op::Add,
        pointer: list.index(index),
        value: Value::Tree(tree),
        origins: vec![origin],
    };
    (start..).zip(block).map(add).collect()
}

/// The pointer to the `env` of the container of this index.
#[must_use]
pub fn env_pointer(container: usize) -> Pointer {
    Pointer::new(format!("/spec/containers/{container}/env"))
}

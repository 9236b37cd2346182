//! The one injection engine: what a pod shall have, merged with what it has.
//!
//! ```text
//! platform:  is this pod mine? ──▶ which memory? ──▶ what does it want?
//!                                                          │ Wanted
//! engine:                                                merge ──▶ Injection { edits, warnings, reason, added }
//! ```
//!
//! A platform answers the three questions, in its `inject/recognise.rs`, `inject/find.rs` and
//! `inject/want.rs`; everything behind them is here. [`env`] compares variables, [`parts`] inserts
//! containers, volumes and mounts, [`containers`] holds what added containers have in common, and
//! [`marker`] writes down what was added.
//!
//! What a pod already says wins: nothing is reordered or removed, and replaced only where a variable
//! says so. Edits come in an order in which each one's pointer is right when its turn comes; edits inside
//! a list element come before inserts into that list.

pub mod containers;
pub mod env;
pub mod marker;
pub mod parts;

use std::borrow::Cow;
use std::sync::Arc;

use crate::model::edit::{Edit, EnvSource, Op, Origin, Value};
use crate::model::event::InvolvedObject;
use crate::model::finding::{Code, Finding};
use crate::model::injection::{Added, Injection};
use crate::model::name::is_dns_subdomain;
use crate::model::object::Object;
use crate::model::pod::{self, Container, Pod};
use crate::model::pointer::Pointer;
use crate::model::reason::Reason;
use crate::model::view;

use self::env::{Existing, Place, Variable, compare};
use self::parts::{Mounts, Part, PodParts, WantedParts};

/// The label by which a pod or a namespace opts out of injection, or a pod insists on it.
pub const INJECT_LABEL: &str = "memgate.dev/inject";

/// The annotation that says what memgate added. Informative only: nothing is decided by it.
pub const INJECTED_ANNOTATION: &str = "memgate.dev/injected";

/// What a pod shall have for its memory.
#[derive(Default)]
pub struct Wanted<'w> {
    /// The memory resources, as the marker annotation names them.
    pub memory: Vec<String>,
    /// What containers shall have.
    pub containers: Vec<WantedInContainer<'w>>,
    /// What else the pod shall have, beside the lists as they are. `None` where a platform adds variables
    /// only.
    pub parts: Option<(WantedParts, &'w PodParts<'w>)>,
    /// What stands in the way of some of the memory; refuses a pod that requires it.
    pub unmet: Vec<Finding>,
    /// What is worth a warning besides variables with other values.
    pub warnings: Vec<Finding>,
    /// Whether the platform saw a conflict of its own.
    pub conflict: bool,
}

/// What one container shall have.
pub struct WantedInContainer<'w> {
    /// Its index among the pod's containers.
    pub index: usize,
    /// The container as it is.
    pub container: &'w Container<'w>,
    /// Its variables that can be about memory.
    pub existing: Existing<'w>,
    /// The variables, in their order.
    pub env: Vec<Variable<'w>>,
    /// Where they go.
    pub place: Place,
    /// The mounts, none of which is there yet, and those that are.
    pub mounts: (Vec<Part>, Mounts<'w>),
}

/// A variable that is there with another value.
pub struct Conflict<'c> {
    /// The name of the container.
    pub container: &'c str,
    /// What is wanted.
    pub variable: &'c Variable<'c>,
    /// The container's `env`.
    pub list: Pointer,
    /// The entry.
    pub entry: Pointer,
}

impl<'w> WantedInContainer<'w> {
    /// Variables at the front of a container's `env`, and no mounts.
    #[must_use]
    pub fn variables(
        index: usize,
        container: &'w Container<'w>,
        existing: Existing<'w>,
        env: Vec<Variable<'w>>,
    ) -> Self {
        Self { index, container, existing, env, place: Place::Front, mounts: (Vec::new(), Mounts::default()) }
    }
}

/// Adds what is missing. `warning` is what a platform says of a variable with another value, which stays.
#[must_use]
pub fn merge(wanted: Wanted<'_>, warning: impl Fn(&Conflict<'_>) -> Finding) -> Injection {
    let mut added = Added { memory: wanted.memory, ..Added::default() };
    let (mut edits, mut warnings, mut conflict) = (Vec::new(), wanted.warnings, wanted.conflict);
    for container in wanted.containers {
        conflict |= merge_container(container, &warning, &mut edits, &mut warnings, &mut added);
    }
    if let Some((parts, existing)) = wanted.parts {
        let inits = parts.first_init_container.iter().chain(&parts.last_init_container);
        added.init_containers = inits.map(|part| part.name.clone()).collect();
        added.volumes = parts.volumes.iter().map(|part| part.name.clone()).collect();
        edits.extend(parts::add_parts(existing, parts));
    }
    let reason = match (edits.is_empty(), conflict) {
        (false, _) => Reason::Injected,
        (true, true) => Reason::Conflict,
        (true, false) => Reason::Complete,
    };
    Injection { unmet: wanted.unmet, warnings, edits, added, ..Injection::nothing(reason) }
}

/// Merges one container; says whether it has a variable with another value, which stays.
fn merge_container(
    wanted: WantedInContainer<'_>,
    warning: &impl Fn(&Conflict<'_>) -> Finding,
    edits: &mut Vec<Edit>,
    warnings: &mut Vec<Finding>,
    added: &mut Added,
) -> bool {
    let WantedInContainer { index, container, existing, env, place, mounts: (mounts, mounted) } = wanted;
    let name = container.name.as_deref().unwrap_or_default();
    let (mut names, mut conflict) = (Vec::new(), false);
    let comparison = compare(&existing, env);
    // A `replace` comes before the `add`s, which shift what stands behind them.
    for (at, variable) in comparison.different {
        let list = env::list(index);
        let entry = list.index(at);
        if variable.replaces {
            names.push(variable.name.clone());
            edits.push(replace_literal(&entry, variable));
        } else {
            conflict = true;
            warnings.push(warning(&Conflict { container: name, variable: &variable, list, entry }));
        }
    }
    names.extend(comparison.missing.iter().map(|variable| variable.name.clone()));
    if !names.is_empty() {
        added.env.push((name.to_owned(), names));
    }
    let block = comparison.missing.into_iter().map(Variable::into_entry);
    edits.extend(env::insert(index, container.env.as_deref(), block, place));
    if !mounts.is_empty() {
        let paths = mounts.iter().map(|mount| mount.name.clone().into()).collect();
        added.mounts.push((name.to_owned(), paths));
        edits.extend(parts::add_mounts(index, &mounted, mounts));
    }
    conflict
}

/// Only literals are ever replaced.
fn replace_literal(entry: &Pointer, variable: Variable<'_>) -> Edit {
    let (variable, origin) = variable.into_entry();
    let text = match variable.source {
        EnvSource::Value(text) => text,
        EnvSource::ValueFrom(_) | EnvSource::ConfigMap(_) => String::new(),
    };
    Edit { op: Op::Replace, pointer: entry.key("value"), value: Value::Text(text), origins: vec![origin] }
}

/// Why a pod gets nothing at all; boxed, since it is the rare way out.
pub type Unmet = Box<Injection>;

/// Nothing is changed, because of this.
#[must_use]
pub fn unmet(reason: Reason, code: &'static Code, at: Pointer, message: impl Into<String>) -> Unmet {
    Box::new(Injection::unmet(reason, Finding::warn(code, at, message)))
}

/// The agent claims no memory: only a pod that requires memory is told.
#[must_use]
pub fn no_memory(code: &'static Code, at: Pointer, message: impl Into<String>) -> Unmet {
    Box::new(Injection { quiet: true, ..*unmet(Reason::NoMemory, code, at, message) })
}

/// The container of this name, with its index.
#[must_use]
pub fn container_named<'p>(pod: &'p Pod<'p>, name: &str) -> Option<(usize, &'p Container<'p>)> {
    let mut containers = pod.containers().iter().enumerate();
    containers.find(|(_, container)| container.name.as_deref() == Some(name))
}

/// `Kind namespace/name`, as origins name a resource.
#[must_use]
pub fn resource(kind: &str, object: &Object) -> Arc<str> {
    format!("{kind} {}/{}", object.namespace, object.name).into()
}

/// A field of a resource as the origin of an edit.
#[must_use]
pub fn field(resource: &Arc<str>, field: impl Into<Cow<'static, str>>) -> Origin {
    Origin { resource: Arc::clone(resource), field: field.into(), rule: "" }
}

/// The pointer to a label of a pod.
#[must_use]
pub fn label(key: &str) -> Pointer {
    Pointer::new("/metadata/labels").key(key)
}

/// The pointer to an annotation of a pod.
#[must_use]
pub fn annotation(key: &str) -> Pointer {
    Pointer::new("/metadata/annotations").key(key)
}

/// The longest text in a good owner reference: a group of 253 characters, a slash and a version of 63.
const MAX_OWNER_FIELD_BYTES: usize = 317;

/// The object that made a pod, by the pod's own word: what to look at where no object of a family is
/// known. `None` for a pod that was made by hand.
#[must_use]
pub fn maker(pod: &Pod<'_>, namespace: &str) -> Option<InvolvedObject> {
    let owners: Vec<pod::Owner<'_>> = pod::read(pod.metadata.as_ref()?.owner_references)?;
    let maker = owners.into_iter().find(|owner| owner.controller == Some(true))?;
    // Nobody has checked the pod yet, and this is kept for a while.
    let text = |text: Option<view::Text<'_>>| {
        text.filter(|text| text.len() <= MAX_OWNER_FIELD_BYTES).map(|text| text.0.into_owned())
    };
    let name = text(maker.name).filter(|name| is_dns_subdomain(name))?;
    let (api_version, kind, uid) = (text(maker.api_version)?, text(maker.kind)?, text(maker.uid)?);
    let (kind, namespace) = (kind.into(), namespace.to_owned());
    Some(InvolvedObject { api_version, kind, namespace, name, uid, known: false })
}

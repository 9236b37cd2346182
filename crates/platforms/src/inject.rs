//! The injection engine: merges what a pod should have with what it has.
//!
//! ```text
//! platform:  is this pod mine? ──▶ which memory? ──▶ what does it want?
//!                                                          │ WantedByPod
//! engine:                                                merge ──▶ Injection { edits, warnings, reason, added }
//! ```
//!
//! A platform answers the three questions, in its `inject.rs`, and in `inject/find.rs` and `inject/want.rs` where they
//! are long; the engine does the rest. [`mod@env`] compares variables, [`parts`] inserts containers, volumes and mounts, and
//! [`marker`] records what was added.
//!
//! The pod's own content wins. The engine never reorders anything. Of its own parts it puts back what another webhook
//! dropped, and takes out waits that could not end; else it replaces a value only if [`Variable::replaces`] is set. Each
//! edit's pointer is valid at the moment when the edit is applied, so edits inside a list element come before inserts into
//! that list.

pub mod env;
pub mod marker;
pub mod neighbours;
pub(crate) mod own;
pub(crate) mod own_memory;
pub mod parts;
pub mod viable;

use crate::prelude::*;
use memgate_model::edit::Value;
use memgate_model::injection::Item;
use memgate_model::pod::Controller;
use memgate_primitives::budget::{Limit, MAX_PATCH_BYTES};

use self::env::{ExistingEnv, Position, Variable, compare};
use self::parts::{ExistingMounts, WantedPart, WantedParts};
use self::viable::Surroundings;

pub use memgate_model::view::INJECT_LABEL;

/// The annotation that lists what memgate added. A pod may bring a false one, so by it a pod gets nothing that memgate
/// would not add anyway.
pub const INJECTED_ANNOTATION: &str = "memgate.dev/injected";

/// What a pod should have for its memory.
#[derive(Default)]
pub struct WantedByPod<'w> {
    /// The memory resources, in the form of the marker annotation.
    pub memory: Vec<String>,
    /// The additions that its containers should have.
    pub containers: Vec<WantedByContainer<'w>>,
    /// The other parts that the pod should have, with what surrounds them. `None` for a platform that only adds
    /// variables.
    pub parts: Option<(WantedParts, Surroundings<'w>)>,
    /// Why some of the memory is not available. Refuses a pod that requires it.
    pub unmet: Vec<Finding>,
    /// Warnings, besides those about variables with other values.
    pub warnings: Vec<Finding>,
    /// Whether the platform found a conflict by itself.
    pub conflict: bool,
    /// The platform's own code of a pod that has its node's network and does not find the names of the cluster there.
    pub host_network_dns: Option<&'static Code>,
}

/// The additions that one container should have.
pub struct WantedByContainer<'w> {
    /// Its index among the pod's containers.
    pub index: usize,
    /// The existing container.
    pub container: &'w Container<'w>,
    /// Its existing variables that can concern memory.
    pub existing: ExistingEnv<'w>,
    /// The variables, in their order.
    pub env: Cow<'w, [Variable<'w>]>,
    /// Where in `env` the variables are inserted.
    pub position: Position,
    /// The missing mounts, and the existing ones.
    pub mounts: (Vec<WantedPart>, ExistingMounts<'w>),
}

/// A variable that the container sets to another value.
pub struct Conflict<'c> {
    /// The name of the container.
    pub container: &'c str,
    /// The wanted variable.
    pub variable: &'c Variable<'c>,
    /// The pointer to the container's `env`.
    pub list: Pointer,
    /// The pointer to the existing entry.
    pub entry: Pointer,
}

impl<'w> WantedByContainer<'w> {
    /// Variables at the front of a container's `env`, and no mounts.
    pub fn variables(
        index: usize,
        container: &'w Container<'w>,
        existing: ExistingEnv<'w>,
        env: impl Into<Cow<'w, [Variable<'w>]>>,
    ) -> Self {
        Self {
            index,
            container,
            existing,
            env: env.into(),
            position: Position::Front,
            mounts: (Vec::new(), ExistingMounts::default()),
        }
    }
}

/// Adds the missing parts, and judges whether the pod can run with them. A variable with another value stays, and `warning`
/// makes the finding about it. When `work` has ended, the rest is left out.
pub fn merge(
    pod: &Pod<'_>,
    mut wanted: WantedByPod<'_>,
    work: &Budget<'_>,
    warning: impl Fn(&Conflict<'_>) -> Finding,
) -> Injection {
    let verdict = viable::judge(pod, &wanted, work);
    wanted.unmet.extend(verdict.unmet);
    if verdict.leaves_out {
        (wanted.containers, wanted.parts, wanted.conflict) = (Vec::new(), None, true);
        wanted.warnings.retain(|finding| finding.severity != Severity::Note);
    }
    let mut added: Vec<Item> = wanted.memory.into_iter().map(Item::Memory).collect();
    let mut restored = Vec::new();
    let (mut edits, mut warnings, mut conflict) = (Vec::new(), wanted.warnings, wanted.conflict);
    warnings.extend(verdict.warnings);
    // Edits are written to be measured only if they may be too many, and each once.
    let (mut most_bytes, mut bytes, mut measured) = (0, 0, 0);
    for container in wanted.containers {
        if !work.steps(u32::try_from(container.env.len()).unwrap_or(u32::MAX)) {
            break;
        }
        let (made, warned) = (edits.len(), warnings.len());
        conflict |= merge_container(container, &warning, &mut edits, &mut warnings, &mut added);
        most_bytes += edits.iter().skip(made).map(Edit::most_bytes).sum::<usize>();
        if most_bytes > MAX_PATCH_BYTES {
            bytes += edits.iter().skip(measured).map(Edit::bytes).sum::<usize>();
            measured = edits.len();
        }
        if bytes > MAX_PATCH_BYTES {
            work.over_limit(Pointer::root, Limit::Patch);
        }
        for _ in warned..warnings.len() {
            work.finding();
        }
    }
    if let Some((parts, around)) = wanted.parts {
        let name = |part: &WantedPart| part.name.clone();
        added.extend(parts.init_containers.iter().map(|(_, part)| Item::InitContainer(name(part))));
        added.extend(parts.volumes.iter().map(|part| Item::Volume(name(part))));
        restored.extend(parts.restored.iter().map(|part| Item::Volume(name(part))));
        added.extend(parts.pull_secrets.0.iter().map(|part| Item::ImagePullSecret(name(part))));
        added.extend(parts.fs_group.map(|(group, _)| Item::FsGroup(group)));
        edits.extend(parts::add_parts(around.parts, parts));
    }
    let reason = match (edits.is_empty(), conflict) {
        (false, _) => Reason::Injected,
        (true, true) => Reason::Conflict,
        (true, false) => Reason::Complete,
    };
    Injection { unmet: wanted.unmet, warnings, edits, added, restored, ..Injection::nothing(reason) }
}

/// Merges one container. Returns whether it keeps a variable with another value.
fn merge_container(
    wanted: WantedByContainer<'_>,
    warning: &impl Fn(&Conflict<'_>) -> Finding,
    edits: &mut Vec<Edit>,
    warnings: &mut Vec<Finding>,
    added: &mut Vec<Item>,
) -> bool {
    let WantedByContainer { index, container, existing, env, position, mounts: (mounts, mounted) } = wanted;
    let name = container.name.as_deref().unwrap_or_default();
    let item = |variable: &Variable<'_>| Item::Env(name.to_owned(), variable.name.to_string());
    let mut conflict = false;
    let comparison = compare(&existing, env);
    // A `replace` comes before the `add`s, which shift the entries behind them.
    for (at, variable) in comparison.different {
        let list = env::pointer(index);
        let entry = list.index(at);
        if variable.replaces {
            added.push(item(&variable));
            edits.push(replace_literal(&entry, variable));
        } else {
            conflict = true;
            warnings.push(warning(&Conflict { container: name, variable: &variable, list, entry }));
        }
    }
    added.extend(comparison.missing.iter().map(item));
    let block = comparison.missing.into_iter().map(Variable::into_entry);
    edits.extend(env::insert(index, container.env.as_deref(), block, position));
    if !mounts.is_empty() {
        added.extend(mounts.iter().map(|mount| Item::Mount(name.to_owned(), mount.name.clone())));
        edits.extend(parts::add_mounts(&parts::mounts_pointer(index), &mounted, mounts));
    }
    conflict
}

/// Replaces the value of a literal; other entries are never replaced.
fn replace_literal(entry: &Pointer, variable: Variable<'_>) -> Edit {
    let (variable, origin) = variable.into_entry();
    let text = match variable.source {
        EnvSource::Value(text) => text,
        EnvSource::Secret(_) | EnvSource::ConfigMap(_) => String::new(),
    };
    Edit { op: Op::Replace, pointer: entry.key("value"), value: Value::Text(text), origins: vec![origin] }
}

/// Why a pod gets no memory. Boxed, since it is rare and large.
pub type Unmet = Box<Injection>;

/// Changes nothing, and reports why.
pub fn unmet(reason: Reason, code: &'static Code, at: Pointer, message: impl Into<String>) -> Unmet {
    Box::new(Injection::unmet(reason, Finding::warn(code, at, message)))
}

/// Changes nothing, since the object of this kind, namespace and name could not be looked up.
pub(crate) fn lookup_failed(
    code: &'static Code,
    at: Pointer,
    object: [&str; 3],
    state: &StateReader<'_>,
) -> Unmet {
    unmet(Reason::ReferenceUnknown, code, at, not_looked_up(object, state))
}

/// The object of this name that the label of a pod leads to, or `None` if it does not exist.
///
/// # Errors
/// That it could not be looked up.
pub(crate) fn look_up<'s>(
    kind: &'static Kind,
    [namespace, name]: [&str; 2],
    (code, label): (&'static Code, &str),
    state: &mut StateReader<'s>,
) -> Result<Option<&'s Object>, Unmet> {
    match state.get(kind, namespace, name) {
        Lookup::Found(object) => Ok(Some(object)),
        Lookup::Absent => Ok(None),
        Lookup::Unknown(()) => {
            Err(lookup_failed(code, label_pointer(label), [kind.kind, namespace, name], state))
        }
    }
}

/// The message about an object that could not be looked up, with the reason if the apiserver was asked for it.
pub fn not_looked_up([kind, namespace, name]: [&str; 3], state: &StateReader<'_>) -> String {
    let failed = state.failed_lookup(|reference| reference.name == name);
    let why = failed.map(|(_, why)| format!(": {why}")).unwrap_or_default();
    let name_form = if namespace.is_empty() { "{bare}{}" } else { "{/}" };
    let template = ["{bare} ", name_form, " could not be looked up{bare}"].concat();
    filled(&template, [kind, namespace, name, &why])
}

/// The references to an object that does not exist, under each kind that it could have.
pub(crate) fn references(
    kinds: impl IntoIterator<Item = &'static Kind>,
    namespace: &str,
    name: &str,
) -> Vec<Reference> {
    let reference = |kind| Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    kinds.into_iter().map(reference).collect()
}

/// Changes nothing because the agent claims no memory. Only a pod that requires memory gets the finding.
pub(crate) fn no_memory(code: &'static Code, at: Pointer, message: impl Into<String>) -> Unmet {
    let message =
        format!("the pod requires its memory (memgate.dev/inject: required), but {}", message.into());
    Box::new(Injection { only_if_required: true, ..*unmet(Reason::NoMemory, code, at, message) })
}

/// The container of this name, with its index.
pub(crate) fn container_named<'p>(pod: &'p Pod<'p>, name: &str) -> Option<(usize, &'p Container<'p>)> {
    let mut containers = pod.containers().iter().enumerate();
    containers.find(|(_, container)| container.name.as_deref() == Some(name))
}

/// The name of a resource in origins: `Kind namespace/name`.
pub fn resource_name(kind: &str, object: &Object) -> Arc<str> {
    [kind, " ", &object.namespace, "/", &object.name].concat().into()
}

/// The origin of an edit that comes from a field of a resource.
pub fn field_origin(resource: &Arc<str>, field: impl Into<Cow<'static, str>>) -> Origin {
    Origin { resource: Arc::clone(resource), field: field.into(), rule: "" }
}

/// The pointer to a label of a pod.
pub fn label_pointer(key: &str) -> Pointer {
    Pointer::new("/metadata/labels").key(key)
}

/// The pointer to an annotation of a pod.
pub(crate) fn annotation_pointer(key: &str) -> Pointer {
    Pointer::new("/metadata/annotations").key(key)
}

/// The controller that a pod's owner references name. Events are about it if no object of the family is known.
/// `None` for a pod without a controller.
pub fn controller_of(pod: &Pod<'_>, namespace: &str) -> Option<InvolvedObject> {
    let controller = pod.metadata.as_ref()?.owner_references.as_ref()?.controller()?;
    let Controller { api_version, kind, name, uid } = controller;
    if !is_dns_subdomain(&name) {
        return None;
    }
    let (kind, namespace) = (kind.into(), namespace.to_owned());
    Some(InvolvedObject { api_version, kind, namespace, name, uid, known: false })
}

/// The label of the place that a missing variable or endpoint would have come from.
pub(crate) const NOT_INJECTED: &str = "not injected";

/// Adds to an unmet injection the place in another object that is the cause.
pub(crate) fn unmet_by(mut unmet: Unmet, object: &Object, pointer: Pointer, label: &'static str) -> Unmet {
    if let Some(finding) = unmet.unmet.first_mut() {
        finding.elsewhere.push(Elsewhere::of(object, pointer, label));
    }
    unmet
}

/// The place that the origin of a variable names, in an object of one of these kinds.
pub(crate) fn origin_place(origin: &Origin, kinds: &[&'static Kind]) -> Option<Elsewhere> {
    let (kind, path) = origin.resource.split_once(' ')?;
    let kind = kinds.iter().copied().find(|known| known.kind == kind)?;
    let (namespace, name) = path.split_once('/').unwrap_or(("", path));
    let object = Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    Some(Elsewhere { object, pointer: Pointer::of_field(&origin.field), label: NOT_INJECTED })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::kind::NAMESPACE;
    use memgate_model::kind::SECRET;

    #[test]
    fn finds_the_object_and_the_field() {
        let origin = |resource: &str| Origin {
            resource: resource.into(),
            field: "metadata.annotations[a.b/c]".into(),
            rule: "",
        };
        let kinds = [&SECRET, &NAMESPACE];
        let found = origin_place(&origin("Secret team-a/x"), &kinds).expect("a Secret");
        let Reference { kind, namespace, name } = &found.object;
        assert_eq!((*kind, namespace.as_str(), name.as_str()), (&SECRET, "team-a", "x"));
        assert_eq!(found.pointer.as_str(), "/metadata/annotations/a.b~1c");
        let found = origin_place(&origin("Namespace team-a"), &kinds).expect("a Namespace");
        assert_eq!((found.object.namespace.as_str(), found.object.name.as_str()), ("", "team-a"));
        assert_eq!(origin_place(&origin("Pod team-a/x"), &kinds), None);
        assert_eq!(origin_place(&origin(""), &kinds), None);
    }
}

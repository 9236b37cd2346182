//! Injects the variables of a Memory into pods that ask for them.
//!
//! The platform does not create pods for agents. So pods that use a Memory have no common label, and they opt in by
//! annotation. The annotation names the Memory, and the Memory has the address of its service.

mod containers;
mod find;

use super::prelude::*;
use crate::inject::env::{ExistingEnv, Variable, escape_references};
use crate::inject::own::{MemoryVariableNames, OwnVariables};
use crate::references::{exists_elsewhere, going};

use self::containers::Containers;
use self::find::{HeaderVariable, MemoryName, OptIn, PodMemory, recognise};

pub(super) use self::find::HEADER_PREFIX;

/// What to add to the pod; `None` if it did not opt in.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let wanted = match recognise(pod, namespace)? {
        OptIn::Named(wanted) => wanted,
        OptIn::OfOthers => return Some(Injection::nothing(Reason::NotOurs)),
        OptIn::OfBroker => {
            let at = annotation_pointer(MEMORY_ANNOTATION);
            let warning = Finding::warn(
                &POD_BROKER,
                at,
                "this pod is ARK's own broker and gets no memory; remove the annotation",
            );
            return Some(Injection { warnings: vec![warning], ..Injection::nothing(Reason::NotOurs) });
        }
    };
    let mut injection = Injection::nothing(Reason::Complete);
    let timeout = timeout(pod, &mut injection);
    let work = state.budget();
    let chosen = containers::choose(pod, &mut injection, state);
    if let Some(memory) = MemoryName::read(wanted) {
        let (home, name) = memory.within(namespace);
        injection.warnings.extend(chosen.shared_credentials([home, name], work));
    }
    let Some(found) = find(wanted, namespace, &mut injection, state) else { return Some(injection) };
    let memory = Arc::from(format!("Memory {}/{}", found.namespace, found.memory.name));
    let variables = variables(&found, &memory, timeout, &mut injection, state);
    if !injection.unmet.is_empty() || work.has_ended() {
        return Some(injection);
    }
    injection.warnings.extend(going(found.memory, || annotation_pointer(MEMORY_ANNOTATION)));
    Some(merge_variables(pod, chosen.injected, &found, &variables, injection.warnings, work))
}

/// The Memory that a pod asks for, with the namespace that it was looked for in; empty where it is not found. `None` if
/// the pod did not opt in.
pub(super) fn memory_of<'p, 's>(
    pod: &'p Pod<'_>,
    namespace: &'p str,
    state: &mut StateReader<'s>,
) -> Option<Vec<(&'p str, &'s Object)>> {
    let OptIn::Named(wanted) = recognise(pod, namespace)? else { return Some(Vec::new()) };
    let Some((home, name)) = MemoryName::read(wanted).map(|name| name.within(namespace)) else {
        return Some(Vec::new());
    };
    let memory = state.get_if_known(&MEMORY, home, name).found();
    Some(memory.map(|memory| (home, memory)).into_iter().collect())
}

/// The address of its Memory that memgate writes into a pod; `None` where it writes none, or a reference.
pub(super) fn written_address(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<String> {
    let OptIn::Named(wanted) = recognise(pod, namespace)? else { return None };
    let found = find(wanted, namespace, &mut Injection::nothing(Reason::Complete), state)?;
    let EnvSource::Value(text) = found.address(state)? else { return None };
    Some(text.replace("$$", "$"))
}

/// Whether the pod is one of the platform's users, and not of its own services.
pub(super) fn is_user(pod: &Pod<'_>, namespace: &str) -> bool {
    matches!(recognise(pod, namespace), Some(OptIn::Named(_)))
}

/// The variables that each of a pod's containers sets itself; without a usable Memory, of those that set any. The
/// annotation for containers is about injection: a program in any other container reads them too.
pub(super) fn own_variables(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Vec<OwnVariables> {
    let (pod, work) = (pods[0], state.budget());
    let mut unused = Injection::nothing(Reason::Complete);
    let undeclared = || OwnVariables::undeclared(pod, NAMES, None, work);
    let Some(OptIn::Named(wanted)) = recognise(pod, namespace) else { return undeclared() };
    let timeout = timeout(pod, &mut unused);
    let chosen = containers::choose(pod, &mut unused, state).injected;
    let injected: Members<usize> = chosen.into_iter().map(|(index, _)| index).collect();
    unused.unmet.clear();
    let Some(found) = find(wanted, namespace, &mut unused, state) else { return undeclared() };
    let memory = Arc::from(format!("Memory {}/{}", found.namespace, found.memory.name));
    let wanted = variables(&found, &memory, timeout, &mut unused, state);
    let declared = own::declared(MEMORY.kind, &found.memory.name);
    let is_injected = |index: usize| injected.contains(&index);
    let others = (is_injected, work);
    let mut others = OwnVariables::of_others(pod, &wanted, NAMES, Some(&declared), others);
    others.retain(|own| !own.has_none(NAMES));
    let steps = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    let of_injected = (0..pod.containers().len()).filter(|index| is_injected(*index));
    let of_injected = of_injected.take_while(|_| work.steps(steps));
    of_injected
        .map(|index| OwnVariables::read(index, pods, &wanted, NAMES, Some(&declared)))
        .chain(others)
        .collect()
}

/// The pod's controller, since the platform has no object for a pod.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    _state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let wanted = MemoryName::read(pod.annotation(MEMORY_ANNOTATION)?);
    let home = wanted.and_then(|wanted| wanted.namespace);
    home.is_none_or(|home| home == namespace).then(|| controller_of(pod, namespace))?
}

fn add_unmet(injection: &mut Injection, reason: Reason, code: &'static Code, message: String) {
    injection.reason = reason;
    injection.unmet.push(Finding::warn(code, annotation_pointer(MEMORY_ANNOTATION), message));
}

/// The timeout in seconds, if it is valid.
fn timeout(pod: &Pod<'_>, injection: &mut Injection) -> Option<u16> {
    let seconds = find::seconds(pod.annotation(TIMEOUT_ANNOTATION)?);
    if seconds.is_none() {
        let given = quoted_text(pod.annotation(TIMEOUT_ANNOTATION)?);
        let message = format!("{TIMEOUT_ANNOTATION} must be a number of seconds from 1 to 3600, not {given}");
        let finding = Finding::warn(&POD_TIMEOUT_INVALID, annotation_pointer(TIMEOUT_ANNOTATION), message);
        injection.warnings.push(finding);
    }
    seconds
}

/// The Memory that the annotation names.
fn find<'s>(
    wanted: &str,
    namespace: &str,
    injection: &mut Injection,
    state: &mut StateReader<'s>,
) -> Option<PodMemory<'s>> {
    let Some((home, name)) = MemoryName::read(wanted).map(|name| name.within(namespace)) else {
        let text = "{bare} must be \"name\" or \"namespace/name\", not {}; nothing injected";
        let message = filled(text, [MEMORY_ANNOTATION, wanted]);
        add_unmet(injection, Reason::ReferenceInvalid, &POD_REF_INVALID, message);
        return None;
    };
    match state.get_if_known(&MEMORY, home, name) {
        Lookup::Found(memory) => {
            let namespace_given = memory.namespace_given && state.namespace_given();
            let cross_namespace = home != namespace && namespace_given;
            if cross_namespace {
                let text = "Memory of namespace {} used by a pod of namespace {}: it gets only the address";
                let pointer = annotation_pointer(MEMORY_ANNOTATION);
                let finding = warning(&POD_MEMORY_CROSS_NAMESPACE, pointer, text, [home, namespace]);
                let at = Pointer::new("/metadata/namespace");
                injection.warnings.push(finding.elsewhere(memory, at, "it is in this namespace"));
            }
            Some(PodMemory { memory, namespace: home.to_owned(), cross_namespace })
        }
        Lookup::Absent => {
            // Without a matching container, the pod would not get the Memory even if it is created later.
            if injection.unmet.is_empty() {
                injection.missing = references([&MEMORY], home, name);
            }
            let elsewhere = exists_elsewhere(&[&MEMORY], (home, name), state);
            add_unmet(
                injection,
                Reason::ReferenceMissing,
                &POD_MEMORY_MISSING,
                missing(name, home, &elsewhere),
            );
            None
        }
        Lookup::Unknown(()) => {
            if state.in_cluster(&MEMORY) {
                let message = not_looked_up([MEMORY.kind, home, name], state);
                add_unmet(injection, Reason::ReferenceUnknown, &LOOKUP_FAILED, message);
            } else {
                // If the files contain no Memory at all, they do not show that this one is missing. So only a pod
                // that requires its memory gets the finding.
                injection.only_if_required = injection.unmet.is_empty();
                add_unmet(injection, Reason::ReferenceUnknown, &POD_MEMORY_MISSING, missing(name, home, ""));
            }
            None
        }
    }
}

fn missing(name: &str, home: &str, elsewhere: &str) -> String {
    format!("Memory {} not found in namespace {}{elsewhere}; nothing injected", quoted(name), quoted(home))
}

/// All variables of the Memory, in order; empty if it has no usable address.
fn variables(
    found: &PodMemory<'_>,
    memory: &Arc<str>,
    timeout: Option<u16>,
    injection: &mut Injection,
    state: &mut StateReader<'_>,
) -> Vec<Variable<'static>> {
    let work = state.budget();
    let Some(address) = found.address(state) else {
        if let Some((service, _)) = state.failed_lookup(|reference| *reference.kind == SERVICE) {
            let message = not_looked_up([SERVICE.kind, &service.namespace, &service.name], state);
            add_unmet(injection, Reason::ReferenceUnknown, &LOOKUP_FAILED, message);
            return Vec::new();
        }
        let home = quoted(&format!("{}/{}", found.namespace, found.memory.name));
        let message = format!("Memory {home} has no usable address; nothing injected");
        if injection.unmet.is_empty() {
            injection.missing = found.missing_service(state);
        }
        add_unmet(injection, Reason::ReferenceInvalid, &POD_MEMORY_UNRESOLVED, message);
        if let Some(finding) = injection.unmet.last_mut() {
            let at = Pointer::new("/spec/address");
            finding.elsewhere.push(Elsewhere::of(found.memory, at, "this address"));
        }
        return Vec::new();
    };
    let (headers, skipped) = found.headers();
    if injection.unmet.is_empty() {
        let at = annotation_pointer(MEMORY_ANNOTATION);
        injection.warnings.extend(skipped.into_iter().map(|skipped| {
            let (name, reason) = (excerpt(skipped.name), skipped.reason);
            let message = move |_: &Pointer| format!("header {name} {reason}");
            let place = || {
                let header = Pointer::new("/spec/headers").index(skipped.index);
                Some(Elsewhere::of(found.memory, header, "this header"))
            };
            Finding::warn_within(work, &POD_HEADER_SKIPPED, at.clone(), message).and_elsewhere(place)
        }));
    }
    wanted_variables(found, memory, address, timeout, headers)
}

/// Merges the same variables into each of these containers.
fn merge_variables(
    pod: &Pod<'_>,
    containers: Containers<'_>,
    found: &PodMemory<'_>,
    variables: &[Variable<'static>],
    warnings: Vec<Finding>,
    work: &Budget<'_>,
) -> Injection {
    let container = |(index, container)| {
        let existing = ExistingEnv::read(container, &[PREFIX]);
        WantedByContainer::variables(index, container, existing, variables)
    };
    let containers = containers.into_iter().map(container).collect();
    let prefix = if found.cross_namespace { format!("{}/", found.namespace) } else { String::new() };
    let memory = vec![format!("Memory/{prefix}{}", found.memory.name)];
    let wanted = WantedByPod { memory, containers, warnings, ..WantedByPod::default() };
    merge(pod, wanted, work, |conflict: &Conflict<'_>| {
        let (container, variable) = (excerpt(conflict.container), conflict.variable.name.clone());
        let finding = Finding::warn_within(work, &POD_ENV_EXISTS, conflict.entry.clone(), move |_| {
            format!("container {} already sets {variable}; left as is", quoted(&container))
        });
        let origin = &conflict.variable.origin;
        finding.and_elsewhere(|| {
            let is_of_memory = !origin.resource.is_empty();
            let at = || Pointer::of_field(&origin.field);
            is_of_memory.then(|| Elsewhere::of(found.memory, at(), NOT_INJECTED))
        })
    })
}

/// The prefix of all variables. Variables of the pod without it are skipped.
const PREFIX: &str = "ARK_MEMORY_";

/// Where the Memory is.
pub(super) const URL: &str = "ARK_MEMORY_URL";

/// The name of the Memory, which every container that gets one has.
const NAME: &str = "ARK_MEMORY_NAME";

/// The names of all variables.
const NAMES: MemoryVariableNames<'static> = MemoryVariableNames {
    prefixes: &[PREFIX],
    names: &[NAME, "ARK_MEMORY_NAMESPACE", URL, "ARK_MEMORY_HTTP_TIMEOUT_SECONDS", "ARK_MEMORY_HEADERS"],
    open: Some(HEADER_PREFIX),
};

/// All variables, in order. `memory` is the name of the Memory in origins.
fn wanted_variables(
    found: &PodMemory<'_>,
    memory: &Arc<str>,
    address: EnvSource,
    timeout: Option<u16>,
    headers: Vec<HeaderVariable<'_>>,
) -> Vec<Variable<'static>> {
    let literal = |name: &'static str, text: &str, of: &'static str| {
        Variable::literal(name, escape_references(text), field_origin(memory, of))
    };
    let mut variables = vec![
        literal(NAME, &found.memory.name, "metadata.name"),
        literal("ARK_MEMORY_NAMESPACE", &found.namespace, "metadata.namespace"),
        Variable::new(URL, address, field_origin(memory, "spec.address")).address(),
    ];
    variables.extend(timeout.map(|seconds| {
        let rule = "the pod's annotation for the timeout";
        let origin = Origin { resource: "".into(), field: "".into(), rule };
        Variable::literal("ARK_MEMORY_HTTP_TIMEOUT_SECONDS", seconds.to_string(), origin)
    }));
    if !headers.is_empty() {
        let names: Vec<&str> = headers.iter().map(|header| header.name).collect();
        variables.push(literal("ARK_MEMORY_HEADERS", &names.join(","), "spec.headers"));
    }
    variables.extend(headers.into_iter().map(|header| {
        let origin = field_origin(memory, format!("spec.headers[{}].value", header.index));
        Variable::new(header.variable, header.source, origin)
    }));
    variables
}

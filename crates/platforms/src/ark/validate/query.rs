//! Validates a Query's reference to memory and its durations. The platform checks the rest of a Query.
//! Durations, those of the ArkConfig too, are read as Go reads them.

use crate::ark::default::{DefaultMemory, default_memory};
use crate::ark::prelude::*;
use crate::ark::value::SECOND;
use memgate_primitives::duration;

const MEMORY_POINTER: &str = "/spec/memory";

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let object = subject.object;
    let mut findings = Vec::new();
    match object.at(&["spec", "memory"]) {
        Some(memory) => findings.extend(named_memory(memory, subject, state)),
        None => findings.extend(without_memory(subject, state)),
    }
    if subject.old.is_some_and(|old| changed_after_start(object, old)) {
        let message = "spec.memory changed after the query started; old messages are not cleaned up";
        findings.push(Finding::warn(&QUERY_MEMORY_CHANGED, MEMORY_POINTER, message));
    }
    if matches!(object.at(&["spec", "target"]), Some(Tree::List(_))) {
        let message = "spec.target is a list; ARK takes one object with type and name";
        findings.push(Finding::warn(&QUERY_TARGET_LIST, "/spec/target", message));
    }
    if object.text_at(&["spec", "type"]) == Some("messages") {
        let message = "spec.type \"messages\" is deprecated; ARK turns it into \"user\"";
        findings.push(Finding::warn(&QUERY_TYPE_MESSAGES, "/spec/type", message));
    }
    findings.extend(durations(object));
    findings
}

fn named_memory(memory: &Tree, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let pointer = Pointer::new(MEMORY_POINTER);
    if !memory.is_object() {
        return Vec::new();
    }
    let name = match memory.get("name") {
        None => "",
        Some(name) => match name.text() {
            Some(name) => name,
            None => return Vec::new(),
        },
    };
    if name.is_empty() {
        return vec![Finding::deny(&QUERY_MEMORY_NAME, pointer.key("name"), "spec.memory.name is required")];
    }
    if memory.get("namespace").is_some_and(|namespace| namespace.text().is_none()) {
        return Vec::new();
    }
    let namespace = memory.text_at(&["namespace"]).filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or(subject.namespace);
    let found = state.get_if_known(&MEMORY, namespace, name);
    let (mut findings, home) = (Vec::new(), Pointer::new("/metadata/namespace"));
    let namespace_given =
        state.namespace_given() && !matches!(found, Lookup::Found(memory) if !memory.namespace_given);
    if namespace_given && namespace != subject.namespace {
        let text = "spec.memory.namespace is {}; queries with the same name share messages there";
        let finding = warning(&QUERY_MEMORY_CROSS_NAMESPACE, pointer.key("namespace"), text, [namespace]);
        let place = || Some(Elsewhere::of(found.found()?, home, "it is in this namespace"));
        findings.push(finding.and_elsewhere(place));
    }
    if let Lookup::Found(memory) = found {
        findings.extend(not_ready(memory, namespace, pointer));
    }
    findings
}

/// Checks the TTL and the timeout.
fn durations(object: &Tree) -> impl Iterator<Item = Finding> {
    let ttl = object.text_at(&["spec", "ttl"]).and_then(|ttl| match nanoseconds(ttl) {
        Err(instead) => Some(not_a_duration(&QUERY_TTL, "/spec/ttl", (ttl, instead), "720h")),
        Ok(nanoseconds) => too_short((ttl, nanoseconds), &QUERY_TTL_SHORT, "/spec/ttl"),
    });
    let timeout = object.text_at(&["spec", "timeout"]).and_then(|timeout| {
        let instead = nanoseconds(timeout).err()?;
        Some(not_a_duration(&QUERY_TIMEOUT, "/spec/timeout", (timeout, instead), "5m"))
    });
    ttl.into_iter().chain(timeout)
}

/// Reports a Memory in phase `error` or without a resolved address. A Memory without a status is not
/// reported, since the platform has not processed it yet.
fn not_ready(memory: &Object, namespace: &str, pointer: Pointer) -> Option<Finding> {
    let status = status(memory.tree())?;
    let home = quoted(&format!("{namespace}/{}", memory.name));
    let (message, field, label) = if status.text_at(&["phase"]) == Some("error") {
        (format!("Memory {home} is in phase error"), "/status/phase", "the phase of the Memory")
    } else if resolved_address(memory.tree()).is_none() {
        let message = format!("Memory {home} has no resolved address yet");
        (message, "/status", "lacks lastResolvedAddress")
    } else {
        return None;
    };
    let finding = Finding::warn(&QUERY_MEMORY_NOT_READY, pointer, message);
    Some(finding.elsewhere(memory, Pointer::new(field), label))
}

/// Reports a conversation without a Memory, which the platform silently drops.
fn without_memory(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let spec = subject.object.get("spec")?;
    spec.text_at(&["conversationId"]).filter(|id| !id.is_empty())?;
    if subject.operation != Operation::Create || !state.is_known(&MEMORY) {
        return None;
    }
    let message = "spec.conversationId is set but no Memory is available; history will be dropped";
    match default_memory(subject.namespace, state) {
        DefaultMemory::None => {
            let pointer = Pointer::new("/spec/conversationId");
            Some(Finding::warn(&QUERY_CONVERSATION_WITHOUT_MEMORY, pointer, message))
        }
        DefaultMemory::Memory { .. } | DefaultMemory::Unknown => None,
    }
}

/// Whether a stored Query has started. Then it already wrote to the old Memory.
fn changed_after_start(object: &Tree, old: &Tree) -> bool {
    let phase = old.text_at(&["status", "phase"]).unwrap_or_default();
    let started = !phase.is_empty() && phase != "pending";
    started && !super::is_same_memory_ref(object, old)
}

/// The nanoseconds of a duration. For another text, the duration that was probably meant: Go has no days.
pub(super) fn nanoseconds(text: &str) -> Result<i64, Option<String>> {
    duration::nanoseconds(text).ok_or_else(|| duration::in_hours(text))
}

/// The denial of a text that is not a duration; without the duration that was meant, an example.
pub(super) fn not_a_duration(
    code: &'static Code,
    pointer: &'static str,
    (text, instead): (&str, Option<String>),
    example: &'static str,
) -> Finding {
    let pointer = Pointer::new(pointer);
    let (field, shown) = (pointer.field(), quoted_text(text));
    let end = match &instead {
        Some(instead) => format!("use {instead} for {text}"),
        None => format!("write for example {example}"),
    };
    let finding = Finding::deny(code, pointer, format!("{field} must be a Go duration, not {shown}; {end}"));
    finding.fix(instead.map(Fix::Text))
}

/// The warning about a duration, if it is below one second.
pub(super) fn too_short(
    (text, nanoseconds): (&str, i64),
    code: &'static Code,
    pointer: &'static str,
) -> Option<Finding> {
    let pointer = Pointer::new(pointer);
    let (field, shown) = (pointer.field(), quoted_text(text));
    let message = format!("{field} is below one second: {shown}; ARK's broker refuses the messages");
    (nanoseconds < SECOND).then(|| Finding::warn(code, pointer, message))
}

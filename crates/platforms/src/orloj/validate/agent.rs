//! Validates an Agent, above all its reference to memory.

use crate::orloj::claim;
use crate::orloj::namespace;
use crate::orloj::prelude::*;
use memgate_model::finding::Details;
use memgate_primitives::suggest::{self, only_nearest};

use super::fingerprint_of;

const REF: &str = "/spec/memory/ref";
const ALLOW: &str = "/spec/memory/allow";

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let allow = allow(agent);
    let mut findings = Vec::new();
    match claimed_memory(agent) {
        None => findings.extend(allow_needs_ref(allow)),
        Some(name) => findings.extend(claimed(name, allow, subject, state)),
    }
    let work = state.budget();
    let operations: Vec<_> = allow.iter().map(operation).collect();
    findings.extend(allow_invalid(allow, &operations, work));
    findings.extend(allow_duplicate(&operations, work));
    findings.extend(legacy_fields(agent));
    findings.extend(tools_listed(agent, work));
    findings
}

fn allow_needs_ref(allow: &[Tree]) -> Option<Finding> {
    let message = "spec.memory.ref is required when spec.memory.allow is set";
    let finding = || {
        Finding::deny(&AGENT_ALLOW_NEEDS_REF, REF, message)
            .fingerprint_value(allow_fingerprint_value(allow))
            .related(Pointer::new(ALLOW), "because of these grants")
    };
    (!allow.is_empty()).then(finding)
}

/// Findings about the named Memory, and about a reference without operations.
fn claimed(name: &str, allow: &[Tree], subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = match ref_invalid(name) {
        Some(finding) => vec![finding],
        None => memory(name, subject, state).into_iter().collect(),
    };
    if allow.is_empty() {
        let message = "spec.memory.allow is empty: no memory operation is granted";
        findings.push(Finding::warn(&AGENT_ALLOW_EMPTY, ALLOW, message));
    }
    findings
}

fn ref_invalid(name: &str) -> Option<Finding> {
    let impossible = name.contains(|c: char| c == '/' || c.is_whitespace());
    let text = "spec.memory.ref {}: must be the name of a Memory in the Agent's own namespace";
    let finding = || Finding::deny(&AGENT_REF_INVALID, REF, filled(text, [name])).proposing_name(name);
    impossible.then(|| finding().fingerprint_value(fingerprint_of([Some(name)])))
}

/// Warns about a Memory that Orloj cannot use.
fn memory(name: &str, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let home = claim::effective(subject.object, subject.namespace);
    let memory =
        namespace::find_for((subject.object, subject.namespace), &MEMORY, (home, name), state).found()?;
    let phase = text(memory.tree(), &["status", "phase"]);
    let phase = phase.filter(|phase| matches!(*phase, "Error" | "SyncError"))?;
    let finding = warning(&AGENT_MEMORY_FAILING, REF, "memory {} is in phase {bare}", [name, phase]);
    Some(finding.elsewhere(memory, Pointer::new("/status/phase"), "the phase of the Memory"))
}

/// A fingerprint value for a list of operations. It is short even for a long list, since each finding has
/// its own copy.
fn allow_fingerprint_value(allow: &[Tree]) -> String {
    fingerprint_of(allow.iter().map(allow_text))
}

/// Reports invalid operations. Skips an entry that is not a string, which already has a finding about its
/// type.
fn allow_invalid(allow: &[Tree], operations: &[Option<&str>], work: &Budget<'_>) -> Vec<Finding> {
    let bad = allow.iter().zip(operations).enumerate().filter(|(_, (_, operation))| operation.is_none());
    let mut bad = bad.filter_map(|(index, (entry, _))| Some((index, entry.text()?.trim()))).peekable();
    if bad.peek().is_none() {
        return Vec::new();
    }
    let list = Pointer::new(ALLOW);
    let fingerprint_value = allow_fingerprint_value(allow);
    let finding = |(index, entry): (usize, &str)| {
        let entry = excerpt(entry);
        let details = move |_: &Pointer| {
            let text = "invalid spec.memory.allow: invalid memory operation {text}: expected read, write, search, \
                        list, or ingest";
            let message = filled(text, [&entry]);
            let fix = only_nearest(&entry, OPERATIONS).map(|meant| Fix::Text(meant.to_owned()));
            Details::from(message).help(suggest::help(&entry, OPERATIONS)).fix(fix)
        };
        Finding::deny_within(work, &AGENT_ALLOW_INVALID, list.index(index), details)
            .fingerprint_value(&*fingerprint_value)
    };
    bad.map(finding).collect()
}

fn allow_duplicate(operations: &[Option<&'static str>], work: &Budget<'_>) -> Vec<Finding> {
    let list = Pointer::new(ALLOW);
    let mut seen: Vec<&str> = Vec::with_capacity(OPERATIONS.len());
    let mut is_repeat = |operation: &'static str| {
        let seen_before = seen.contains(&operation);
        if !seen_before {
            seen.push(operation);
        }
        seen_before
    };
    let operations =
        operations.iter().enumerate().filter_map(|(index, operation)| Some((index, (*operation)?)));
    let repeats = operations.filter(|(_, operation)| is_repeat(operation));
    let finding = |(index, operation): (usize, &'static str)| {
        let message = move |_: &Pointer| format!("spec.memory.allow: \"{operation}\" is listed twice");
        Finding::warn_within(work, &AGENT_ALLOW_DUPLICATE, list.index(index), message)
            .fix(Some(Fix::RemoveRepeated))
    };
    repeats.map(finding).collect()
}

fn legacy_fields(agent: &Tree) -> Vec<Finding> {
    let set =
        ["type", "provider"].into_iter().filter(|field| text(agent, &["spec", "memory", field]).is_some());
    let finding = |field| {
        let message = format!("spec.memory.{field} is not used; set it on the Memory");
        Finding::warn(&AGENT_LEGACY_FIELD, Pointer::new("/spec/memory").key(field), message)
    };
    set.map(finding).collect()
}

/// Reports memory tools in the Agent's tools. The platform looks for a Tool of that name and fails the
/// task, even if the operation is granted.
fn tools_listed(agent: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    let list = Pointer::new("/spec/tools");
    let tools = agent.list_at(&["spec", "tools"]);
    let tools = tools.iter().enumerate().filter_map(|(index, tool)| Some((index, tool.text()?.trim())));
    let built_in = |tool: &str| tool.strip_prefix("memory.").is_some_and(|tool| OPERATIONS.contains(&tool));
    let finding = |(index, tool): (usize, &str)| {
        let tool = tool.to_owned();
        let message = move |_: &Pointer| {
            format!("spec.tools: \"{tool}\" is built in; grant it in spec.memory.allow and drop it here")
        };
        Finding::warn_within(work, &AGENT_TOOL_LISTED, list.index(index), message)
    };
    tools.filter(|(_, tool)| built_in(tool)).map(finding).collect()
}

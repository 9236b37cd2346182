//! What one line of kagent does not read: objects of the other line, older kinds, and fields at the wrong place.

use crate::kagent::api::{
    AGENT, AGENT_TEMPLATE, HARNESS, MEMORY, MOVED_AGENT_TEMPLATE, MOVED_HARNESS, NEWER_AGENT, SANDBOX_AGENT,
};
use crate::kagent::block::{Block, pointer};
use crate::kagent::codes::{AGENT_MEMORY_UNREAD, FIELD_TYPE, MEMORY_KIND_UNREAD, UNKNOWN_FIELD};
use crate::prelude::*;
use crate::schema_check::unknown_field_message;

/// The list of Memories in an Agent of the oldest version. The place has no meaning in later versions.
const MEMORIES: [&str; 2] = ["spec", "memory"];

/// A field at the wrong place.
struct Misplaced {
    kinds: &'static [&'static Kind],
    path: &'static [&'static str],
    /// What is right.
    hint: &'static str,
}

const ONLY_KAGENT: &str = "only spec.kagent has memory";
const ON_HARNESS: &str = "memory is set on the Harness (spec.kagent.memory)";
const HARNESSES: &[&Kind] = &[&HARNESS, &MOVED_HARNESS];
const MISPLACED: [Misplaced; 7] = [
    Misplaced {
        kinds: &[&AGENT, &SANDBOX_AGENT],
        path: &MEMORIES,
        hint: "did you mean \"spec.declarative.memory\"?",
    },
    Misplaced { kinds: HARNESSES, path: &["spec", "memory"], hint: ONLY_KAGENT },
    Misplaced { kinds: HARNESSES, path: &["spec", "codex", "memory"], hint: ONLY_KAGENT },
    Misplaced { kinds: HARNESSES, path: &["spec", "claude", "memory"], hint: ONLY_KAGENT },
    Misplaced { kinds: HARNESSES, path: &["spec", "byo", "memory"], hint: ONLY_KAGENT },
    Misplaced {
        kinds: &[&AGENT_TEMPLATE, &MOVED_AGENT_TEMPLATE, &NEWER_AGENT],
        path: &["spec", "memory"],
        hint: ON_HARNESS,
    },
    Misplaced {
        kinds: &[&NEWER_AGENT],
        path: &["spec", "declarative"],
        hint: "kagent 1.0 pairs templateRef and harnessRef; memory is set on the Harness",
    },
];

/// The findings about objects and fields that no kagent, or not this one, reads.
pub(super) fn findings(subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    let mut findings = misplaced(subject);
    findings.extend(unread_kind(subject));
    findings.extend(unread_list(subject));
    findings
}

fn unread_kind(subject: &Subject<'_>) -> Option<Finding> {
    let message = "no kagent since 0.7 reads Memory; use spec.declarative.memory, in 1.0 the Harness";
    let finding = || Finding::warn(&MEMORY_KIND_UNREAD, Pointer::new("/spec"), message);
    (*subject.kind == MEMORY).then(finding)
}

fn unread_list(subject: &Subject<'_>) -> Option<Finding> {
    let message = "spec.memory is read by no kagent since 0.7; use v1alpha2 spec.declarative.memory";
    let is_unread = has_memories(subject) && !subject.object.list_at(&MEMORIES).is_empty();
    is_unread.then(|| Finding::warn(&AGENT_MEMORY_UNREAD, pointer(&MEMORIES), message))
}

/// Whether the subject is of the version in which Agents have a list of Memories.
fn has_memories(subject: &Subject<'_>) -> bool {
    *subject.kind == AGENT && subject.object.text_at(&["apiVersion"]) == Some("kagent.dev/v1alpha1")
}

fn misplaced(subject: &Subject<'_>) -> Vec<Finding> {
    if has_memories(subject) {
        return Vec::new();
    }
    let is_here =
        |field: &&Misplaced| field.kinds.contains(&subject.kind) && subject.object.at(field.path).is_some();
    let finding = |field: &Misplaced| {
        let at = pointer(field.path);
        let message = format!("{}; {}", unknown_field_message(&at.field(), None), field.hint);
        Finding::warn(&UNKNOWN_FIELD, at, message).at_key()
    };
    MISPLACED.iter().filter(is_here).map(finding).collect()
}

/// Adds advice to the findings about the form of the subject. Those about a place that has no meaning in its version are
/// left out.
pub(super) fn advise(subject: &Subject<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    if !has_memories(subject) {
        let memories = pointer(&MEMORIES);
        findings.retain(|finding| finding.code != &FIELD_TYPE || !memories.holds(&finding.pointer));
    }
    let block = Block::of(subject.kind, subject.object);
    let switch = block.map(|block| block.pointer().key("enabled"));
    findings.into_iter().map(|finding| advised(finding, switch.as_ref())).collect()
}

/// A finding with advice, if it is about an unknown field. `switch` is the field with which users try to switch memory off.
fn advised(finding: Finding, switch: Option<&Pointer>) -> Finding {
    /// What users write for a field whose values have another form or unit. The value has to change with the name.
    const OTHER_VALUES: [&str; 4] = ["modelConfig", "modelConfigRef", "ttl", "ttlSeconds"];
    if finding.code != &UNKNOWN_FIELD {
        return finding;
    }
    if Some(&finding.pointer) == switch {
        return finding.ending("; memory stays on");
    }
    if finding.pointer.tokens().last().is_some_and(|name| OTHER_VALUES.contains(&&*name)) {
        let message = finding.message().into_owned();
        return finding.with_message(message).fix(None);
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_check;
    use memgate_model::request::Operation;
    use memgate_model::tree::Tree;
    use memgate_primitives::budget::Budget;

    #[test]
    fn renames_only_fields_whose_values_stay_right() {
        let object = r#"{"spec":{"declarative":{"memory":{"modelConfigRef":{"name":"e"},"ttlDay":3,"ttlSeconds":9,"enabled":false}}}}"#;
        let object = Tree::parse(object, &AGENT.schema).expect("JSON");
        let (operation, old) = (Operation::Create, None);
        let subject = Subject { kind: &AGENT, operation, namespace: "ops", name: "a", object: &object, old };
        let of_form = schema_check::check(
            &object,
            &AGENT.schema,
            crate::kagent::validate::SCHEMA_CODES,
            &Budget::default(),
        );
        let findings = advise(&subject, of_form);
        let fixable = findings.iter().map(|finding| {
            let name = finding.pointer.tokens().last().expect("a field").into_owned();
            (name, finding.details().fix.is_some())
        });
        let expected =
            [("modelConfigRef", false), ("ttlDay", true), ("ttlSeconds", false), ("enabled", false)];
        assert_eq!(fixable.collect::<Vec<_>>(), expected.map(|(name, has_fix)| (name.to_owned(), has_fix)));
    }
}

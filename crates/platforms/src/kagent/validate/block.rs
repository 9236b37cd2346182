//! Validates a memory section: how long memories are kept, and the ModelConfig that computes the vectors.

use super::super::api::Line;
use super::super::block::{Block, MAX_TTL_DAYS, TTL_DAYS_DEFAULT, pointer};
use super::super::codes::{
    EMBEDDER_CHANGED, EMBEDDER_NOT_FOUND, EMBEDDER_RUNTIME, EMBEDDER_UNUSABLE, MEMORY_IGNORED,
    MEMORY_MODEL_NAME, MEMORY_MODEL_REQUIRED, TTL_DAYS,
};
use super::super::embedder::Embedder;
use super::super::message::{shown, with_names};
use super::reference;
use crate::message::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, truncate};
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;

/// The findings about the memory section of an Agent, a SandboxAgent or a Harness.
pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let Some(block) = Block::of(subject.kind, subject.object) else { return Vec::new() };
    if block.is_ignored {
        // The definition refuses some numbers even where nothing reads them.
        let refused = ttl_days(&block).filter(|_| block.ttl_days().is_some_and(|days| days < 1));
        return refused.into_iter().chain([ignored(&block)]).collect();
    }
    let mut findings: Vec<Finding> = ttl_days(&block).into_iter().chain(wrong_name(&block)).collect();
    if let Some(name) = block.embedder().filter(|_| state.budget().wants_warnings()) {
        findings.extend(embedder(subject, &block, name, state));
    }
    findings
}

fn ignored(block: &Block<'_>) -> Finding {
    let message = format!("{} is ignored when spec.type is \"BYO\"", block.pointer().field());
    Finding::warn(&MEMORY_IGNORED, block.pointer(), message)
}

/// Refuses a number of days that kagent cannot use.
fn ttl_days(block: &Block<'_>) -> Option<Finding> {
    let days = block.ttl_days()?;
    let at = block.pointer().key("ttlDays");
    let problem = match days {
        ..1 => format!("must be at least 1; leave it out for {TTL_DAYS_DEFAULT} days"),
        1..=MAX_TTL_DAYS => return None,
        _ => format!("is above {MAX_TTL_DAYS}; kagent miscounts it and entries expire at once or early"),
    };
    let message = format!("{} {problem}", at.field());
    Some(Finding::deny(&TTL_DAYS, at, message).fingerprint_value(days.to_string()))
}

/// Refuses a name that no ModelConfig can have.
fn wrong_name(block: &Block<'_>) -> Option<Finding> {
    if block.embedder().is_some() {
        return None;
    }
    let at = block.reference_pointer();
    let field = at.field();
    let name = block.reference().unwrap_or_default();
    if name.is_empty() {
        // Without its object, the place of the name does not exist either.
        let lacks_object = block.line == Line::Newer && block.tree.get("modelConfigRef").is_none();
        let at = if lacks_object { block.pointer().key("modelConfigRef") } else { at };
        return Some(Finding::deny(&MEMORY_MODEL_REQUIRED, at, format!("{field} is required")));
    }
    let shown = shown(name, MAX_NAME_CHARS);
    let message = format!("{field}: {shown} is not a valid ModelConfig name");
    let finding = Finding::deny(&MEMORY_MODEL_NAME, at, message).fingerprint_value(name);
    Some(if name.contains('/') {
        finding.help("references stay in the namespace; write the name alone")
    } else {
        finding
    })
}

/// Warns about the ModelConfig itself: it does not exist, cannot embed, or is another one than before.
fn embedder(
    subject: &Subject<'_>,
    block: &Block<'_>,
    name: &str,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let at = block.reference_pointer();
    let Some(object) = reference::find(subject, name, state).found() else {
        return reference::missing(&EMBEDDER_NOT_FOUND, subject, (at, name), state).into_iter().collect();
    };
    let embedder = Embedder::new(block.line, object.tree());
    let unusable = embedder.flaw().map(|flaw| {
        let name = shown(name, MAX_NAME_CHARS);
        let message = format!("ModelConfig {name} cannot embed: {}", flaw.message);
        Finding::warn(&EMBEDDER_UNUSABLE, at, truncate(&message, MAX_MESSAGE_CHARS))
            .elsewhere(object, flaw.pointer, "cannot embed")
    });
    let of_embedder =
        [unusable, runtime(subject.object, &embedder), changed(subject, block, &embedder, state)];
    of_embedder.into_iter().flatten().collect()
}

/// Warns about a provider that embeds with the other runtime only.
fn runtime(agent: &Tree, embedder: &Embedder<'_>) -> Option<Finding> {
    const RUNTIME: [&str; 3] = ["spec", "declarative", "runtime"];
    let message = "provider \"Foundry\" embeds with runtime \"go\" only; kagent refuses the Agent";
    let fails = embedder.line == Line::Older
        && embedder.provider() == "Foundry"
        && agent.text_at(&RUNTIME) == Some("python");
    fails.then(|| Finding::warn(&EMBEDDER_RUNTIME, pointer(&RUNTIME), message))
}

/// Warns if another model embeds than before: its vectors do not match the stored ones.
fn changed(
    subject: &Subject<'_>,
    block: &Block<'_>,
    embedder: &Embedder<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let old = Block::of(subject.kind, subject.old?).filter(|old| !old.is_ignored)?;
    let old_name = old.reference().filter(|name| block.reference() != Some(name))?;
    let old = Embedder::new(block.line, reference::find(subject, old_name, state).found()?.tree());
    let (old_model, model) = (old.model()?, embedder.model()?);
    let differs = old.provider() != embedder.provider() || old_model != model;
    let message = || {
        with_names([old_model, model], |[old, new]| {
            format!("memories stored with {old} cannot be found with {new}")
        })
    };
    let finding = || Finding::warn(&EMBEDDER_CHANGED, block.reference_pointer(), message());
    differs.then(|| finding().when_allowed())
}

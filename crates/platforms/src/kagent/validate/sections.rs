//! Validates the sections of an agent: its memory, with the ModelConfig that computes the vectors beside the one that it
//! chats with, and the compaction of its sessions.

use crate::kagent::block::{
    Block, MAX_TTL_DAYS, Part, TTL_DAYS_DEFAULT, harness, is_brought, places, pointer, template,
};
use crate::kagent::embedder::Embedder;
use crate::kagent::prelude::*;
use crate::message::{MAX_MESSAGE_CHARS, truncate, truncate_text};

/// The findings about the memory section of an Agent, a SandboxAgent or a Harness.
pub(super) fn memory_findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
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
    let message = format!("{field}: {} is not a valid ModelConfig name", quoted(&truncate(name, 64)));
    let finding = Finding::deny(&MEMORY_MODEL_NAME, at, message).fingerprint_value(name);
    Some(if name.contains('/') {
        finding.help("references stay in the namespace; write the name alone")
    } else {
        finding.proposing_name(name)
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
    let Some(object) = super::find_model_config(subject, name, state).found() else {
        return Vec::new();
    };
    let embedder = Embedder::new(block.line, object.tree());
    let unusable = embedder.flaw().map(|(_, field, why)| {
        let message = format!("ModelConfig {} cannot embed: {why}", quoted(&truncate(name, 64)));
        Finding::warn(&EMBEDDER_UNUSABLE, at, truncate_text(&message, MAX_MESSAGE_CHARS))
            .elsewhere(object, field, "cannot embed")
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
    let old = Embedder::new(block.line, super::find_model_config(subject, old_name, state).found()?.tree());
    let (old_model, model) = (old.model()?, embedder.model()?);
    let differs = old.provider() != embedder.provider() || old_model != model;
    let text = "memories stored with {text} cannot be found with {text}";
    let finding = || warning(&EMBEDDER_CHANGED, block.reference_pointer(), text, [old_model, model]);
    differs.then(|| finding().when_allowed())
}

/// Two settings that kagent 0.x accepts only together; the definition of 1.x checks them.
const PAIR: [&str; 2] = ["tokenThreshold", "eventRetentionSize"];

/// The finding about a compaction of 0.x.
pub(super) fn compaction_findings(subject: &Subject<'_>) -> Option<Finding> {
    let (kind, object) = (subject.kind, subject.object);
    let [_, path] = places(kind).filter(|_| Line::of(kind) == Line::Older && !is_brought(kind, object))?;
    let compaction = object.at(path).filter(|compaction| compaction.is_object())?;
    of_runtime(object, compaction, &pointer(path))
}

/// Warns about a compaction that the runtime ignores, or with which it does not start. The default of the runtime depends
/// on the version of kagent.
fn of_runtime(agent: &Tree, compaction: &Tree, at: &Pointer) -> Option<Finding> {
    if agent.text_at(&["spec", "declarative", "runtime"]) == Some("go") {
        let message = "compaction is ignored by runtime \"go\" in kagent 0.x; use runtime \"python\"";
        return Some(Finding::warn(&COMPACTION_IGNORED, at.clone(), message));
    }
    let mut set = PAIR.into_iter().filter(|field| compaction.get(field).is_some());
    let (Some(only), None) = (set.next(), set.next()) else { return None };
    let message = "tokenThreshold and eventRetentionSize must be set together; the agent cannot start";
    Some(Finding::warn(&COMPACTION_PAIR, at.key(only), message))
}

/// The chat model of an Agent of 0.x that does not name one. Source: documentation of kagent 0.10.
const CHAT_DEFAULT: &str = "default-model-config";

/// The findings about the two ModelConfigs of an agent. One of 1.x has them of its template and of its harness.
pub(super) fn chat_findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    if !state.budget().wants_warnings() {
        return None;
    }
    let (at, embedder) = embedder_name(subject, state)?;
    let chat = chat(subject, state)?;
    if chat == embedder {
        return same_model(subject, at, embedder, state);
    }
    let (chat_object, embedder_object) = (
        super::find_model_config(subject, chat, state).found()?,
        super::find_model_config(subject, embedder, state).found()?,
    );
    let line = Line::of(subject.kind);
    let read = |object| Embedder::new(line, object);
    let clash = Embedder::clash(line, &read(chat_object.tree()), &read(embedder_object.tree()))?;
    let finding = Finding::warn(&EMBEDDER_CREDENTIAL_CONFLICT, at, clash.message(chat, embedder));
    Some(finding.elsewhere(chat_object, Pointer::new("/spec"), "the chat model").elsewhere(
        embedder_object,
        Pointer::new("/spec"),
        "the embedder",
    ))
}

/// Warns about a chat model that embeds, unless it is known that it can, or that it cannot: another rule reports that.
fn same_model(
    subject: &Subject<'_>,
    at: Pointer,
    name: &str,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    if let Some(object) = super::find_model_config(subject, name, state).found() {
        let embedder = Embedder::new(Line::of(subject.kind), object.tree());
        if embedder.provider() == "Ollama" || embedder.flaw().is_some() {
            return None;
        }
    }
    let text = "ModelConfig {} is the chat model too; embeddings need a model of their own";
    Some(warning(&EMBEDDER_IS_CHAT_MODEL, at, text, [name]))
}

/// The name of the ModelConfig that computes the vectors, and the place where the subject says so.
fn embedder_name<'x, 't: 'x, 's: 'x>(
    subject: &Subject<'t>,
    state: &mut StateReader<'s>,
) -> Option<(Pointer, &'x str)> {
    if let Some(block) = Block::of(subject.kind, subject.object) {
        return Some((block.reference_pointer(), block.embedder()?));
    }
    let Some(Part::Named { name, path }) = of_newer(subject).and_then(harness) else { return None };
    let harness = state.get(&HARNESS, subject.namespace, name).found()?;
    Some((pointer(path), Block::of(&HARNESS, harness.tree())?.embedder()?))
}

/// The name of the ModelConfig that the subject chats with.
fn chat<'x, 't: 'x, 's: 'x>(subject: &Subject<'t>, state: &mut StateReader<'s>) -> Option<&'x str> {
    if let Some(agent) = of_newer(subject) {
        return match template(agent)? {
            Part::Inline(spec) => spec.text_at(&["modelConfig", "name"]),
            Part::Named { name, .. } => {
                let found = state.get(&AGENT_TEMPLATE, subject.namespace, name).found()?;
                found.tree().text_at(&["spec", "modelConfig", "name"])
            }
        };
    }
    of_older(subject.object)
}

/// The name of the ModelConfig that an Agent of 0.x chats with.
pub(super) fn of_older(agent: &Tree) -> Option<&str> {
    let declarative = agent.at(&["spec", "declarative"])?;
    let name = declarative.text_at(&["modelConfig"]).filter(|name| !name.is_empty());
    Some(name.unwrap_or(CHAT_DEFAULT))
}

/// The subject, if it is an Agent of 1.x.
fn of_newer<'t>(subject: &Subject<'t>) -> Option<&'t Tree> {
    (*subject.kind == NEWER_AGENT).then_some(subject.object)
}

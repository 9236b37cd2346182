//! Validates the ModelConfig that computes the vectors beside the one that the agent chats with.

use super::super::agent_parts::{Part, harness, template};
use super::super::api::{AGENT_TEMPLATE, HARNESS, Line, NEWER_AGENT};
use super::super::block::{Block, pointer};
use super::super::codes::{EMBEDDER_CREDENTIAL_CONFLICT, EMBEDDER_IS_CHAT_MODEL};
use super::super::embedder::Embedder;
use super::super::message::with_names;
use super::reference;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

/// The chat model of an Agent of 0.x that does not name one. Source: documentation of kagent 0.10.
const CHAT_DEFAULT: &str = "default-model-config";

/// The findings about the two ModelConfigs of an agent. One of 1.x has them of its template and of its harness.
pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    if !state.budget().wants_warnings() {
        return None;
    }
    let (at, embedder) = embedder(subject, state)?;
    let chat = chat(subject, state)?;
    if chat == embedder {
        return same(subject, at, embedder, state);
    }
    let (chat_object, embedder_object) =
        (reference::find(subject, chat, state).found()?, reference::find(subject, embedder, state).found()?);
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
fn same(subject: &Subject<'_>, at: Pointer, name: &str, state: &mut StateReader<'_>) -> Option<Finding> {
    if let Some(object) = reference::find(subject, name, state).found() {
        let embedder = Embedder::new(Line::of(subject.kind), object.tree());
        if embedder.provider() == "Ollama" || embedder.flaw().is_some() {
            return None;
        }
    }
    let message = with_names([name], |[name]| {
        format!("ModelConfig {name} is the chat model too; embeddings need a model of their own")
    });
    Some(Finding::warn(&EMBEDDER_IS_CHAT_MODEL, at, message))
}

/// The name of the ModelConfig that computes the vectors, and the place where the subject says so.
fn embedder<'x, 't: 'x, 's: 'x>(
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

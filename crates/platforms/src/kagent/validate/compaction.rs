//! Validates the compaction of sessions.

use super::super::api::Line;
use super::super::block::{Places, is_brought, pointer};
use super::super::codes::{COMPACTION_IGNORED, COMPACTION_PAIR, SUMMARIZER_NOT_FOUND};
use super::reference;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

/// Two settings that kagent 0.x accepts only together; the definition of 1.x checks them.
const PAIR: [&str; 2] = ["tokenThreshold", "eventRetentionSize"];

/// The findings about a compaction and its summarizer.
pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (kind, object) = (subject.kind, subject.object);
    let Some(places) = Places::of(kind, object).filter(|_| !is_brought(kind, object)) else {
        return Vec::new();
    };
    let Some(compaction) = object.at(places.compaction).filter(|compaction| compaction.is_object()) else {
        return Vec::new();
    };
    let at = pointer(places.compaction);
    let mut findings = Vec::new();
    if Line::of(kind) == Line::Older {
        findings.extend(of_runtime(object, compaction, &at));
    }
    findings.extend(summarizer(subject, compaction, &at, state));
    findings
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

/// Warns about a summarizer without its ModelConfig.
fn summarizer(
    subject: &Subject<'_>,
    compaction: &Tree,
    at: &Pointer,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let path: &[&str] = match Line::of(subject.kind) {
        Line::Older => &["summarizer", "modelConfig"],
        Line::Newer => &["summarizer", "modelConfigRef", "name"],
    };
    let name = compaction.text_at(path)?;
    let at = path.iter().fold(at.clone(), |at, field| at.key(field));
    reference::missing(&SUMMARIZER_NOT_FOUND, subject, (at, name), state)
}

//! Edits made to the user's own text.
//!
//! Each edit changes only the bytes it must. The new text is then read again: a document that does
//! not say what it should is written anew from its value, without its comments.

mod emit;
mod flow;
mod plan;
mod splice;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::manifest::document::{Document, Root, read};
use crate::manifest::error::Error;
use crate::manifest::outline::Id;
use crate::manifest::rewrite::plan::{Ground, Plan};
use crate::manifest::rewrite::splice::{Splice, splices, whole};
use crate::manifest::source::Source;
use crate::model::edit::{Edit, Origin};

/// A source with edits made to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text.
    pub text: String,
    /// For each line that is new or changed, its number in the new text (from 1) and where it comes
    /// from; by line, several for a line that several edits touch.
    pub origins: Vec<(usize, Origin)>,
    /// The documents, by [`Document::index`], that had to be written anew, without their comments
    /// and their form, because of aliases or the like.
    pub reformatted: Vec<usize>,
}

/// Makes the edits of some of a source's documents in its text. What no edit touches stays as it
/// is, comments and line ends included.
///
/// # Errors
/// When an edit does not apply to its document.
pub fn rewrite(source: &Arc<Source>, edits: &[(&Document, &[Edit])]) -> Result<Rewritten, Error> {
    let (outline, roots) = read(source);
    let ground = Ground { source, text: source.text(), outline: &outline };
    let mut origins = Vec::new();
    let plans = plans(source, ground, &roots, edits, &mut origins)?;
    let mut reformatted = BTreeSet::new();
    // The second time, what came out wrong is written anew; nothing can come out wrong then.
    for _ in 0..2 {
        let mut changes = Vec::new();
        for (index, (root, plan)) in &plans {
            let spliced = if reformatted.contains(index) { None } else { splices(ground, *root, plan) };
            changes.extend(spliced.unwrap_or_else(|| {
                reformatted.insert(*index);
                vec![whole(ground, *root, plan)]
            }));
        }
        if let Some((text, lines)) = carry_out(source.text(), changes) {
            let wrong = wrong_documents(source, &text, &roots, &plans);
            if wrong.is_empty() {
                return Ok(finish(text, lines, &origins, reformatted));
            }
            reformatted.extend(wrong);
        } else {
            reformatted.extend(plans.keys());
        }
    }
    Err(Error::Rewrite { path: source.name().to_owned() })
}

/// The plan for each document that has edits, with its root.
type Plans = BTreeMap<usize, (Id, Plan)>;

fn plans(
    source: &Source,
    ground: Ground<'_>,
    roots: &[Root],
    edits: &[(&Document, &[Edit])],
    origins: &mut Vec<Origin>,
) -> Result<Plans, Error> {
    let mut plans = Plans::new();
    for (document, edits) in edits.iter().filter(|(_, edits)| !edits.is_empty()) {
        for edit in *edits {
            let unfit =
                || Error::Edit { path: source.name().to_owned(), pointer: edit.pointer.as_str().to_owned() };
            let Some(Ok((root, value))) = roots.get(document.index()) else { return Err(unfit()) };
            let (_, plan) =
                plans.entry(document.index()).or_insert_with(|| (*root, Plan::new(*root, value.clone())));
            let pointer = document.prefix().join(&edit.pointer);
            plan.apply(ground, &pointer, edit, origins).ok_or_else(unfit)?;
        }
    }
    Ok(plans)
}

/// The new text, and for each of its changed lines the numbers of origins. `None` when changes are
/// in each other's way.
fn carry_out(old: &str, mut changes: Vec<Splice>) -> Option<(String, Vec<(usize, usize)>)> {
    changes.sort_by_key(|splice| (splice.start, splice.end));
    let end_of_line = match old.find('\n') {
        Some(at) if old.get(..at)?.ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let mut text = String::with_capacity(old.len() + 256 * changes.len());
    let (mut at, mut line, mut origins) = (0, 1, Vec::new());
    for splice in changes {
        let between = old.get(at..splice.start)?;
        line += between.matches('\n').count();
        text.push_str(between);
        for (index, new) in splice.lines.iter().enumerate() {
            if index > 0 {
                text.push_str(end_of_line);
                line += 1;
            }
            text.push_str(&new.text);
            origins.extend(new.origins.iter().map(|origin| (line, *origin)));
        }
        at = splice.end;
    }
    text.push_str(old.get(at..)?);
    Some((text, origins))
}

/// The edited documents that the new text says something else in than it should; all of them when
/// it is not even clear which is which.
fn wrong_documents(source: &Source, text: &str, roots: &[Root], plans: &Plans) -> Vec<usize> {
    let (_, found) = read(&Arc::new(Source::new(source.name(), text)));
    let says = |index: usize, root: &Root| match (found.get(index), root, plans.get(&index)) {
        (Some(Ok((_, found))), _, Some((_, plan))) => *found == plan.value,
        (Some(Ok((_, found))), Ok((_, value)), None) => found == value,
        (Some(Err(_)), Err(_), None) => true,
        _ => false,
    };
    let wrong: Vec<usize> = roots
        .iter()
        .enumerate()
        .filter(|(index, root)| !says(*index, root))
        .map(|(index, _)| index)
        .collect();
    if found.len() != roots.len() || wrong.iter().any(|index| !plans.contains_key(index)) {
        return plans.keys().copied().collect();
    }
    wrong
}

fn finish(
    text: String,
    mut lines: Vec<(usize, usize)>,
    origins: &[Origin],
    reformatted: BTreeSet<usize>,
) -> Rewritten {
    lines.sort_unstable();
    lines.dedup();
    let origins =
        lines.iter().filter_map(|(line, number)| Some((*line, origins.get(*number)?.clone()))).collect();
    Rewritten { text, origins, reformatted: reformatted.into_iter().collect() }
}

//! Code actions: the fixes of `check --fix`, one by one.

use lsp_types::{CodeAction, CodeActionKind, TextEdit, Uri, WorkspaceEdit};

use crate::diagnostics::{TextPlaces, of_finding};
use crate::markdown::code_span;
use crate::navigation::Question;
use crate::positions::Lines;
use memgate_primitives::fix::Fix;
use memgate_primitives::plain_text::cut;
use memgate_workbench::files::fix::{FixedFile, MEANT, ONLY_ONE, fix_one};
use memgate_workbench::files::load::Error;
use memgate_workbench::files::place::report;
use memgate_workbench::files::run::judged_without_ignored;
use memgate_workbench::report::{FileLocation, LocatedFinding};

/// The most findings for which actions are offered at one place.
const MAX_FINDINGS: usize = 20;

/// The most characters of a value in a title.
const MAX_SHOWN: usize = 60;

/// The actions for the findings within a range of an open file. `uri` is its address, for the edits.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn actions(question: &Question<'_>, uri: &Uri) -> Result<Vec<CodeAction>, Error> {
    let Question { run, root, buffer, .. } = question;
    let file = question.file();
    let checked = judged_without_ignored(run)?;
    let Some(source) = checked.inputs.sources.iter().find(|source| source.name() == file) else {
        return Ok(Vec::new());
    };
    let lines = Lines::new(&buffer.text);
    let report = report(&checked);
    let is_here = |it: &&LocatedFinding<'_>| {
        it.location.file == file && question.touches(it.location.start, it.location.end)
    };
    let (mut places, mut actions) = (TextPlaces::new(root), Vec::new());
    for located in report.causes().filter(is_here).take(MAX_FINDINGS) {
        let own = of_finding(located, &mut places);
        let mut add = |title: String, fixed: &FixedFile, is_preferred: bool| {
            let edit = difference(&buffer.text, &fixed.text, &lines);
            actions.push(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![own.clone()]),
                is_preferred: Some(is_preferred),
                edit: Some(WorkspaceEdit::new([(uri.clone(), vec![edit])].into())),
                ..CodeAction::default()
            });
        };
        if let Some(fixed) = fix_one(&checked, source, located, ONLY_ONE) {
            let title = located.finding.details().fix.as_ref().map(|fix| title(fix, located));
            add(title.unwrap_or_default(), &fixed, true);
        }
        if let Some(fixed) = fix_one(&checked, source, located, MEANT) {
            let meant = Fix::Text(located.finding.details().meant.clone().unwrap_or_default());
            add(title(&meant, located), &fixed, false);
        }
    }
    Ok(actions)
}

/// What a fix changes, with the new name or value.
fn title(fix: &Fix, located: &LocatedFinding<'_>) -> String {
    let FileLocation { text, start, end, .. } = located.location;
    // Of the masked text.
    let written = || text.get(start..end).unwrap_or_default().lines().next().unwrap_or_default();
    let shown = |text: &str| code_span(&cut(text, MAX_SHOWN));
    match fix {
        Fix::Rename(name) => format!("Rename to {}", shown(name)),
        Fix::Text(text) => format!("Replace with {}", shown(text)),
        Fix::Unquote(_) => {
            let value = written().trim_matches(['"', '\'']);
            format!("Replace with {}, without quotes", shown(value))
        }
        Fix::RemoveRepeated => format!("Remove the repeated {}", shown(written())),
    }
}

/// The edit that makes a new text of an old one: from the first byte that differs to the last.
fn difference(old: &str, new: &str, lines: &Lines<'_>) -> TextEdit {
    let same = |one: &mut dyn Iterator<Item = char>, two: &mut dyn Iterator<Item = char>| -> usize {
        one.zip(two).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let start = same(&mut old.chars(), &mut new.chars());
    let (old_rest, new_rest) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end = same(&mut old_rest.chars().rev(), &mut new_rest.chars().rev());
    let range = lines.range(start, old.len() - end);
    TextEdit::new(range, new_rest.get(..new_rest.len() - end).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_no_longer_than_the_difference() {
        for (old, new, range, text) in [
            ("a: \u{e4}x\nb: 2", "a: \u{e4}yz\nb: 2", ((0, 4), (0, 5)), "yz"),
            ("aa", "aaa", ((0, 2), (0, 2)), "a"),
            ("aaa", "a", ((0, 1), (0, 3)), ""),
            ("", "a", ((0, 0), (0, 0)), "a"),
        ] {
            let edit = difference(old, new, &Lines::new(old));
            let ends = (
                (edit.range.start.line, edit.range.start.character),
                (edit.range.end.line, edit.range.end.character),
            );
            assert_eq!((ends, edit.new_text.as_str()), (range, text), "{old} {new}");
        }
    }
}

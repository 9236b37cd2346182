//! Code actions: the fixes of `check --fix`, and comments that ignore a finding.

use std::path::Path;
use std::sync::Arc;

use lsp_types::{CodeAction, CodeActionKind, TextEdit, Uri, WorkspaceEdit};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

use crate::diagnostics::{Places, of_finding};
use crate::markdown::code_span;
use crate::navigation::Question;
use crate::positions::Lines;
use memgate_core::decide::codes;
use memgate_manifest::fix::can_insert_comment;
use memgate_manifest::source::Source;
use memgate_model::finding::{Finding, Severity};
use memgate_platforms::common;
use memgate_primitives::credential::masked_keys;
use memgate_primitives::fix::Fix;
use memgate_primitives::plain_text::cut;
use memgate_workbench::fix::{FixedFile, MEANT, ONLY_ONE, fix_in_rounds, fix_one};
use memgate_workbench::load::Error;
use memgate_workbench::place::report;
use memgate_workbench::report::{FileLocation, LocatedFinding, counted};
use memgate_workbench::run::judged_without_ignored;

/// The most findings for which actions are offered at one place.
const MAX_FINDINGS: usize = 20;

/// The most characters of a value in a title.
const MAX_SHOWN: usize = 60;

/// The most rounds of making all fixes and judging again. Few fixes show others.
const MAX_ROUNDS: usize = 8;

/// The kind of the action that makes all fixes of a file.
pub(crate) const FIX_ALL: &str = "source.fixAll.memgate";

/// What an editor asks for.
pub(crate) struct Asked {
    /// The address of the file, for the edits.
    pub(crate) uri: Uri,
    /// The kinds of actions; `None` for all.
    pub(crate) only: Option<Vec<CodeActionKind>>,
}

impl Asked {
    /// Whether a kind is asked for: itself, or a kind above it, as `source` is above `source.fixAll`.
    fn wants(&self, kind: &CodeActionKind) -> bool {
        let is_above = |above: &CodeActionKind| {
            let rest = kind.as_str().strip_prefix(above.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || above.as_str().is_empty())
        };
        self.only.as_ref().is_none_or(|only| only.iter().any(is_above))
    }
}

/// The actions for the findings within a range of an open file, and the one that makes all fixes.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn actions(question: &Question<'_>, asked: &Asked) -> Result<Vec<CodeAction>, Error> {
    let Question { run, root, buffer, encoding, .. } = question;
    let file = question.file();
    let checked = judged_without_ignored(run)?;
    let Some(source) = checked.inputs.sources.iter().find(|source| source.name() == file) else {
        return Ok(Vec::new());
    };
    let lines = Lines::new(&buffer.text, *encoding);
    let report = report(&checked);
    let is_here = |it: &&LocatedFinding<'_>| {
        it.location.file == file && question.touches(it.location.start, it.location.end)
    };
    let mut places = Places::new(root, *encoding);
    let action = |title: String, kind: CodeActionKind, edits: Vec<TextEdit>| CodeAction {
        title,
        kind: Some(kind),
        edit: Some(WorkspaceEdit::new([(asked.uri.clone(), edits)].into())),
        ..CodeAction::default()
    };
    let (mut actions, mut has_fix) = (Vec::new(), false);
    let wants_quick_fixes = asked.wants(&CodeActionKind::QUICKFIX);
    for located in report.causes().filter(|it| wants_quick_fixes && is_here(it)).take(MAX_FINDINGS) {
        let code = masked_keys(located.finding.code_name());
        let own = of_finding(located, &mut places);
        let mut add = |title: String, edit: TextEdit, is_preferred: bool| {
            actions.push(CodeAction {
                diagnostics: Some(vec![own.clone()]),
                is_preferred: Some(is_preferred),
                ..action(title, CodeActionKind::QUICKFIX, vec![edit])
            });
        };
        if let Some(fixed) = fix_one(&checked, source, located, ONLY_ONE) {
            has_fix = true;
            let title = located.finding.details().fix.as_ref().map(|fix| title(fix, located));
            add(title.unwrap_or_default(), difference(&buffer.text, &fixed.text, &lines), true);
        }
        if let Some(fixed) = fix_one(&checked, source, located, MEANT) {
            let meant = Fix::Text(located.finding.details().meant.clone().unwrap_or_default());
            add(title(&meant, located), difference(&buffer.text, &fixed.text, &lines), false);
        }
        if let Some(edit) = ignoring(source, located, &lines) {
            add(format!("Ignore {code} here; write the reason behind the bracket"), edit, false);
        }
    }
    let all = CodeActionKind::new(FIX_ALL);
    // An editor asks for everything whenever the cursor moves; then only where there is something to fix.
    if asked.wants(&all) && (asked.only.is_some() || has_fix) {
        let is_it = |fixed: &FixedFile| fixed.source.name() == file;
        // Below a corrected field others may show up, as in `check --fix`.
        let (mut fixed, _) = fix_in_rounds(&mut run.clone(), &checked, MAX_ROUNDS, is_it)?;
        actions.extend(fixed.remove(&file).map(|FixedFile { text, count, .. }| {
            let title = format!("Fix what has one right answer in this file ({})", counted(count, "finding"));
            action(title, all, line_differences(&buffer.text, &text, &lines))
        }));
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

/// A comment above the line of a finding; `None` where comments do not ignore it. The reason is left to the author:
/// without one, `check` reports the comment.
fn ignoring(source: &Arc<Source>, located: &LocatedFinding<'_>, lines: &Lines<'_>) -> Option<TextEdit> {
    let Finding { code, policy, severity, .. } = located.finding;
    let is_comment = [&common::IGNORE_UNUSED, &common::IGNORE_UNKNOWN, &common::IGNORE_WITHOUT_REASON];
    let has_effect = *severity != Severity::Note && policy.is_none() && !is_comment.contains(code);
    let is_known = codes::all(&memgate_platforms::ALL).any(|known| known.name == code.name);
    let is_yaml = Path::new(source.name()).extension().is_none_or(|extension| extension != "json");
    if !has_effect || !is_known || !is_yaml {
        return None;
    }
    let before = source.text().get(..located.location.start)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.get(line_start..)?;
    let indentation = line.get(..line.len() - line.trim_start().len())?;
    let ends_as_before = source.text().get(line_start..)?.lines().next()?.len();
    let line_end = source.text().get(line_start + ends_as_before..).filter(|rest| rest.starts_with("\r\n"));
    let line_end = line_end.map_or("\n", |_| "\r\n");
    let comment = format!("{indentation}# memgate: ignore[{}] {line_end}", code.name);
    // A byte order mark stays the first one.
    let at = if line.starts_with('\u{feff}') { line_start + '\u{feff}'.len_utf8() } else { line_start };
    can_insert_comment(source, at, &comment).then(|| TextEdit::new(lines.range(at, at), comment))
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

/// The edits of the lines in which a new text differs.
fn line_differences(old: &str, new: &str, lines: &Lines<'_>) -> Vec<TextEdit> {
    let split = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (old, new) = (split(old), split(new));
    let mut at = 0;
    let mut edit = |op: &DiffOp| {
        let bytes: usize = old.get(op.old_range()).unwrap_or_default().iter().map(|line| line.len()).sum();
        let start = at;
        at += bytes;
        let text = new.get(op.new_range()).unwrap_or_default().concat();
        (op.tag() != DiffTag::Equal).then(|| TextEdit::new(lines.range(start, start + bytes), text))
    };
    capture_diff_slices(Algorithm::Myers, &old, &new).iter().filter_map(&mut edit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::positions::Encoding;

    #[test]
    fn edits_of_a_file_are_those_of_its_lines() {
        let old = "a: 1\nb: 2\nc: 3\nd: 4";
        let edits = line_differences(old, "a: x\nb: 2\nc: 3\nd: y\n", &Lines::new(old, Encoding::Utf16));
        let shown: Vec<_> = edits
            .iter()
            .map(|edit| (edit.range.start.line, edit.range.end.line, edit.new_text.as_str()))
            .collect();
        assert_eq!(shown, [(0, 1, "a: x\n"), (3, 3, "d: y\n")]);
    }

    #[test]
    fn an_edit_is_no_longer_than_the_difference() {
        for (old, new, range, text) in [
            ("a: \u{e4}x\nb: 2", "a: \u{e4}yz\nb: 2", ((0, 4), (0, 5)), "yz"),
            ("aa", "aaa", ((0, 2), (0, 2)), "a"),
            ("aaa", "a", ((0, 1), (0, 3)), ""),
            ("", "a", ((0, 0), (0, 0)), "a"),
        ] {
            let edit = difference(old, new, &Lines::new(old, Encoding::Utf16));
            let ends = (
                (edit.range.start.line, edit.range.start.character),
                (edit.range.end.line, edit.range.end.character),
            );
            assert_eq!((ends, edit.new_text.as_str()), (range, text), "{old} {new}");
        }
    }
}

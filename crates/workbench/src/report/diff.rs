//! The change of one file as a unified diff with the origins of the lines that edits added.
//!
//! An origin is a YAML comment behind the first line of a block that has it; a line without one has that above it. The
//! new file does not have these comments.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, group_diff_ops};

use crate::paths::without_dots;
use crate::report::plain;
use memgate_model::edit::Origin;
use memgate_primitives::plain_text::plain_except;

/// The unchanged lines around a change: as many as `diff -u` and git show.
const CONTEXT_LINES: usize = 3;
/// The origins of a hunk are aligned behind its longest line, in characters; longer lines than this
/// do not count.
const MAX_ALIGNED_CHARS: usize = 72;

const HEADER: Style = Style::new().bold();
const HUNK: Style = AnsiColor::Cyan.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const ORIGIN: Style = Style::new().dimmed();

/// The old and the new text of a file.
#[derive(Debug)]
pub struct FileDiff<'a> {
    /// The file as the user named it.
    pub name: &'a str,
    /// The old text.
    pub before: &'a str,
    /// The new text.
    pub after: &'a str,
    /// The origins of lines of the new text, sorted by line (from 1); a line has several if several edits touch
    /// it.
    pub origins: &'a [(usize, Origin)],
}

/// Writes the diff, with ANSI styles; nothing when the texts are equal.
///
/// # Errors
/// Those of the writer.
pub fn write(file: &FileDiff<'_>, out: &mut impl Write) -> io::Result<()> {
    let [before, after] =
        [file.before, file.after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let groups = group_diff_ops(changes(&before, &after), CONTEXT_LINES);
    if !groups.is_empty() {
        let name = without_dots(Path::new(file.name));
        let name = plain(&name.to_string_lossy()).into_owned();
        let name = name.trim_start_matches('/');
        writeln!(out, "{HEADER}--- a/{name}{HEADER:#}\n{HEADER}+++ b/{name}{HEADER:#}")?;
    }
    for group in &groups {
        writeln!(out, "{HUNK}{}{HUNK:#}", UnifiedHunkHeader::new(group))?;
        let lines = lines(&before, &after, group, file);
        let width = origin_column(&lines);
        for line in &lines {
            write_line(line, width, out)?;
        }
    }
    Ok(())
}

/// The changes by the one algorithm that is used: `TextDiff` has all of them, which are 0.5 MB of code.
fn changes(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    let mut changes = Compact::new(Replace::new(Capture::new()), before, after);
    let Ok(()) = myers::diff(&mut changes, before, 0..before.len(), after, 0..after.len());
    changes.into_inner().into_inner().into_ops()
}

struct DiffLine<'d> {
    tag: ChangeTag,
    /// The line without its end.
    text: &'d str,
    /// Whether the line ends as on Windows.
    has_carriage_return: bool,
    /// The origin of a line that an edit added; empty for others, and where the line above has the same.
    origin: String,
    has_newline: bool,
}

fn lines<'d>(
    before: &[&'d str],
    after: &[&'d str],
    group: &[DiffOp],
    file: &FileDiff<'_>,
) -> Vec<DiffLine<'d>> {
    let changes = group.iter().flat_map(|op| op.iter_changes(before, after));
    let line = |change: similar::Change<&'d str>| {
        let added = change.new_index().filter(|_| change.tag() == ChangeTag::Insert);
        let value = change.value();
        let whole = value.strip_suffix('\n');
        let text = whole.unwrap_or(value);
        DiffLine {
            tag: change.tag(),
            text: text.trim_end_matches('\r'),
            has_carriage_return: text.ends_with('\r'),
            origin: added.map(|index| origin(index + 1, file.origins)).unwrap_or_default(),
            has_newline: whole.is_some(),
        }
    };
    let mut lines: Vec<DiffLine<'d>> = changes.map(line).collect();
    once_a_block(&mut lines);
    lines
}

/// Leaves each origin at the first line of the block that has it.
fn once_a_block(lines: &mut [DiffLine<'_>]) {
    let mut above: Option<(ChangeTag, String)> = None;
    for line in lines {
        match &above {
            Some((tag, origin)) if *tag == line.tag && *origin == line.origin => line.origin.clear(),
            _ => above = Some((line.tag, line.origin.clone())),
        }
    }
}

/// The origins of the line of this number; empty when no edit touches it.
fn origin(number: usize, origins: &[(usize, Origin)]) -> String {
    let mut names: Vec<String> = Vec::new();
    let first = origins.partition_point(|(line, _)| *line < number);
    let here = origins.iter().skip(first).take_while(|(line, _)| *line == number);
    for (_, origin) in here {
        let name = describe_origin(origin);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}

/// `ArkMemory team-a/notes-short spec.redis.ttlSeconds`, or the rule for a value that does not come from an object.
pub fn describe_origin(origin: &Origin) -> String {
    let (resource, field) = (&*origin.resource, &*origin.field);
    let parts = match resource {
        "" if origin.rule.is_empty() => [field, ""],
        "" => [origin.rule, ""],
        _ => [resource, field],
    };
    parts.join(" ").trim_end().to_owned()
}

/// The column of the origins of one hunk.
fn origin_column(lines: &[DiffLine<'_>]) -> usize {
    let with_origin = lines.iter().filter(|line| !line.origin.is_empty());
    with_origin
        .map(|line| line.text.chars().count())
        .filter(|width| *width <= MAX_ALIGNED_CHARS)
        .max()
        .unwrap_or(0)
}

fn write_line(line: &DiffLine<'_>, width: usize, out: &mut impl Write) -> io::Result<()> {
    let (sign, style) = match line.tag {
        ChangeTag::Equal => (' ', Style::new()),
        ChangeTag::Delete => ('-', REMOVED),
        ChangeTag::Insert => ('+', ADDED),
    };
    write!(out, "{style}{sign}{}{style:#}", printable(line.text))?;
    if !line.origin.is_empty() {
        let gap = width.saturating_sub(line.text.chars().count());
        write!(out, "{:gap$}  {ORIGIN}# ← {}{ORIGIN:#}", "", plain(&line.origin))?;
    } else if line.has_carriage_return {
        // Without it `patch` and `git apply` do not find the line.
        write!(out, "\r")?;
    }
    writeln!(out)?;
    if line.has_newline { Ok(()) } else { writeln!(out, "\\ No newline at end of file") }
}

/// A source line with a space for each control character except tabs, which are harmless.
fn printable(text: &str) -> Cow<'_, str> {
    plain_except(text, |c| c == '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str, origins: &[(usize, Origin)]) -> String {
        let mut out = Vec::new();
        let change = FileDiff { name: "dir/x.yaml", before, after, origins };
        write(&change, &mut anstream::StripStream::new(&mut out)).expect("writes to memory");
        String::from_utf8(out).expect("is UTF-8")
    }

    fn from(resource: &str, field: &str) -> Origin {
        Origin { resource: resource.into(), field: field.to_owned().into(), rule: "default" }
    }

    #[test]
    fn names_each_origin_once_a_block() {
        let ttl = || from("Memory a/b", "spec.ttl");
        let origins = [(2, ttl()), (3, ttl()), (4, from("", "")), (4, from("Memory a/b", "")), (6, ttl())];
        let expected = "\
--- a/dir/x.yaml
+++ b/dir/x.yaml
@@ -1,2 +1,6 @@
 a: 1
+bb: 2  # ← Memory a/b spec.ttl
+longer: 3
+c: 3   # ← default; Memory a/b
 d: 4
+e: 5   # ← Memory a/b spec.ttl
";
        let after = "a: 1\nbb: 2\nlonger: 3\nc: 3\nd: 4\ne: 5\n";
        assert_eq!(diff("a: 1\nd: 4\n", after, &origins), expected);
    }

    #[test]
    fn is_empty_when_nothing_changed() {
        assert_eq!(diff("a: 1\n", "a: 1\n", &[]), "");
    }

    #[test]
    fn keeps_the_line_ends_of_windows_where_no_origin_follows() {
        let shown = diff("a: 1\r\nc: 3\r\n", "a: 1\r\nb: 2\r\nc: 3\r\n", &[]);
        assert!(shown.ends_with(" a: 1\r\n+b: 2\r\n c: 3\r\n"), "{shown:?}");
        let shown = diff("a: 1\r\n", "a: 1\r\nb: 2\r\n", &[(2, from("Memory a/b", "spec"))]);
        assert!(shown.ends_with(" a: 1\r\n+b: 2  # ← Memory a/b spec\n"), "{shown:?}");
    }

    #[test]
    fn says_where_the_last_newline_is_missing() {
        assert!(diff("a: 1", "a: 2\n", &[]).contains("-a: 1\n\\ No newline at end of file\n+a: 2\n"));
    }
}

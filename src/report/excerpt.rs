//! The part of a source for a snippet: the lines of its places, each cut to the available width.
//!
//! The time of the renderer grows with its text, for each snippet, and minified JSON has lines of megabytes. So this
//! module reads no farther from a place than it shows. The text is that of reports, with credentials masked.

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

use crate::report::FileLocation;

/// Replaces the part of a line that was cut.
const CUT: &str = "…";
/// Columns of [`CUT`].
const CUT_COLUMNS: usize = 1;
/// Longer indentation of a long line is left out, as the renderer does.
const MAX_INDENTATION: usize = 20;
/// The bytes of a line that are read for each column: characters have up to four bytes, and some have no width.
const MAX_BYTES_PER_COLUMN: usize = 8;
/// Places farther apart than this get separate excerpts, since the lines between them would be read.
const MAX_BYTES_BETWEEN: usize = 16 << 10;

/// The lines of one or two places.
#[derive(Debug)]
pub(super) struct Excerpt {
    /// The lines, without the end of the last; those between two places are empty unless they are shown.
    pub(super) text: String,
    /// The number of the first.
    pub(super) line: usize,
    /// Each place in this text, cut at the end of its first line: carets under a whole section would not show
    /// the field.
    pub(super) spans: Vec<Range<usize>>,
}

impl Excerpt {
    /// The line of one place.
    pub(super) fn of(place: &FileLocation<'_>, columns: usize) -> Self {
        let line = Line::around(place.text, place.start, place.end, columns);
        let mut excerpt = Self { text: String::new(), line: place.line, spans: Vec::new() };
        excerpt.push(&line, &[place]);
        excerpt
    }

    /// The lines of two places of one file; `None` when they are too far apart.
    pub(super) fn of_both(
        place: &FileLocation<'_>,
        other: &FileLocation<'_>,
        columns: usize,
    ) -> Option<Self> {
        let mut sorted = [place, other];
        sorted.sort_by_key(|place| place.start);
        let [first, last] = sorted;
        let mut excerpt = Self { text: String::new(), line: first.line, spans: Vec::new() };
        if first.line == last.line {
            let line = Line::around(first.text, first.start, last.end.max(first.end), columns);
            if last.start > line.start + line.shown.len() {
                return None;
            }
            excerpt.push(&line, &sorted);
        } else {
            let between = first.text.get(first.start..last.start)?;
            if between.len() > MAX_BYTES_BETWEEN {
                return None;
            }
            excerpt.push(&Line::around(first.text, first.start, first.end, columns), &[first]);
            excerpt.push_between(between, columns);
            excerpt.push(&Line::around(last.text, last.start, last.end, columns), &[last]);
        }
        if place.start > other.start {
            excerpt.spans.reverse();
        }
        Some(excerpt)
    }

    fn push(&mut self, line: &Line<'_>, places: &[&FileLocation<'_>]) {
        if line.cut_before {
            self.text.push_str(CUT);
        }
        let offset = self.text.len();
        self.text.push_str(line.shown);
        self.spans.extend(places.iter().map(|place| {
            let start = place.start.saturating_sub(line.start).min(line.shown.len());
            let end = place.end.saturating_sub(line.start).clamp(start, line.shown.len());
            let place = line.shown.get(start..end).unwrap_or_default();
            offset + start..offset + start + place.trim_end().len()
        }));
        if line.cut_behind {
            self.text.push_str(CUT);
        }
    }

    /// Adds a single line between two places; several lines are left out.
    fn push_between(&mut self, between: &str, columns: usize) {
        let breaks = between.bytes().filter(|byte| *byte == b'\n').count();
        self.text.push('\n');
        if breaks == 2 {
            let start = between.find('\n').map_or(0, |newline| newline + 1);
            let line = Line::around(between, start, start, columns);
            self.push(&line, &[]);
        }
        self.text.extend(std::iter::repeat_n('\n', breaks.saturating_sub(1)));
    }
}

/// A line, or the part of it around a place.
struct Line<'t> {
    shown: &'t str,
    /// Where in the text that part starts.
    start: usize,
    cut_before: bool,
    cut_behind: bool,
}

impl<'t> Line<'t> {
    /// As much of the line as fits; for a place that is too long, its beginning.
    fn around(text: &'t str, start: usize, end: usize, columns: usize) -> Self {
        let start = text.floor_char_boundary(start.min(text.len()));
        let (before, whole_before) = line_before(text, start, columns);
        let (behind, whole_behind) = line_behind(text, start, columns);
        let (width_before, width_behind) = (width(before), width(behind));
        if whole_before && whole_behind && width_before + width_behind <= columns {
            return Self::between(text, start, before, behind, (false, false));
        }
        let place = behind.get(..end.saturating_sub(start)).map_or(width_behind, width);
        let room = columns.saturating_sub(place.min(columns / 3 * 2));
        let rest = if whole_behind { width_behind.saturating_sub(place) } else { columns };
        let room_before = (room / 2).max(room.saturating_sub(rest));
        let indentation = width_before - width(before.trim_start());
        let fits = whole_before && indentation <= MAX_INDENTATION && width_before <= room_before;
        let before = if fits || before.is_empty() {
            before
        } else {
            suffix(before.trim_start(), room_before.saturating_sub(CUT_COLUMNS))
        };
        let cut_before = !(fits || width_before == 0);
        let room_behind = columns.saturating_sub(width(before) + usize::from(cut_before) * CUT_COLUMNS);
        let cut_behind = !(whole_behind && width_behind <= room_behind);
        let behind =
            if cut_behind { prefix(behind, room_behind.saturating_sub(CUT_COLUMNS)) } else { behind };
        Self::between(text, start, before, behind, (cut_before, cut_behind))
    }

    fn between(text: &'t str, at: usize, before: &str, behind: &str, cut: (bool, bool)) -> Self {
        let start = at - before.len();
        let shown = text.get(start..at + behind.len()).unwrap_or_default();
        Self { shown, start, cut_before: cut.0, cut_behind: cut.1 }
    }
}

/// The text before a place on its line, as far as it could be shown, and whether that is all of it.
fn line_before(text: &str, at: usize, columns: usize) -> (&str, bool) {
    let from = text.floor_char_boundary(at.saturating_sub(columns.saturating_mul(MAX_BYTES_PER_COLUMN)));
    let near = text.get(from..at).unwrap_or_default();
    let (line, mut whole) = match near.rfind('\n') {
        Some(newline) => (near.get(newline + 1..).unwrap_or_default(), true),
        None => (near, from == 0),
    };
    let line = if whole { line.trim_start_matches('\u{feff}') } else { line };
    let shown = suffix(line, columns);
    whole &= shown.len() == line.len();
    (shown, whole)
}

/// The text behind a place on its line, likewise.
fn line_behind(text: &str, at: usize, columns: usize) -> (&str, bool) {
    let to = text.ceil_char_boundary(at.saturating_add(columns.saturating_mul(MAX_BYTES_PER_COLUMN)));
    let near = text.get(at..to).unwrap_or_default();
    let (line, mut whole) = match near.find('\n') {
        Some(newline) => (near.get(..newline).unwrap_or_default(), true),
        None => (near, to == text.len()),
    };
    let line = if whole { line.trim_end_matches('\r') } else { line };
    let shown = prefix(line, columns);
    whole &= shown.len() == line.len();
    (shown, whole)
}

/// The end of a text, as much as fits; it does not begin with a combining mark.
fn suffix(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let beyond = text.char_indices().rev().find(|(_, c)| {
        taken += char_width(*c);
        taken > columns
    });
    match beyond {
        None => text,
        Some((at, c)) => {
            let rest = text.get(at + c.len_utf8()..).unwrap_or_default();
            rest.trim_start_matches(|c| char_width(c) == 0)
        }
    }
}

/// The beginning of a text, as much as fits.
fn prefix(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        taken += char_width(*c);
        taken > columns
    });
    beyond.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The columns of a character as the renderer shows it: a tab is four blanks; a control character, or one that
/// changes the direction of the text, is replaced by one character.
fn char_width(c: char) -> usize {
    match c {
        '\t' => 4,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => 1,
        _ => c.width().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(text: &'a str, what: &str) -> FileLocation<'a> {
        let start = text.find(what).expect("is in the text");
        let line = text[..start].matches('\n').count() + 1;
        FileLocation { file: "x", text, start, end: start + what.len(), line, column: 1 }
    }

    /// The marked texts, and the number of columns before each on its line.
    fn marks(excerpt: &Excerpt) -> Vec<(usize, &str)> {
        let before =
            |span: &Range<usize>| width(excerpt.text[..span.start].rsplit('\n').next().unwrap_or(""));
        excerpt.spans.iter().map(|span| (before(span), &excerpt.text[span.clone()])).collect()
    }

    #[test]
    fn cuts_a_line_around_its_place() {
        let (ab, cd, wide) = ("ab".repeat(40_000), "cd".repeat(40_000), "日".repeat(40_000));
        let indented = format!("{}key: one, {cd}", " ".repeat(40));
        for (text, what, shown, columns) in [
            ("{a: one, b: two, cd}", "one", "{a: one, b: two, cd}", 4),
            (&format!("{ab}one{cd}"), "one", "…babababonecdcdcdcd…", 8),
            (&format!("{{a: one{cd}"), "one", "{a: onecdcdcdcdcdcd…", 4),
            (&format!("{ab}, b: one}}"), "one", "…ababababab, b: one}", 16),
            (&format!("x\n{ab}one\r\n{cd}"), "one", "…ababababababababone", 17),
            (&format!("{wide}語!"), "語", "…日日日日日日日日語!", 17),
            (&indented, "one", "…key: one, cdcdcdcd…", 6),
        ] {
            let excerpt = Excerpt::of(&place(text, what), 20);
            assert_eq!((excerpt.text.as_str(), marks(&excerpt)), (shown, vec![(columns, what)]));
        }
    }

    #[test]
    fn shows_the_beginning_of_a_long_place() {
        let text = format!("{{abc: \"{}\"}}", "x".repeat(40_000));
        let excerpt = Excerpt::of(&FileLocation { end: text.len() - 1, ..place(&text, "\"") }, 20);
        assert_eq!(excerpt.text, "…c: \"xxxxxxxxxxxxxx…");
        assert_eq!(marks(&excerpt), [(4, "\"xxxxxxxxxxxxxx")]);
    }

    #[test]
    fn never_shows_more_columns_than_there_are() {
        let text = "a\t日e\u{301}🙂\u{200d}\u{202e}".repeat(40);
        for (start, what) in text.char_indices() {
            for columns in [9, 14, 60] {
                let end = start + what.len_utf8();
                let place = FileLocation { file: "x", text: &text, start, end, line: 1, column: 1 };
                let excerpt = Excerpt::of(&place, columns);
                assert!(width(&excerpt.text) <= columns, "{columns} at {start}: {}", excerpt.text);
                let marked = &excerpt.text[excerpt.spans[0].clone()];
                assert_eq!(marked, what.to_string().trim_end(), "{columns} at {start}: {}", excerpt.text);
            }
        }
    }

    #[test]
    fn shows_two_places_together_where_they_are_near() {
        let far = format!("{{a: 1, {} b: 2}}", "x".repeat(40_000));
        let lines = format!("a: 1\n{}b: 2", "c\n".repeat(40_000));
        for (text, shown) in [
            ("{a: 1, b: 2}", Some("{a: 1, b: 2}")),
            ("a: 1\nb: 2\n", Some("a: 1\nb: 2")),
            ("a: 1\r\nc: 3\r\nb: 2\r\n", Some("a: 1\nc: 3\nb: 2")),
            ("a: 1\nc: 3\nd: 4\nb: 2\n", Some("a: 1\n\n\nb: 2")),
            (&far, None),
            (&lines, None),
        ] {
            let (a, b) = (place(text, "a"), place(text, "b"));
            for (places, marked) in [((&a, &b), ["a", "b"]), ((&b, &a), ["b", "a"])] {
                let excerpt = Excerpt::of_both(places.0, places.1, 20);
                assert_eq!(excerpt.as_ref().map(|excerpt| excerpt.text.as_str()), shown);
                let found = excerpt.iter().flat_map(marks).map(|(_, what)| what);
                assert!(shown.is_none() || found.eq(marked), "{text}");
            }
        }
    }
}

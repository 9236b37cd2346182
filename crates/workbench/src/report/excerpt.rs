//! The part of a source for a snippet: the lines of its places. The renderer cuts lines to the available width.
//!
//! The time of the renderer grows with its text, for each snippet, and minified JSON has lines of megabytes. So this
//! module reads no farther from a place than could be shown. The text is that of reports, with credentials masked.

use std::ops::Range;

use crate::report::FileLocation;

/// The bytes before and behind a place that are given to the renderer: more than a terminal has columns.
const MAX_BYTES_AROUND: usize = 2 << 10;
/// Places farther apart than this get separate excerpts, since the lines between them would be read.
const MAX_BYTES_BETWEEN: usize = 16 << 10;

/// The lines of one or two places.
#[derive(Debug)]
pub(super) struct Excerpt<'t> {
    /// The text from the first to the last of them.
    pub(super) text: &'t str,
    /// The number of the first line.
    pub(super) line: usize,
    /// Each place in this text, cut at the end of its first line, since carets under a whole section would not show the
    /// field, and to what fits.
    pub(super) spans: Vec<Range<usize>>,
}

impl<'t> Excerpt<'t> {
    /// The lines of these places of one file; `None` when a snippet of `width` columns cannot show all of them.
    pub(super) fn of(places: &[&FileLocation<'t>], width: usize) -> Option<Self> {
        let first = places.iter().min_by_key(|place| place.start)?;
        let last = places.iter().max_by_key(|place| place.start)?;
        if first.text.is_empty() {
            return None;
        }
        let between = first.text.get(first.start..last.start)?;
        let is_near = if first.line == last.line {
            between.len() <= width / 2
        } else {
            between.len() <= MAX_BYTES_BETWEEN && first.column.max(last.column) <= width
        };
        if !is_near {
            return None;
        }
        let (text, from) = (first.text, first.start.saturating_sub(MAX_BYTES_AROUND));
        let before = text.get(text.floor_char_boundary(from)..first.start)?;
        let before = before.rsplit('\n').next().unwrap_or_default().trim_start_matches('\u{feff}');
        let to = text.ceil_char_boundary(last.start.saturating_add(MAX_BYTES_AROUND));
        let behind = text.get(last.start..to)?.lines().next().unwrap_or_default();
        let start = first.start - before.len();
        let text = text.get(start..last.start + behind.len())?;
        let span = |place: &&FileLocation<'_>| {
            let from = place.start - start;
            let stretch = text.get(from..(place.end - start).min(text.len())).unwrap_or_default();
            let line = stretch.lines().next().unwrap_or_default();
            from..from
                + line.get(..line.floor_char_boundary(width / 3 * 2)).unwrap_or_default().trim_end().len()
        };
        Some(Self { text, line: first.line, spans: places.iter().map(span).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(text: &'a str, what: &str) -> FileLocation<'a> {
        let start = text.find(what).expect("is in the text");
        let line = text[..start].matches('\n').count() + 1;
        FileLocation { file: "x", text, measured: text, start, end: start + what.len(), line, column: 1 }
    }

    #[test]
    fn reads_no_farther_than_could_be_shown() {
        let wide = "日".repeat(40_000);
        for text in [format!("{wide}one{wide}"), format!("x\n{wide}one\r\n{wide}"), format!("{{a: one{wide}")]
        {
            let excerpt = Excerpt::of(&[&place(&text, "one")], 80).expect("one place");
            assert_eq!(&excerpt.text[excerpt.spans[0].clone()], "one");
            assert!(excerpt.text.len() < 5_000 && !excerpt.text.contains('\n'), "{}", excerpt.text.len());
        }
    }

    #[test]
    fn shows_two_places_together_where_they_are_near() {
        let far = format!("{{a: 1, {} b: 2}}", "x".repeat(40_000));
        let lines = format!("a: 1\n{}b: 2", "c\n".repeat(40_000));
        for (text, shown) in [
            ("{a: 1, b: 2}", Some("{a: 1, b: 2}")),
            ("a: 1\nb: 2\n", Some("a: 1\nb: 2")),
            ("a: 1\r\nc: 3\r\nb: 2\r\n", Some("a: 1\r\nc: 3\r\nb: 2")),
            (&far, None),
            (&lines, None),
        ] {
            let (a, b) = (place(text, "a"), place(text, "b"));
            for (places, marked) in [([&a, &b], ["a", "b"]), ([&b, &a], ["b", "a"])] {
                let excerpt = Excerpt::of(&places, 40);
                assert_eq!(excerpt.as_ref().map(|excerpt| excerpt.text), shown);
                let found = excerpt.iter().flat_map(|it| it.spans.iter().map(|span| &it.text[span.clone()]));
                assert!(shown.is_none() || found.eq(marked), "{text}");
            }
        }
    }
}

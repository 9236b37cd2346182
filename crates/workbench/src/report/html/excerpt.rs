//! The source line of a finding. Credentials in it are masked, as in every report.

use maud::{Markup, html};

use crate::report::excerpt::Excerpt;
use crate::report::{FileLocation, plain};

/// The columns of a line that are shown around a place.
const WIDTH: usize = 200;

/// The characters before a place in a long line.
const BEFORE: usize = 100;

/// The line of a place, with the place marked.
pub(super) fn line(location: &FileLocation<'_>) -> Markup {
    let Some((number, [before, marked, behind])) = parts(location) else { return html! {} };
    html! {
        pre { code { (number) " | " (before) mark { (marked) } (behind) } }
    }
}

/// The number of the line; the text before the place, the place, and the text behind it.
fn parts(location: &FileLocation<'_>) -> Option<(usize, [String; 3])> {
    let Excerpt { text, line, spans } = Excerpt::of(&[location], WIDTH)?;
    let span = spans.first()?.clone();
    let (before, marked, behind) = (text.get(..span.start)?, text.get(span.clone())?, text.get(span.end..)?);
    let skipped = before.chars().count().saturating_sub(BEFORE);
    let start = before.char_indices().nth(skipped).map_or(before.len(), |(at, _)| at);
    let before = before.get(start..).unwrap_or_default();
    let before = if skipped > 0 { format!("…{before}") } else { before.to_owned() };
    let room = WIDTH.saturating_sub(before.chars().count() + marked.chars().count());
    let end = behind.char_indices().nth(room).map(|(at, _)| at);
    let behind =
        end.map_or_else(|| behind.to_owned(), |end| format!("{}…", behind.get(..end).unwrap_or_default()));
    Some((line, [&*before, marked, &*behind].map(|part| plain(part).into_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (usize, String) {
        let start = text.find("one").expect("is in the text");
        let location =
            FileLocation { file: "x", text, measured: text, start, end: start + 3, line: 2, column: 1 };
        let (number, parts) = parts(&location).expect("a line");
        (number, parts.join("|"))
    }

    #[test]
    fn marks_the_place_in_its_line() {
        assert_eq!(shown("a: 1\nb: one # x\nc: 3\n"), (2, "b: |one| # x".to_owned()));
        assert_eq!(shown("\tb:\u{1b}[ one\r\n"), (2, " b: [ |one|".to_owned()));
    }

    #[test]
    fn cuts_a_long_line_on_both_sides() {
        let (_, shown) = shown(&format!("{}one{}", "x".repeat(5_000), "日".repeat(5_000)));
        assert!(shown.starts_with("…xxx") && shown.ends_with("日…"), "{shown}");
        assert!(shown.chars().count() < WIDTH + 10, "{}", shown.chars().count());
    }
}

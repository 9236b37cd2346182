//! Comments to memgate: a source goes in, its comments come out, if one of them is to memgate. `ignore` of the workbench reads
//! what they ask for.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::source::{Source, Span};
use crate::yaml;

/// The beginning of a comment to memgate, behind the `#` and blanks.
pub const ADDRESS: &str = "memgate:";

/// A comment of a YAML text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// The place, from its `#` to the end of the line.
    pub span: Span,
    /// Whether its line holds nothing else.
    pub is_alone: bool,
}

/// All comments of a source, if one of them is to memgate; else none, as for nearly every source. A line inside a block
/// of text, such as a script in a ConfigMap, is not a comment. JSON has no comments.
pub fn comments(source: &Source) -> Vec<Comment> {
    let own = source.text();
    if !may_address(own) {
        return Vec::new();
    }
    let comment = |(start, end): (usize, usize)| {
        let text = own.get(start..end).unwrap_or_default();
        let line = own.get(source.line_start(start)..start).unwrap_or_default();
        Comment {
            span: source.span(start, start + text.trim_end().len()),
            is_alone: line.trim_start_matches('\u{feff}').trim().is_empty(),
        }
    };
    yaml::comments(&without_actions(own)).into_iter().map(comment).collect()
}

/// The text of a template with other text in place of its actions `{{ … }}`, byte for byte: blanks for those that have
/// their lines to themselves, else a word on the first line. So a template is YAML as far as its comments are concerned.
fn without_actions(text: &str) -> Cow<'_, str> {
    /// A comment, or all up to the first braces outside of quotes. Without its end a quote is a letter.
    const ACTION: &str = r#"\{\{(?:-?\s*/\*(?s:.*?)\*/(?s:.*?)|(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`|(?s:.))*?)\}\}"#;
    static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ACTION).ok());
    let (Some(any), true) = (&*ANY, text.contains("{{")) else { return text.into() };
    let (mut masked, mut at, mut is_blank) = (String::with_capacity(text.len()), 0, true);
    for action in any.find_iter(text) {
        let (before, behind) = (text.get(at..action.start()), text.get(action.end()..));
        let (before, behind) = (before.unwrap_or_default(), behind.unwrap_or_default());
        is_blank = match before.rsplit_once('\n') {
            Some((_, line)) => line.trim().is_empty(),
            None => is_blank && before.trim().is_empty(),
        };
        let next = behind.trim_start_matches([' ', '\t', '\r']);
        is_blank &= next.is_empty() || next.starts_with('\n') || next.starts_with("{{");
        let fill = if is_blank { ' ' } else { 'x' };
        let own = action.as_str();
        let (first, others) = own.split_at(own.find('\n').unwrap_or(own.len()));
        masked.push_str(before);
        masked.extend(first.bytes().map(|_| fill));
        masked.extend(others.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        at = action.end();
    }
    masked.push_str(text.get(at..).unwrap_or_default());
    masked.into()
}

/// Whether the text holds something like a comment to memgate. This is cheaper than parsing for comments.
fn may_address(text: &str) -> bool {
    text.match_indices(ADDRESS).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        before.trim_end_matches([' ', '\t']).ends_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(usize, bool)> {
        let source = Source::new("a.yaml", text);
        comments(&source).iter().map(|comment| (comment.span.line, comment.is_alone)).collect()
    }

    #[test]
    fn knows_comments_from_texts_that_look_like_them() {
        for (text, expected) in [
            ("# one\na: 1\n", vec![]),
            ("image: memgate:1\n# one\n", vec![]),
            ("# memgate: x\na: 1 # two\n", vec![(1, true), (2, false)]),
            ("\u{feff}#memgate: x\r\na: 1\r\n", vec![(1, true)]),
            ("a: |\n  # memgate: x\n  b\n# memgate: y\nb: 1\n", vec![(4, true)]),
            ("a: |\n  b\n  # memgate: x\nb: 1\n", vec![]),
            ("a: | # memgate: x\n  b\n", vec![(1, false)]),
            ("a: \"\n  # memgate: x\n  b\"\n", vec![]),
            ("a: 'x # memgate: x'\n", vec![]),
            ("a: [1, # memgate: x\n  # two\n  2]\n", vec![(1, false), (2, true)]),
            ("a: x# memgate: x\n", vec![]),
            ("{\"a\": \"# memgate: x\"}", vec![]),
            ("a: 1\n---\n# memgate: x\nb: 1\n...\n# three\n", vec![(3, true), (6, true)]),
            ("a: [\n---\n# memgate: x\nb: 1\n", vec![(3, true)]),
            ("{{- if .a }}\na:\n  # memgate: x\n  {{ .b }}: {{ .c }}\n{{- end }}\n", vec![(3, true)]),
            (
                "{{- if\n .a }}\na: \"{{ .ä }}\" # memgate: x\n{{ \n}} {{ end }}\n# memgate: x\n",
                vec![(3, false), (6, true)],
            ),
            ("{{/* # memgate: x */}}\na: 1\n", vec![]),
            ("a: {{ \"}} \\\" # memgate: x\" }}\n# memgate: x\n", vec![(2, true)]),
            ("a: {{ `}}\n# memgate: x\n` }}\n# memgate: x\n", vec![(4, true)]),
            ("a: {{/* }}\n# memgate: x\n*/}}\n# memgate: x\n", vec![(4, true)]),
            ("a: {{ it's }}\n# memgate: x\n", vec![(2, true)]),
            ("{{- if .a\n# memgate: x\n", vec![]),
            (
                "{{- end }} # of the stores\n---\nspec:\n  # memgate: x\n  backend: redis\n  x: {{ .Values.x }}\n",
                vec![(1, false), (4, true)],
            ),
            (
                "{{ .a }}: 1\nb: | # memgate: x\n  # memgate: x\n{{ .b }}\n# memgate: x\n",
                vec![(2, false), (5, true)],
            ),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }

    #[test]
    fn reads_many_comments_in_a_row() {
        let text = format!("a:\n{}  - 1\n", "  # memgate: x\n".repeat(1_000));
        assert_eq!(lines(&text).len(), 1_000);
    }

    #[test]
    fn ends_before_the_end_of_the_line() {
        let source = Source::new("a.yaml", "a: 1 # memgate: x \r\nb: 1\n");
        let comments = comments(&source);
        assert_eq!(comments.iter().map(|it| source.slice(it.span)).collect::<Vec<_>>(), ["# memgate: x"]);
    }
}

//! Templates of charts as an editor has them open: what of them stands as it is, is judged in part.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{Judge, Use};
use crate::origins::files::{Text, TextPatches};
use crate::plan::OpenFile;
use crate::repository::CHART_FILE;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;

/// The folder of a chart with its templates.
const TEMPLATES: &str = "templates";

impl Judge<'_> {
    /// Judges the open templates of charts. About a text in which more than the values is not known, nothing is said.
    pub(super) fn templates(&mut self) {
        let is_template = |file: &&OpenFile| {
            file.is_judged && is_in_chart(&file.path) && !self.plan.exclude.excludes_file(&file.path)
        };
        let open: Vec<_> = self.plan.open.iter().filter(is_template).collect();
        if open.is_empty() {
            return;
        }
        let read: BTreeSet<String> =
            self.inputs.sources.iter().map(|source| source.name().to_owned()).collect();
        for (file, text) in open.into_iter().filter_map(|file| Some((file, file.text.as_deref()?))) {
            let name = file.path.to_string_lossy();
            let Some(text) = filled_in(text).filter(|_| !read.contains(&*name)) else { continue };
            let source = Arc::new(Source::new(name, text));
            let values = values(&source, &mut Vec::new()).into_iter().map(Arc::new).collect();
            let text = Text { source, values, errors: Vec::new(), patches: TextPatches::default() };
            self.file(&text, &[Use { target: None, built: None }]);
        }
    }
}

fn is_in_chart(file: &Path) -> bool {
    let folders = file.ancestors().skip(1).filter(|folder| folder.ends_with(TEMPLATES));
    folders.filter_map(Path::parent).any(|chart| chart.join(CHART_FILE).is_file())
}

/// The text with variables in place of actions, which no rule judges, and blanks in place of lines that only hold actions and
/// of what `define` holds for other places. Each byte stays where it is. `None` if an action does not end, or is a part of a
/// text that a variable cannot be in.
fn filled_in(text: &str) -> Option<String> {
    let mut filled = text.as_bytes().to_vec();
    let (mut start, mut blocks) = (0, Blocks::default());
    while start < text.len() {
        let line = Line::read(text, start)?;
        for (action, form) in line.actions {
            blocks.add(text, &action);
            let form = if line.has_others { form } else { Form::Blanks };
            let last = action.len() - 1;
            for (number, byte) in filled.get_mut(action)?.iter_mut().enumerate() {
                *byte = match (&form, number) {
                    _ if *byte == b'\n' => b'\n',
                    (Form::Blanks, _) => b' ',
                    (_, 0) => b'$',
                    (Form::InText, 1) => b'{',
                    (Form::InText, _) if number == last => b'}',
                    _ => b'x',
                };
            }
        }
        start = line.end + 1;
    }
    for definition in blocks.definitions(text.len()) {
        let bytes = filled.get_mut(definition)?;
        bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(filled).ok()
}

/// The blocks of a template, from the actions in their order.
#[derive(Default)]
struct Blocks {
    /// How many are open.
    depth: usize,
    /// The open `define`: how many are open around it, and its start.
    definition: Option<(usize, usize)>,
    definitions: Vec<Range<usize>>,
}

impl Blocks {
    fn add(&mut self, text: &str, action: &Range<usize>) {
        let words =
            text.get(action.clone()).unwrap_or_default().trim_start_matches(['{', '-', ' ', '\t', '\n']);
        match words.split(|c: char| !c.is_ascii_alphabetic()).next() {
            Some("define") => {
                self.definition.get_or_insert((self.depth, action.start));
                self.depth += 1;
            }
            Some("if" | "range" | "with" | "block") => self.depth += 1,
            Some("end") => {
                self.depth = self.depth.saturating_sub(1);
                let ended = self.definition.take_if(|(around, _)| *around == self.depth);
                self.definitions.extend(ended.map(|(_, start)| start..action.end));
            }
            _ => {}
        }
    }

    /// The content of each `define`. One that does not end yet goes on to the end of the text.
    fn definitions(self, end: usize) -> impl Iterator<Item = Range<usize>> {
        self.definitions.into_iter().chain(self.definition.map(|(_, start)| start..end))
    }
}

/// The form of the text in place of an action.
enum Form {
    /// Nothing.
    Blanks,
    /// `${xx}`, which may be a part of a text.
    InText,
    /// `$xxxx`, the whole of a text between braces or brackets, in which a plain text has none.
    Whole,
}

/// A line, with those to which an action in it extends.
struct Line {
    end: usize,
    actions: Vec<(Range<usize>, Form)>,
    /// Whether it has more than actions.
    has_others: bool,
}

impl Line {
    fn read(text: &str, start: usize) -> Option<Self> {
        let end_from = |at: usize| Some(at + text.get(at..)?.find('\n').unwrap_or(text.len() - at));
        let mut line = Self { end: end_from(start)?, actions: Vec::new(), has_others: false };
        let (mut at, mut depth, mut quote, mut last) = (start, 0_usize, None, ':');
        while at < line.end {
            let rest = text.get(at..)?;
            if rest.starts_with("{{") {
                let close = at + rest.find("}}")? + 2;
                let form = if close > line.end {
                    line.end = end_from(close)?;
                    Form::Blanks
                } else if depth == 0 || quote.is_some() {
                    Form::InText
                } else {
                    let next = text.get(close..line.end)?.trim_start();
                    let is_whole =
                        ":,[".contains(last) && (next.is_empty() || next.starts_with([',', '}', ']']));
                    is_whole.then_some(Form::Whole)?
                };
                line.actions.push((at..close, form));
                (at, last) = (close, 'x');
                continue;
            }
            let c = rest.chars().next()?;
            at += c.len_utf8();
            match (quote, c) {
                (Some(open), _) => quote = Some(open).filter(|open| *open != c),
                (None, '"' | '\'') if ":,[{-".contains(last) => quote = Some(c),
                (None, '{' | '[') => depth += 1,
                (None, '}' | ']') => depth = depth.saturating_sub(1),
                (None, _) => {}
            }
            if !c.is_whitespace() {
                (line.has_others, last) = (true, c);
            }
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_become_variables_and_bytes_stay_in_their_places() {
        for (text, expected) in [
            ("a: {{ .x }}\n", Some("a: ${xxxxx}\n")),
            ("a: b-{{ .x }}-{{ .y }} # c\n", Some("a: b-${xxxxx}-${xxxxx} # c\n")),
            ("a:\n  {{- toYaml .x | nindent 2 }}\nb: 1", Some("a:\n                              \nb: 1")),
            ("a: \"{{ .x }}y\"", Some("a: \"${xxxxx}y\"")),
            (
                "a: {b: {{ .x }}, c: \"{{ .y }}\", d: [{{ .z }}]}",
                Some("a: {b: $xxxxxxx, c: \"${xxxxx}\", d: [$xxxxxxx]}"),
            ),
            ("a: {b: c-{{ .x }}}", None),
            ("a: {{ .x", None),
            ("{{/* \u{e4}\n b */}}\r\na: 1", Some("       \n       \r\na: 1")),
            ("a: it's {{ .x }}", Some("a: it's ${xxxxx}")),
            (
                "{{ define \"x\" }}\nb: {{ .b }}\n{{ if .c }}\nc: 1\n{{ end }}\nd: 1{{ end }}\na: 1",
                Some("                \n           \n           \n    \n         \n             \na: 1"),
            ),
            ("a: 1\n{{- define }}\nb: 1", Some("a: 1\n             \n    ")),
            ("", Some("")),
        ] {
            assert_eq!(filled_in(text).as_deref(), expected, "{text}");
            assert!(expected.is_none_or(|it| it.len() == text.len()), "{text}");
        }
    }
}

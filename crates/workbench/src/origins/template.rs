//! The text of a template as the tree of its keys: lines with an indentation, which actions `{{ … }}` fill in.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::action::{self, Action, Block, Dot, fits, scalar, unquoted};
use memgate_primitives::pointer::list_index;

/// Of so many documents that could be the one of an object, the best is found.
const MAX_COMPARED: usize = 16;
/// So deep a text is compared with an object.
const MAX_DEPTH: usize = 32;
/// How much a text that is another one speaks against a place.
const CONTRADICTION: i64 = 4;

/// A template.
#[derive(Debug, Default)]
pub(super) struct Template {
    entries: Vec<Entry>,
    documents: Vec<Document>,
    /// The documents by kind and name, each empty where an action says it.
    by_name: BTreeMap<(String, String), Vec<usize>>,
}

#[derive(Debug)]
struct Document {
    /// The entries at its top.
    top: Vec<usize>,
    /// The text of its name.
    name: String,
}

/// A key, an element of a list, or what an action inserts.
#[derive(Debug)]
pub(super) struct Entry {
    form: Form,
    /// The key and its value, or all of the line.
    pub(super) bytes: Range<usize>,
    /// The text behind the key or dash, without a comment.
    pub(super) value: String,
    /// What the dot is there.
    pub(super) dot: Dot,
    indent: usize,
    below: Vec<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    Key(String),
    Item,
    Inserted,
    Text,
}

/// The place to which tokens lead.
#[derive(Debug)]
pub(super) struct Found<'t> {
    /// The entry.
    pub(super) entry: &'t Entry,
    /// How many of the tokens lead to it, the rest leads into its value.
    pub(super) depth: usize,
}

impl Template {
    /// Reads a text.
    pub(super) fn new(text: &str) -> Self {
        let mut reader = Reader::default();
        let mut at = 0;
        while at < text.len() {
            at = reader.line(text, at);
        }
        reader.finish_document();
        reader.template
    }

    /// The document that became an object.
    pub(super) fn document_of(&self, object: &Value) -> Option<usize> {
        let text = |pointer| object.pointer(pointer).and_then(scalar).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let none = String::new;
        let of_kind = (kind.clone(), none());
        let keys = [(kind.clone(), name.clone()), of_kind.clone(), (none(), name), (none(), none())];
        let named = || keys.iter().filter_map(|key| self.by_name.get(key));
        // A name that is a map or a list may be written in many ways.
        let is_named = named().next().is_some();
        let others = self.by_name.range(of_kind..).take_while(|((own, _), _)| *own == kind && !is_named);
        let candidates = named().chain(others.map(|(_, all)| all)).flatten().take(MAX_COMPARED);
        let score = |document: &usize| {
            let Document { top, name } = self.documents.get(*document)?;
            let has_name = object.pointer("/metadata/name").and_then(|value| fits(name, value));
            let by_name = has_name.map_or(0, |fits| if fits { 1 } else { -1 });
            Some((by_name, self.likeness(top, object, MAX_DEPTH)))
        };
        candidates.copied().first_best(score)
    }

    /// The place to which a pointer's tokens lead in a document, or the nearest one above it.
    pub(super) fn find<'t>(
        &'t self,
        document: usize,
        tokens: &[String],
        object: &Value,
    ) -> Option<Found<'t>> {
        let top = &self.documents.get(document)?.top;
        let named = |name: &str| top.iter().copied().find(|it| self.is_key(*it, name));
        let start = named("kind").or_else(|| top.first().copied())?;
        let (mut found, mut depth, mut below, mut value) = (start, 0, top, Some(object));
        for (token, number) in tokens.iter().zip(1..) {
            value = value.and_then(|value| member(value, token));
            match self.below(below, token, value) {
                Some(next) if self.entry(next).is_some_and(|it| it.form == Form::Inserted) => {
                    (found, depth) = (next, number - 1);
                    break;
                }
                Some(next) => (found, depth) = (next, number),
                None => break,
            }
            below = &self.entry(found)?.below;
        }
        Some(Found { entry: self.entry(found)?, depth })
    }

    fn entry(&self, number: usize) -> Option<&Entry> {
        self.entries.get(number)
    }

    fn is_key(&self, number: usize, name: &str) -> bool {
        self.entry(number).is_some_and(|entry| matches!(&entry.form, Form::Key(key) if key == name))
    }

    /// The entry of a member among others: of several the one whose text fits the value best, else what an action inserts.
    fn below(&self, entries: &[usize], token: &str, value: Option<&Value>) -> Option<usize> {
        let of = |form: fn(&Form) -> bool| {
            entries.iter().copied().filter(move |it| self.entry(*it).is_some_and(|it| form(&it.form)))
        };
        let likeness = |number: &usize| value.map_or(0, |value| self.own_likeness(*number, value, MAX_DEPTH));
        let named = entries.iter().copied().filter(|it| self.is_key(*it, token));
        let named = named.first_best(likeness);
        let element = || {
            let index = list_index(token)?;
            let items: Vec<usize> = of(|form| *form == Form::Item).collect();
            let best = items.iter().map(likeness).max()?;
            let nth = items.get(index).copied().filter(|it| likeness(it) == best);
            nth.or_else(|| items.iter().copied().find(|it| likeness(it) == best))
        };
        let computed = || {
            let fits = |it: &usize| match self.entry(*it).map(|it| &it.form) {
                Some(Form::Key(key)) => key.contains("{{") && fits(key, &Value::from(token)) != Some(false),
                _ => false,
            };
            entries.iter().copied().find(fits)
        };
        named.or_else(element).or_else(computed).or_else(|| of(|form| *form == Form::Inserted).next())
    }

    /// How well entries fit a map or list.
    fn likeness(&self, entries: &[usize], value: &Value, depth: usize) -> i64 {
        let Some(deeper) = depth.checked_sub(1) else { return 0 };
        let elements = value.as_array().map_or(&[][..], Vec::as_slice).iter();
        let items = entries.iter().filter(|it| self.entry(**it).is_some_and(|it| it.form == Form::Item));
        let of_items = if items.clone().count() == elements.len() {
            items.zip(elements).map(|(item, element)| self.own_likeness(*item, element, deeper)).sum()
        } else {
            0
        };
        let of_key = |number: &usize| match self.entry(*number).map(|entry| &entry.form) {
            Some(Form::Key(key)) if !key.contains("{{") => {
                value.get(key.as_str()).map_or(-1, |value| self.own_likeness(*number, value, deeper))
            }
            _ => 0,
        };
        of_items + entries.iter().map(of_key).sum::<i64>()
    }

    /// How well an entry and what is below it fit a value.
    fn own_likeness(&self, number: usize, value: &Value, depth: usize) -> i64 {
        let Some(entry) = self.entry(number) else { return 0 };
        let own = match fits(&entry.value, value) {
            Some(true) => 1,
            Some(false) => -CONTRADICTION,
            None => 0,
        };
        own + self.likeness(&entry.below, value, depth)
    }
}

/// A member of a map or list.
pub(super) fn member<'v>(value: &'v Value, token: &str) -> Option<&'v Value> {
    match value {
        Value::Array(elements) => elements.get(list_index(token)?),
        _ => value.get(token),
    }
}

trait FirstBest: Iterator<Item = usize> + Sized {
    /// The first of those with the highest score, which only several have.
    fn first_best<S: PartialOrd>(mut self, score: impl Fn(&usize) -> S) -> Option<usize> {
        let first = self.next()?;
        let Some(second) = self.next() else { return Some(first) };
        let better = |(known, best), it| {
            let score = score(&it);
            if score > known { (score, it) } else { (known, best) }
        };
        Some(std::iter::once(second).chain(self).fold((score(&first), first), better).1)
    }
}

impl<I: Iterator<Item = usize>> FirstBest for I {}

/// Reads a template line by line.
#[derive(Debug, Default)]
struct Reader {
    template: Template,
    /// The top of the current document.
    top: Vec<usize>,
    /// The entries around the next line, from the outside in.
    around: Vec<usize>,
    /// The blocks around it, each with the dot outside of it and whether its text stands elsewhere.
    blocks: Vec<(Dot, bool)>,
    dot: Option<Dot>,
    /// The indentation of the key whose value is a text of several lines.
    text_of: Option<usize>,
}

impl Reader {
    /// Reads a line, with the further lines of its actions. Returns the first byte behind it.
    fn line(&mut self, text: &str, start: usize) -> usize {
        let whole = text.get(start..).unwrap_or_default();
        let indent = whole.len() - whole.trim_start_matches(' ').len();
        let (mut at, mut end) = (indent, line_end(whole, 0));
        // Actions that print nothing may stand before the content.
        let printed = loop {
            let Some(length) = action_at(whole, at) else { break None };
            end = end.max(line_end(whole, at + length));
            match action::read(whole.get(at..at + length).unwrap_or_default()) {
                Action::Print(expression) => break Some(expression),
                action => self.act(action),
            }
            let behind = whole.get(at + length..end).unwrap_or_default();
            at += length + (behind.len() - behind.trim_start().len());
        };
        let mut seen = at;
        while let Some(next) = whole.get(seen..end).and_then(|rest| rest.find("{{")) {
            seen += next + action_at(whole, seen + next).unwrap_or(end);
            end = end.max(line_end(whole, seen));
        }
        let line = whole.get(at..end).unwrap_or_default().trim_end();
        self.content(line, start + at, indent, printed);
        self.act_behind(line);
        start + end + 1
    }

    /// Follows the actions behind the beginning of a line.
    fn act_behind(&mut self, line: &str) {
        let mut rest = line;
        while let Some((from, to)) = action::find(rest) {
            self.act(action::read(rest.get(from..to).unwrap_or_default()));
            rest = rest.get(to..).unwrap_or_default();
        }
    }

    fn act(&mut self, action: Action<'_>) {
        let dot = self.dot.clone().unwrap_or(Dot::Root);
        match action {
            Action::Begin(block) => {
                let (inner, is_defined) = match block {
                    Block::If => (dot.clone(), false),
                    Block::With(expression) => {
                        let path = action::paths(expression, &dot).into_iter().next();
                        (path.map_or(Dot::Unknown, Dot::Values), false)
                    }
                    Block::Other { is_defined } => (Dot::Unknown, is_defined),
                };
                self.blocks.push((dot, is_defined));
                self.dot = Some(inner);
            }
            Action::Else => self.dot = self.blocks.last().map(|(dot, _)| dot.clone()),
            Action::End => self.dot = self.blocks.pop().map(|(dot, _)| dot),
            Action::Silent | Action::Print(_) => {}
        }
    }

    /// Adds what a line says.
    fn content(&mut self, line: &str, start: usize, indent: usize, printed: Option<&str>) {
        if line.is_empty() || line.starts_with('#') || self.blocks.iter().any(|(_, is_defined)| *is_defined) {
            return;
        }
        let key = key_of(line);
        let inserted = printed.filter(|_| key.is_none());
        let indent = inserted.and_then(action::indent).unwrap_or(indent);
        if self.text_of.is_some_and(|key| indent > key) {
            return;
        }
        self.text_of = None;
        if indent == 0 && (line == "---" || line.starts_with("--- ")) {
            return self.finish_document();
        }
        let line = without_comment(line);
        let (mut at, mut key) = (0, key);
        for _ in 0..MAX_DEPTH {
            let rest = line.get(at..).unwrap_or_default();
            let behind = rest.strip_prefix('-').filter(|it| it.is_empty() || it.starts_with(' '));
            let Some(behind) = behind else { break };
            let inner = behind.trim_start();
            key = key_of(inner);
            let is_scalar = key.is_none() && !inner.starts_with("- ");
            let value = if is_scalar { inner } else { "" };
            self.add(Form::Item, start + at..start + line.len(), value, indent + at);
            if is_scalar {
                return;
            }
            at = line.len() - inner.len();
        }
        let (line, start, indent) = (line.get(at..).unwrap_or_default(), start + at, indent + at);
        let bytes = start..start + line.len();
        match key {
            Some((name, value)) => {
                self.add(Form::Key(unquoted(name).to_owned()), bytes, without_comment(value), indent);
            }
            None if inserted.is_some() => self.add(Form::Inserted, bytes, line, indent),
            None => self.add(Form::Text, bytes, line, indent),
        }
    }

    fn add(&mut self, form: Form, bytes: Range<usize>, value: &str, indent: usize) {
        let is_item = form == Form::Item;
        let entries = &mut self.template.entries;
        while let Some(last) = self.around.last().and_then(|last| entries.get(*last)) {
            let holds =
                last.indent < indent || last.indent == indent && is_item && matches!(last.form, Form::Key(_));
            if holds {
                break;
            }
            self.around.pop();
        }
        let number = entries.len();
        match self.around.last().and_then(|last| entries.get_mut(*last)) {
            Some(holder) => holder.below.push(number),
            None => self.top.push(number),
        }
        if value.starts_with(['|', '>']) {
            self.text_of = Some(indent);
        }
        let dot = self.dot.clone().unwrap_or(Dot::Root);
        entries.push(Entry { form, bytes, value: value.to_owned(), dot, indent, below: Vec::new() });
        self.around.push(number);
    }

    fn finish_document(&mut self) {
        self.around.clear();
        let top = std::mem::take(&mut self.top);
        if top.is_empty() {
            return;
        }
        let entries = &self.template.entries;
        let named = |among: &[usize], name: &str| {
            among
                .iter()
                .filter_map(|it| entries.get(*it))
                .find(|it| matches!(&it.form, Form::Key(key) if key == name))
        };
        let metadata = named(&top, "metadata");
        let name = metadata.and_then(|metadata| named(&metadata.below, "name"));
        let name = match (name, metadata) {
            (Some(name), _) => name.value.clone(),
            (None, Some(metadata)) => name_in_flow(&metadata.value).unwrap_or_default().to_owned(),
            (None, None) => String::new(),
        };
        let kind = named(&top, "kind").map_or("", |kind| &kind.value);
        let static_text = |text: &str| if text.contains("{{") { "" } else { unquoted(text) }.to_owned();
        let key = (static_text(kind), static_text(&name));
        let number = self.template.documents.len();
        self.template.by_name.entry(key).or_default().push(number);
        self.template.documents.push(Document { top, name });
    }
}

/// The name in a map on one line: `{name: a, namespace: b}`.
fn name_in_flow(map: &str) -> Option<&str> {
    let is_key =
        |rest: &str| rest.starts_with("name:") || rest.starts_with(",name:") || rest.starts_with(" name:");
    let map = map.strip_prefix('{').filter(|map| !map.starts_with('{'))?;
    let (_, behind) = map.get(first(map, is_key)?..)?.split_once(':')?;
    let end = first(behind, |rest| rest.starts_with([',', '}'])).unwrap_or(behind.len());
    behind.get(..end).map(str::trim)
}

fn line_end(text: &str, from: usize) -> usize {
    text.get(from..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| from + at)
}

/// The length of the action that starts at a byte.
fn action_at(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..).filter(|rest| rest.starts_with("{{"))?;
    action::find(rest).map(|(_, end)| end)
}

/// The key at the beginning of a line, and the text behind its colon.
fn key_of(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(['[', '#']) || line.starts_with('{') && !line.starts_with("{{") {
        return None;
    }
    let is_colon = |rest: &str| rest.starts_with(": ") || rest.starts_with(":\t") || rest == ":";
    let colon = first(line, |rest| is_colon(rest) || rest.starts_with(" #"))?;
    let (name, rest) = line.split_at(colon);
    let value = rest.strip_prefix(':')?;
    Some((name.trim_end(), value.trim()))
}

/// A text without the comment behind it.
fn without_comment(text: &str) -> &str {
    let end = first(text, |rest| rest.starts_with(" #"));
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).trim_end()
}

/// The first place of a line, outside of actions and of a text in quotes at its beginning, with a rest of this kind.
fn first(line: &str, is_it: impl Fn(&str) -> bool) -> Option<usize> {
    let (mut at, mut quote) = (0, None);
    while let Some(c) = line.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = line.get(at..)?;
        let after_action = action_at(line, at);
        if after_action.is_none() {
            match quote {
                None if at == 0 && matches!(c, '"' | '\'') => quote = Some(c),
                Some(open) if open == c => quote = None,
                None if is_it(rest) => return Some(at),
                _ => {}
            }
        }
        at += after_action.unwrap_or_else(|| c.len_utf8());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The line of a template at which a field of an object stands.
    fn line(text: &str, object: &Value, pointer: &str) -> Option<usize> {
        let template = Template::new(text);
        let document = template.document_of(object)?;
        let tokens: Vec<String> =
            memgate_primitives::pointer::tokens(pointer).map(std::borrow::Cow::into_owned).collect();
        let found = template.find(document, &tokens, object)?;
        Some(1 + text.get(..found.entry.bytes.start)?.matches('\n').count())
    }

    /// A line is not as deep as it has dashes.
    #[test]
    fn reads_a_line_of_very_many_dashes() {
        let template = Template::new(&format!("kind: A\nlist:\n{}\n", "- ".repeat(100_000)));
        assert_eq!(template.entries.len(), 2 + MAX_DEPTH + 1);
    }

    const TEXT: &str = r#"{{- /* a comment
of two lines */ -}}
{{- if .Values.on }}
apiVersion: v1
kind: A
metadata:
  name: {{ .Release.Name }}-one   # a comment
  labels: {{- include "c.labels" . | nindent 4 }}
spec:
  {{- if eq .Values.backend "redis" }}
  backend: redis
  {{- else }}
  backend: "vector"
  {{- end }}
  text: |
    spec:
    size: 1
  {{- with .Values.redis }}
  redis:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  list:
  - name: a
    value: {{ .Values.a }}
  {{- if .Values.b }}
  - name: b
    value: "x: {{ .Values.b }}"
  {{- end }}
  flow: {a: {b: 1}}
  "quoted": 'x'
---
apiVersion: v1
kind: A
metadata:
  name: {{ .Release.Name }}-two
{{- range .Values.all }}
---
apiVersion: v1
kind: B
metadata: {namespace: y, name: {{ .x }}-x}
spec:
  a: {{ .a }}
{{- end }}
---
apiVersion: v1
kind: B
metadata: {name: y}
spec: {{ include "b" . }}
{{- end }}
"#;

    #[test]
    fn finds_the_line_of_a_field() {
        let one = json!({
            "apiVersion": "v1", "kind": "A", "metadata": {"name": "r-one", "labels": {"l": "m"}},
            "spec": {
                "backend": "vector", "text": "t", "size": 1, "redis": {"url": "u"}, "quoted": "x",
                "list": [{"name": "b", "value": "x: y"}], "flow": {"a": {"b": 1}},
            },
        });
        let two = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "r-two"}});
        let looped = json!({"apiVersion": "v1", "kind": "B", "metadata": {"name": "1-x"}, "spec": {"a": 1}});
        let flow = json!({"apiVersion": "v1", "kind": "B", "metadata": {"name": "y"}, "spec": {"a": 1}});
        for (object, pointer, expected) in [
            (&one, "", 5),
            (&one, "/metadata/name", 7),
            (&one, "/metadata/labels/l", 8),
            (&one, "/spec/backend", 13),
            (&one, "/spec/text", 15),
            (&one, "/spec/size", 9),
            (&one, "/spec/redis", 19),
            (&one, "/spec/redis/url", 20),
            (&one, "/spec/list/0/value", 27),
            (&one, "/spec/flow/a/b", 29),
            (&one, "/spec/quoted", 30),
            (&two, "", 33),
            (&two, "/metadata/name", 35),
            (&looped, "/spec/a", 42),
            (&looped, "/metadata/name", 40),
            (&flow, "/spec/a", 48),
        ] {
            assert_eq!(line(TEXT, object, pointer), Some(expected), "{pointer}");
        }
        assert_eq!(line(TEXT, &json!({"kind": "C", "metadata": {"name": "x"}}), ""), None);
    }

    #[test]
    fn reads_what_is_not_yaml() {
        let object = json!({"kind": "A", "metadata": {"name": "x"}, "spec": [[1]]});
        for text in [
            "",
            "\n",
            "{{",
            "{{ a\nb",
            "kind: A\n{{ include \"x\" . }}",
            "kind: A\n - - 1\n-\n\t- x\n: a\nspec: é# {{/*",
            "---\n---",
        ] {
            let _ = line(text, &object, "/spec/0/0");
        }
        assert_eq!(line("{{ include \"c.all\" . }}\n", &object, "/spec"), Some(1));
    }

    #[test]
    fn reads_very_many_documents_and_very_deep_ones() {
        /// So many that comparing each with each would take minutes.
        const VERY_MANY: usize = 5_000;
        let text = "---\nkind: A\nmetadata:\n  name: {{ .x }}\nspec: 1\n".repeat(VERY_MANY);
        let template = Template::new(&text);
        for number in 0..VERY_MANY {
            let object = json!({"kind": "A", "metadata": {"name": number.to_string()}});
            assert_eq!(template.document_of(&object), Some(0));
        }
        let deep: String = (0..2000).map(|depth| " ".repeat(depth) + "a:\n").collect();
        assert_eq!(line(&deep, &json!({"a": {}}), "/a/a"), Some(2));
    }
}

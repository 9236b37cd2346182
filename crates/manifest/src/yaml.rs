//! Parses YAML text into an [`Outline`], and finds its comments. Only this module uses the YAML parser. `value` says what
//! scalars and merge keys mean.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use granit_parser::{
    ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span as Range, StructureStyle, options,
};

use crate::error::SyntaxError;
use crate::outline::{Form, MAX_DEPTH, Node, NodeId, NodeKind, Outline, ScalarText, Style, Tag, TextPart};
use crate::source::Source;

/// How many errors of one source are reported. A text with more is hardly a manifest.
pub(super) const MAX_ERRORS: usize = 20;

/// Parses a part of a source. An error ends its document; parsing goes on behind the next `---`.
pub(super) fn read(source: &Arc<Source>, part: TextPart) -> Outline {
    let mut builder = OutlineBuilder::new(source, part);
    builder.run();
    builder.outline
}

/// The bytes of each comment, from its `#` to the end of its line. Documents that are not YAML are skipped. This is a
/// parse of its own: outlines are made without comments, since hardly any text has a comment to memgate.
pub(super) fn comments(text: &str) -> Vec<(usize, usize)> {
    let options = options! {
        emit_comments: true,
        // Any number of comments in a row.
        max_buffered_comment_events: text.len(),
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let (mut comments, mut errors) = (Vec::new(), 0);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((Event::Comment(..), range)) => comments.push(bytes(range)),
            Ok(_) => {}
            Err(_) => {
                errors += 1;
                if errors >= MAX_ERRORS || !parser.proceed_next_document().unwrap_or(false) {
                    break;
                }
            }
        }
    }
    comments
}

struct OutlineBuilder<'s> {
    source: &'s Arc<Source>,
    /// The parser counts bytes from the start of the part, an outline from the start of the source.
    part: TextPart,
    outline: Outline,
    errors: usize,
    open: Vec<OpenCollection>,
    /// The nodes with anchors in this document, by the parser's numbers.
    anchors: BTreeMap<usize, NodeId>,
    /// The end of the event before.
    cursor: usize,
    /// The node that was begun last, for the anchor event that follows it.
    last: Option<NodeId>,
}

/// A collection that has not ended yet.
struct OpenCollection {
    id: NodeId,
    /// The key that awaits its value.
    key: Option<NodeId>,
}

impl<'s> OutlineBuilder<'s> {
    fn new(source: &'s Arc<Source>, part: TextPart) -> Self {
        Self {
            source,
            part,
            outline: Outline::default(),
            errors: 0,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            cursor: part.start(),
            last: None,
        }
    }

    fn run(&mut self) {
        let text = self.source.text().get(self.part.bytes()).unwrap_or_default();
        let mut parser = Parser::new_from_str_with_options(text, parser_options());
        while let Some(event) = parser.next_event() {
            let error = match event {
                Ok((event, range)) => match self.handle(event, range) {
                    Ok(()) => continue,
                    Err(error) => *error,
                },
                Err(error) => explain(self.source, self.part, self.cursor, &error),
            };
            self.abandon(error);
            if self.errors >= MAX_ERRORS || !parser.proceed_next_document().unwrap_or(false) {
                return;
            }
        }
    }

    fn handle(&mut self, event: Event<'_>, range: Range) -> Result<(), Box<SyntaxError>> {
        let (start, end) = bytes(range);
        let (start, end) = (self.part.start() + start, self.part.start() + end);
        let known = |tag: Option<Cow<'_, granit_parser::Tag>>| tag.map_or(Tag::None, |tag| known_tag(&tag));
        match event {
            Event::DocumentStart(..) => {
                self.open.clear();
                self.anchors.clear();
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(&text, style, start, end);
                self.add(Node { tag: known(tag), ..node }, anchor, range)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                let kind = NodeKind::List(form(style), Vec::new());
                self.enter(Node { start, content: start, end, tag: known(tag), kind }, anchor, range)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.check_indentation(style, start)?;
                let kind = NodeKind::Map(form(style), Vec::new());
                self.enter(Node { start, content: start, end, tag: known(tag), kind }, anchor, range)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(end),
            Event::Alias(anchor) => self.alias(anchor, start, end, range)?,
            Event::Anchor(..) => {
                if let Some(node) = self.last.and_then(|id| self.outline.node_mut(id)) {
                    node.start = node.start.min(start);
                }
                return Ok(());
            }
            _ => {}
        }
        self.cursor = end;
        Ok(())
    }

    /// Adds a node as root, list element, key or value, whichever is due.
    fn add(&mut self, mut node: Node, anchor: usize, range: Range) -> Result<NodeId, Box<SyntaxError>> {
        if let Some(tag) = range.tag_start.and_then(|tag| tag.byte_offset()) {
            node.start = node.start.min(self.part.start() + tag);
        }
        let (start, end) = (node.start, node.end);
        let id = self.outline.push(node);
        self.last = Some(id);
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        let Some(open) = self.open.last_mut() else {
            self.outline.roots.push(Ok(id));
            return Ok(id);
        };
        match (self.outline.node_mut(open.id).map(|node| &mut node.kind), open.key.take()) {
            (Some(NodeKind::List(_, items)), _) => items.push(id),
            (Some(NodeKind::Map(_, entries)), Some(key)) => entries.push((key, id)),
            (Some(NodeKind::Map(..)), None) => open.key = Some(id),
            _ => return Err(Box::new(self.error(start, end, "this cannot be read as YAML"))),
        }
        Ok(id)
    }

    fn enter(&mut self, node: Node, anchor: usize, range: Range) -> Result<(), Box<SyntaxError>> {
        let (start, end) = (node.start, node.end);
        let id = self.add(node, anchor, range)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(SyntaxError::too_deep(self.source, self.source.span(start, end), MAX_DEPTH).into());
        }
        self.open.push(OpenCollection { id, key: None });
        Ok(())
    }

    /// Ends the innermost collection: at its bracket, or where the last thing in it ends.
    fn leave(&mut self, end: usize) {
        let Some(OpenCollection { id, .. }) = self.open.pop() else { return };
        let node = self.outline.node(id);
        let end = match &node.kind {
            NodeKind::List(Form::Block, items) => items.last().map(|item| self.outline.node(*item).end),
            NodeKind::Map(Form::Block, entries) => {
                let last = entries.last();
                last.map(|(key, value)| self.outline.node(*value).end.max(self.outline.node(*key).end))
            }
            _ => Some(end),
        };
        if let (Some(end), Some(node)) = (end, self.outline.node_mut(id)) {
            node.end = end;
        }
    }

    fn alias(
        &mut self,
        anchor: usize,
        start: usize,
        end: usize,
        range: Range,
    ) -> Result<(), Box<SyntaxError>> {
        let Some(target) = self.anchors.get(&anchor).copied() else {
            return Err(Box::new(self.error(start, end, "this alias has no anchor")));
        };
        if self.open.iter().any(|open| open.id == target) {
            return Err(Box::new(self.error(start, end, "this alias stands inside what it stands for")));
        }
        let node = Node { start, content: start, end, tag: Tag::None, kind: NodeKind::Alias(target) };
        self.add(node, 0, range).map(|_| ())
    }

    fn scalar(&self, text: &str, style: ScalarStyle, start: usize, end: usize) -> Node {
        let (style, inset) = match style {
            ScalarStyle::Plain => (Style::Plain, 0),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => (Style::Quoted, 1),
            ScalarStyle::Literal | ScalarStyle::Folded => return self.block_scalar(text, start, end),
        };
        let (start, end) = if start == end {
            (self.empty_scalar_position(start), self.empty_scalar_position(start))
        } else {
            (start, end)
        };
        let (from, to) = (start + inset, end.saturating_sub(inset));
        let same = start == end || self.source.text().get(from..to) == Some(text);
        let text = if same { ScalarText::Slice(from, to) } else { ScalarText::Owned(text.into()) };
        Node { start, content: start, end, tag: Tag::None, kind: NodeKind::Scalar(style, text) }
    }

    /// The place of an empty scalar: behind the colon of its key, or behind its dash. The parser puts
    /// it before the colon, or before the next token when there is no colon.
    fn empty_scalar_position(&self, at: usize) -> usize {
        let text = self.source.text();
        let awaited = self.open.last().is_some_and(|open| open.key.is_some());
        let between = text.get(self.cursor..at).unwrap_or_default();
        let lost = awaited && between.ends_with(char::is_whitespace) && !between.contains(':');
        let at = if lost { self.cursor } else { at };
        let rest = text.get(at..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let colon = awaited && !text.get(..at).is_some_and(|before| before.ends_with(':'));
        if colon && rest.trim_start_matches(' ').starts_with(':') { at + blanks + 1 } else { at }
    }

    /// A block scalar. The parser's range lacks the header and includes the blank lines behind the text.
    fn block_scalar(&self, text: &str, start: usize, end: usize) -> Node {
        let source = self.source.text();
        let header = block_header(source, self.cursor).unwrap_or(start);
        let header_line = source.get(header..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let body = source.get(header..end).unwrap_or_default();
        let keeps = header_line.split('#').next().is_some_and(|indicators| indicators.contains('+'));
        let kept = if keeps { body.strip_suffix('\n').unwrap_or(body) } else { body.trim_end() };
        let end = header + kept.len().max(header_line.len());
        let kind = NodeKind::Scalar(Style::Block, ScalarText::Owned(text.into()));
        Node { start: header, content: header, end, tag: Tag::None, kind }
    }

    /// Refuses a tab in the indentation. This parser accepts some that libyaml, and with it kubectl, refuses.
    fn check_indentation(&self, style: StructureStyle, start: usize) -> Result<(), Box<SyntaxError>> {
        if style == StructureStyle::Flow {
            return Ok(());
        }
        let line = self.source.line_start(start);
        match self.source.text().get(line..start).and_then(|indentation| indentation.find('\t')) {
            None => Ok(()),
            Some(tab) => Err(Box::new(with_tab_help(self.error(line + tab, line + tab + 1, "")))),
        }
    }

    /// Replaces the document that is being read with its error.
    fn abandon(&mut self, error: SyntaxError) {
        let inside = !self.open.is_empty();
        self.open.clear();
        self.errors += 1;
        match self.outline.roots.last_mut() {
            Some(root) if inside => *root = Err(error),
            _ => self.outline.roots.push(Err(error)),
        }
    }

    fn error(&self, start: usize, end: usize, message: &str) -> SyntaxError {
        SyntaxError::new(self.source, self.source.span(start, end), message)
    }
}

fn parser_options() -> Options {
    options! {
        emit_comments: false,
        emit_anchor_events: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    }
}

fn bytes(range: Range) -> (usize, usize) {
    let start = range.start.byte_offset().unwrap_or_default();
    let end = range.end.byte_offset().unwrap_or_default();
    (start, end.max(start))
}

fn form(style: StructureStyle) -> Form {
    match style {
        StructureStyle::Block => Form::Block,
        StructureStyle::Flow => Form::Flow,
    }
}

fn known_tag(tag: &granit_parser::Tag) -> Tag {
    let name = tag.suffix_in_namespace("tag:yaml.org,2002:").unwrap_or(Cow::Borrowed(""));
    match &*name {
        "null" => Tag::Null,
        "bool" => Tag::Bool,
        "int" => Tag::Int,
        "float" => Tag::Float,
        "binary" => Tag::Binary,
        "merge" => Tag::Merge,
        _ => Tag::Text,
    }
}

/// The `|` or `>` behind byte `from`, past indicators, anchors, tags, comments and blanks.
fn block_header(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        at += match first {
            '|' | '>' => return Some(at),
            '#' => rest.find('\n')?,
            '&' | '!' => rest.find(char::is_whitespace)?,
            _ => first.len_utf8(),
        };
    }
}

/// The error of the parser about a part, with a message of our own. `cursor` is the byte behind the last event.
fn explain(source: &Arc<Source>, part: TextPart, cursor: usize, scan_error: &ScanError) -> SyntaxError {
    let text = source.text();
    let at = (part.start() + scan_error.marker().byte_offset().unwrap_or_default()).min(text.len());
    let error = SyntaxError::new(source, source.span(at, at + 1), scan_error.info());
    match scan_error.kind() {
        ErrorKind::RecursionLimitExceeded => SyntaxError::too_deep(source, error.span, MAX_DEPTH),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => {
            let line = source.line_start(at);
            let tab = text.get(line..).and_then(|rest| rest.find('\t')).map_or(at, |tab| line + tab);
            with_tab_help(SyntaxError { span: source.span(tab, tab + 1), ..error })
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => unclosed_quote(source, cursor, error),
        ErrorKind::UnknownAnchor => error.with_message("this alias has no anchor before it in its document"),
        ErrorKind::UnexpectedCharacter { character } => error
            .with_message(format!("a value cannot start with {character:?} without quotes"))
            .help("put it in quotes"),
        _ if let Some(open) = unclosed(text, part.start(), at) => {
            let error = SyntaxError { span: source.span(open, open + 1), ..error };
            error
                .with_message("this bracket is not closed")
                .help("close it on the last line of what it holds")
        }
        ErrorKind::MappingValueNotAllowed if let Some((start, end)) = line_without_colon(text, at) => {
            let error = SyntaxError { span: source.span(start, end), ..error };
            error.with_message("this line has no \":\"").help("write `KEY: VALUE`")
        }
        ErrorKind::MappingValueNotAllowed => error
            .with_message("a \":\" is not expected here")
            .help("check the indentation of this line, or put a value with \": \" in quotes"),
        ErrorKind::ExpectedDocumentStart
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::SimpleKeyExpected => error
            .with_message("this line fits nothing above it")
            .help("check its indentation, and that its key ends in \":\""),
        _ => error,
    }
}

/// The line before the one of a byte, without empty ones and comments, if it is as far in and has no colon with a blank behind it:
/// to YAML the text goes on behind it.
fn line_without_colon(text: &str, at: usize) -> Option<(usize, usize)> {
    let (before, here) = text.get(..at)?.rsplit_once('\n')?;
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let line = before.lines().rev().find(is_content)?;
    let start = line.as_ptr().addr() - text.as_ptr().addr();
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let content = line.get(indentation(line)..)?.trim_end();
    let is_word = content.starts_with(|c: char| c.is_ascii_alphabetic());
    let has_colon = content.contains(": ") || content.ends_with(':');
    let is_one = is_word && !has_colon && indentation(line) == indentation(here);
    is_one.then(|| (start + indentation(line), start + indentation(line) + content.len()))
}

/// The last bracket between two bytes that begins a value behind a key, an item or another bracket, and is not closed there. Those
/// of other forms, as in `${a}`, say nothing.
fn unclosed(text: &str, from: usize, to: usize) -> Option<usize> {
    let (mut open, mut quote, mut before) = (Vec::new(), None, '\n');
    let from = text.get(from..to)?.rfind("\n---").map_or(from, |marker| from + marker);
    let mut characters = text.get(from..to)?.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let begins = matches!(before, ':' | '-' | ',' | '[' | '{');
        match (character, quote) {
            (c, Some(ending)) => quote = quote.filter(|_| c != ending),
            ('"' | '\'', None) if begins => quote = Some(character),
            ('#', None) if before == '\n' || text.get(..from + at).is_some_and(|it| it.ends_with(' ')) => {
                while characters.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            ('{' | '[', None) if begins => open.push((from + at, if character == '{' { '}' } else { ']' })),
            ('{', None) if before == '$' => return None,
            ('}' | ']', None) => match open.last() {
                Some((_, closing)) if *closing == character => drop(open.pop()),
                Some((other, _)) => return Some(*other),
                None => {}
            },
            _ => {}
        }
        if !matches!(character, ' ' | '\t' | '\r') {
            before = character;
        }
    }
    open.pop().map(|(at, _)| at)
}

/// Points at the quote that was opened first: it is the likely mistake, not the line where the parser gave up.
fn unclosed_quote(source: &Arc<Source>, cursor: usize, error: SyntaxError) -> SyntaxError {
    let from = source.text().get(cursor..).unwrap_or_default();
    let error = error.with_message("a quote is not closed");
    match from.find(['"', '\'']) {
        None => error,
        Some(at) => {
            let quote = source.span(cursor + at, cursor + at + 1);
            SyntaxError { span: quote, ..error }.help("close it, and indent each of its lines")
        }
    }
}

fn with_tab_help(error: SyntaxError) -> SyntaxError {
    error.with_message("a tab cannot indent").help("use spaces")
}

//! Scalars that a later step fills in: a variable of Flux, envsubst or Terraform, a placeholder of the vault plugin or of vals, a
//! value that SOPS has encrypted, a template, a token, a binding of chainsaw, and what stands before a comment of ytt.
//!
//! What such a scalar is going to say is not known, so nothing judges its text. `$(NAME)` is not one of them: the kubelet
//! expands it, and decisions know how.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::document::Document;
use crate::outline::MAX_DEPTH;
use crate::scalar::plain;
use crate::source::{Source, Span};
use crate::yaml::comments;
use memgate_primitives::credential::is_encrypted;
use memgate_primitives::pointer::{Path, Pointer};

/// The fields with a command: a shell expands what is in it.
const COMMANDS: [&str; 2] = ["command", "args"];

/// The fields with texts that no rule of ours judges: what is in them is often filled in by the agent itself.
const TEXTS: [&str; 12] = [
    "content", "description", "input", "instructions", "prompt", "promptTemplate", "systemMessage",
    "systemPrompt", "task", "taskOverride", "template", "validatorPrompt",
];

/// The field that SOPS adds to an object, and takes away when it decrypts the values.
const SOPS: &str = "sops";

/// The annotation with which the vault plugin looks for `<key>` in an object.
const VAULT_PATH: &str = "avp.kubernetes.io/path";

/// What Flux looks for in the labels and annotations of an object whose variables it leaves as they are.
const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// The texts that a later step fills in as a pattern of ECMAScript, for JSON Schema.
pub const FILLED_IN_LATER: &str = r"\$\{[^}]+\}|\{\{.+\}\}|<path:[^>]+>|#\{.+\}#|\(@.+@\)|^\s*(\(.*\$.+\)|\(\w+\(.*\)|ENC\[.+\]|(secret)?ref\+\w+://.+|__\w+__|\$\w+)\s*$";

/// The start of a comment of ytt, which says the value of its line.
const YTT: &str = "#@";

/// The start of a variable that Flux leaves in the text, without the first `$`.
const ESCAPED: &str = "$${";

/// So many comments of ytt in a document are put in.
const MOST_COMMENTS: usize = 1000;

/// So many bytes of pointers are kept, and of values put in, beside four for each byte of the document.
const ROOM: usize = 64 << 10;

/// The scalars of one object that a later step fills in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Later {
    /// The places of those whose value is not known; in a huge object not all of them.
    pub unknown: BTreeSet<Pointer>,
    /// The places of those whose value is known, and was put in.
    pub known: BTreeSet<Pointer>,
    /// How many unknown ones there are, without texts that are hardly ever judged, such as prompts.
    pub count: usize,
    /// How many of these SOPS has encrypted.
    pub encrypted: usize,
    /// The first unknown one of the document.
    pub first: Option<Pointer>,
    /// Which marks count in the object.
    pub marks: Marks,
}

/// Which marks of a later step count in an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whether a variable is plain text, since Flux leaves the object alone.
    without_variables: bool,
    /// Whether `<key>` stands for a value of the vault plugin.
    has_vault_path: bool,
}

/// What the inputs say of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'v> {
    /// It has this value.
    Value(&'v str),
    /// It has its default, if there is one.
    Nothing,
    /// It has a value that is not known.
    Unknown,
}

impl Later {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.known.is_empty()
    }

    fn add_unknown(&mut self, pointer: Pointer, is_key: bool, is_encrypted: bool) {
        if !is_of_text(&pointer) {
            self.count += 1;
            self.encrypted += usize::from(is_encrypted);
            self.first.get_or_insert_with(|| pointer.clone());
        }
        self.unknown.extend(pointer.parent().filter(|_| is_key).map(|holder| any_field(&holder)));
        self.unknown.insert(pointer);
    }
}

/// The place that stands for all fields which an object lacks and may have, since a later step fills in one of its keys.
pub fn any_field(holder: &Pointer) -> Pointer {
    holder.key("${}")
}

/// Whether one of the places is below this one.
pub fn has_below(places: &BTreeSet<Pointer>, place: &Pointer) -> bool {
    let below = format!("{}/", place.as_str());
    places.range(Pointer::new(below.as_str())..).next().is_some_and(|it| it.as_str().starts_with(&below))
}

/// Whether a text may hold such scalars: a quick look that saves the search.
pub fn may_hold(text: &str) -> bool {
    let bytes = text.as_bytes();
    let goes_on = |at, mark| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark));
    bytes.windows(2).enumerate().any(|(at, pair)| match pair {
        b"${" | b"{{" | b"($" | b"(@" | b"#@" | b"#{" | b"__" => true,
        [b'$', next] => is_of_name(*next),
        [b'(', next] if is_of_name(*next) => text.get(at..).is_some_and(is_call),
        b"av" => goes_on(at, VAULT_PATH.as_bytes()),
        b"<p" => goes_on(at, b"<path:".as_slice()),
        b"EN" => goes_on(at, b"ENC[".as_slice()),
        b"f+" => true,
        _ => false,
    })
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The start of a text that can be a name, and the rest.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_at_checked(text.bytes().take_while(|byte| is_of_name(*byte)).count())?;
    name.bytes().next().is_some_and(|first| !first.is_ascii_digit()).then_some((name, rest))
}

/// Whether a text is `$NAME` as a whole.
fn is_dollar_name(text: &str) -> bool {
    text.strip_prefix('$').and_then(split_name).is_some_and(|(_, rest)| rest.is_empty())
}

/// Whether a text starts as an expression of chainsaw that calls a function: `(join('-', [$a]))`.
fn is_call(text: &str) -> bool {
    text.strip_prefix('(').and_then(split_name).is_some_and(|(_, rest)| rest.starts_with('('))
}

/// Whether a later step fills in this scalar. A text of several lines is a script or a prompt, not a value.
pub fn is_filled_in_later(text: &str) -> bool {
    Marks::default().are_in(text)
}

/// Whether a later step fills in this scalar without a doubt. `$NAME` may be a password.
pub fn is_marked(text: &str) -> bool {
    ["${", "{{", "($", "<path:", "ENC[", "#{", "#@", "ref+"].iter().any(|mark| text.contains(mark))
        && is_filled_in_later(text)
}

/// So many parts of a text are looked at.
const MOST_PARTS: usize = 32;

/// The parts of a text that a later step fills in; the first ones of very many.
fn parts(text: &str) -> Vec<Range<usize>> {
    const MARKS: [(&str, &str); 4] = [("${", "}"), ("{{", "}}"), ("<path:", ">"), ("#{", "}#")];
    let (mut parts, mut at) = (Vec::new(), 0);
    let next = |at: usize| {
        let rest = text.get(at..)?;
        let starts = MARKS.into_iter().filter_map(|(start, end)| Some((at + rest.find(start)?, start, end)));
        let (from, start, end) = starts.min()?;
        let inside = text.get(from + start.len()..)?;
        // A default may be a variable too.
        let mut ends = inside.match_indices(end).map(|(length, _)| length).take(MOST_PARTS).enumerate();
        let opened = |length: usize| inside.get(..length).map_or(0, |it| it.matches(start).count());
        let length = ends.find(|(closed, length)| opened(*length) <= *closed)?.1;
        Some(from..from + start.len() + length + end.len())
    };
    while let Some(part) = next(at).filter(|_| parts.len() < MOST_PARTS) {
        at = part.end;
        parts.push(part);
    }
    parts
}

/// A text with a letter in place of each of its parts that a later step fills in, if there are such.
pub fn with_word(text: &str) -> Option<String> {
    let (mut rest, parts) = (text.to_owned(), parts(text));
    parts.iter().rev().for_each(|part| rest.replace_range(part.clone(), "x"));
    (!parts.is_empty()).then_some(rest)
}

/// A URL or another text with values that a later step fills in in parts, with words in their places: one for any part, one for a
/// whole host, one for a scheme. Left out are a user and a password that is filled in, and what is filled in as the whole value
/// of a parameter. `None` for a text of which too little is known: a part of a name, or one that is filled in from its start on
/// and has no scheme of its own.
pub fn filled_with(text: &str, [any, host, scheme]: [&str; 3]) -> Option<String> {
    let parts = parts(text);
    let first = parts.first().filter(|_| parts.len() < MOST_PARTS)?;
    let is_scheme = first.start == 0 && text.get(first.end..)?.starts_with("://");
    let is_url = (first.start > 0 || is_scheme) && text.contains("://");
    if !is_url && (text.contains("://") || !with_word(text)?.contains('=')) {
        return None;
    }
    let (mut filled, mut end) = (String::new(), 0);
    for part in parts {
        filled.push_str(text.get(end..part.start)?);
        let behind = text.get(part.end..)?;
        end = part.end;
        let is_last = behind.is_empty() || behind.starts_with(['/', '?', '#', ',']);
        let is_host = is_last || behind.starts_with(':');
        if filled.ends_with(':') && behind.starts_with('@') {
            let user = filled.rfind('/').map_or(0, |slash| slash + 1);
            filled.truncate(user);
            end += 1;
            continue;
        }
        if filled.ends_with('=') && (behind.is_empty() || behind.starts_with([' ', '&', '#', ',', ';'])) {
            // Not even the name of the parameter stays: a reader could take what follows for its value.
            filled.truncate(filled.rfind([' ', '?', '&']).map_or(0, |before| before + 1));
            continue;
        }
        filled.push_str(match filled.chars().last() {
            None if is_scheme => scheme,
            Some(':') if is_last => "6379",
            Some('[') => "2001:db8::1",
            Some('@') if is_host => host,
            Some('/') if is_host && filled.ends_with("://") => host,
            _ => any,
        });
    }
    filled.push_str(text.get(end..)?);
    Some(filled)
}

impl Marks {
    /// Those that count in an object.
    pub fn of(object: &Value) -> Self {
        let is_disabled = |at: &str| {
            let texts = object.pointer(at);
            texts.and_then(|texts| texts.get(SUBSTITUTE)).and_then(Value::as_str) == Some("disabled")
        };
        let annotations = object.pointer("/metadata/annotations");
        Self {
            without_variables: ["/metadata/annotations", "/metadata/labels"].into_iter().any(is_disabled),
            has_vault_path: annotations.is_some_and(|it| it.get(VAULT_PATH).is_some()),
        }
    }

    /// Whether a later step fills in this scalar of the object, as [`is_filled_in_later`].
    pub fn are_in(self, text: &str) -> bool {
        let text = text.trim();
        let has = |start: &str, end: &str| {
            text.split_once(start).is_some_and(|(_, rest)| rest.find(end).is_some_and(|length| length > 0))
        };
        let is_all = |start: &str, end: &str| text.starts_with(start) && text.ends_with(end);
        (may_hold(text) || self.has_vault_path)
            && !text.contains('\n')
            && (is_encrypted(text)
                || is_all("($", ")")
                || text.ends_with(')') && is_call(text)
                || has("<path:", ">")
                || self.has_vault_path && has("<", ">")
                || has("{{", "}}")
                || has("#{", "}#")
                || is_all(YTT, "")
                || has("(@", "@)")
                || is_all("__", "__") && text.len() > 4 && text.bytes().all(is_of_name)
                || ["ref+", "secretref+"].iter().any(|start| text.starts_with(start) && text.contains("://"))
                || !self.without_variables && (is_dollar_name(text) || Variables(text, 0).next().is_some()))
    }

    /// The same for a key. `$ref` is one of schemas, and `$patch` one of kustomize.
    fn are_in_key(self, key: &str) -> bool {
        !is_dollar_name(key) && self.are_in(key)
    }

    /// The places in a value that a later step fills in, as [`Later::unknown`] has them.
    pub fn places(self, value: &Value) -> BTreeSet<Pointer> {
        let mut search = Search { found: Vec::new(), marks: self, is_flux: false, room: ROOM, count: 0 };
        search.below(value, Path::Root, 0);
        let mut later = Later::default();
        search.found.into_iter().for_each(|FoundLater { pointer, is_key }| {
            later.add_unknown(pointer, is_key, false);
        });
        later.unknown
    }

    /// Makes null of the scalars that a later step fills in, and removes the fields whose key it does. The recursion is
    /// bounded as that of the search.
    pub fn remove(self, value: &mut Value) {
        if let Some(object) = value.as_object_mut() {
            object.remove(SOPS);
        }
        self.remove_below(value);
    }

    fn remove_below(self, value: &mut Value) {
        match value {
            Value::String(text) if self.are_in(text) => *value = Value::Null,
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.remove_below(element)),
            Value::Object(fields) => fields.retain(|key, below| {
                if !COMMANDS.contains(&key.as_str()) {
                    self.remove_below(below);
                }
                !self.are_in_key(key)
            }),
            _ => {}
        }
    }
}

/// Whether a place is that of a text that no rule of ours judges.
fn is_of_text(place: &Pointer) -> bool {
    let is_text = |key: std::borrow::Cow<'_, str>| TEXTS.contains(&&*key);
    !place.as_str().starts_with("/metadata/") && place.tokens().last().is_some_and(is_text)
}

/// Whether a line belongs to a template: a program writes something in its place.
pub fn is_of_template(line: &str) -> bool {
    line.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}")) || line.trim_start().starts_with(YTT)
}

/// A variable in a text: `${NAME}`, or `${NAME` with an operator.
struct Variable<'t> {
    bytes: Range<usize>,
    name: &'t str,
    /// The value that it has if no other is given.
    default: Option<&'t str>,
    /// Whether it is nothing but its name and a default, so that a given value is put in as it is.
    is_plain: bool,
}

/// The variables of a text, from a byte on. `$${NAME}` is not one: it stands for the text `${NAME}`.
struct Variables<'t>(&'t str, usize);

impl<'t> Iterator for Variables<'t> {
    type Item = Variable<'t>;

    fn next(&mut self) -> Option<Variable<'t>> {
        // Terraform reads fields, elements and functions in them.
        const OPERATORS: [char; 14] = [':', '=', '-', '+', '?', '#', '%', '/', '^', ',', '@', '.', '[', '('];
        let (text, from) = (self.0, &mut self.1);
        loop {
            let start = *from + text.get(*from..)?.find("${")?;
            *from = start + "${".len();
            let rest = text.get(*from..)?;
            // Terraform allows blanks, and `~` to drop those around.
            let name = rest.trim_start_matches([' ', '~']);
            let blanks = rest.len() - name.len();
            let Some((name, rest)) = split_name(name) else { continue };
            *from += blanks + name.len();
            let rest = if blanks > 0 { rest.trim_start_matches([' ', '~']) } else { rest };
            let is_escaped = text.get(..start).is_some_and(|before| before.ends_with('$'));
            if is_escaped || !rest.starts_with('}') && !rest.starts_with(OPERATORS) {
                continue;
            }
            // Without an end here, none of those behind has one.
            let operator = rest.get(..rest.find('}')?)?;
            *from += operator.len() + 1;
            let default = [":=", ":-", "=", "-"].iter().find_map(|it| operator.strip_prefix(it));
            let default = default.filter(|default| !default.contains("${"));
            let is_plain = operator.is_empty() || default.is_some();
            return Some(Variable { bytes: start..*from, name, default, is_plain });
        }
    }
}

/// Puts in what is known.
struct Filling<'g, G> {
    /// What the inputs say of variables, by their names.
    given: &'g G,
    marks: Marks,
    /// Whether Flux reads the text, so that `$${NAME}` becomes `${NAME}`.
    is_flux: bool,
    /// How many bytes may still be put in.
    room: usize,
}

impl<'v, G: Fn(&str) -> Given<'v>> Filling<'_, G> {
    /// The text with the values of its variables, if all of them are known.
    fn text(&mut self, text: &str) -> Option<String> {
        let (mut filled, mut end) = (String::new(), 0);
        for variable in Variables(text, 0) {
            let value = match (self.given)(variable.name) {
                // Flux takes an empty value as none with each of these operators.
                // Source: fluxcd/pkg, envsubst, lookupFunc and toDefault.
                Given::Value(value) if variable.is_plain => {
                    variable.default.filter(|_| value.is_empty()).unwrap_or(value)
                }
                Given::Nothing => variable.default?,
                Given::Value(_) | Given::Unknown => return None,
            };
            let between = text.get(end..variable.bytes.start)?;
            self.room = self.room.checked_sub(between.len() + value.len())?;
            filled.push_str(between);
            filled.push_str(value);
            end = variable.bytes.end;
        }
        filled.push_str(text.get(end..)?);
        if is_filled_in_later(&filled) {
            return None;
        }
        let is_escaped = self.is_flux && filled.contains(ESCAPED);
        (end > 0 || is_escaped).then(|| if is_escaped { filled.replace(ESCAPED, "${") } else { filled })
    }

    /// The value of a scalar. kustomize writes such a text without the quotes of the file, before Flux puts in its values
    /// and reads the result anew: `"${PORT}"` becomes a number too. A text stays one if its value has quotes.
    /// Source: Flux documentation, Kustomization, "Post build substitution of numbers and booleans".
    fn value(&mut self, value: &Value) -> Option<Value> {
        let text = value.as_str().filter(|_| !self.marks.without_variables)?;
        let text = self.text(text)?;
        let unquoted = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
        if let Some(unquoted) = unquoted {
            return Some(Value::String(unquoted.to_owned()));
        }
        Some(plain(&text).value().unwrap_or(Value::String(text)))
    }
}

impl Document {
    /// Puts the object into a namespace. Its places in the text stay as they are.
    pub fn set_namespace(&mut self, namespace: &str) {
        self.put(&Pointer::new("/metadata"), "namespace", namespace.into());
    }

    /// Puts in the values that are known, and returns the places of all scalars that a later step fills in. Their places
    /// in the text stay as they are. `given` says what the inputs have for variables, by their names, and `is_flux` whether
    /// Flux puts values in.
    pub fn fill_in<'v>(&mut self, given: &impl Fn(&str) -> Given<'v>, is_flux: bool) -> Later {
        let room = 4 * self.source().slice(self.place().span()).len() + ROOM;
        let marks = Marks::of(self.value());
        let is_flux = is_flux && !marks.without_variables;
        let open = self.fill_in_comments();
        let mut search = Search { found: Vec::new(), marks, is_flux, room, count: 0 };
        if self.value().get(SOPS).is_some_and(|it| it.get("mac").is_some()) {
            self.remove(SOPS);
        }
        search.below(self.value(), Path::Root, 0);
        let mut later = Later { marks, ..Later::default() };
        let mut filling = Filling { given, marks, is_flux, room };
        let more = search.count - search.found.len();
        for FoundLater { pointer, is_key } in search.found {
            let value = self.value().pointer(pointer.as_str()).filter(|_| !is_key);
            match value.and_then(|value| filling.value(value)) {
                Some(value) => {
                    self.set(&pointer, value);
                    later.known.insert(pointer);
                }
                None => {
                    let is_encrypted = value.and_then(Value::as_str).is_some_and(is_encrypted);
                    later.add_unknown(pointer, is_key, is_encrypted);
                }
            }
        }
        later.count += more;
        later.count += usize::from(later.count == 0 && !open.is_empty());
        later.first = later.first.or_else(|| open.first().and_then(Pointer::parent));
        later.unknown.extend(open);
        later
    }

    /// Puts comments of ytt, and tokens that YAML takes for a comment, in place of the values before them: those say what the
    /// values are. Returns the places of the objects of which a line of ytt may add or remove fields.
    fn fill_in_comments(&mut self) -> BTreeSet<Pointer> {
        let (start, text) = (self.span().start, lines_of(self.source(), self.span()));
        if !text.contains(YTT) && !text.contains("#{") {
            return BTreeSet::new();
        }
        // The first line of an item of a List is indented as its others are.
        let indent = (start - self.source().line_start(start)).min(2 * MAX_DEPTH);
        let (start_of_text, text) = (start - indent, &(" ".repeat(indent) + text));
        let (mut values, mut open) = (Vec::new(), BTreeSet::new());
        for (start, end) in comments(text).into_iter().take(MOST_COMMENTS) {
            let (before, comment) =
                (text.get(..start).unwrap_or_default(), text.get(start..end).unwrap_or_default().trim());
            let is_token = comment.starts_with("#{") && comment.ends_with("}#");
            if !comment.starts_with(YTT) && !is_token {
                continue;
            }
            let line = before.rsplit('\n').next().unwrap_or_default();
            let field = |byte: usize| self.place().field_at(start_of_text + byte);
            if line.trim().is_empty() {
                let mut behind = text.get(end..).unwrap_or_default().lines().map(str::trim_start);
                let next = behind.find(|it| !it.is_empty() && !it.starts_with('#'));
                let holder = next.map(|next| field(offset_in(text, next))).and_then(|it| it.parent());
                open.insert(any_field(&holder.unwrap_or_else(Pointer::root)));
            } else {
                let at =
                    if line.trim_matches([' ', '-']).is_empty() { end } else { before.trim_end().len() - 1 };
                values.push((field(at), comment, is_token));
            }
        }
        for (pointer, comment, is_token) in values {
            let is_one = |it: &Value| it.is_null() || !is_token && !it.is_object() && !it.is_array();
            if self.value().pointer(pointer.as_str()).is_some_and(is_one) {
                self.set(&pointer, comment.into());
            }
        }
        open
    }
}

/// The text of an object, and the comment behind it: that of its last value. No more of the line, on which there may be ten
/// thousand others.
pub fn lines_of(source: &Source, Span { start, end, .. }: Span) -> &str {
    let behind = source.text().get(end..).unwrap_or_default().trim_start_matches([' ', '\t']);
    let comment = behind.strip_prefix('#').and_then(|it| it.lines().next());
    let end = comment.map_or(end, |it| offset_in(source.text(), it) + it.len());
    source.text().get(start..end).unwrap_or_default()
}

/// The first byte in a text of a part of it.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

/// A scalar, or a key, that a later step fills in.
struct FoundLater {
    pointer: Pointer,
    is_key: bool,
}

/// The search for such scalars.
struct Search {
    found: Vec<FoundLater>,
    marks: Marks,
    is_flux: bool,
    /// How many bytes of pointers may still be kept.
    room: usize,
    count: usize,
}

impl Search {
    fn add(&mut self, path: Path<'_>, length: usize, is_key: bool) {
        self.count += 1;
        if let Some(room) = self.room.checked_sub(length) {
            self.room = room;
            self.found.push(FoundLater { pointer: path.pointer(), is_key });
        }
    }

    /// Finds those below `path`, whose pointer has about `length` bytes, in document order. The recursion is bounded: a
    /// value is at most [`MAX_DEPTH`] levels deep.
    fn below(&mut self, value: &Value, path: Path<'_>, length: usize) {
        match value {
            Value::String(text) if self.marks.are_in(text) || self.is_flux && text.contains(ESCAPED) => {
                self.add(path, length, false);
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.below(element, Path::Index(&path, index), length + 2);
                }
            }
            Value::Object(fields) => {
                for (key, below) in fields.iter().filter(|(key, _)| !COMMANDS.contains(&key.as_str())) {
                    let (path, length) = (Path::Key(&path, key), length + key.len() + 1);
                    if self.marks.are_in_key(key) {
                        self.add(path, length, true);
                    } else {
                        self.below(below, path, length);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::document::parse;

    #[test]
    fn knows_what_a_later_step_fills_in() {
        let pattern = regex::Regex::new(FILLED_IN_LATER).expect("a pattern");
        for text in [
            "${NAME}",
            "http://${HOST}:80",
            "${NAME:=a}",
            "${NAME:-a}",
            "${NAME%x}",
            "<path:secret/data/a#b>",
            "ENC[AES256_GCM,data:a,type:str]",
            "{{ .Values.a }}",
            "a-{{x}}-b",
            "($ns)",
            " ($ns) ",
            "${A:=${B}}",
            "${x y}${A}",
            "(join('-', [$ns]))${A}",
            "$NAME",
            " $NAME ",
            "(join('-', [$ns]))",
            "(f(x) == 'a')",
            "#{NAME}#",
            "a-#{n}#",
            "__NAME__",
            "${var.name}",
            "${a[0].b}",
            "${lower(var.x)}",
            "ref+vault://a/b#/c",
            "secretref+awsssm://a",
            "(@= data.values.x @)",
        ] {
            assert!(is_filled_in_later(text) && pattern.is_match(text), "{text}");
        }
        // In JSON there are no comments.
        assert!(is_filled_in_later("#@ data.values.x"));
        for text in [
            "", "$(NAME)", "a-$NAME", "$NAME-a", "$5", "$", "(60)", "{60}", "%X%", "ENC(x)", "(see f(x))",
            "(f(x)) a", "<key>", "$${NAME}", "${1}", "${}", "${NAME", "{{}}", "{{ a", "<path>", "ENC[a",
            "(a)", "__", "____", "a __b__", "ref+", "#{}", "#{a}", "($ns) a", "echo ${A}\necho ${B}\n",
            "a ENC[b]", "${a b}", "${}}",
        ] {
            assert!(!is_filled_in_later(text), "{text}");
        }
    }

    fn read(text: &str) -> Document {
        let head = "apiVersion: v1\nkind: A\n";
        let source = Arc::new(Source::new("a.yaml", format!("{head}{text}")));
        parse(&source).documents.remove(0)
    }

    #[test]
    fn puts_words_in_place_of_parts_of_a_text() {
        for (text, expected) in [
            ("postgres://u:pw@${host}/db", Some("postgres://u:pw@w/db")),
            ("http://a:${port}/x", Some("http://a:6379/x")),
            ("http://${HOST:-a}:{{ .port }}", Some("http://w:6379")),
            ("redis://u:${pw}@h", Some("redis://h")),
            ("redis://${u}:${pw}@h", Some("redis://h")),
            ("redis://${u:=${v}}@h", Some("redis://w@h")),
            ("host=${h} password=a", Some(" password=a")),
            ("host=h password=${p} c=d", Some("host=h  c=d")),
            ("${BASE} password=a", Some("w password=a")),
            ("http://h/?a=${a}&b=c", Some("http://h/?&b=c")),
            ("http://${a}.1:80", Some("http://w.1:80")),
            ("http://[${ip}]:80${p}", Some("http://[2001:db8::1]:80w")),
            ("${S}://u:pw@h", Some("s://u:pw@h")),
            ("http://#{a}#", Some("http://w")),
            ("${URL}/x", None),
            ("in-${X}", None),
            ("http://a", None),
            ("http://a/${b", None),
            ("h:6379,password=${p},ssl=True", Some(",ssl=True")),
            ("password=${p}q", Some("password=wq")),
        ] {
            assert_eq!(filled_with(text, ["w", "w", "s"]).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn puts_in_what_is_known() {
        let given = |name: &str| match name {
            "PORT" => Given::Value("80"),
            "TEXT" => Given::Value("\"80\""),
            "EITHER" => Given::Unknown,
            "EMPTY" => Given::Value(""),
            _ => Given::Nothing,
        };
        for (text, expected) in [
            ("a: ${PORT}", json!(80)),
            ("a: \"${PORT}\"", json!(80)),
            ("a: http://a:${PORT}", json!("http://a:80")),
            ("a: ${TTL:=5}", json!(5)),
            ("a: \"${TTL:=5}\"", json!(5)),
            ("a: ${TEXT}", json!("80")),
            ("a: ${EITHER:=5}", json!("${EITHER:=5}")),
            ("a: ${TTL:=}", json!(null)),
            ("a: ${PORT:=5}", json!(80)),
            ("a: ${PORT}-${TTL}", json!("${PORT}-${TTL}")),
            ("a: ${EMPTY:=5}", json!(5)),
            ("a: ${EMPTY:-5}", json!(5)),
            ("a: ${EMPTY=5}x", json!("5x")),
            ("a: ${EMPTY-5}x", json!("5x")),
            ("a: ${EMPTY}x", json!("x")),
            ("a: $${PORT}", json!("${PORT}")),
            ("a: $${PORT}-${PORT}", json!("${PORT}-80")),
            ("a: $${PORT}-${EITHER}", json!("$${PORT}-${EITHER}")),
            ("a: ${PORT%0}", json!("${PORT%0}")),
            ("a: ${A:={{x}}}", json!("${A:={{x}}}")),
        ] {
            let mut document = read(text);
            let later = document.fill_in(&given, true);
            let is_known = document.value().get("a").and_then(Value::as_str) != text.get(3..);
            assert_eq!(document.value().get("a"), Some(&expected), "{text}");
            assert_eq!(
                (later.known.len(), later.unknown.len()),
                (is_known.into(), (!is_known).into()),
                "{text}"
            );
        }
    }

    #[test]
    fn finds_scalars_and_keys_but_no_commands() {
        let text = "b: [x, \"{{y}}\"]\n${K}: 1\nc: {args: [\"${A}\"], d: ($e), $ref: a}\n";
        let mut document = read(text);
        let later = document.fill_in(&|_: &str| Given::Nothing, false);
        let found: Vec<&str> = later.unknown.iter().map(Pointer::as_str).collect();
        assert_eq!(found, ["/${K}", "/${}", "/b/1", "/c/d"]);
        assert_eq!(later.first.as_ref().map(Pointer::as_str), Some("/b/1"));
        let mut bare = document.value().clone();
        later.marks.remove(&mut bare);
        assert_eq!(
            bare,
            json!({"apiVersion": "v1", "kind": "A", "b": ["x", null], "c": {"args": ["${A}"], "d": null, "$ref": "a"}})
        );
    }

    #[test]
    fn flux_leaves_variables_where_an_object_says_so() {
        for (at, text, expected) in [
            ("annotations", "${A}", 0),
            ("labels", "${A:=5}", 0),
            ("annotations", "{{a}}", 1),
            ("finalizers", "${A}", 1),
        ] {
            let said = "kustomize.toolkit.fluxcd.io/substitute: disabled";
            let mut document = read(&format!("metadata: {{{at}: {{{said}}}}}\na: '{text}'\n"));
            let later = document.fill_in(&|_: &str| Given::Value("b"), false);
            assert_eq!(later.count + later.known.len(), expected, "{at} {text}");
        }
    }

    #[test]
    fn comments_say_the_values_of_items() {
        let text = "a:\n- #@ x\n- b\n- - #{C}#\n  - d\n- \n";
        let mut document = read(text);
        document.fill_in(&|_: &str| Given::Nothing, false);
        assert_eq!(document.value().get("a"), Some(&json!(["#@ x", "b", ["#{C}#", "d"], null])));
        let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n  a: #@ x\n  b:\n    c: 1 #@ y\n- kind: B\n  apiVersion: v1\n  d: #@ z\n";
        let source = Arc::new(Source::new("list", list));
        let mut items: Vec<Document> = parse(&source).documents;
        for item in &mut items {
            item.fill_in(&|_: &str| Given::Nothing, false);
        }
        let values: Vec<&Value> = items.iter().map(Document::value).collect();
        assert_eq!(
            values,
            [
                &json!({"apiVersion": "v1", "kind": "A", "a": "#@ x", "b": {"c": "#@ y"}}),
                &json!({"apiVersion": "v1", "kind": "B", "d": "#@ z"})
            ]
        );
    }

    /// Ten thousand objects on one line are each looked at once.
    #[test]
    fn the_text_of_an_object_holds_no_other() {
        let source = Arc::new(Source::new(
            "list",
            "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A} , {apiVersion: v1, kind: B} # b\n]}",
        ));
        let items = parse(&source).documents;
        let texts: Vec<&str> = items.iter().map(|it| lines_of(&source, it.span())).collect();
        assert_eq!(texts, ["{apiVersion: v1, kind: A}", "{apiVersion: v1, kind: B} # b"]);
    }

    #[test]
    fn very_many_comments_end() {
        let lines = (0..10_000).map(|it| format!("k{it}: #@ a{it}\n#@ if a:\n"));
        let mut document = read(&lines.collect::<Vec<_>>().concat());
        let later = document.fill_in(&|_: &str| Given::Nothing, false);
        assert!(later.count >= MOST_COMMENTS / 2, "{}", later.count);
    }

    #[test]
    fn costs_follow_size() {
        let lines = |line: &dyn Fn(usize) -> String| (0..10_000).map(line).collect::<Vec<_>>().concat();
        let values = lines(&|it| format!("  k{it}: ${{A{it}:=5}}\n"));
        let keys = lines(&|it| format!("  ${{K{it}}}: 5\n"));
        let mut document = read(&format!("a:\n{values}b:\n{keys}c: {}\n", "${a:x".repeat(100_000)));
        let later = document.fill_in(&|_: &str| Given::Nothing, false);
        assert_eq!((later.known.len(), later.count), (10_000, 10_000));
        let long = "x".repeat(10_000);
        let list = "  - ${A}\n".repeat(10_000);
        let mut document = read(&format!("{}:\n{list}", "x".repeat(1000)));
        let later = document.fill_in(&|_: &str| Given::Value(long.as_str()), false);
        let bytes = |found: &BTreeSet<Pointer>| found.iter().map(|it| it.as_str().len()).sum::<usize>();
        assert_eq!(later.count + later.known.len(), 10_000);
        assert!(bytes(&later.unknown) + bytes(&later.known) < 1 << 20);
        assert!(document.value().to_string().len() < 1 << 20);
    }
}

//! The text of a source as reports show it: each credential masked, everything else in its place.
//!
//! `memgate_primitives::credential` recognises a credential by its own text. This module recognises one by the fields around it:
//! `{name: API_TOKEN, value: …}`, `stringData`, `headers`. It visits every mapping of the source, Kubernetes object or
//! not, also in a document that ends in an error.

mod unread;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::document::Document;
use crate::document::embedded::Embedded;
use crate::later::{is_marked, with_word};
use crate::outline::{Node, NodeId, NodeKind, Outline, ScalarText, Style, TextPart};
use crate::place::{DocumentPlace, Outlines};
use crate::scalar::{Scalar, plain};
use crate::source::Source;
use crate::value::key_name;
use memgate_primitives::credential::{hide, is_credential_name, is_reference_name, spans, value_spans};
use memgate_primitives::plain_text::{shown_key, shown_name};

/// The annotation in which kubectl keeps the whole object as JSON.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The text of the source with each credential masked. Bytes, lines and columns are those of the source.
pub fn shown(source: &Arc<Source>) -> &str {
    source.masked(|| mask(&Outlines::new(source)))
}

/// Like [`shown`], for the source of a place. The source is not parsed again if it has one document.
pub fn shown_around(place: &DocumentPlace) -> &str {
    place.source().masked(|| mask(place.outlines()))
}

/// From now on what is a credential in these texts of the source is masked in it too, and the whole text if its documents have
/// no places in the source.
pub fn mask_embedded<'e>(source: &Arc<Source>, texts: impl IntoIterator<Item = &'e Embedded>) {
    let has_credential = |it: &Document| shown(it.source()) != it.source().text();
    let mut hidden = Vec::new();
    for text in texts {
        if text.is_placed {
            hidden.extend(spans_of_parts(&Outlines::new(source), &text.parts));
        } else if text.is_damaged || text.documents.iter().any(has_credential) {
            hidden.push(text.text.start..text.text.end);
        }
    }
    if !hidden.is_empty() {
        source.masked(|| {
            let own = mask(&Outlines::new(source));
            Some(hide(own.as_deref().unwrap_or_else(|| source.text()), hidden))
        });
    }
}

/// The value with each credential in it masked.
pub fn shown_value(value: &Value) -> Value {
    let source = Arc::new(Source::new("", value.to_string()));
    // A single number that was masked is not JSON any more; it was a credential.
    serde_json::from_str(shown(&source)).unwrap_or_else(|_| Value::from("***"))
}

fn mask(outlines: &Outlines) -> Option<String> {
    let text = outlines.source.text();
    let mut spans = spans(text);
    spans.extend(spans_of_parts(outlines, &outlines.parts()));
    (!spans.is_empty()).then(|| hide(text, spans))
}

/// The credentials that fields around them show.
fn spans_of_parts(outlines: &Outlines, parts: &[TextPart]) -> Vec<Range<usize>> {
    let (text, mut spans) = (outlines.source.text(), Vec::new());
    let (mut unread, mut has_error) = (Vec::<Range<usize>>::new(), false);
    for part in parts.iter().copied() {
        let outline = outlines.outline(part);
        let mut masker = Masker { text, outline: &outline, seen: Vec::new(), spans, is_policy: false };
        masker.is_policy =
            outline.roots.iter().all(|root| root.as_ref().is_ok_and(|id| masker.is_policy(*id)));
        masker.seen.resize(outline.nodes().count(), Seen::default());
        for id in outline.nodes() {
            masker.visit(id);
        }
        spans = masker.spans;
        let is_read =
            |root: &Result<NodeId, _>| root.as_ref().is_ok_and(|id| outline.node(*id).is_collection());
        match unread.last_mut() {
            _ if !outline.roots.is_empty() && outline.roots.iter().all(is_read) => {}
            // A marker may be within quotes that are not closed, so parts that follow each other are one text.
            Some(last) if last.end == part.start() => last.end = part.bytes().end,
            _ => unread.push(part.bytes()),
        }
        has_error |= outline.roots.iter().any(Result::is_err);
    }
    // Without an error, the others are plain texts and comments.
    if has_error {
        spans.extend(unread.into_iter().flat_map(|part| unread::spans(text, part)));
    }
    spans
}

/// Which values at and below a node are hidden. Keys, booleans and nulls are always shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hiding {
    /// All values.
    Everything,
    /// All values but references to a credential, such as `secretKeyRef`.
    Credential,
    /// The headers of a request, a mapping or a list of `{name, value}`.
    Headers,
    /// One header: its name stays. The value may be in a misspelt field.
    Header,
    /// The values below a field of a header: references stay.
    HeaderPart,
}

impl Hiding {
    /// How values below an entry of a mapping are hidden; `None` if they are shown.
    fn below(self, name: &str, is_scalar: bool) -> Option<Self> {
        let is_reference = || name.ends_with("Ref");
        match self {
            Self::Everything => Some(self),
            Self::Credential if is_reference() || (is_scalar && is_reference_name(name)) => None,
            Self::Header if is_scalar && name == "name" => None,
            Self::Header | Self::HeaderPart => (!is_reference()).then_some(Self::HeaderPart),
            Self::Credential | Self::Headers => Some(Self::Credential),
        }
    }

    /// How an item of a list is hidden.
    fn item(self) -> Self {
        if self == Self::Headers { Self::Header } else { self }
    }
}

/// The ways in which a node is hidden already, so that aliases of aliases cost no more than their text.
type Seen = [bool; 5];

struct Masker<'s> {
    text: &'s str,
    outline: &'s Outline,
    seen: Vec<Seen>,
    spans: Vec<Range<usize>>,
    /// Whether it is a MemoryPolicy, whose `secrets` are a rule about Secrets.
    is_policy: bool,
}

impl Masker<'_> {
    fn visit(&mut self, id: NodeId) {
        let outline = self.outline;
        let node = outline.node(id);
        match &node.kind {
            NodeKind::Scalar(_, text) => self.scalar(node, text),
            NodeKind::Map(_, entries) => self.map(entries),
            NodeKind::List(_, items) => self.list(items),
            NodeKind::Alias(_) => {}
        }
    }

    /// Hides the credentials that the text of a scalar shows by itself, with escapes and folds undone.
    fn scalar(&mut self, node: &Node, text: &ScalarText) {
        let found = value_spans(text.get(self.text));
        match text {
            _ if found.is_empty() => {}
            ScalarText::Slice(start, _) => {
                self.spans.extend(found.into_iter().map(|span| start + span.start..start + span.end));
            }
            ScalarText::Owned(_) => self.spans.push(body(node, self.text)),
        }
    }

    fn map(&mut self, entries: &[(NodeId, NodeId)]) {
        let secret = self.is_secret(entries);
        let is_name = |name| self.scalar_text(name).is_some_and(is_credential_name);
        let is_path = |path| self.scalar_text(path).is_some_and(leads_to_credential);
        let named = self.entries(entries, "name").any(is_name) || self.entries(entries, "path").any(is_path);
        for (key, value) in entries {
            let Some(name) = key_name(self.outline, *key, self.text) else { continue };
            if !self.is_action(*key) {
                self.hide_rest(*key, is_shown_key);
            }
            let is_map = || matches!(self.outline.node(self.outline.resolve(*value)).kind, NodeKind::Map(..));
            if names_an_object(&name) {
                self.hide_rest(*value, is_shown_name);
            } else if is_reference(&name) || holds_reference(&name) && is_map() {
                self.reference(*value);
            }
            match &*name {
                "stringData" | LAST_APPLIED => self.hide_below(*value, Hiding::Everything),
                "data" if secret => self.hide_below(*value, Hiding::Everything),
                "value" if named => self.hide_below(*value, Hiding::Credential),
                "secrets" if self.is_policy => {}
                name if is_headers(name) => self.hide_below(*value, Hiding::Headers),
                name if is_credential_name(name) => self.hide_below(*value, Hiding::Credential),
                _ => {}
            }
        }
    }

    /// Whether a key is an action of a template, `{{ toYaml .Values.x }}`, which YAML takes for maps.
    fn is_action(&self, key: NodeId) -> bool {
        let node = self.outline.node(key);
        let (before, behind) = (self.text.get(..node.content), self.text.get(node.end..));
        before.is_some_and(|it| it.trim_end_matches([' ', '-']).ends_with("{{"))
            && behind.is_some_and(|it| it.trim_start_matches([' ', '-']).starts_with("}}"))
    }

    /// Hides what cannot be a name in a reference to an object: a name, a mapping with one, or a list of either.
    fn reference(&mut self, id: NodeId) {
        let outline = self.outline;
        match &outline.node(outline.resolve(id)).kind {
            NodeKind::List(_, items) => items.iter().for_each(|item| self.named(*item)),
            _ => self.named(id),
        }
    }

    fn named(&mut self, id: NodeId) {
        let outline = self.outline;
        match &outline.node(outline.resolve(id)).kind {
            NodeKind::Map(_, entries) => {
                let names: Vec<NodeId> = self.entries(entries, "name").collect();
                for name in names {
                    self.hide_rest(name, is_shown_name);
                }
            }
            _ => self.hide_rest(id, is_shown_reference),
        }
    }

    /// Hides a text that cannot stand where it does, but for its first characters.
    fn hide_rest(&mut self, id: NodeId, is_shown: fn(&str) -> bool) {
        const SHOWN_CHARS: usize = 4;
        let node = self.outline.node(self.outline.resolve(id));
        let NodeKind::Scalar(style, text) = &node.kind else { return };
        let written = text.get(self.text);
        let is_text = *style != Style::Plain || matches!(plain(written), Scalar::Text(_));
        let is_later = || is_marked(written) && with_word(written).is_none_or(|rest| is_shown(&rest));
        if !is_text || is_shown(written) || is_later() {
            return;
        }
        self.spans.push(match text {
            ScalarText::Slice(start, _) => {
                let rest = written.char_indices().nth(SHOWN_CHARS).map_or(0, |(at, _)| at);
                start + rest..start + written.len()
            }
            ScalarText::Owned(_) => self.above_key(body(node, self.text)),
        });
    }

    /// The bytes of a scalar but for a last line that is a key at the wrong depth.
    fn above_key(&self, all: Range<usize>) -> Range<usize> {
        let has_colon = self.text.get(all.end..).is_some_and(|behind| behind.starts_with(':'));
        match self.text.get(all.clone()).and_then(|written| written.rsplit_once('\n')) {
            Some((_, key)) if has_colon && is_shown_key(key.trim()) => all.start..all.end - key.len(),
            _ => all,
        }
    }

    /// Whether a document is a MemoryPolicy.
    fn is_policy(&self, root: NodeId) -> bool {
        let NodeKind::Map(_, entries) = &self.outline.node(self.outline.resolve(root)).kind else {
            return false;
        };
        let is = |field, fits: fn(&str) -> bool| {
            self.entries(entries, field).any(|value| self.scalar_text(value).is_some_and(fits))
        };
        is("kind", |kind| kind == "MemoryPolicy")
            && is("apiVersion", |version| version.starts_with("policy.memgate.dev/"))
    }

    /// Whether `data` holds secrets: in a Secret, and in an item of a list of Secrets, which leaves out its
    /// kind.
    fn is_secret(&self, entries: &[(NodeId, NodeId)]) -> bool {
        let mut kinds = self.entries(entries, "kind").filter_map(|kind| self.scalar_text(kind)).peekable();
        kinds.peek().is_none() || kinds.any(|kind| kind == "Secret")
    }

    /// Hides the value of a flag that is an element of its own, such as `[--token, …]`.
    fn list(&mut self, items: &[NodeId]) {
        for pair in items.windows(2) {
            let [flag, value] = pair else { continue };
            let flag = self.scalar_text(*flag).and_then(|text| text.strip_prefix('-'));
            if flag.is_some_and(is_credential_name) {
                self.hide_below(*value, Hiding::Credential);
            }
        }
    }

    /// Hides the values at and below a node, each node once for each way of hiding.
    fn hide_below(&mut self, id: NodeId, hiding: Hiding) {
        let outline = self.outline;
        let mut open = vec![(id, hiding)];
        while let Some((id, hiding)) = open.pop() {
            let id = outline.resolve(id);
            let seen = self.seen.get_mut(id.index()).and_then(|seen| seen.get_mut(hiding as usize));
            if seen.is_none_or(|seen| std::mem::replace(seen, true)) {
                continue;
            }
            match &outline.node(id).kind {
                NodeKind::Map(_, entries) => {
                    let below = |(key, value): &(NodeId, NodeId)| {
                        let name = key_name(outline, *key, self.text);
                        let is_scalar = self.scalar_text(*value).is_some();
                        let below = hiding.below(name.as_deref().unwrap_or_default(), is_scalar)?;
                        Some((*value, below))
                    };
                    open.extend(entries.iter().filter_map(below));
                }
                NodeKind::List(_, items) => open.extend(items.iter().map(|item| (*item, hiding.item()))),
                NodeKind::Scalar(..) | NodeKind::Alias(_) => self.hide(id),
            }
        }
    }

    /// Hides a scalar, unless it is a boolean or null, such as `automountServiceAccountToken: true`.
    fn hide(&mut self, id: NodeId) {
        let node = self.outline.node(id);
        let NodeKind::Scalar(style, text) = &node.kind else { return };
        let word = || matches!(plain(text.get(self.text)), Scalar::Bool(_) | Scalar::Null);
        if *style != Style::Plain || !word() {
            self.spans.push(body(node, self.text));
        }
    }

    /// The values under a key. A text with several is refused, but shown with its error.
    fn entries<'e>(
        &'e self,
        entries: &'e [(NodeId, NodeId)],
        name: &'e str,
    ) -> impl Iterator<Item = NodeId> + 'e {
        let named = move |key| key_name(self.outline, key, self.text).as_deref() == Some(name);
        entries.iter().filter(move |(key, _)| named(*key)).map(|(_, value)| *value)
    }

    fn scalar_text(&self, id: NodeId) -> Option<&str> {
        match &self.outline.node(self.outline.resolve(id)).kind {
            NodeKind::Scalar(_, text) => Some(text.get(self.text)),
            _ => None,
        }
    }
}

/// Whether a path of a JSON Patch leads to a field that holds credentials.
fn leads_to_credential(path: &str) -> bool {
    let is_one = |name| is_credential_name(name) || is_headers(name) || ["env", "stringData"].contains(&name);
    path.starts_with('/') && path.split('/').any(is_one)
}

/// Whether a field says the name of an object by itself.
fn names_an_object(field: &str) -> bool {
    matches!(field, "namespace" | "generateName" | "secretName" | "claimName" | "serviceAccountName")
}

/// Whether a field, or the field `name` in it, is the name of an object.
fn is_reference(field: &str) -> bool {
    const ENDS: [&str; 8] =
        ["Ref", "Refs", "_ref", "Secrets", "From", "modelConfig", "allowedAgents", "settings"];
    field == "ref" || ENDS.iter().any(|end| field.ends_with(end))
}

/// Whether the field `name` in a mapping of this name is the name of an object.
fn holds_reference(field: &str) -> bool {
    matches!(field, "metadata" | "memory" | "target" | "defaultMemory")
}

/// Whether a text could be the name of an object, with a namespace and a key.
fn is_shown_reference(text: &str) -> bool {
    let (name, key) = text.split_once(':').unwrap_or((text, ""));
    is_shown_name(name) && is_shown_key(key)
}

/// Whether a text could be the name of an object, or the start of one.
fn is_shown_name(name: &str) -> bool {
    name.is_empty() || matches!(shown_name(name.trim_end_matches(['-', '.'])), Cow::Borrowed(_))
}

fn is_shown_key(key: &str) -> bool {
    matches!(shown_key(key), Cow::Borrowed(_))
}

/// Whether a field holds HTTP headers.
fn is_headers(name: &str) -> bool {
    name.eq_ignore_ascii_case("headers") || name.ends_with("Headers") || name.ends_with("_headers")
}

/// The bytes within the quotes of a scalar, or below the header of a block.
fn body(node: &Node, source: &str) -> Range<usize> {
    let text = source.get(node.content..node.end).unwrap_or_default();
    match &node.kind {
        NodeKind::Scalar(Style::Quoted, _) => node.content + 1..node.end.saturating_sub(1),
        NodeKind::Scalar(Style::Block, _) => node.content + text.find('\n').unwrap_or(text.len())..node.end,
        _ => node.content..node.end,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn masks_by_the_fields_around() {
        for (text, expected) in [
            ("{name: A_TOKEN, value: x}", "{name: A_TOKEN, value: *}"),
            ("value: x\nname: A_TOKEN\nport: 80\n", "value: *\nname: A_TOKEN\nport: 80\n"),
            ("a: &t x\nb: {name: TOKEN, value: *t}\n", "a: &t *\nb: {name: TOKEN, value: *t}\n"),
            ("kind: Secret\ndata:\n  a: x\n", "kind: Secret\ndata:\n  a: *\n"),
            ("kind: ConfigMap\ndata:\n  a: x\n", "kind: ConfigMap\ndata:\n  a: x\n"),
            ("headers: [{name: A, value: {value: x}}]", "headers: [{name: A, value: {value: *}}]"),
            ("headers: {A: x}", "headers: {A: *}"),
            ("headers: [{name: A, vlaue: {value: x}}]", "headers: [{name: A, vlaue: {value: *}}]"),
            ("headers:\n- name: A\n  value: {valu: x}\n", "headers:\n- name: A\n  value: {valu: *}\n"),
            (
                "headers: [{name: A, value: {valueFrom: {secretKeyRef: {name: x, key: y}}}}]",
                "headers: [{name: A, value: {valueFrom: {secretKeyRef: {name: x, key: y}}}}]",
            ),
            ("env: {PASSWORD: {a: x, b: [{c: x}]}}", "env: {PASSWORD: {a: *, b: [{c: *}]}}"),
            ("env: [{name: PASSWORD, value: {a: x}}]", "env: [{name: PASSWORD, value: {a: *}}]"),
            ("secret: {secretName: x, items: [{key: y}]}", "secret: {secretName: x, items: [{key: y}]}"),
            ("token: {secretKeyRef: {name: x, y: z}}", "token: {secretKeyRef: {name: x, y: z}}"),
            ("password: |\n  x\n  y\nb: 1\n", "password: |\n  *\n  *\nb: 1\n"),
            ("password: \"x\n  y\"\n", "password: \"*\n  *\"\n"),
            ("endpoint: \"https:\\/\\/u:p@h\"\n", "endpoint: \"***************\"\n"),
            ("args: [--token, x, y]", "args: [--token, *, y]"),
            ("secretRef: {name: x, key: token}", "secretRef: {name: x, key: token}"),
            ("automountServiceAccountToken: true", "automountServiceAccountToken: true"),
            ("metadata: {name: My_Notes, namespace: Te/am}", "metadata: {name: My_Notes, namespace: Te/a*}"),
            (
                "metadata: {generateName: notes-, name: \"${A}\"}",
                "metadata: {generateName: notes-, name: \"${A}\"}",
            ),
            ("memoryRef: \"pcsk_\\x35x+\"", "memoryRef: \"***********\""),
            (
                "a: {secretRefs: [{name: notes}, {name: A_bcdef+}, B_cde+]}",
                "a: {secretRefs: [{name: notes}, {name: A_bc****}, B_cd**]}",
            ),
            ("aRef: notes+\n  ttl: 5m\n", "aRef: ******\n  ttl: 5m\n"),
            ("aRef: notes+\n  sk_live_a1b2c3d4: 5m\n", "aRef: ******\n  ********************\n"),
            (
                "env: [{name: A_B}]\nconfigs: [{name: \"A b\"}]",
                "env: [{name: A_B}]\nconfigs: [{name: \"A b\"}]",
            ),
            ("spec: {{ toYaml .Values.redis | b }}", "spec: {{ toYaml .Values.redis | b }}"),
            ("spec: {toYaml .Values.redis | b: c}", "spec: {toYa********************: c}"),
            (
                "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nspec: {secrets: {inline: x}, token: x}",
                "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nspec: {secrets: {inline: x}, token: *}",
            ),
            ("kind: MemoryPolicy\nsecrets: {inline: x}", "kind: MemoryPolicy\nsecrets: {inline: *}"),
            ("labels: {\"a/b/c/d/e/f/g/h/i\": x, a/b: y}", "labels: {\"a/b/*************\": x, a/b: y}"),
        ] {
            let source = Arc::new(Source::new("x", text));
            assert_eq!(shown(&source), expected);
        }
    }

    #[test]
    fn masks_by_lines_only_in_documents_that_cannot_be_read() {
        for (text, expected) in [
            ("kind: A\ndata: {a: x}\n---\na: [\n", "kind: A\ndata: {a: x}\n---\na: [\n"),
            ("a: [\n--- # x\n{kind: A, data: x}\n# y\n", "a: [\n--- # x\n{kind: A, data: x}\n# y\n"),
            ("password: \"\n---\nx\n", "password: \"\n---\n*\n"),
            ("data: {a: x}\n}\ny\n", "data: ******\n}\n*\n"),
            ("data: x\n---\ndata: [x\n---\npassword: x\n", "data: *\n---\ndata: **\n---\npassword: *\n"),
        ] {
            let source = Arc::new(Source::new("x", text));
            assert_eq!(shown(&source), expected);
        }
    }

    #[test]
    fn masks_values() {
        let value = json!({"name": "A_TOKEN", "value": "x", "y": ["z"]});
        assert_eq!(shown_value(&value), json!({"name": "A_TOKEN", "value": "*", "y": ["z"]}));
    }
}

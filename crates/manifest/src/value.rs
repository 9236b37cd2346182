//! Turns an outline into JSON values: resolves scalars, and carries out aliases and merge keys, within bounds.
//!
//! Only this module says what keys and values mean. It knows nothing of Kubernetes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::SyntaxError;
use crate::outline::{MAX_DEPTH, Node, NodeId, NodeKind, Outline, Style, Tag};
use crate::scalar::{Scalar, resolve};
use crate::source::Source;

/// How many bytes aliases may repeat in one source. Anchors in real manifests repeat a few
/// kilobytes; a "billion laughs" file reaches this at once.
const MAX_ALIASED_BYTES: usize = 16 << 20;

/// How many bytes a node repeated by an alias counts for, in addition to its text; about what it takes in memory.
const ALIASED_NODE_BYTES: usize = 64;

/// Reads values from an outline.
pub(super) struct ValueReader<'s> {
    source: &'s Arc<Source>,
    outline: &'s Outline,
    /// How many bytes aliases have repeated so far, in all of the source.
    pub(super) repeated: usize,
}

/// Whether a value is written in the text, or an alias repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    Direct,
    Aliased,
}

impl<'s> ValueReader<'s> {
    /// A reader; aliases in other parts of the source have repeated `repeated` bytes.
    pub(super) fn new(source: &'s Arc<Source>, outline: &'s Outline, repeated: usize) -> Self {
        Self { source, outline, repeated }
    }

    /// The value of a document.
    pub(super) fn read(&mut self, root: NodeId) -> Result<Value, Box<SyntaxError>> {
        self.value(root, 0, Occurrence::Direct)
    }

    /// Recursion is bounded: by the depth of the outline, and again here for aliases in aliases.
    fn value(&mut self, id: NodeId, depth: usize, occurrence: Occurrence) -> Result<Value, Box<SyntaxError>> {
        let outline = self.outline;
        let node = outline.node(id);
        self.check_bounds(node, depth, occurrence)?;
        match &node.kind {
            NodeKind::Scalar(..) => {
                let value = self.scalar(node)?.value();
                value.ok_or_else(|| {
                    self.error(node, "JSON has no such number").help("put it in quotes").into()
                })
            }
            NodeKind::List(_, items) => {
                // Collected as a result, each list would get room for four, and most have fewer.
                let mut elements = Vec::with_capacity(items.len());
                for item in items {
                    elements.push(self.value(*item, depth + 1, occurrence)?);
                }
                Ok(Value::Array(elements))
            }
            NodeKind::Map(_, entries) => {
                let mut map = Map::with_capacity(entries.len());
                self.read_entries(&mut map, entries, depth, occurrence)?;
                Ok(Value::Object(map))
            }
            NodeKind::Alias(target) => self.value(*target, depth, Occurrence::Aliased),
        }
    }

    /// Reads the entries of one mapping into `map`. As in go-yaml v2 a merge key counts where it
    /// stands: it yields to what follows it and wins over what is before it.
    fn read_entries(
        &mut self,
        map: &mut Map<String, Value>,
        entries: &[(NodeId, NodeId)],
        depth: usize,
        occurrence: Occurrence,
    ) -> Result<(), Box<SyntaxError>> {
        let text = self.source.text();
        let merges = entries.iter().any(|(key, _)| is_merge(self.outline.node(*key), text));
        // Without merge keys all that the map holds already is from this mapping.
        let mut own = (merges || !map.is_empty()).then(BTreeSet::new);
        for (index, (key, value)) in entries.iter().enumerate() {
            if is_merge(self.outline.node(*key), text) {
                self.merge(map, *value, depth, occurrence)?;
                continue;
            }
            let name = self.key(*key, occurrence)?;
            let value = self.value(*value, depth + 1, occurrence)?;
            let twice = own.as_mut().map_or_else(|| map.contains_key(&name), |own| !own.insert(name.clone()));
            if twice {
                return Err(self.duplicate(entries.get(..index).unwrap_or_default(), *key, &name));
            }
            map.insert(name, value);
        }
        Ok(())
    }

    fn merge(
        &mut self,
        map: &mut Map<String, Value>,
        from: NodeId,
        depth: usize,
        occurrence: Occurrence,
    ) -> Result<(), Box<SyntaxError>> {
        let outline = self.outline;
        let occurrence = if matches!(outline.node(from).kind, NodeKind::Alias(_)) {
            Occurrence::Aliased
        } else {
            occurrence
        };
        let node = outline.node(outline.resolve(from));
        self.check_bounds(node, depth + 1, occurrence)?;
        match &node.kind {
            NodeKind::Map(_, entries) => self.read_entries(map, entries, depth + 1, occurrence),
            NodeKind::List(_, sources) if !matches!(outline.node(from).kind, NodeKind::Alias(_)) => {
                for from in sources.iter().rev() {
                    if !matches!(outline.node(outline.resolve(*from)).kind, NodeKind::Map(..)) {
                        return Err(self.not_a_mapping(outline.node(*from)));
                    }
                    self.merge(map, *from, depth + 1, occurrence)?;
                }
                Ok(())
            }
            _ => Err(self.not_a_mapping(outline.node(from))),
        }
    }

    fn key(&mut self, id: NodeId, occurrence: Occurrence) -> Result<String, Box<SyntaxError>> {
        let node = self.outline.node(self.outline.resolve(id));
        self.check_bounds(node, 0, occurrence)?;
        if node.is_collection() {
            let error = self.error(self.outline.node(id), "a list or mapping cannot be a key");
            return Err(error.help("put a template expression in quotes").into());
        }
        let key = self.scalar(node)?.key();
        key.map(Cow::into_owned).ok_or_else(|| {
            self.error(self.outline.node(id), "null cannot be a key").help("put it in quotes").into()
        })
    }

    fn scalar(&self, node: &'s Node) -> Result<Scalar<'s>, Box<SyntaxError>> {
        let NodeKind::Scalar(style, text) = &node.kind else { return Ok(Scalar::Null) };
        resolve(text.get(self.source.text()), *style, node.tag)
            .map_err(|message| self.error(node, &message).into())
    }

    fn duplicate(&self, earlier: &[(NodeId, NodeId)], key: NodeId, name: &str) -> Box<SyntaxError> {
        let text = self.source.text();
        let same = |id: &NodeId| {
            let merge = is_merge(self.outline.node(*id), text);
            !merge && key_name(self.outline, *id, text).as_deref() == Some(name)
        };
        let first = earlier.iter().map(|(key, _)| *key).find(same).unwrap_or(key);
        let first = self.outline.node(first);
        let place = self.source.span(first.content, first.end);
        let mut error = self.error(self.outline.node(key), &format!("the key {name:?} is given twice"));
        error.help = Some(format!("remove one; the first is at line {}", place.line));
        error.related = Some((place, "first given here"));
        error.into()
    }

    /// Refuses aliases that nest too deep or repeat too much.
    fn check_bounds(
        &mut self,
        node: &Node,
        depth: usize,
        occurrence: Occurrence,
    ) -> Result<(), Box<SyntaxError>> {
        if depth > MAX_DEPTH {
            let message = format!("aliases nest this deeper than {MAX_DEPTH} levels");
            return Err(self.error(node, &message).into());
        }
        if occurrence == Occurrence::Aliased {
            let text = match &node.kind {
                NodeKind::Scalar(_, text) => text.get(self.source.text()).len(),
                _ => 0,
            };
            self.repeated += ALIASED_NODE_BYTES + text;
            if self.repeated > MAX_ALIASED_BYTES {
                let message = format!("aliases repeat more than {} MiB", MAX_ALIASED_BYTES >> 20);
                return Err(self.error(node, &message).help("write it out without aliases").into());
            }
        }
        Ok(())
    }

    fn not_a_mapping(&self, node: &Node) -> Box<SyntaxError> {
        self.error(node, "a merge key takes a mapping, or a list of mappings").into()
    }

    fn error(&self, node: &Node, message: &str) -> SyntaxError {
        SyntaxError::new(self.source, self.source.span(node.content, node.end), message)
    }
}

/// Whether a key is `<<`, the merge key.
pub(super) fn is_merge(key: &Node, source: &str) -> bool {
    match &key.kind {
        NodeKind::Scalar(style, text) if text.get(source) == "<<" => {
            key.tag == Tag::Merge || (key.tag == Tag::None && *style == Style::Plain)
        }
        _ => false,
    }
}

/// The name of a key that was read without error before.
pub(super) fn key_name<'t>(outline: &'t Outline, key: NodeId, source: &'t str) -> Option<Cow<'t, str>> {
    let node = outline.node(outline.resolve(key));
    let NodeKind::Scalar(style, text) = &node.kind else { return None };
    resolve(text.get(source), *style, node.tag).ok()?.key()
}

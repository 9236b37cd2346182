//! An outline to JSON values: scalars resolved, aliases and merge keys carried out, within bounds.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::manifest::error::Fault;
use crate::manifest::outline::{Id, Kind, Node, Outline, Style, Tag};
use crate::manifest::scalar::{Scalar, resolve};
use crate::manifest::source::Source;
use crate::manifest::yaml::MAX_DEPTH;

/// How many bytes aliases may repeat in one source. Anchors in real manifests repeat a few
/// kilobytes; a "billion laughs" file runs into this at once.
const MAX_REPEATED: usize = 16 << 20;

/// What a node costs when an alias repeats it, beside its text; about what it takes in memory.
const NODE_COST: usize = 64;

/// Reads values from an outline; one for a source, because the bound is on the whole source.
pub(super) struct Reader<'s> {
    source: &'s Arc<Source>,
    outline: &'s Outline,
    repeated: usize,
}

/// Whether a node stands in the text where it is used, or an alias repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Once,
    Again,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s Arc<Source>, outline: &'s Outline) -> Self {
        Self { source, outline, repeated: 0 }
    }

    /// The value of a document.
    pub(super) fn read(&mut self, root: Id) -> Result<Value, Box<Fault>> {
        self.value(root, 0, Use::Once)
    }

    /// Recursion is bounded: by the depth of the outline, and again here for aliases in aliases.
    fn value(&mut self, id: Id, depth: usize, used: Use) -> Result<Value, Box<Fault>> {
        let outline = self.outline;
        let node = outline.node(id);
        self.charge(node, depth, used)?;
        match &node.kind {
            Kind::Scalar(..) => {
                let value = self.scalar(node)?.value();
                value.ok_or_else(|| {
                    self.fault(node, "JSON has no such number").help("put it in quotes").into()
                })
            }
            Kind::List(_, items) => {
                let elements = items.iter().map(|item| self.value(*item, depth + 1, used));
                elements.collect::<Result<_, _>>().map(Value::Array)
            }
            Kind::Map(_, entries) => {
                let mut map = Map::with_capacity(entries.len());
                self.fill(&mut map, entries, depth, used)?;
                Ok(Value::Object(map))
            }
            Kind::Alias(target) => self.value(*target, depth, Use::Again),
        }
    }

    /// Reads the entries of one mapping into `map`. As in go-yaml v2 a merge key counts where it
    /// stands: it yields to what follows it and wins over what is before it.
    fn fill(
        &mut self,
        map: &mut Map<String, Value>,
        entries: &[(Id, Id)],
        depth: usize,
        used: Use,
    ) -> Result<(), Box<Fault>> {
        let text = self.source.text();
        let merges = entries.iter().any(|(key, _)| is_merge(self.outline.node(*key), text));
        // Without merge keys whatever the map holds already is from this mapping.
        let mut own = (merges || !map.is_empty()).then(BTreeSet::new);
        for (index, (key, value)) in entries.iter().enumerate() {
            if is_merge(self.outline.node(*key), text) {
                self.merge(map, *value, depth, used)?;
                continue;
            }
            let name = self.key(*key, used)?;
            let value = self.value(*value, depth + 1, used)?;
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
        from: Id,
        depth: usize,
        used: Use,
    ) -> Result<(), Box<Fault>> {
        let outline = self.outline;
        let used = if matches!(outline.node(from).kind, Kind::Alias(_)) { Use::Again } else { used };
        let node = outline.node(outline.resolve(from));
        self.charge(node, depth + 1, used)?;
        match &node.kind {
            Kind::Map(_, entries) => self.fill(map, entries, depth + 1, used),
            Kind::List(_, sources) if !matches!(outline.node(from).kind, Kind::Alias(_)) => {
                for from in sources.iter().rev() {
                    if !matches!(outline.node(outline.resolve(*from)).kind, Kind::Map(..)) {
                        return Err(self.no_map(outline.node(*from)));
                    }
                    self.merge(map, *from, depth + 1, used)?;
                }
                Ok(())
            }
            _ => Err(self.no_map(outline.node(from))),
        }
    }

    fn key(&mut self, id: Id, used: Use) -> Result<String, Box<Fault>> {
        let node = self.outline.node(self.outline.resolve(id));
        self.charge(node, 0, used)?;
        if node.is_collection() {
            let fault = self.fault(self.outline.node(id), "a list or mapping cannot be a key");
            return Err(fault.help("put a template expression in quotes").into());
        }
        let key = self.scalar(node)?.key();
        key.ok_or_else(|| {
            self.fault(self.outline.node(id), "null cannot be a key").help("put it in quotes").into()
        })
    }

    fn scalar(&self, node: &'s Node) -> Result<Scalar<'s>, Box<Fault>> {
        let Kind::Scalar(style, text) = &node.kind else { return Ok(Scalar::Null) };
        resolve(text.get(self.source.text()), *style, node.tag)
            .map_err(|message| self.fault(node, &message).into())
    }

    fn duplicate(&self, earlier: &[(Id, Id)], key: Id, name: &str) -> Box<Fault> {
        let text = self.source.text();
        let same = |id: &Id| {
            let merge = is_merge(self.outline.node(*id), text);
            !merge && key_name(self.outline, *id, text).as_deref() == Some(name)
        };
        let first = earlier.iter().map(|(key, _)| *key).find(same).unwrap_or(key);
        let first = self.outline.node(first);
        let place = self.source.span(first.content, first.end);
        let mut fault = self.fault(self.outline.node(key), &format!("the key {name:?} is given twice"));
        fault.help = Some(format!("remove one; the first is at line {}", place.line));
        fault.second = Some((place, "first given here"));
        fault.into()
    }

    /// Counts what aliases repeat, and how deep.
    fn charge(&mut self, node: &Node, depth: usize, used: Use) -> Result<(), Box<Fault>> {
        if depth > MAX_DEPTH {
            let message = format!("aliases nest this deeper than {MAX_DEPTH} levels");
            return Err(self.fault(node, &message).into());
        }
        if used == Use::Again {
            let text = match &node.kind {
                Kind::Scalar(_, text) => text.get(self.source.text()).len(),
                _ => 0,
            };
            self.repeated += NODE_COST + text;
            if self.repeated > MAX_REPEATED {
                let message = format!("aliases repeat more than {} MiB", MAX_REPEATED >> 20);
                return Err(self.fault(node, &message).help("write it out without aliases").into());
            }
        }
        Ok(())
    }

    fn no_map(&self, node: &Node) -> Box<Fault> {
        self.fault(node, "a merge key takes a mapping, or a list of mappings").into()
    }

    fn fault(&self, node: &Node, message: &str) -> Fault {
        Fault::new(self.source, self.source.span(node.content, node.end), message)
    }
}

/// Whether a key is `<<`, the merge key.
pub(super) fn is_merge(key: &Node, source: &str) -> bool {
    match &key.kind {
        Kind::Scalar(style, text) if text.get(source) == "<<" => {
            key.tag == Tag::Merge || (key.tag == Tag::None && *style == Style::Plain)
        }
        _ => false,
    }
}

/// The name of a key that was read without fault before.
pub(super) fn key_name(outline: &Outline, key: Id, source: &str) -> Option<String> {
    let node = outline.node(outline.resolve(key));
    let Kind::Scalar(style, text) = &node.kind else { return None };
    resolve(text.get(source), *style, node.tag).ok()?.key()
}

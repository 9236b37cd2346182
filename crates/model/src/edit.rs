//! Edits: the changes a decision makes to the object, each with its origin.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use memgate_primitives::named::named;
use memgate_primitives::pointer::Pointer;

/// The rule of an edit that writes the default memory of a namespace. A policy's default for the same field replaces
/// this edit.
pub const NAMESPACE_DEFAULT: &str = "the namespace's default Memory";

named! {
    /// How an edit changes the object; a subset of RFC 6902.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Op {
        /// Sets a field (also over `null`), or inserts before the list element of that index.
        Add = "add",
        /// Sets a field or list element that exists.
        Replace = "replace",
        /// Takes away a field that exists.
        Remove = "remove",
    }
}

/// What an edit writes. Serializes to the JSON value itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// One environment variable.
    Env(EnvVar),
    /// A whole `env` list, where the container had none.
    EnvList(Vec<EnvVar>),
    /// An object with one string entry, where the map did not exist.
    Entry(Entry),
    /// A whole container, volume or other tree, or a list of them where there was none.
    Tree(serde_json::Value),
    /// Nothing: the edit takes something away.
    Nothing,
}

/// An environment variable of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvVar {
    /// The name.
    pub name: Cow<'static, str>,
    /// The literal or the reference.
    #[serde(flatten)]
    pub source: EnvSource,
}

/// Where the value of an environment variable comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum EnvSource {
    /// A literal.
    #[serde(rename = "value")]
    Value(String),
    /// A reference to a Secret; memgate never sees the value behind it.
    #[serde(rename = "valueFrom", serialize_with = "secret")]
    Secret(KeyRef),
    /// A reference to a ConfigMap.
    #[serde(rename = "valueFrom", serialize_with = "config_map")]
    ConfigMap(KeyRef),
}

fn secret<S: serde::Serializer>(key: &KeyRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("secretKeyRef", key)])
}

fn config_map<S: serde::Serializer>(key: &KeyRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("configMapKeyRef", key)])
}

/// A key of a Secret or a ConfigMap in the pod's own namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyRef {
    /// The name of the Secret or ConfigMap.
    pub name: String,
    /// The key in its data.
    pub key: Cow<'static, str>,
    /// Whether the container starts without it; `None` leaves the field out, which means no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// A map with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(pub String, pub String);

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(&self.0, &self.1)])
    }
}

/// Where an edit comes from. The diff shows it beside each added line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The object whose field decided, as `Kind namespace/name`; empty for one of memgate's own rules.
    pub resource: Arc<str>,
    /// The field of that object, Kubernetes style; empty when the rule is enough.
    pub field: Cow<'static, str>,
    /// A short name of the rule.
    pub rule: &'static str,
}

/// One change to the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The operation.
    pub op: Op,
    /// The place, valid after the edits before it were applied.
    pub pointer: Pointer,
    /// The value to write.
    pub value: Value,
    /// One origin for each part of the value: one for a plain value, one for each element of a list.
    pub origins: Vec<Origin>,
}

impl Edit {
    /// Adds a value that comes from one place.
    pub fn add(pointer: Pointer, value: Value, origin: Origin) -> Self {
        Self { op: Op::Add, pointer, value, origins: vec![origin] }
    }

    /// Whether it gives a pod what it lacks of its memory. Others mend a part, take it out, or say what was added.
    pub fn gives_memory(&self) -> bool {
        let at = self.pointer.as_str();
        let mends = at.strip_prefix("/spec/initContainers/").is_some_and(|part| part.contains('/'));
        let is_other = at.starts_with("/metadata/annotations") || at.starts_with("/spec/volumes");
        self.op != Op::Remove && !mends && !is_other
    }

    /// At least as many bytes as the edit has in a JSON patch, found without writing it.
    pub fn most_bytes(&self) -> usize {
        /// More bytes than a variable or an edit has beside its texts.
        const AROUND: usize = 256;
        /// A control character has so many bytes as an escape.
        const ESCAPE: usize = 6;
        let of_variable = |variable: &EnvVar| {
            let of_key = |key: &KeyRef| key.name.len() + key.key.len();
            let source = match &variable.source {
                EnvSource::Value(text) => text.len(),
                EnvSource::Secret(key) | EnvSource::ConfigMap(key) => of_key(key),
            };
            AROUND + ESCAPE * (variable.name.len() + source)
        };
        let of_value = match &self.value {
            Value::Text(text) => ESCAPE * text.len(),
            Value::Env(variable) => of_variable(variable),
            Value::EnvList(variables) => variables.iter().map(of_variable).sum(),
            Value::Entry(Entry(key, text)) => ESCAPE * (key.len() + text.len()),
            Value::Tree(tree) => json_bytes(tree),
            Value::Integer(_) | Value::Nothing => 0,
        };
        AROUND + ESCAPE * self.pointer.as_str().len() + of_value
    }

    /// The size of the edit in a JSON patch, in bytes, with the comma after it.
    pub fn bytes(&self) -> usize {
        const AROUND: usize = r#"{"op":"","path":"","value":},"#.len();
        AROUND + self.op.name().len() + self.pointer.as_str().len() + json_bytes(&self.value)
    }
}

/// How many bytes a value has as JSON.
fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let _infallible = serde_json::to_writer(&mut count, value);
    count.0
}

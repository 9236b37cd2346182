//! CustomResourceDefinitions as they were read: what an apiserver asks of the objects of a kind.
//!
//! These are data: `parse` reads them from manifests, and `check` checks objects against them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

pub use crate::program::Read;
use crate::program::{self, Program};
use memgate_primitives::named::named;
use memgate_primitives::pointer::Pointer;

/// The definition of one kind.
#[derive(Debug)]
pub struct Crd {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Its versions, the newest first, as `kubectl api-versions` prefers them.
    pub versions: Vec<CrdVersion>,
}

impl Crd {
    /// The version of this name, if it is served.
    pub fn served(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.served && version.name == name)
    }

    /// The newest version that is served.
    pub fn newest(&self) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.served)
    }
}

/// One version of a kind.
#[derive(Debug)]
pub struct CrdVersion {
    /// The name, `v1alpha1`.
    pub name: String,
    /// Whether objects of it can be sent.
    pub served: bool,
    /// Whether `status` is a subresource: what users write there is dropped.
    pub has_status: bool,
    /// The form of an object.
    pub schema: SchemaNode,
}

/// The structural schema of one value. Source: Kubernetes documentation, "Specifying a structural schema".
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else about a value")]
pub struct SchemaNode {
    /// The JSON type.
    pub types: JsonTypes,
    /// Whether `null` is a value, rather than the same as nothing.
    pub nullable: bool,
    /// What an absent value becomes, in JSON.
    pub default: Option<Box<str>>,
    /// The form of a text or number.
    pub format: Option<Format>,
    /// The values that are allowed; empty for all of them.
    pub allowed: Vec<Value>,
    /// The rules on a string.
    pub text: Rare<TextRules>,
    /// The rules on a number.
    pub number: Rare<NumberRules>,
    /// The rules on a list.
    pub list: Rare<ListRules>,
    /// The rules on an object.
    pub object: Rare<ObjectRules>,
    /// At least one of these must hold.
    pub any_of: Vec<Self>,
    /// Exactly one of these must hold.
    pub one_of: Vec<Self>,
    /// All of these must hold.
    pub all_of: Vec<Self>,
    /// This must not hold.
    pub not: Option<Box<Self>>,
    /// Whether any value of the right type will do, whatever is in it.
    pub is_opaque: bool,
    /// Whether the elements of a list must differ, here or below.
    pub tells_apart: bool,
    /// The rules in CEL.
    pub rules: Vec<CelRule>,
    /// Whether there are rules in CEL, here or below.
    pub has_rules: bool,
}

impl SchemaNode {
    /// The schemas of elements and fields.
    pub fn below(&self) -> impl Iterator<Item = &Self> {
        let boxed = self.list.items.iter().chain(&self.object.additional);
        boxed.chain(self.object.properties.values()).map(AsRef::as_ref)
    }
}

/// What most schemas do not have, and then takes no more room than a pointer.
#[derive(Debug)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Rare<T> {
    /// What the value says under these keys, if it has one of them.
    pub(crate) fn of(value: &Value, keys: &[&str], read: impl FnOnce() -> T) -> Self {
        Self(keys.iter().any(|key| value.get(key).is_some()).then(|| Box::new(read())))
    }
}

impl<T: Default> Rare<T> {
    /// The rules, which are there from now on.
    pub(crate) fn made(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Rules> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::NONE)
    }
}

/// Rules of one type.
pub trait Rules: 'static {
    /// Those that allow everything.
    const NONE: &'static Self;
}

impl Rules for TextRules {
    const NONE: &'static Self = &Self { min: None, max: None, pattern: None };
}

impl Rules for NumberRules {
    const NONE: &'static Self = &Self { min: None, max: None, multiple_of: None };
}

impl Rules for ListRules {
    const NONE: &'static Self =
        &Self { items: None, min: None, max: None, unique: false, list_type: ListType::Atomic };
}

impl Rules for ObjectRules {
    const NONE: &'static Self = &Self {
        properties: BTreeMap::new(),
        defaulted: Vec::new(),
        additional: None,
        required: Vec::new(),
        min: None,
        max: None,
        preserves_unknown: false,
        embedded: false,
    };
}

/// A rule in CEL, one of `x-kubernetes-validations`, compiled when it is first used.
#[derive(Debug)]
pub struct CelRule {
    /// The expression.
    pub text: String,
    /// What the rule says when it is broken; empty if it says nothing.
    pub message: String,
    /// An expression that makes a message in place of that one.
    pub message_expression: Option<Box<Self>>,
    /// The reason of the apiserver's API (`FieldValueRequired`); empty for the usual one.
    pub reason: String,
    /// The place that is wrong, below the value of the rule.
    pub below: Pointer,
    /// Whether a rule about the stored value holds for new values too.
    pub with_new: bool,
    /// The compiled form, or why there is none.
    pub(crate) compiled: OnceLock<Result<Program, String>>,
}

impl CelRule {
    /// An expression alone.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            message: String::new(),
            message_expression: None,
            reason: String::new(),
            below: Pointer::root(),
            with_new: false,
            compiled: OnceLock::new(),
        }
    }

    /// The places below the value of the rule that it reads.
    pub fn reads(&self) -> &[Read] {
        self.program().map_or(&[], |program| &program.reads)
    }

    /// Why the rule cannot be evaluated, if it cannot.
    pub fn fault(&self) -> Option<&str> {
        self.program().err()
    }

    pub(crate) fn program(&self) -> Result<&Program, &str> {
        let compiled = self.compiled.get_or_init(|| program::compile(&self.text));
        compiled.as_ref().map_err(String::as_str)
    }
}

impl PartialEq for CelRule {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

named! {
    /// The JSON types that a value may have.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub enum JsonTypes {
        /// Any type.
        #[default]
        Any = "",
        /// A string.
        Text = "string",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
        /// A list.
        List = "array",
        /// An object.
        Object = "object",
        /// A whole number or a string.
        IntOrString = "integer,string",
    }
}

/// A format that the apiserver checks.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name as the definition writes it.
    pub name: &'static str,
    /// What it asks.
    pub rule: FormatRule,
}

/// What a format asks of a value.
#[derive(Debug, Clone, Copy)]
pub enum FormatRule {
    /// A text for which this is true.
    Text(fn(&str) -> bool),
    /// A whole number of 32 bits.
    Int32,
    /// A number that fits 32 bits.
    Float,
    /// A number that the type allows anyway.
    Wide,
}

/// The rules on a string.
#[derive(Debug, Default)]
pub struct TextRules {
    /// The least number of characters.
    pub min: Option<u64>,
    /// The greatest number of characters.
    pub max: Option<u64>,
    /// A regular expression that some part of the text matches.
    pub pattern: Option<Pattern>,
}

/// A regular expression, compiled when it is first used.
#[derive(Debug)]
pub struct Pattern {
    /// The text in the syntax of RE2.
    pub text: String,
    /// The compiled form; `None` inside if it cannot be compiled.
    pub compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// A pattern that is not compiled yet.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }
}

/// The rules on a number.
#[derive(Debug, Default)]
pub struct NumberRules {
    /// The least value.
    pub min: Option<Bound>,
    /// The greatest value.
    pub max: Option<Bound>,
    /// What the value is a multiple of.
    pub multiple_of: Option<f64>,
}

/// A bound of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The value.
    pub value: f64,
    /// Whether the value itself is out of bounds.
    pub exclusive: bool,
}

/// The rules on a list.
#[derive(Debug, Default)]
pub struct ListRules {
    /// The form of its elements.
    pub items: Option<Box<SchemaNode>>,
    /// The least number of elements.
    pub min: Option<u64>,
    /// The greatest number of elements.
    pub max: Option<u64>,
    /// Whether all elements must differ.
    pub unique: bool,
    /// The key of an element.
    pub list_type: ListType,
}

/// The key of the elements of a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum ListType {
    /// Not at all: the list is one value.
    #[default]
    Atomic,
    /// By their values: none may occur twice.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

/// The rules on an object.
#[derive(Debug, Default)]
pub struct ObjectRules {
    /// The fields by name. Each in a box: a node of the map has room for eleven, and most objects have fewer.
    pub properties: BTreeMap<String, Box<SchemaNode>>,
    /// The names of those that have a default.
    pub defaulted: Vec<String>,
    /// The form of every other field; without it other fields are dropped.
    pub additional: Option<Box<SchemaNode>>,
    /// The fields that must be there.
    pub required: Vec<String>,
    /// The least number of fields.
    pub min: Option<u64>,
    /// The greatest number of fields.
    pub max: Option<u64>,
    /// Whether unknown fields are kept.
    pub preserves_unknown: bool,
    /// Whether this is a Kubernetes object inside another one.
    pub embedded: bool,
}

impl ObjectRules {
    /// The form of a field.
    pub fn field(&self, name: &str) -> Option<&SchemaNode> {
        self.properties.get(name).or(self.additional.as_ref()).map(AsRef::as_ref)
    }
}

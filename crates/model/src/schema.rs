//! The known fields of a kind: a table that a family writes and all other code reads.
//!
//! A schema says which parts of an object are kept when it is read; everything else is skipped without being stored. What
//! is wrong with an object says its definition (`memgate-schema`).

use std::borrow::Cow;

use memgate_primitives::pointer::Pointer;

/// The expected form of one JSON value.
#[derive(Debug, Clone, Copy)]
pub enum Schema {
    /// A value whose content is not read: only its JSON type is kept.
    Any,
    /// A string.
    Text,
    /// A string of which only is kept whether it is empty: for credentials.
    Credential,
    /// An integer that fits 64 bits; `3600.0` and `1e3` are integers too, as for the apiserver.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list whose elements all have one schema.
    List(&'static Self),
    /// A list of objects, of which only those with one of these names are kept, each by its own schema: for lists whose
    /// other elements may hold credentials.
    Named(&'static [(&'static str, &'static Self)]),
    /// An object of which these fields are read. It may have others.
    Open(&'static [Field]),
    /// As `Open`, but nothing is kept of the other fields, not even their names: for objects of the state of which
    /// there can be very many.
    Pruned(&'static [Field]),
    /// As `Open`, and the JSON text of the object is kept beside the fields: for objects that are copied whole.
    Whole(&'static [Field]),
    /// As `Open`, and a digest of the whole object is kept beside the fields: for objects that are compared as a
    /// whole.
    Compared(&'static [Field]),
    /// As `Open`, or a text.
    Either(&'static [Field]),
    /// An object whose entries are all kept, such as labels.
    Texts,
    /// An object of which only the keys are kept. Used for the data of Secrets, so that secret values are never kept
    /// in memory.
    Keys,
}

/// One field of an object.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name of the field in JSON.
    pub name: &'static str,
    /// The form of its value.
    pub schema: Schema,
}

impl Field {
    /// A field of this name and form.
    pub const fn new(name: &'static str, schema: Schema) -> Self {
        Self { name, schema }
    }
}

impl Schema {
    /// The fields of an object; empty for everything else.
    pub const fn fields(&self) -> &'static [Field] {
        match self {
            Self::Open(fields)
            | Self::Pruned(fields)
            | Self::Whole(fields)
            | Self::Compared(fields)
            | Self::Either(fields) => fields,
            _ => &[],
        }
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name == name)
    }

    /// Whether the value at a place is read.
    pub fn reads(&self, pointer: &Pointer) -> bool {
        let below = |schema: Self, token: Cow<'_, str>| match schema {
            Self::List(element) => Some(*element),
            Self::Texts => Some(Self::Text),
            other => other.field(&token).map(|field| field.schema),
        };
        pointer.tokens().try_fold(*self, below).is_some()
    }

    /// The name of the expected JSON type, as messages write it; `None` if any type is allowed.
    pub const fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Any | Self::Either(_) => None,
            Self::Text | Self::Credential => Some("string"),
            Self::Integer => Some("integer"),
            Self::Boolean => Some("boolean"),
            Self::List(_) | Self::Named(..) => Some("array"),
            Self::Open(_)
            | Self::Pruned(_)
            | Self::Whole(_)
            | Self::Compared(_)
            | Self::Texts
            | Self::Keys => Some("object"),
        }
    }
}

/// Writes a schema as a tree, such as `schema! { open { "name" "phase": text, "ports": [open { "port": integer, }], } }`.
///
/// A word in front of braces is a form of an object. Brackets are a list. Names of one form share it. A constant of a
/// whole field stands alone, any other field in parentheses. Each entry ends in a comma.
#[doc(hidden)]
#[macro_export]
macro_rules! __schema {
    (@fields [$($done:expr,)*]) => { [$($done),*] };
    (@fields [$($done:expr,)*] $field:ident, $($rest:tt)*) => {
        $crate::schema::schema!(@fields [$($done,)* $field,] $($rest)*)
    };
    (@fields [$($done:expr,)*] ($field:expr), $($rest:tt)*) => {
        $crate::schema::schema!(@fields [$($done,)* $field,] $($rest)*)
    };
    (@fields [$($done:expr,)*] $($name:literal)+: $value:tt, $($rest:tt)*) => {
        $crate::schema::schema!(@fields
            [$($done,)* $($crate::schema::Field::new($name, $crate::schema::schema!($value)),)+] $($rest)*)
    };
    (@fields [$($done:expr,)*] $($name:literal)+: $form:ident $below:tt, $($rest:tt)*) => {
        $crate::schema::schema!(@fields
            [$($done,)* $($crate::schema::Field::new($name, $crate::schema::schema!($form $below)),)+] $($rest)*)
    };
    (@of $form:ident $($fields:tt)*) => {
        $crate::schema::Schema::$form(&$crate::schema::schema!(@fields [] $($fields)*))
    };
    (open { $($fields:tt)* }) => { $crate::schema::schema!(@of Open $($fields)*) };
    (whole { $($fields:tt)* }) => { $crate::schema::schema!(@of Whole $($fields)*) };
    (compared { $($fields:tt)* }) => { $crate::schema::schema!(@of Compared $($fields)*) };
    (either { $($fields:tt)* }) => { $crate::schema::schema!(@of Either $($fields)*) };
    (pruned { $($fields:tt)* }) => { $crate::schema::schema!(@of Pruned $($fields)*) };
    ([$($element:tt)+]) => { $crate::schema::Schema::List(&$crate::schema::schema!($($element)+)) };
    (any) => { $crate::schema::Schema::Any };
    (text) => { $crate::schema::Schema::Text };
    (credential) => { $crate::schema::Schema::Credential };
    (texts) => { $crate::schema::Schema::Texts };
    (integer) => { $crate::schema::Schema::Integer };
    (boolean) => { $crate::schema::Schema::Boolean };
    (keys) => { $crate::schema::Schema::Keys };
    ($schema:expr) => { $schema };
}
pub use crate::__schema as schema;

/// The `metadata` fields that are read of every kind, and these additional fields.
#[doc(hidden)]
#[macro_export]
macro_rules! __metadata {
    ($($field:expr),*) => {
        $crate::schema::schema! { open {
            "name" "generateName" "namespace" "deletionTimestamp": text,
            $(($field),)*
        } }
    };
}
pub use crate::__metadata as metadata;

/// The `metadata` fields that are read of every kind.
pub const METADATA: Schema = metadata![];

/// The `metadata` of kinds whose stored objects policies judge: policies select by labels, and a report names its
/// object by uid.
pub const METADATA_OF_JUDGED: Schema = metadata![UID, LABELS];

/// The same, for kinds whose annotations are read too.
pub const METADATA_WITH_ANNOTATIONS: Schema =
    metadata![UID, LABELS, Field::new("annotations", Schema::Texts)];

/// The labels of an object.
pub const LABELS: Field = Field::new("labels", Schema::Texts);

/// The uid of an object.
pub const UID: Field = Field::new("uid", Schema::Text);

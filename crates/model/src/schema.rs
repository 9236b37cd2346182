//! What memgate knows of a kind's fields: a table that a family writes and everything else reads.
//!
//! A schema drives three things at once: which parts of an object are kept when it is read
//! (everything else is skipped without being stored), which JSON types are wrong, and which field
//! names are unknown. It says nothing about rules between fields; those are a family's own code.

/// The expected form of one JSON value.
#[derive(Debug, Clone, Copy)]
pub enum Schema {
    /// A value that is not looked into: only its JSON type is kept.
    Any,
    /// A string.
    Text,
    /// An integer that fits 64 bits; `3600.0` and `1e3` are integers too, as for the apiserver.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list whose elements all have one schema.
    List(&'static Self),
    /// An object with exactly these fields; any other field is unknown, and pruned by the apiserver.
    Object(&'static [Field]),
    /// An object of which these fields are read, among others that do not concern memgate.
    Open(&'static [Field]),
    /// The same, and nothing is kept of the others, not even their names: for objects of the state of which there
    /// can be very many.
    Pruned(&'static [Field]),
    /// The same, and its text is kept as it stands beside them: for objects that are copied whole.
    Whole(&'static [Field]),
    /// The same, with a digest of all of it in place of its text: for objects that are compared as a whole.
    Compared(&'static [Field]),
    /// An object of which every entry is kept, such as labels.
    Texts,
    /// An object of which only the keys are kept. Used for the data of Secrets, so that no secret
    /// value ever enters memory.
    Keys,
}

/// One field of an object.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name as it stands in JSON.
    pub name: &'static str,
    /// The form of its value.
    pub schema: Schema,
    /// Wrong names that people write for this field, and what to suggest instead, beyond what
    /// spelling distance finds.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Whether likely misspellings are named even in an object that is open to other fields.
    pub guarded: bool,
}

impl Field {
    /// A field without known aliases.
    #[must_use]
    pub const fn new(name: &'static str, schema: Schema) -> Self {
        Self { name, schema, aliases: &[], guarded: false }
    }

    /// The same field with the wrong names that people write for it.
    #[must_use]
    pub const fn aliases(self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        Self { aliases, ..self }
    }

    /// The same field, whose likely misspellings are named in an open object too.
    #[must_use]
    pub const fn guarded(self) -> Self {
        Self { guarded: true, ..self }
    }
}

impl Schema {
    /// The fields of an object; empty for everything else.
    #[must_use]
    pub const fn fields(&self) -> &'static [Field] {
        match self {
            Self::Object(fields)
            | Self::Open(fields)
            | Self::Pruned(fields)
            | Self::Whole(fields)
            | Self::Compared(fields) => fields,
            Self::Any
            | Self::Text
            | Self::Integer
            | Self::Boolean
            | Self::List(_)
            | Self::Texts
            | Self::Keys => &[],
        }
    }

    /// The name of the expected JSON type, as messages say it; `None` when any will do.
    #[must_use]
    pub const fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Text => Some("string"),
            Self::Integer => Some("integer"),
            Self::Boolean => Some("boolean"),
            Self::List(_) => Some("array"),
            Self::Object(_)
            | Self::Open(_)
            | Self::Pruned(_)
            | Self::Whole(_)
            | Self::Compared(_)
            | Self::Texts
            | Self::Keys => Some("object"),
        }
    }
}

/// Metadata as every kind is read with it, and with these fields.
#[doc(hidden)]
#[macro_export]
macro_rules! __metadata {
    ($($field:expr),*) => {
        $crate::schema::Schema::Open(&[
            $crate::schema::Field::new("name", $crate::schema::Schema::Text),
            $crate::schema::Field::new("generateName", $crate::schema::Schema::Text),
            $crate::schema::Field::new("namespace", $crate::schema::Schema::Text),
            $crate::schema::Field::new("deletionTimestamp", $crate::schema::Schema::Text),
            $($field),*
        ])
    };
}
pub use crate::__metadata as metadata;

/// The metadata that every kind is read with.
pub const METADATA: Schema = metadata![];

/// The metadata of kinds whose objects policies judge where they are stored: policies select by labels, and a report
/// names its object by uid.
pub const METADATA_OF_JUDGED: Schema = metadata![UID, LABELS];

/// The same, for kinds whose annotations are read too.
pub const METADATA_WITH_ANNOTATIONS: Schema =
    metadata![UID, LABELS, Field::new("annotations", Schema::Texts)];

/// The labels of an object.
pub const LABELS: Field = Field::new("labels", Schema::Texts);

/// The uid of an object.
pub const UID: Field = Field::new("uid", Schema::Text);

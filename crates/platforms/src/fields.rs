//! The fields of a memory resource as rows, and all that is made from the rows.
//!
//! A family writes one [`MemoryField`] for each field, lists the fields that each [`Backend`] reads, and puts the
//! backends into one [`MemoryFields`] for each kind. [`Memory`] reads an object through them: its values, findings,
//! defaults, variables of pods and view. What is special about one field stays in the code of the family.

mod memory;

use crate::inject::own_memory::{OwnRow, Reads};
use crate::message::one_of;
use crate::prelude::*;
use memgate_model::edge::Key;
use memgate_model::finding::Code;
use memgate_primitives::fix::Fix;
use memgate_primitives::suggest::{did_you_mean, nearest, only_nearest};

pub(crate) use self::memory::Memory;

/// One field of a memory resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryField {
    /// Its place in the object, as a JSON pointer.
    pub(crate) path: &'static str,
    /// The names on the way to it. Reviews read fields too often to split the pointer each time.
    names: [&'static str; 4],
    /// The section that has it. An object that only refers to a Secret is not a section.
    pub(crate) section: &'static str,
    form: Form,
    /// The key that is read of the Secret.
    pub(crate) key: Key,
    /// Whether the object that refers to the Secret may be absent.
    is_optional: bool,
    /// What an absent or empty text means.
    pub(crate) default_text: Option<&'static str>,
    /// What an absent number means.
    default_number: i64,
    /// The code of the finding if it is absent, or blank though its values are free.
    required: Option<&'static Code>,
    /// The known values; none where they are free.
    pub(crate) values: Texts,
    /// Those that only older releases accept.
    pub(crate) older_values: Texts,
    /// The code of other values; `None` where only the definition of the kind refuses them.
    unsupported: Option<&'static Code>,
    /// A word for a known value, with that value.
    synonym: Option<(&'static str, &'static str)>,
    /// The path in views; empty if it has none.
    view: &'static str,
    /// The variable of pods that has its value; empty if it has none.
    pub(crate) variable: &'static str,
    /// What programs read in place of the value.
    read_as: Option<ReadAs>,
}

/// Values of a text.
type Texts = &'static [&'static str];

/// What a program reads in place of the value of a field; `None` where it gets nothing.
type ReadAs = fn(&Memory<'_>) -> Option<String>;

/// The type of a value.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A text.
    Text,
    /// A number. A negative one counts as 0, which means this, for messages.
    Number(&'static str),
    /// The name of a Secret, in an object that refers to it.
    SecretName,
}

impl MemoryField {
    /// A text.
    pub(crate) const fn text(path: &'static str) -> Self {
        Self {
            path,
            names: names(path),
            section: parent(path),
            form: Form::Text,
            key: Key::None,
            is_optional: false,
            default_text: None,
            default_number: 0,
            required: None,
            values: &[],
            older_values: &[],
            unsupported: None,
            synonym: None,
            view: "",
            variable: "",
            read_as: None,
        }
    }

    /// A number that is not negative, the default, and what 0 means. A default of 0 is not written.
    pub(crate) const fn number(path: &'static str, default: i64, zero: &'static str) -> Self {
        Self { form: Form::Number(zero), default_number: default, ..Self::text(path) }
    }

    /// The name of a Secret in an object that refers to it, and the key that is read.
    pub(crate) const fn secret_name(path: &'static str, key: Key) -> Self {
        Self { form: Form::SecretName, key, section: parent(parent(path)), ..Self::text(path) }
    }

    /// The same in an object that may be absent.
    pub(crate) const fn optional_secret_name(path: &'static str, key: Key) -> Self {
        Self { is_optional: true, ..Self::secret_name(path, key) }
    }

    /// What an absent or empty text means.
    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self { default_text: Some(default), ..self }
    }

    /// The code of the finding if it is absent from its section. If its values are free, it must not be blank either
    /// where the section is in use.
    pub(crate) const fn required(self, code: &'static Code) -> Self {
        Self { required: Some(code), ..self }
    }

    /// The values of this release, those that only older releases accept, and the code of the finding about others.
    pub(crate) const fn values(self, known: Texts, older: Texts, code: Option<&'static Code>) -> Self {
        Self { values: known, older_values: older, unsupported: code, ..self }
    }

    /// A word for a value, which the finding about the word names.
    pub(crate) const fn synonym(self, word: &'static str, value: &'static str) -> Self {
        Self { synonym: Some((word, value)), ..self }
    }

    /// Its path in views. The value at `endpoint` is set by the family itself.
    pub(crate) const fn view(self, path: &'static str) -> Self {
        Self { view: path, ..self }
    }

    /// The variable of pods that has its value.
    pub(crate) const fn variable(self, name: &'static str) -> Self {
        Self { variable: name, ..self }
    }

    /// What programs read in place of the value.
    pub(crate) const fn read_as(self, read: ReadAs) -> Self {
        Self { read_as: Some(read), ..self }
    }

    /// Its place.
    pub(crate) fn pointer(&self) -> Pointer {
        Pointer::new(self.path)
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        name(self.path)
    }

    /// Refuses a value that is not one of the known values.
    pub(crate) fn unsupported(&self, value: &str) -> Option<Finding> {
        let is_known = self.values.contains(&value) || self.older_values.contains(&value);
        let code = self.unsupported.filter(|_| !is_known)?;
        let synonym = self.synonym.filter(|(word, _)| *word == value).map(|(_, meant)| meant);
        let meant = did_you_mean(synonym.or_else(|| nearest(value, self.values.iter().copied())));
        let fix = synonym.or_else(|| only_nearest(value, self.values.iter().copied()));
        let (name, shown, known) = (self.name(), quoted_text(value), one_of(self.values));
        let message = format!("{name}: unsupported value {shown}; use {known}{meant}");
        let finding = Finding::deny(code, self.pointer(), message).fingerprint_value(value);
        Some(finding.fix(fix.map(|meant| Fix::Text(meant.to_owned()))))
    }

    /// Whether it is the name of a Secret.
    const fn is_secret(&self) -> bool {
        matches!(self.form, Form::SecretName)
    }

    /// The names on the way to it, to the object that has it, or to its section.
    fn way(&self, to: To) -> &[&'static str] {
        let depth = self.names.iter().take_while(|name| !name.is_empty()).count();
        let above = match to {
            To::Field => 0,
            To::Parent => 1,
            To::Section => 1 + usize::from(self.is_secret()),
        };
        self.names.get(..depth.saturating_sub(above)).unwrap_or_default()
    }

    /// Its paths in views, each with the place: a path below another one also has that one.
    fn places(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let place = if self.is_secret() { parent(self.path) } else { self.path };
        let above = self.view.split_once('.').map(|(above, _)| (above, self.section));
        let own = (!self.view.is_empty()).then_some((self.view, place));
        let secrets = self.is_secret().then_some(("secrets", place));
        above.into_iter().chain(own).chain(secrets)
    }
}

/// A way to keep memory.
#[derive(Debug)]
pub(crate) struct Backend {
    /// Its name in objects.
    pub(crate) name: &'static str,
    /// The section that it needs, with the code of the finding without it.
    pub(crate) section: Option<(&'static str, &'static Code)>,
    /// The fields that it reads, in the order of their variables. Some may be in other sections.
    pub(crate) fields: &'static [MemoryField],
}

/// Backends are the same if their names are, though kinds may have different fields for them.
impl PartialEq for Backend {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Backend {
    /// How programs read the variables, besides those of the endpoint.
    pub(crate) fn own_rows(&self) -> impl Iterator<Item = OwnRow> {
        let fields = self.fields.iter().filter(|it| !it.variable.is_empty() && it.view != "endpoint");
        let row = |field: &MemoryField| {
            let reads = match (field.form, field.default_text) {
                (Form::SecretName, _) => {
                    return (field.variable, "secrets", Reads::CredentialFor(field.path));
                }
                (Form::Number(_), _) => Reads::Limit,
                (Form::Text, Some(default)) if field.read_as.is_none() => Reads::TextOr(default),
                (Form::Text, _) => Reads::Text,
            };
            (field.variable, field.view, reads)
        };
        fields.map(row).filter(|(_, path, _)| !path.is_empty())
    }
}

/// The fields of one kind of memory resource.
#[derive(Debug)]
pub(crate) struct MemoryFields {
    /// The field that names the backend.
    pub(crate) backend: MemoryField,
    /// The backends, in the order in which messages list them.
    pub(crate) backends: &'static [Backend],
    /// Whether an absent name of a Secret counts as an empty one.
    pub(crate) empty_names: bool,
    /// The code of names that no Secret can have.
    pub(crate) secret_name_invalid: &'static Code,
    /// The code of negative numbers.
    pub(crate) negative: &'static Code,
}

impl MemoryFields {
    /// Reads an object.
    pub(crate) const fn of<'t>(&'static self, object: &'t Tree) -> Memory<'t> {
        Memory { fields: self, object }
    }

    /// The backend of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&'static Backend> {
        self.backends.iter().find(|backend| backend.name == name)
    }

    /// The fields of all backends.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static MemoryField> {
        self.backends.iter().flat_map(|backend| backend.fields)
    }
}

/// A place on the way to a field.
#[derive(Debug, Clone, Copy)]
enum To {
    /// The field itself.
    Field,
    /// The object that has it.
    Parent,
    /// Its section.
    Section,
}

/// The names in a JSON pointer without escapes, of four at the most.
const fn names(path: &'static str) -> [&'static str; 4] {
    let (a, rest) = first_name(path);
    let (b, rest) = first_name(rest);
    let (c, rest) = first_name(rest);
    let (d, _) = first_name(rest);
    [a, b, c, d]
}

/// The first name in a JSON pointer, and the rest of it.
const fn first_name(path: &'static str) -> (&'static str, &'static str) {
    let mut rest = path.as_bytes();
    let mut end = 0;
    while let [byte, behind @ ..] = rest {
        if *byte == b'/' && end > 0 {
            break;
        }
        (rest, end) = (behind, end + 1);
    }
    let (first, rest) = path.split_at(end);
    if first.is_empty() { (first, rest) } else { (first.split_at(1).1, rest) }
}

/// The JSON pointer to the object that has a field.
const fn parent(path: &'static str) -> &'static str {
    let mut rest = path.as_bytes();
    let (mut at, mut last) = (0, 0);
    while let [byte, behind @ ..] = rest {
        if *byte == b'/' {
            last = at;
        }
        (rest, at) = (behind, at + 1);
    }
    path.split_at(last).0
}

/// The name of a field in messages.
fn name(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

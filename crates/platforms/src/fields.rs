//! The fields of a memory resource as rows, and all that is made from the rows.
//!
//! A family writes one [`MemoryField`] for each field, lists the fields that each [`Backend`] reads, and puts the
//! backends into one [`MemoryFields`] for each kind. [`Memory`] reads an object through them: its values, findings,
//! defaults, variables of pods and view. What is special about one field stays in the code of the family.

use std::sync::Arc;

use crate::inject::env::Variable;
use crate::inject::field_origin;
use crate::inject::own_memory::{OwnRow, Reads};
use crate::prelude::*;
use memgate_model::edge::Key;
use memgate_model::edit::{Edit, EnvSource, KeyRef, Origin, Value};
use memgate_model::finding::Code;
use memgate_model::memory_view::{MemoryView, SecretView, ViewValue};
use memgate_primitives::fix::Fix;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::suggest::{did_you_mean, nearest, only_nearest};

/// One field of a memory resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryField {
    /// Its place in the object, as a JSON pointer.
    pub(crate) path: &'static str,
    form: Form,
    required: Option<Required>,
    values: Option<Values>,
    /// The path in views; empty if it has none.
    view: &'static str,
    /// The variable of pods that has its value; empty if it has none.
    pub(crate) variable: &'static str,
    /// What programs read in place of the value.
    read_as: Option<ReadAs>,
}

/// What a program reads in place of the value of a field; `None` where it gets nothing.
type ReadAs = fn(&Memory<'_>) -> Option<String>;

/// The values of a field.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A text. An absent or empty one means the default, if it has one.
    Text(Option<&'static str>),
    /// A number with its default; a negative number counts as 0. A default of 0 is only what an absent number means.
    Number {
        default: i64,
        /// What 0 means, for messages.
        zero: &'static str,
    },
    /// The name of a Secret, in an object that refers to it, and the key that is read.
    SecretName(Key),
}

/// When a field must be set, and the code of the finding if it is not.
#[derive(Debug, Clone, Copy)]
struct Required {
    code: &'static Code,
    /// Whether only an object that refers to a Secret needs it, and not the section.
    in_reference: bool,
}

/// The known values of a text.
#[derive(Debug, Clone, Copy)]
struct Values {
    /// The code of other values; `None` where only the definition of the kind refuses them.
    code: Option<&'static Code>,
    known: &'static [&'static str],
    /// Those that only older releases accept.
    older: &'static [&'static str],
    /// A word for a known value.
    synonym: Option<[&'static str; 2]>,
}

impl MemoryField {
    /// A field with a text.
    pub(crate) const fn text(path: &'static str) -> Self {
        let form = Form::Text(None);
        Self { path, form, required: None, values: None, view: "", variable: "", read_as: None }
    }

    /// A field with a number; `zero` is what 0 means, for messages.
    pub(crate) const fn number(path: &'static str, default: i64, zero: &'static str) -> Self {
        Self { form: Form::Number { default, zero }, ..Self::text(path) }
    }

    /// The name of a Secret.
    pub(crate) const fn secret_name(path: &'static str, key: Key) -> Self {
        Self { form: Form::SecretName(key), ..Self::text(path) }
    }

    /// A text with this default.
    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self { form: Form::Text(Some(default)), ..self }
    }

    /// Every section of this kind needs it. Without known values, it must not be blank in a section in use.
    pub(crate) const fn required(self, code: &'static Code) -> Self {
        Self { required: Some(Required { code, in_reference: false }), ..self }
    }

    /// The object that refers to the Secret needs it.
    pub(crate) const fn required_in_reference(self, code: &'static Code) -> Self {
        Self { required: Some(Required { code, in_reference: true }), ..self }
    }

    /// Its values: those of this release, and those that only older releases accept.
    pub(crate) const fn values(self, known: &'static [&'static str], older: &'static [&'static str]) -> Self {
        Self { values: Some(Values { code: None, known, older, synonym: None }), ..self }
    }

    /// The code of other values, which are refused, and a word for one of the known values.
    pub(crate) const fn refuses_others(
        self,
        code: &'static Code,
        synonym: Option<[&'static str; 2]>,
    ) -> Self {
        let Some(values) = self.values else { return self };
        Self { values: Some(Values { code: Some(code), synonym, ..values }), ..self }
    }

    /// Its path in views. The family itself sets `endpoint`.
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

    /// The key that is read of the Secret that it names.
    pub(crate) const fn secret_key(&self) -> Key {
        if let Form::SecretName(key) = self.form { key } else { Key::None }
    }

    /// Its place.
    pub(crate) fn pointer(&self) -> Pointer {
        Pointer::new(self.path)
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        self.pointer().field()
    }

    /// The values of this release, if a value is one that only older releases accept.
    pub(crate) fn instead_of_older(&self, value: &str) -> Option<&'static [&'static str]> {
        self.values.filter(|values| values.older.contains(&value)).map(|values| values.known)
    }

    /// Refuses a value that is not one of the known values.
    pub(crate) fn unsupported(&self, value: &str) -> Option<Finding> {
        let Values { code, known, older, synonym } = self.values?;
        let code = code.filter(|_| !known.contains(&value) && !older.contains(&value))?;
        let synonym = synonym.filter(|[word, _]| *word == value).map(|[_, meant]| meant);
        let known_values = || known.iter().copied();
        let meant = did_you_mean(synonym.or_else(|| nearest(value, known_values())));
        let fix = synonym.or_else(|| only_nearest(value, known_values()));
        let message =
            format!("{}: unsupported value {}; use {}{meant}", self.name(), quoted(value), one_of(known));
        let finding = Finding::deny(code, self.pointer(), message).fingerprint_value(value);
        Some(finding.fix(fix.map(|meant| Fix::Text(meant.to_owned()))))
    }

    /// The object that has it.
    fn parent(&self) -> &'static str {
        parent(self.path)
    }

    /// The section that has it. An object that only names a Secret is not a section.
    fn section(&self) -> &'static str {
        if self.is_secret() { parent(self.parent()) } else { self.parent() }
    }

    const fn is_secret(&self) -> bool {
        matches!(self.form, Form::SecretName(_))
    }

    /// Its paths in views, each with the place: a path below another one also has that one.
    fn places(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let place = if self.is_secret() { self.parent() } else { self.path };
        let above = self.view.split_once('.').map(|(above, _)| (above, self.section()));
        let own = Some((self.view, place)).filter(|(path, _)| !path.is_empty());
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
    /// Sets what a program reads of each field without its variable.
    pub(crate) fn set_without_variables(&self, view: &mut MemoryView) {
        for field in self.fields.iter().filter(|field| !field.view.is_empty() && field.read_as.is_none()) {
            match field.form {
                Form::Number { .. } => view.set(field.view, Some(0_i64)),
                Form::Text(Some(default)) => view.set(field.view, Some(default)),
                Form::Text(None) | Form::SecretName(_) => {}
            }
        }
    }

    /// How the variables that a pod sets itself are read, besides those of the endpoint.
    pub(crate) fn own_rows(&self) -> impl Iterator<Item = OwnRow> {
        let fields = self.fields.iter().filter(|it| !it.variable.is_empty() && it.view != "endpoint");
        fields.filter_map(|field| {
            let (path, reads) = match field.form {
                Form::Number { .. } => (field.view, Reads::Limit),
                Form::SecretName(_) => ("secrets", Reads::CredentialFor(field.path)),
                Form::Text(Some(default)) if field.read_as.is_none() => (field.view, Reads::TextOr(default)),
                Form::Text(_) => (field.view, Reads::Text),
            };
            (!path.is_empty()).then_some((field.variable, path, reads))
        })
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

/// An object, read through its rows. A value of the wrong type reads as absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory<'t> {
    fields: &'static MemoryFields,
    object: &'t Tree,
}

impl<'t> Memory<'t> {
    /// The backend, if it is one of the known ones.
    pub(crate) fn backend(&self) -> Option<&'static Backend> {
        self.fields.named(self.text(&self.fields.backend)?)
    }

    /// The value at a JSON pointer without escapes.
    pub(crate) fn at(&self, path: &str) -> Option<&'t Tree> {
        path.split('/').skip(1).try_fold(self.object, |tree, name| tree.get(name))
    }

    /// Whether the object has an object at a JSON pointer.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.at(path).is_some_and(Tree::is_object)
    }

    /// The text of a field.
    pub(crate) fn text(&self, field: &MemoryField) -> Option<&'t str> {
        let is_empty = || self.fields.empty_names && field.is_secret() && self.has(field.parent());
        self.at(field.path).and_then(Tree::text).or_else(|| is_empty().then_some(""))
    }

    /// The text of a field, or its default if it is absent or empty.
    pub(crate) fn text_or_default(&self, field: &MemoryField) -> Option<&'t str> {
        let text = self.text(field);
        if let Form::Text(Some(default)) = field.form {
            text.filter(|it| !it.is_empty()).or(Some(default))
        } else {
            text
        }
    }

    /// The fields that the backend reads, of the sections that the object has.
    fn in_use(self) -> impl Iterator<Item = &'static MemoryField> {
        let fields = self.backend().map_or(&[][..], |backend| backend.fields);
        fields.iter().filter(move |field| self.has(field.section()))
    }

    /// What the definition of the kind requires, whatever the backend.
    pub(crate) fn of_schema(&self) -> Vec<Finding> {
        let (backend, spec) = (&self.fields.backend, Pointer::new("/spec"));
        if let (Some(required), None) = (backend.required, self.at(spec.as_str())) {
            return vec![Finding::deny(required.code, spec, "spec is required")];
        }
        let findings = [backend].into_iter().chain(self.fields.all()).filter_map(|field| {
            if let Some(text) = self.text(field) {
                return field.unsupported(text);
            }
            let required = field.required?;
            let needs = if required.in_reference { field.parent() } else { field.section() };
            self.has(needs)
                .then(|| self.missing(field, required, if field.is_secret() { "" } else { "absent" }))
        });
        findings.collect()
    }

    /// What the backend requires.
    pub(crate) fn of_backend(&self) -> Vec<Finding> {
        let Some((backend, (section, code))) = self.backend().and_then(|it| Some((it, it.section?))) else {
            return Vec::new();
        };
        if !self.has(section) {
            return vec![self.section_missing(section, code)];
        }
        backend.fields.iter().filter_map(|field| self.unusable(field)).collect()
    }

    /// Refuses a value that the definition of the kind allows, and that the backend cannot use.
    fn unusable(&self, field: &MemoryField) -> Option<Finding> {
        let (required, text) = (field.required?, self.text(field)?);
        let is_secret = field.is_secret();
        let is_missing = if is_secret { text.is_empty() } else { text.trim().is_empty() };
        if is_missing {
            return field.values.is_none().then(|| self.missing(field, required, text));
        }
        let message = || format!("{}: {} is not a valid Secret name", field.name(), quoted(text));
        let code = self.fields.secret_name_invalid;
        let finding = || Finding::deny(code, field.pointer(), message()).fingerprint_value(text);
        (is_secret && !is_dns_subdomain(text)).then(finding)
    }

    /// Refuses a field without a value. What the backend needs depends on the backend.
    fn missing(&self, field: &MemoryField, required: Required, value: &str) -> Finding {
        let reference = field.parent().rsplit('/').next().filter(|_| required.in_reference);
        let when = reference.map(|name| format!(" when {name} is set")).unwrap_or_default();
        let message = format!("{} is required{when}", field.name());
        if field.values.is_none() {
            return self.denial(required.code, field.path, message, value);
        }
        Finding::deny(required.code, field.pointer(), message)
    }

    /// Refuses an object without a section that its backend needs.
    pub(crate) fn section_missing(&self, section: &str, code: &'static Code) -> Finding {
        let backend = self.text(&self.fields.backend).unwrap_or_default();
        let message = format!("{} is required when backend is \"{backend}\"", Pointer::new(section).field());
        self.because(self.denial(code, section, message, "absent"))
    }

    /// A denial that depends on the backend and on a value.
    pub(crate) fn denial(
        &self,
        code: &'static Code,
        path: &str,
        message: impl Into<String>,
        value: &str,
    ) -> Finding {
        let backend = self.text(&self.fields.backend).unwrap_or_default();
        Finding::deny(code, Pointer::new(path), message).fingerprint_value(format!("{backend}: {value}"))
    }

    /// Relates a finding to the backend that causes it.
    pub(crate) fn because(&self, finding: Finding) -> Finding {
        finding.related(self.fields.backend.pointer(), "because of this backend")
    }

    /// The sections that the backend does not use, each with the backend that would.
    pub(crate) fn unused_sections(&self) -> impl Iterator<Item = (&'static str, &'static Backend)> {
        let (memory, chosen) = (*self, self.backend());
        let others = self.fields.backends.iter().filter(move |it| chosen.is_some_and(|chosen| chosen != *it));
        let sections = others.filter_map(|backend| Some((backend.section?.0, backend)));
        sections.filter(move |(section, _)| memory.has(section))
    }

    /// Warns about the negative numbers in use.
    pub(crate) fn negative_numbers(&self) -> Vec<Finding> {
        let negative = self.in_use().filter_map(|field| {
            let Form::Number { zero, .. } = field.form else { return None };
            self.at(field.path)?.integer().filter(|number| *number < 0)?;
            let message = format!("{} is negative and means {zero}; write 0", field.name());
            Some(Finding::warn(self.fields.negative, field.pointer(), message))
        });
        negative.collect()
    }

    /// One `add` for each missing default, whatever the backend.
    pub(crate) fn defaults(&self) -> Vec<Edit> {
        let edit = |field: &MemoryField| {
            let value = match field.form {
                Form::Number { default, .. } if default != 0 => Value::Integer(default),
                Form::Text(Some(default)) => Value::Text(default.to_owned()),
                _ => return None,
            };
            let is_missing = self.has(field.section()) && self.at(field.path).is_none();
            let field_name = field.name().into();
            let origin = Origin { resource: "".into(), field: field_name, rule: "default of the CRD" };
            is_missing.then(|| Edit::add(field.pointer(), value, origin))
        };
        self.fields.all().filter_map(edit).collect()
    }

    /// Whether two versions hand on the same values to pods, with absent values and their defaults alike. An empty text
    /// is handed on as it is.
    pub(crate) fn hands_on_same(&self, other: &Self) -> bool {
        let is_same = |field: &MemoryField| {
            self.has(field.section()) == other.has(field.section()) && self.raw(field) == other.raw(field)
        };
        let mut fields = self.backend().map_or(&[][..], |backend| backend.fields).iter();
        self.text(&self.fields.backend) == other.text(&self.fields.backend)
            && fields.all(|field| field.variable.is_empty() || is_same(field))
    }

    /// The text or number of a field, or its default.
    fn raw(&self, field: &MemoryField) -> (Option<&'t str>, i64) {
        match field.form {
            Form::Number { default, .. } => (None, self.number(field, default)),
            Form::Text(default) => (self.text(field).or(default), 0),
            Form::SecretName(_) => (self.text(field), 0),
        }
    }

    fn number(&self, field: &MemoryField, default: i64) -> i64 {
        self.at(field.path).and_then(Tree::integer).unwrap_or(default).max(0)
    }

    /// The variables of pods with a valid memory, in order; `resource` names the memory.
    pub(crate) fn variables(&self, resource: &Arc<str>) -> Vec<Variable<'static>> {
        let backend = self.backend().map(|_| &self.fields.backend);
        backend.into_iter().chain(self.in_use()).filter_map(|field| self.variable(field, resource)).collect()
    }

    fn variable(&self, field: &MemoryField, resource: &Arc<str>) -> Option<Variable<'static>> {
        if field.variable.is_empty() {
            return None;
        }
        let origin = || field_origin(resource, field.name());
        let literal = |text: String| Variable::literal(field.variable, text, origin());
        let unless_optional = || field.required.filter(|it| !it.in_reference).map(|_| "");
        match (field.form, field.read_as) {
            (Form::Number { default, .. }, _) => Some(self.number(field, default))
                .filter(|number| *number > 0)
                .map(|it| literal(it.to_string())),
            (Form::SecretName(Key::Fixed(key)), _) => {
                let name = self.text(field).or_else(unless_optional)?.to_owned();
                let source = EnvSource::Secret(KeyRef { name, key: key.into(), optional: None });
                Some(Variable::new(field.variable, source, origin()).ignoring_optional())
            }
            (Form::SecretName(_), _) => None,
            (Form::Text(_), Some(read_as)) => read_as(self).map(literal),
            (Form::Text(default), None) => {
                let variable = literal(self.text_or_default(field).or_else(unless_optional)?.to_owned());
                // Operators write an empty variable for an empty text.
                let may_be_empty = default.is_some() && self.text(field) == Some("");
                Some(if may_be_empty { variable.or_empty() } else { variable })
            }
        }
    }

    /// Adds the fields to the view of the object: their places, or those that they would have with this backend, the
    /// values and the Secrets.
    pub(crate) fn add_to(&self, view: &mut MemoryView) {
        self.add_places(view);
        for field in self.in_use() {
            if let Some((above, _)) = field.view.split_once('.') {
                view.set(above, Some(ViewValue::Object));
            }
            match field.form {
                Form::SecretName(key) => self.add_secret(view, field, key),
                _ if matches!(field.view, "" | "endpoint") => {}
                Form::Number { default, .. } => {
                    let number = self.at(field.path).map_or(Some(default), Tree::integer);
                    view.set(field.view, number.map(|number| number.max(0)));
                }
                Form::Text(default) => {
                    let text = match self.at(field.path) {
                        None => default,
                        Some(text) => {
                            text.text().map(|it| default.filter(|_| it.trim().is_empty()).unwrap_or(it))
                        }
                    };
                    view.set(
                        field.view,
                        field.read_as.map_or(text.map(str::to_owned), |read_as| read_as(self)),
                    );
                }
            }
        }
    }

    /// A path that several backends have is at the backend's name, unless the backend is one of them.
    fn add_places(&self, view: &mut MemoryView) {
        for backend in self.fields.backends {
            let is_own =
                |field: &&MemoryField| backend.section.is_some_and(|(section, _)| section == field.section());
            for (path, place) in backend.fields.iter().filter(is_own).flat_map(MemoryField::places) {
                view.at(path, if view.has_place(path) { self.fields.backend.path } else { place });
            }
        }
        let chosen = self.backend().map_or(&[][..], |backend| backend.fields);
        for (path, place) in chosen.iter().rev().flat_map(MemoryField::places) {
            view.at(path, place);
        }
    }

    fn add_secret(&self, view: &mut MemoryView, field: &MemoryField, key: Key) {
        let beside = |key: &str| self.at(field.parent())?.get(key)?.text().filter(|text| !text.is_empty());
        let key = match key {
            Key::Fixed(key) => Some(key),
            Key::Beside(key) => beside(key),
            _ => None,
        };
        if let Some(name) = self.text(field).filter(|name| !name.is_empty()) {
            view.secrets.push(SecretView::new((&view.namespace, name), key, field.pointer()));
        }
    }
}

/// The JSON pointer to the object that has a field.
fn parent(path: &'static str) -> &'static str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// `"a", "b" or "c"`.
pub(crate) fn one_of(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}

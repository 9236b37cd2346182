//! A memory resource, read through the rows of its fields.

use std::sync::Arc;

use super::{Backend, Form, MemoryField, MemoryFields, To, name, parent};
use crate::inject::env::Variable;
use crate::inject::field_origin;
use crate::prelude::*;
use memgate_model::edge::Key;
use memgate_model::edit::{Edit, EnvSource, KeyRef, Origin, Value};
use memgate_model::finding::Code;
use memgate_model::memory_view::{MemoryView, SecretView, ViewValue};
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::quoted_single;

/// An object, read through its rows. A value of the wrong type reads as absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory<'t> {
    pub(super) fields: &'static MemoryFields,
    pub(super) object: &'t Tree,
}

impl<'t> Memory<'t> {
    /// The backend, if it is one of the known ones.
    pub(crate) fn backend(&self) -> Option<&'static Backend> {
        self.fields.named(self.backend_name())
    }

    /// The name of the backend, which may be unknown; empty if there is none.
    fn backend_name(&self) -> &'t str {
        self.text(&self.fields.backend).unwrap_or_default()
    }

    /// The value at a JSON pointer without escapes.
    pub(crate) fn at(&self, path: &str) -> Option<&'t Tree> {
        path.split('/').skip(1).try_fold(self.object, |tree, name| tree.get(name))
    }

    /// The value of a field, or of what has it.
    fn value(&self, field: &MemoryField, to: To) -> Option<&'t Tree> {
        self.object.at(field.way(to))
    }

    /// Whether the object has the section of a field.
    pub(crate) fn has_section(&self, field: &MemoryField) -> bool {
        self.value(field, To::Section).is_some_and(Tree::is_object)
    }

    /// Whether the object has an object at a JSON pointer.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.at(path).is_some_and(Tree::is_object)
    }

    /// The text of a field.
    pub(crate) fn text(&self, field: &MemoryField) -> Option<&'t str> {
        let has_parent = || self.value(field, To::Parent).is_some_and(Tree::is_object);
        let is_empty = || self.fields.empty_names && field.is_secret() && has_parent();
        self.value(field, To::Field).and_then(Tree::text).or_else(|| is_empty().then_some(""))
    }

    /// The text of a field, or its default if it is absent or empty.
    pub(crate) fn text_or_default(&self, field: &MemoryField) -> Option<&'t str> {
        let text = self.text(field);
        text.filter(|text| !text.is_empty()).or(field.default_text).or(text)
    }

    /// The number of a field, or its default.
    pub(crate) fn number(&self, field: &MemoryField) -> i64 {
        self.value(field, To::Field).and_then(Tree::integer).unwrap_or(field.default_number).max(0)
    }

    /// The fields that the backend reads.
    pub(crate) fn of_backend(&self) -> &'static [MemoryField] {
        self.backend().map_or(&[], |backend| backend.fields)
    }

    /// Those of the sections that the object has.
    fn in_use(self) -> impl Iterator<Item = &'static MemoryField> {
        self.of_backend().iter().filter(move |field| self.has_section(field))
    }

    /// What the definition of the kind refuses, whatever the backend.
    pub(crate) fn schema_findings(&self) -> Vec<Finding> {
        let backend = &self.fields.backend;
        if let (Some(code), None) = (backend.required, self.at("/spec")) {
            return vec![Finding::deny(code, "/spec", "spec is required")];
        }
        let finding = |field: &MemoryField| {
            if let Some(text) = self.text(field) {
                return field.unsupported(text);
            }
            let code = field.required?;
            let reference = || self.value(field, To::Parent).is_some();
            // The backend is missing from a spec of the wrong type, too.
            let is_in_use = || field.path == backend.path || self.has_section(field);
            let is_needed = if field.is_optional { reference() } else { is_in_use() };
            is_needed.then(|| self.missing(field, code, if field.is_secret() { "" } else { "absent" }))
        };
        [backend].into_iter().chain(self.fields.all()).filter_map(finding).collect()
    }

    /// What only the backend refuses.
    pub(crate) fn backend_findings(&self) -> Vec<Finding> {
        match self.backend().and_then(|backend| backend.section) {
            Some((section, code)) if !self.has(section) => vec![self.wrong_section(section, code)],
            _ => self.of_backend().iter().filter_map(|field| self.unusable(field)).collect(),
        }
    }

    /// Refuses a text that the definition of the kind allows, and that the backend cannot use.
    fn unusable(&self, field: &MemoryField) -> Option<Finding> {
        let (code, text) = (field.required.filter(|_| field.values.is_empty())?, self.text(field)?);
        let is_blank = if field.is_secret() { text.is_empty() } else { text.trim().is_empty() };
        if is_blank {
            return Some(self.missing(field, code, text));
        }
        let message = || format!("{}: {} is not a valid Secret name", field.name(), quoted_single(text));
        let invalid = || Finding::deny(self.fields.secret_name_invalid, field.pointer(), message());
        (field.is_secret() && !is_dns_subdomain(text))
            .then(|| invalid().fingerprint_value(text).proposing_name(text))
    }

    /// Refuses a field without a value. That values are known says the definition of the kind, for every backend.
    fn missing(&self, field: &MemoryField, code: &'static Code, value: &str) -> Finding {
        let reference = parent(field.path).rsplit('/').next().filter(|_| field.is_optional);
        let when = reference.map(|name| format!(" when {name} is set")).unwrap_or_default();
        let finding = self.denial(code, field.path, format!("{} is required{when}", field.name()), value);
        if field.values.is_empty() { finding } else { finding.fingerprint_value("") }
    }

    /// The same as for a missing section, with those that are there instead.
    fn wrong_section(&self, section: &str, code: &'static Code) -> Finding {
        let finding = self.section_missing(section, code);
        let filled: Vec<String> = self.unused_sections().map(|(section, _)| name(section)).collect();
        if filled.is_empty() {
            return finding;
        }
        let are = if filled.len() == 1 { "is" } else { "are" };
        let filled = filled.join(" and ");
        let message =
            format!("{}; backend says {}, but {filled} {are} filled", finding.message(), self.backend_name());
        finding.with_message(message)
    }

    /// Refuses an object without a section that its backend needs.
    pub(crate) fn section_missing(&self, section: &str, code: &'static Code) -> Finding {
        let message = format!("{} is required when backend is \"{}\"", name(section), self.backend_name());
        self.because(self.denial(code, section, message, "absent"))
    }

    /// A denial that depends on the backend and on a value.
    pub(crate) fn denial(&self, code: &'static Code, path: &str, message: String, value: &str) -> Finding {
        let fingerprint = format!("{}: {value}", self.backend_name());
        Finding::deny(code, Pointer::new(path), message).fingerprint_value(fingerprint)
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
    pub(crate) fn negative_numbers(self) -> impl Iterator<Item = Finding> {
        self.in_use().filter_map(move |field| {
            let Form::Number(zero) = field.form else { return None };
            self.value(field, To::Field)?.integer().filter(|number| *number < 0)?;
            let message = format!("{} is negative and means {zero}; write 0", field.name());
            Some(Finding::warn(self.fields.negative, field.pointer(), message))
        })
    }

    /// One `add` for each missing default, whatever the backend.
    pub(crate) fn defaults(&self) -> Vec<Edit> {
        let edit = |field: &MemoryField| {
            let value = match (field.default_text, field.default_number) {
                (Some(text), _) => Value::Text(text.to_owned()),
                (None, 0) => return None,
                (None, number) => Value::Integer(number),
            };
            let is_missing = self.has_section(field) && self.value(field, To::Field).is_none();
            let rule = "default of the CRD";
            let origin = || Origin { resource: "".into(), field: field.name().into(), rule };
            is_missing.then(|| Edit::add(field.pointer(), value, origin()))
        };
        self.fields.all().filter_map(edit).collect()
    }

    /// The variables of pods with a valid memory, in order; `resource` names the memory.
    pub(crate) fn variables(&self, resource: &Arc<str>) -> Vec<Variable<'static>> {
        let backend = self.backend().map(|_| &self.fields.backend);
        let fields = backend.into_iter().chain(self.in_use()).filter(|field| !field.variable.is_empty());
        let address = self.in_use().find(|field| field.view == "endpoint").map(|field| field.path);
        let variables = fields.filter_map(|field| {
            let variable = self.variable(field, resource)?;
            Some(if address == Some(field.path) { variable.address() } else { variable })
        });
        variables.collect()
    }

    /// The variable of a field, unless programs get nothing of it.
    fn variable(&self, field: &MemoryField, resource: &Arc<str>) -> Option<Variable<'static>> {
        let origin = || field_origin(resource, field.name());
        let is_always_set = field.required.is_some() && !field.is_optional;
        let text = self.text_or_default(field).or_else(|| is_always_set.then_some(""));
        let literal = match (field.form, field.read_as) {
            (Form::SecretName, _) => {
                let Key::Fixed(key) = field.key else { return None };
                let key = KeyRef { name: text?.to_owned(), key: key.into(), optional: None };
                let variable = Variable::new(field.variable, EnvSource::Secret(key), origin());
                return Some(variable.ignoring_optional());
            }
            (Form::Number(_), _) => Some(self.number(field)).filter(|it| *it > 0).map(|it| it.to_string()),
            (Form::Text, Some(read_as)) => read_as(self),
            (Form::Text, None) => text.map(str::to_owned),
        };
        let variable = Variable::literal(field.variable, literal?, origin());
        // Operators write an empty variable for an empty text.
        let may_be_empty = field.read_as.is_none() && self.text(field) == Some("");
        Some(if may_be_empty { variable.or_empty() } else { variable })
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
                Form::SecretName => self.add_secret(view, field),
                _ if matches!(field.view, "" | "endpoint") => {}
                Form::Number(_) => {
                    let number = self.value(field, To::Field).map_or(Some(0), Tree::integer);
                    view.set(field.view, number.map(|_| self.number(field)));
                }
                Form::Text => {
                    let own = field.read_as.map_or_else(|| self.shown(field), |read_as| read_as(self));
                    view.set(field.view, own);
                }
            }
        }
    }

    /// A path that several backends have is at the backend's name, unless the backend is one of them.
    fn add_places(&self, view: &mut MemoryView) {
        for backend in self.fields.backends {
            let is_own =
                |field: &&MemoryField| backend.section.is_none_or(|(section, _)| section == field.section);
            for (path, place) in backend.fields.iter().filter(is_own).flat_map(MemoryField::places) {
                view.at(path, if view.has_place(path) { self.fields.backend.path } else { place });
            }
        }
        for (path, place) in self.of_backend().iter().rev().flat_map(MemoryField::places) {
            view.at(path, place);
        }
    }

    /// The text in the view; the default for a blank one.
    fn shown(&self, field: &MemoryField) -> Option<String> {
        let text = self.value(field, To::Field).map_or(Some(""), Tree::text)?;
        let default = field.default_text.filter(|_| text.trim().is_empty());
        default.or_else(|| self.text(field)).map(str::to_owned)
    }

    /// Adds the Secret that a field names.
    fn add_secret(&self, view: &mut MemoryView, field: &MemoryField) {
        let beside = |name| self.value(field, To::Parent)?.get(name)?.text().filter(|key| !key.is_empty());
        let key = match field.key {
            Key::Fixed(key) => Some(key),
            Key::Beside(name) => beside(name),
            _ => None,
        };
        let name = self.text(field).filter(|name| !name.is_empty());
        let secret = name.map(|name| SecretView::new((&view.namespace, name), key, field.pointer()));
        view.secrets.extend(secret);
    }
}

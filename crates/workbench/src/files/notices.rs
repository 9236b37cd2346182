//! Findings about files: documents that look as if they were meant to be checked and are not. No decision about an object
//! is made here.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::build::ours::Ours;
use crate::files::errors::error_of;
use crate::files::misspelt::{is_likely_ours, may_be_checked, misspelt};
use crate::files::objects::is_ours;
use crate::files::places::{DocumentValue, name_hash};
use crate::files::unread_templates;
use crate::report::ObjectRef;
use memgate_core::decide::form;
use memgate_core::state;
use memgate_manifest::document::{Document, NonObject};
use memgate_manifest::error::Error;
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::NAMESPACE;
use memgate_model::object::Reference;
use memgate_model::settings::Settings;
use memgate_platforms::common;
use memgate_primitives::members::Layered;
use memgate_primitives::pointer::Pointer;

/// The most findings about objects of state that cannot be looked at.
const MAX_UNREADABLE: usize = 50;

/// A finding about a place in a file.
#[derive(Debug, Clone)]
pub struct Notice {
    /// The finding; its pointer is that in the document.
    pub finding: Finding,
    /// The object, if there is one.
    pub object_ref: ObjectRef,
    /// The text.
    pub source: Arc<Source>,
    /// The place in it.
    pub span: Span,
    /// Whether an apiserver refuses the object, which no decision is about.
    pub refuses_object: bool,
    /// Another place, perhaps in another text, with a label.
    pub related: Option<(Arc<Source>, Span, &'static str)>,
}

impl Notice {
    /// A finding about a stretch of a source.
    pub(crate) fn new(source: &Arc<Source>, span: Span, finding: Finding) -> Self {
        let object_ref = ObjectRef::default();
        Self { finding, object_ref, source: Arc::clone(source), span, related: None, refuses_object: false }
    }

    /// A finding about an object, at its place in the document.
    fn of(document: &Document, object_ref: ObjectRef, finding: Finding) -> Self {
        let (span, _) = document.locate(&finding.pointer).carets(false);
        Self { object_ref, ..Self::new(document.source(), span, finding) }
    }
}

/// The first object of a name.
#[derive(Debug, Clone)]
struct FirstObject {
    place: DocumentPlace,
    /// The bytes of its name, which are looked up at its first repetition, since that parses the file once more.
    name: OnceCell<Span>,
}

/// Makes notices while files are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices {
    made: Vec<Notice>,
    /// The kinds that are likely misspelt, with group, unless a definition among the inputs defines them.
    misspelt: Vec<([String; 2], Notice)>,
    /// About state that is repeated word for word, which count if a decision reads it.
    pub(crate) repeated: Vec<(Reference, Notice)>,
    /// The groups and kinds of all definitions among the inputs.
    defined: BTreeSet<[String; 2]>,
    /// How many objects of state cannot be looked at.
    pub(crate) unreadable: usize,
    /// How many findings say so.
    unreadable_told: usize,
    /// Of each object that is judged or read, by group, kind, namespace and name: the first one.
    objects: Layered<u64, FirstObject>,
}

impl Notices {
    /// Adds a document that is not an object, if its kind or its group is ours, it is a List with something of ours, or else
    /// in case a decision looks for a core object of its name.
    pub(crate) fn not_an_object(&mut self, NonObject { document, reason }: &NonObject, settings: &Settings) {
        let (value, source) = (document.value(), document.source());
        let is_list = reason.starts_with("is a List");
        // Other formats with kinds have other fields.
        let own = ["kind", "metadata", "spec", "status"];
        let is_own = |key: &str| own.contains(&key) || key.to_ascii_lowercase().starts_with("api");
        let has_body = value.as_object().is_some_and(|it| it.len() > 1 && it.keys().all(|key| is_own(key)));
        let is_ours = if is_list {
            Ours::new(settings).is_in(source.slice(document.span()))
        } else {
            let kind = if has_body { document.kind() } else { "" };
            is_likely_ours(document.group(), kind)
        };
        let help = if is_list {
            "write its objects as a list below items"
        } else {
            "write apiVersion and kind, or keep the file out of what is checked"
        };
        let message = format!("this {reason}, so nothing is checked here");
        let finding = Finding::warn(&common::NOT_AN_OBJECT, Pointer::root(), message).help(help);
        let notice = Notice::new(source, document.span(), finding);
        if is_ours {
            self.made.push(notice);
        } else if let Some(object) = state::reference(settings, value) {
            self.repeated.push((object, notice));
        }
    }

    /// Adds an object of state at which decisions cannot look.
    pub(crate) fn unreadable(&mut self, part: DocumentValue<'_>, settings: &Settings) {
        let DocumentValue { document, value, .. } = part;
        self.unreadable += 1;
        let room = MAX_UNREADABLE.saturating_sub(self.unreadable_told);
        if room == 0 {
            return;
        }
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into();
        for finding in unreadable(part, settings).into_iter().take(room) {
            self.unreadable_told += 1;
            let object_ref = ObjectRef {
                api_version: text("/apiVersion"),
                kind: text("/kind"),
                namespace: text("/metadata/namespace"),
                name: text("/metadata/name"),
                unit: Arc::default(),
            };
            self.made.push(Notice::of(document, object_ref, finding));
        }
    }

    /// Adds a policy or exemption of a version that is not served. One that is checked has a finding of its own.
    pub(crate) fn policy(
        &mut self,
        DocumentValue { document, within, value }: DocumentValue<'_>,
        settings: &Settings,
    ) {
        let api_version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(reference) = state::reference(settings, value) else { return };
        let Some(finding) = form::unserved_version(group, version, reference.kind.version) else { return };
        let finding = Finding { pointer: within.join(&finding.pointer), ..finding };
        let object_ref = ObjectRef { api_version: api_version.into(), ..object_ref(reference) };
        self.made.push(Notice::of(document, object_ref, finding));
    }

    /// Notes the kind of a definition. Returns whether the value is one.
    pub(crate) fn definition(&mut self, value: &Value) -> bool {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_definition = text("/kind") == "CustomResourceDefinition";
        if is_definition {
            self.defined.insert([text("/spec/group"), text("/spec/names/kind")]);
        }
        is_definition
    }

    /// Adds an object, whether it is checked or not.
    pub(crate) fn object(&mut self, document: &Document, object_ref: &ObjectRef, settings: &Settings) {
        let has_items = document.value().get("items").is_some_and(Value::is_array);
        let (group, kind) = (document.group(), document.kind());
        let later = [("apiVersion", document.api_version()), ("kind", kind)];
        if let Some((field, _)) = later.into_iter().find(|(_, text)| is_filled_in_later(text)) {
            if may_be_checked(group, kind) {
                let message = format!("{field} is filled in later, so this object is not judged");
                let finding = Finding::warn(&common::VALUE_UNKNOWN, Pointer::root().key(field), message);
                let finding = Finding { severity: Severity::Note, ..finding };
                self.made.push(Notice::of(document, object_ref.clone(), finding));
            }
        } else if let Some(finding) = misspelt(document.api_version(), kind, has_items)
            && (is_likely_ours(group, kind)
                || Ours::new(settings).is_in(document.source().slice(document.span())))
        {
            let refuses_object = finding.is_denial();
            let notice = Notice { refuses_object, ..Notice::of(document, object_ref.clone(), finding) };
            self.misspelt.push(([group, kind].map(str::to_owned), notice));
        }
        let is_judged = is_ours(group, kind, document.value());
        let read = state::reference(settings, document.value());
        let is_hidden = [&object_ref.namespace, &object_ref.name].iter().any(|it| is_filled_in_later(it));
        if document.name().is_empty() || is_hidden || !is_judged && read.is_none() {
            return;
        }
        let ObjectRef { namespace, name: own_name, .. } = object_ref;
        let key = name_hash([group, kind, namespace, own_name]);
        let Some(first) = self.objects.get(&key) else {
            return self
                .objects
                .insert(key, FirstObject { place: document.place().clone(), name: OnceCell::new() });
        };
        // Of state it is worth a word where a decision reads it. A Namespace often stands beside each of its parts.
        let read = read.filter(|it| !is_judged && *it.kind != NAMESPACE);
        if !is_judged && read.is_none() {
            return;
        }
        let name_in = |place: &DocumentPlace| place.locate(&Pointer::new("/metadata/name")).carets(false).0;
        let first_name = *first.name.get_or_init(|| name_in(&first.place));
        let message = format!("{} stands twice; of two, the later one counts", object_ref.title());
        let finding = Finding::warn(&common::OBJECT_REPEATED, Pointer::new("/metadata/name"), message)
            .help("remove one of them");
        let notice = Notice {
            object_ref: object_ref.clone(),
            related: Some((Arc::clone(first.place.source()), first_name, "here it stands first")),
            ..Notice::new(document.source(), name_in(document.place()), finding)
        };
        match read {
            Some(read) => self.repeated.push((read, notice)),
            None => self.made.push(notice),
        }
    }

    /// Adds pod templates that are not judged. `has_chosen` says that the settings name a namespace.
    pub(crate) fn unread_templates(&mut self, document: &Document, object_ref: &ObjectRef, has_chosen: bool) {
        let findings = unread_templates::findings(document.value(), object_ref, has_chosen).into_iter();
        self.made.extend(findings.map(|finding| Notice::of(document, object_ref.clone(), finding)));
    }

    /// All notices.
    pub(crate) fn finish(self) -> Vec<Notice> {
        let Self { made: mut notices, misspelt, defined, .. } = self;
        let misspelt = misspelt.into_iter().filter(|(kind, _)| !defined.contains(kind));
        notices.extend(misspelt.map(|(_, notice)| notice));
        notices
    }
}

/// Why decisions do not look at an object, although they look at objects of its kind.
fn unreadable(
    DocumentValue { document, within, value }: DocumentValue<'_>,
    settings: &Settings,
) -> Vec<Finding> {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let finding = |(at, fault): (Pointer, &'static str)| {
        let message = format!("{} {fault}; this {kind} is not looked at", at.field());
        let value = value.pointer(at.as_str());
        let finding = Finding::warn(&common::STATE_UNREADABLE, within.join(&at), message);
        let (span, _) = document.locate(&finding.pointer).carets(false);
        let written = document.source().text().get(span.start..span.end);
        match written.filter(|_| value.is_some_and(|it| it.is_boolean() || it.is_number())) {
            Some(written) => finding.help(format!("write it in quotes: \"{written}\"")),
            None => finding,
        }
    };
    state::unreadable(settings, value).into_iter().map(finding).collect()
}

/// The same findings as errors.
pub(crate) fn unreadable_errors(part: DocumentValue<'_>, settings: &Settings) -> Vec<Error> {
    let error = |finding: Finding| {
        let (span, _) = part.document.locate(&finding.pointer).carets(false);
        error_of(part.document.source(), span, &finding)
    };
    unreadable(part, settings).into_iter().map(error).collect()
}

/// The name of an object in reports.
pub(crate) fn object_ref(object: Reference) -> ObjectRef {
    let Reference { kind, namespace, name } = object;
    let (api_version, kind, unit) = (kind.api_version().into(), kind.kind.into(), Arc::default());
    ObjectRef { api_version, kind, namespace: namespace.into(), name: name.into(), unit }
}

//! Judges the patches of kustomizations in part, without rendering.
//!
//! ```text
//! kustomization ──▶ files of patches, patches in its text ──▶ parts of objects ──▶ findings at their places
//! ```
//!
//! A part has what a patch says of an object, and nothing else: what it lacks, the object may have. Patches are not state for
//! other objects, and policies do not judge them. The same goes for templates of charts that an editor has open.

mod missing;
mod operation;
mod target;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::inputs::{Inputs, PatchText};
use crate::judge::{Checked, Decided, Manifest, keep_first};
use crate::kustomization::{Kustomization, Patch, PatchBody, Selector, faults};
use crate::load::{fill_in, given};
use crate::misspelt::misspelt;
use crate::notices::Notice;
use crate::objects::{CheckedObject, Filled};
use crate::origins::files::{Files, Text};
use crate::origins::spot::{Spot, Spots};
use crate::paths::Home;
use crate::plan::Plan;
use crate::report::ObjectRef;
use crate::repository::{normal, without_dots};
use crate::substitutes::OfFile;
use memgate_core::admission::Admitted;
use memgate_core::decide::part;
use memgate_manifest::document::Document;
use memgate_manifest::document::embedded::Embedded;
use memgate_manifest::error::Error;
use memgate_manifest::later::{is_marked, is_of_template};
use memgate_manifest::source::{Source, Span};
use memgate_model::decision::{Decision, NotShown};
use memgate_model::finding::{Finding, Severity};
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_primitives::pointer::Pointer;

use self::missing::{Built, Present};
use self::target::Target;

/// What was found in patches.
#[derive(Debug, Default)]
pub(crate) struct JudgedPatches {
    decided: Vec<Decided>,
    notices: Vec<Notice>,
    errors: Vec<Error>,
    texts: Vec<PatchText>,
}

impl JudgedPatches {
    /// Adds it to what was checked.
    pub(crate) fn add_to(self, checked: &mut Checked) {
        let Self { decided, notices, errors, texts } = self;
        checked.decided.extend(decided);
        let inputs = &mut checked.inputs;
        inputs.notices.extend(notices);
        inputs.errors.extend(errors);
        let read: BTreeSet<_> = inputs.sources.iter().map(Arc::as_ptr).collect();
        let others = texts.iter().map(|text| Arc::clone(&text.source));
        inputs.origins.add_traced(others.filter(|source| !read.contains(&Arc::as_ptr(source))));
        inputs.patches.extend(texts);
    }
}

/// Judges the patches of the kustomizations among the inputs, before anything else is.
pub(crate) fn judge(
    inputs: &Inputs,
    plan: &Plan,
    occasion: Occasion<'static>,
    files: &mut Files,
) -> JudgedPatches {
    if inputs.patched_by.is_empty() && plan.open.is_empty() {
        return JudgedPatches::default();
    }
    files.know(&inputs.sources);
    let Snapshot { settings, crds, .. } = &inputs.snapshot;
    let mut snapshot = Snapshot::new(settings.clone());
    snapshot.crds.clone_from(crds);
    let mut judge = Judge {
        inputs,
        plan,
        occasion,
        snapshot,
        present: Present::of(inputs),
        found: JudgedPatches::default(),
    };
    // Of the others kustomize says what it refuses.
    let unrendered = inputs.unrendered.iter().filter(|it| !it.is_failed).map(|it| it.unit.absolute());
    let unrendered: BTreeSet<&Path> = unrendered.collect();
    let mut by_file: BTreeMap<PathBuf, PatchFile> = BTreeMap::new();
    for patched_by in &inputs.patched_by {
        let Some(text) = files.get(&patched_by.file) else { continue };
        let kustomization = Kustomization::of(&text.values);
        let directory = patched_by.file.parent().map(PathBuf::from).unwrap_or_default();
        let home = Home::of(&directory, plan.within.as_deref());
        let built = judge.present.built((&patched_by.file, &home), &kustomization, files).map(Rc::new);
        let mut inline = Vec::new();
        if patched_by.named.is_none() && unrendered.contains(&*normal(&directory)) {
            judge.kustomization(&text, &directory, &home);
        }
        for patch in kustomization.patches {
            if patched_by.named.is_none() {
                judge.add_unselected(&text, &patch, built.as_deref());
            }
            let use_of = Use { target: patch.target, built: built.clone() };
            match patch.body {
                PatchBody::File(path) => {
                    let path = directory.join(path);
                    let absolute = normal(&path);
                    let is_named = patched_by.named.as_ref().is_none_or(|named| named.contains(&absolute));
                    if home.has_input(&path) && is_named && !plan.exclude.excludes_file(&path) {
                        let file = by_file.entry(absolute);
                        file.or_insert_with(|| PatchFile { path, uses: Vec::new() }).uses.push(use_of);
                    }
                }
                PatchBody::Text(_) if patched_by.named.is_none() => {
                    inline.extend(text.patches.found.get(&patch.at).map(|it| (it, use_of)));
                }
                PatchBody::Text(_) => {}
            }
        }
        judge.inline(&text, &inline);
    }
    for PatchFile { path, uses } in by_file.into_values() {
        if let Some(text) = files.get(&without_dots(&path)) {
            judge.file(&text, &uses);
        }
    }
    judge.templates();
    judge.found
}

/// A file with patches.
struct PatchFile {
    path: PathBuf,
    uses: Vec<Use>,
}

/// A use of a patch by a kustomization.
#[derive(Debug, Clone)]
struct Use {
    target: Option<Selector>,
    /// The objects of the kustomization, if all of them are known.
    built: Option<Rc<Built>>,
}

struct Judge<'i> {
    inputs: &'i Inputs,
    plan: &'i Plan,
    occasion: Occasion<'static>,
    /// The definitions, without any object.
    snapshot: Snapshot,
    present: Present,
    found: JudgedPatches,
}

/// Where a patch is shown.
#[derive(Clone, Copy)]
struct Shown<'s> {
    /// The file.
    source: &'s Arc<Source>,
    /// The values that Flux puts into it.
    given: Option<&'s OfFile>,
    /// The only place that is known, of a patch whose fields have none.
    only_at: Option<Span>,
}

impl Shown<'_> {
    /// The spot of a field of a document.
    fn spot(&self, document: &Document, pointer: Pointer) -> Spot {
        match self.only_at {
            None => Spot::Field { document: document.shared_place(), pointer, key: None },
            Some(span) => Spot::Text { source: Arc::clone(self.source), span },
        }
    }
}

/// A part of an object, and where it is.
struct Part<'p> {
    target: &'p Target,
    value: Value,
    later: Option<&'p BTreeSet<Pointer>>,
}

impl Judge<'_> {
    fn file(&mut self, Text { source, values, errors, .. }: &Text, uses: &[Use]) {
        if self.plan.is_state(source.name()) {
            return;
        }
        if !source.text().lines().any(is_of_template) {
            self.found.errors.extend(errors.iter().map(|error| Error::Syntax(error.clone().into())));
        }
        let before = self.found.decided.len();
        let given = given(source, self.inputs);
        let shown = Shown { source, given: given.as_ref(), only_at: None };
        for document in values {
            self.document(document, uses, shown);
        }
        if self.found.decided.len() > before || values.is_empty() {
            self.found.texts.push(PatchText { source: Arc::clone(source), comments: Vec::new() });
        }
    }

    fn inline(&mut self, Text { source, patches, .. }: &Text, inline: &[(&Embedded, Use)]) {
        if inline.is_empty() || self.plan.is_state(source.name()) {
            return;
        }
        if !source.text().lines().any(is_of_template) {
            let errors = patches.errors.iter().map(|error| Error::Syntax(error.clone().into()));
            self.found.errors.extend(errors);
        }
        let given = given(source, self.inputs);
        for (patch, use_of) in inline {
            let only_at = (!patch.is_placed).then(|| source.first_line(patch.text));
            let shown = Shown { source, given: given.as_ref(), only_at };
            for document in &patch.documents {
                self.document(document, std::slice::from_ref(use_of), shown);
            }
        }
        let comments = inline.iter().flat_map(|(patch, _)| patch.comments()).collect();
        self.found.texts.push(PatchText { source: Arc::clone(source), comments });
    }

    /// Judges a document of a patch, for each kind of object to which it applies.
    fn document(&mut self, document: &Document, uses: &[Use], shown: Shown<'_>) {
        let own = Target::own(document);
        let settings = &self.snapshot.settings;
        let of_use = |it: &Use| match &it.target {
            Some(selector) => Target::selected(selector, it.built.as_deref(), &self.present, settings),
            None => own.clone().into_iter().collect(),
        };
        let mut seen = BTreeSet::new();
        let mut targets: Vec<Target> = uses.iter().flat_map(of_use).collect();
        targets.sort_by_key(|target| target.is_missing);
        targets.retain(|target| seen.insert((target.group.clone(), target.kind.clone())));
        let is_narrow = document.value().is_array();
        for filled in fill_in(document.clone(), shown.given) {
            for target in &targets {
                let start = self.found.decided.len();
                if is_narrow {
                    self.operations(&filled, target, shown);
                } else {
                    self.object(&filled, target, shown);
                }
                self.keep_first(start);
            }
        }
        if is_narrow {
            let object_ref = targets.first().map(Target::object_ref).unwrap_or_default();
            return self.form(document, object_ref, shown);
        }
        let Some(own) = own.map(|own| own.object_ref()) else { return };
        let alone = || uses.iter().filter(|it| it.target.is_none());
        let missing = || alone().filter_map(|it| it.built.as_ref()).find_map(|built| built.warning(&own));
        let misspelt = || {
            alone()
                .find(|it| it.built.as_ref().is_none_or(|built| !built.has_kind(own.group(), &own.kind)))?;
            let finding = misspelt(&own.api_version, &own.kind, false)?;
            Some(Finding { severity: Severity::Warn, ..finding })
        };
        if let Some(finding) = missing().or_else(misspelt) {
            self.notice(document, finding.pointer.clone(), shown, own, finding);
        }
    }

    /// Adds the warnings about what kustomize refuses in a kustomization itself.
    fn kustomization(&mut self, text: &Text, directory: &Path, home: &Home) {
        let is_judged = !self.plan.is_state(text.source.name());
        for finding in faults(&text.values, directory, home).into_iter().filter(|_| is_judged) {
            let has_it = |it: &&Arc<Document>| it.value().pointer(finding.pointer.as_str()).is_some();
            let Some(document) = text.values.iter().find(has_it) else { continue };
            let span = document.locate(&finding.pointer).carets(finding.at_key).0;
            self.found.notices.push(Notice::new(&text.source, span, finding));
            self.found.texts.push(PatchText { source: Arc::clone(&text.source), comments: Vec::new() });
        }
    }

    /// Adds the warning about a patch of a kustomization that selects nothing.
    fn add_unselected(&mut self, text: &Text, patch: &Patch, built: Option<&Built>) {
        let Some((selector, built)) = patch.target.as_ref().zip(built) else { return };
        let at = patch.at.parent().unwrap_or_default().key("target");
        let Some(finding) = built.warning_of(selector, &at) else { return };
        let at = finding.pointer.clone();
        let has_it = |it: &&Arc<Document>| it.value().pointer(at.as_str()).is_some();
        if let Some(document) = text.values.iter().find(has_it) {
            let shown = Shown { source: &text.source, given: None, only_at: None };
            let is_judged = !self.plan.is_state(text.source.name());
            if is_judged {
                self.notice(document, at, shown, ObjectRef::default(), finding);
                self.found.texts.push(PatchText { source: Arc::clone(&text.source), comments: Vec::new() });
            }
        }
    }

    /// Keeps the findings that are reported about one document, from the first of what was decided about it, where the number
    /// of the others stands too.
    fn keep_first(&mut self, start: usize) {
        let of_document = self.found.decided.get_mut(start..).unwrap_or_default();
        keep_first(of_document);
        let mut not_shown = NotShown::default();
        for decided in of_document.iter_mut() {
            let decision = &mut Arc::make_mut(&mut decided.admitted).decision;
            not_shown = not_shown.and(std::mem::take(&mut decision.not_shown));
        }
        if let Some(first) = of_document.first_mut() {
            Arc::make_mut(&mut first.admitted).decision.not_shown = not_shown;
        }
        let others = self.found.decided.split_off((start + 1).min(self.found.decided.len()));
        self.found.decided.extend(others.into_iter().filter(|it| it.findings().next().is_some()));
    }

    /// Judges a part of an object that stands as it is.
    fn object(&mut self, filled: &Filled, target: &Target, shown: Shown<'_>) {
        let Filled { document, later, .. } = filled;
        let mut value = document.value().clone();
        clean_fields(&mut value);
        if target.is_selected {
            // kustomize takes them from the target.
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|name, _| name != "name" && name != "namespace");
            }
            if let Some(fields) = value.as_object_mut() {
                fields.insert("apiVersion".to_owned(), target.api_version().into());
                fields.insert("kind".to_owned(), target.kind.as_str().into());
            }
        }
        let part = Part { target, value, later: Some(&later.unknown) };
        let Some((findings, not_shown)) = self.judged(&part) else { return };
        let mut spots = Spots::default();
        if shown.only_at.is_some() {
            spots.insert(Pointer::root(), shown.spot(document, Pointer::root()));
        }
        self.add(document, target.named(), (findings, not_shown), spots, Some(filled));
    }

    /// The findings about a part, with the values that they are about; `None` for kinds that memgate does not check.
    fn judged(&self, part: &Part<'_>) -> Option<(Vec<Finding>, NotShown)> {
        let Part { target, value, later } = part;
        if target.is_missing {
            return Some(<_>::default());
        }
        let (mut findings, not_shown) = self.of_part(target, value, *later)?;
        let kind = workload::find(&target.group, &target.kind);
        for (at, template) in kind.map(|kind| kind.templates_in(value)).unwrap_or_default() {
            let below = later.iter().flat_map(|later| later.range(at.clone()..));
            let below = below.map_while(|place| place.as_str().strip_prefix(at.as_str())).map(Pointer::new);
            let pod = Target::pod();
            let of_pod = self.of_part(&pod, template, Some(&below.collect())).unwrap_or_default().0;
            findings.extend(of_pod.into_iter().map(|mut finding| {
                let pointer = at.join(&finding.pointer);
                finding.settle_at(&pointer);
                Finding { pointer, ..finding }
            }));
        }
        let json = value.to_string();
        let manifest = Manifest::whole(&json);
        for finding in &mut findings {
            let place = finding.pointer.clone();
            finding.settle_at(&place);
            manifest.pin(finding, &place);
        }
        Some((findings, not_shown))
    }

    fn of_part(
        &self,
        target: &Target,
        value: &Value,
        later: Option<&BTreeSet<Pointer>>,
    ) -> Option<(Vec<Finding>, NotShown)> {
        let json = value.to_string();
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let request = Request {
            operation: Operation::Create,
            group: target.group.as_str().into(),
            version: target.version.as_str().into(),
            kind: target.kind.as_str().into(),
            subresource: "".into(),
            namespace: target.namespace.as_str().into(),
            name: name.into(),
            object: Some(&json),
            old_object: None,
            occasion: Occasion {
                later: later.filter(|later| !later.is_empty()),
                is_part: true,
                ..self.occasion
            },
            read_pod: None,
            cancelled: None,
        };
        part::findings(&request, value, &self.snapshot)
    }

    /// Adds what was found in a document.
    fn add(
        &mut self,
        document: &Document,
        (object_ref, is_judged): (ObjectRef, bool),
        (findings, not_shown): (Vec<Finding>, NotShown),
        spots: Spots,
        filled: Option<&Filled>,
    ) {
        let is_judged = is_judged || findings.iter().any(Finding::is_denial);
        if !is_judged && findings.is_empty() {
            return;
        }
        let filled = filled.filter(|filled| !filled.later.is_empty());
        let later = filled.map(|filled| Arc::new(filled.later.clone()));
        let by = filled.and_then(|filled| filled.by.clone());
        let object = CheckedObject::part(document.shared_place(), object_ref, later, by, spots);
        let findings: Vec<_> = findings.into_iter().map(|finding| object.with_put_in(finding)).collect();
        let reason = if findings.iter().any(Finding::is_denial) { Reason::Invalid } else { Reason::Valid };
        let decision = Decision { findings, not_shown, ..Decision::pass(reason) };
        let admitted = Arc::new(Admitted { edits: Vec::new(), decision, object: None });
        self.found.decided.push(Decided {
            object: Box::new(object),
            admitted,
            unknown: Box::default(),
            of_form: Vec::new(),
            is_judged,
            users: None,
        });
    }

    /// Adds a finding about the patch itself.
    fn notice(
        &mut self,
        document: &Document,
        at: Pointer,
        shown: Shown<'_>,
        object_ref: ObjectRef,
        finding: Finding,
    ) {
        let span = shown.spot(document, at).caret();
        self.found.notices.push(Notice { object_ref, ..Notice::new(shown.source, span, finding) });
    }
}

/// Whether a key or an element is a word to kustomize, and not a field.
fn is_directive(key: &str) -> bool {
    ["$patch", "$retainKeys"].contains(&key)
        || key.starts_with("$setElementOrder/")
        || key.starts_with("$deleteFromPrimitiveList/")
}

/// Removes the directives of a patch, the fields that it removes, since it sets nothing there, and those whose names are not
/// known.
fn clean_fields(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, value| !is_directive(key) && !is_marked(key) && sets(value));
    }
}

/// Cleans a value in a patch, and says whether the patch sets it. An element of a list that it does not set becomes null. The
/// recursion is bounded: a value is at most as deep as a manifest may be.
fn sets(value: &mut Value) -> bool {
    match value {
        Value::Null => return false,
        Value::Object(fields) if fields.get("$patch").is_some_and(|it| it == "delete") => return false,
        Value::Object(fields) if fields.is_empty() => {}
        Value::Object(_) => {
            clean_fields(value);
            return value.as_object().is_some_and(|fields| !fields.is_empty());
        }
        Value::Array(elements) => {
            for element in elements {
                if !sets(element) {
                    *element = Value::Null;
                }
            }
        }
        _ => {}
    }
    true
}

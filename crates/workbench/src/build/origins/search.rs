//! Where a finding about a built object stands: the files that took part are searched for its field and value.
//!
//! ```text
//! kustomize: patches, the outermost first ──▶ the file of the object ──▶ kustomizations ──▶ the file as a whole
//! helm:      the line of the template ──▶ the values that it prints ──▶ the template as a whole
//! ```
//!
//! What a tool does with the files is not followed. Of equal places the one counts that says the name of the object.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::build::builder::Made;
use crate::build::kustomization::{Kustomization, Patch, PatchBody, Selector, is_kustomization, items};
use crate::build::layout::{TEMPLATES, VALUES_FILE, shown};
use crate::build::origins::Origins;
use crate::build::origins::files::{Files, Text};
use crate::build::origins::spot::Spot;
use crate::build::releases::{Inline, Layer};
use crate::build::rendered::{Rendered, RenderedObject};
use crate::build::unit::Unit;
use crate::paths::normal;
use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;

/// So many fields of one document are compared.
const MOST_FIELDS: usize = 20_000;

/// The spot of a field of an object that a tool printed, or of its key; of one that is missing, that of what is around it.
pub(crate) fn spot(
    (rendered, byte): (&Rendered, usize),
    (pointer, is_key): (&Pointer, bool),
    (origins, files): (&Origins, &mut Files),
) -> Option<Spot> {
    let marker = rendered.unit.marker.clone();
    let found = rendered.at(byte).and_then(|object| {
        let path = plain_path(pointer.as_str());
        let value = object.value.pointer(pointer.as_str());
        let made = object.made.clone();
        let mut search =
            SpotSearch { rendered, object, made, pointer, is_key, path, value, origins, files: &mut *files };
        search.found()
    });
    found.or_else(|| start_of(&marker, files))
}

/// The documents from which an object comes that a tool printed: that of its file and the patches for it; and its template.
pub(crate) fn came_from(
    (rendered, byte): (&Rendered, usize),
    (origins, files): (&Origins, &mut Files),
) -> (Vec<Arc<DocumentPlace>>, Option<PathBuf>) {
    let Some(object) = rendered.at(byte) else { return (Vec::new(), None) };
    let (pointer, made) = (&Pointer::root(), object.made.clone());
    let template = made.file.clone();
    let (path, value, is_key) = (Vec::new(), Some(&object.value), false);
    let mut search = SpotSearch { rendered, object, made, pointer, is_key, path, value, origins, files };
    let mut bases = search.fitting();
    if bases.is_empty() {
        bases.extend(search.only_one_of_kind());
    }
    // kustomize inflates charts too, and says no template.
    if bases.is_empty() && template.is_none() {
        let is_template = |file: &&PathBuf| file.iter().any(|part| part == TEMPLATES);
        let files: Vec<PathBuf> = rendered.unit.files.iter().filter(is_template).cloned().collect();
        let texts: Vec<_> = files.iter().filter_map(|file| search.text(file)).collect();
        bases = search.fitting_in(&texts);
    }
    let longest = bases.iter().map(|it| it.name().len()).max();
    bases.retain(|it| Some(it.name().len()) == longest);
    let patches = search.patches().into_iter().filter(|it| it.is_certain).map(|it| it.document);
    (bases.into_iter().chain(patches).map(|it| it.shared_place()).collect(), template)
}

/// The first line of a file.
pub(crate) fn start_of(file: &Path, files: &mut Files) -> Option<Spot> {
    let source = Arc::clone(&files.get(file)?.source);
    let span = source.span(0, 0);
    Some(Spot::Text { source, span })
}

/// The keys of a pointer; elements of lists have other numbers in other files.
fn plain_path(pointer: &str) -> Vec<String> {
    let tokens = pointer.split('/').skip(1).filter(|token| *token != "-" && token.parse::<usize>().is_err());
    tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

struct SpotSearch<'s> {
    rendered: &'s Rendered,
    object: &'s RenderedObject,
    /// Where it comes from, as far as that is known.
    made: Made,
    pointer: &'s Pointer,
    is_key: bool,
    /// Its keys.
    path: Vec<String>,
    /// Its value; `None` for a field that is missing.
    value: Option<&'s Value>,
    origins: &'s Origins,
    files: &'s mut Files,
}

/// A field of a file that may be the one.
struct FileField {
    /// Its keys in the object.
    path: Vec<String>,
    /// Its place in the document, and where its key is a value there.
    at: Pointer,
    key: Option<Pointer>,
    /// Its value; `None` for one that is removed.
    value: Option<Value>,
}

impl FileField {
    fn spot(&self, document: &Document) -> Spot {
        Spot::Field { document: document.shared_place(), pointer: self.at.clone(), key: self.key.clone() }
    }
}

/// A patch for the object, and how much of the object's name it says.
struct Applied {
    document: Arc<Document>,
    fields: Vec<FileField>,
    named: usize,
    /// Whether it applies for certain: no regular expression and no label decides, and it says the kind itself.
    is_certain: bool,
}

impl SpotSearch<'_> {
    fn found(&mut self) -> Option<Spot> {
        let base = self.whole_base();
        let patches = self.patches();
        self.in_patches(&patches, true)
            .or_else(|| self.in_base(base.as_ref(), true))
            .or_else(|| self.in_kustomizations())
            .or_else(|| self.in_chart())
            .or_else(|| self.in_patches(&patches, false))
            .or_else(|| self.in_base(base.as_ref(), false))
            .or_else(|| start_of(&PathBuf::from(shown(self.made.file.as_ref()?)), self.files))
    }

    /// The document from which the object comes; kustomize is asked where that is not clear.
    fn whole_base(&mut self) -> Option<Arc<Document>> {
        let (mut base, is_sure) = self.base();
        let asked = || self.rendered.asked(self.object);
        match (!is_sure).then(asked).flatten() {
            Some(made) => {
                self.made = made.clone();
                (base, _) = self.base();
            }
            None => {
                let of_base = || base.as_ref().map(|base| normal(Path::new(base.source().name())));
                self.made.file = self.made.file.take().or_else(of_base);
            }
        }
        base
    }

    /// The document of an object that has another name in its file, of which kustomize says the file.
    fn only_one_of_kind(&mut self) -> Option<Arc<Document>> {
        let file = self.rendered.asked(self.object)?.file.clone()?;
        let text = self.text(&file)?;
        let of_kind = text.objects.get(self.own("/kind"))?;
        of_kind.first().filter(|_| of_kind.len() == 1).map(|(_, document)| Arc::clone(document))
    }

    fn text(&mut self, file: &Path) -> Option<Arc<Text>> {
        self.files.get(Path::new(&shown(file)))
    }

    fn own(&self, field: &str) -> &str {
        self.object.value.pointer(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The kustomizations that took part, the last one that changed the object first.
    fn kustomizations(&mut self) -> Vec<Arc<Text>> {
        let unit = &self.rendered.unit;
        let mut all: Vec<PathBuf> = self.made.changed_in.iter().rev().cloned().collect();
        let others = unit.files.iter().filter(|file| is_kustomization(file)).cloned();
        all.extend(unit.marker.file_name().map(|name| unit.directory.join(name)));
        all.extend(others.filter(|_| self.made.changed_in.is_empty()));
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|file| is_kustomization(file) && seen.insert(file.clone()));
        all.iter().filter_map(|file| self.text(file)).collect()
    }

    /// The patches that apply to the object, by their targets and names.
    fn patches(&mut self) -> Vec<Applied> {
        let mut found = Vec::new();
        for text in self.kustomizations() {
            let directory = Path::new(text.source.name()).parent().map(Path::to_owned).unwrap_or_default();
            for Patch { at, body, target } in Kustomization::of(&text.values).patches.into_iter().rev() {
                let documents = match body {
                    PatchBody::File(path) => {
                        self.files.get(&directory.join(path)).map(|it| it.values.clone())
                    }
                    PatchBody::Text(_) => text
                        .patches
                        .found
                        .get(&at)
                        .map(|it| it.documents.iter().cloned().map(Arc::new).collect()),
                };
                for document in documents.into_iter().flatten() {
                    let fields = fields(document.value());
                    let is_certain = document.kind() == self.own("/kind")
                        && target.as_ref().is_none_or(|it| self.is_it(it));
                    let is_of_kind = fields.iter().any(|field| field.path == ["kind"]) && target.is_some();
                    let target =
                        target.clone().map(|it| if is_of_kind { Selector { kind: None, ..it } } else { it });
                    if let Some(named) = self.is_patched_by(target.as_ref(), document.value()) {
                        found.push(Applied { document, fields, named, is_certain });
                    }
                }
            }
        }
        found
    }

    /// Whether a target is the object, word by word.
    fn is_it(&self, Selector { kind, name, others }: &Selector) -> bool {
        let own = |field: &str| match field {
            "namespace" => self.own("/metadata/namespace"),
            "apiVersion" => self.own("/apiVersion"),
            "group" => self.own("/apiVersion").split_once('/').map_or("", |(group, _)| group),
            "version" => self.own("/apiVersion").rsplit('/').next().unwrap_or_default(),
            _ => "",
        };
        kind.as_ref().is_none_or(|kind| kind == self.own("/kind"))
            && name.as_ref().is_none_or(|name| self.own("/metadata/name").contains(name.as_str()))
            && others.iter().all(|(field, text)| own(field) == text)
    }

    /// How much of the object's name a patch says, if it applies.
    fn is_patched_by(&self, target: Option<&Selector>, patch: &Value) -> Option<usize> {
        let text = |field: &str| patch.pointer(field).and_then(Value::as_str).map(str::to_owned);
        let (kind, name) = match target {
            Some(target) => (target.kind.clone(), target.name.clone()),
            None => (Some(text("/kind")?), Some(text("/metadata/name")?)),
        };
        let is_pattern = |text: &str| text.contains(['*', '+', '?', '|', '(', '[', '^', '$']);
        let fits_kind = kind.is_none_or(|kind| kind == self.own("/kind") || is_pattern(&kind));
        let named = match name {
            None => Some(0),
            Some(name) if is_pattern(&name) => Some(0),
            Some(name) => self.own("/metadata/name").contains(&name).then_some(name.len()),
        };
        named.filter(|_| fits_kind)
    }

    /// Whether a value of a file is the one of the object.
    fn is_value(&self, other: Option<&Value>) -> bool {
        match (self.value, other) {
            (Some(own), Some(other)) if own.is_object() || own.is_array() => {
                own.is_object() == other.is_object() && own.is_array() == other.is_array()
            }
            (Some(own), Some(other)) => scalar(own) == scalar(other),
            // A patch takes it away.
            (None, None | Some(Value::Null)) => true,
            _ => false,
        }
    }

    /// The field in a patch that says this value, or takes it away; else the nearest one around it that a patch has.
    fn in_patches(&self, patches: &[Applied], is_exact: bool) -> Option<Spot> {
        let mut best: Option<(usize, usize, Spot)> = None;
        for Applied { document, fields, named, .. } in patches {
            for field in fields {
                let is_around = self.path.starts_with(&field.path) && !field.path.is_empty();
                let is_removed = field.value.is_none() || field.value == Some(Value::Null);
                let is_it = match is_exact {
                    true if self.value.is_none() && is_removed => is_around,
                    true => {
                        field.path == self.path && self.is_value(field.value.as_ref()) && self.value.is_some()
                    }
                    false => is_around,
                };
                let score = (*named, field.path.len());
                if is_it && best.as_ref().is_none_or(|(named, depth, _)| score > (*named, *depth)) {
                    best = Some((score.0, score.1, field.spot(document)));
                }
            }
        }
        best.filter(|(_, depth, _)| is_exact || *depth > 0 && !self.path.is_empty()).map(|(.., spot)| spot)
    }

    /// The documents from which the object may come: those of its kind and of a part of its name.
    fn fitting(&mut self) -> Vec<Arc<Document>> {
        let texts = match self.made.file.clone() {
            // What a kustomization makes stands in no manifest. Of a chart the template is known.
            Some(file) => {
                Arc::new(self.text(&file).filter(|_| !is_kustomization(&file)).into_iter().collect())
            }
            None => self.files.manifests_of(&self.rendered.unit),
        };
        self.fitting_in(&texts)
    }

    fn fitting_in(&self, texts: &[Arc<Text>]) -> Vec<Arc<Document>> {
        let (kind, name) = (self.own("/kind"), self.own("/metadata/name"));
        let of_kind = texts.iter().filter_map(|text| text.objects.get(kind)).flatten();
        let fitting = of_kind.filter(|(own, _)| name.contains(own.as_str()));
        fitting.map(|(_, document)| Arc::clone(document)).collect()
    }

    /// The document from which the object comes: that of the longest part of its name; and whether it must be.
    fn base(&mut self) -> (Option<Arc<Document>>, bool) {
        let all = self.fitting();
        // More than a base and what builds on it may change objects in an order that their files do not say.
        let is_sure = all.len() == 1 && self.rendered.unit.directories.len() < 3;
        let fits = |document: &Arc<Document>| {
            let there = document.value().pointer(self.pointer.as_str());
            (document.name().len(), self.value.is_some() && self.is_value(there))
        };
        // Of equal ones the first.
        (all.into_iter().rev().max_by_key(fits), is_sure)
    }

    fn in_base(&self, base: Option<&Arc<Document>>, is_exact: bool) -> Option<Spot> {
        let document = base?;
        let there = document.value().pointer(self.pointer.as_str());
        if !is_exact || there.is_some() && self.is_value(there) && self.value.is_some() {
            return Some(Spot::at(document, self.pointer));
        }
        // An element of a list may have moved.
        let moved = self.value.filter(|value| !value.is_object() && !value.is_array())?;
        let is_it = |field: &FileField| {
            field.path == self.path && field.value.as_ref().is_some_and(|it| scalar(it) == scalar(moved))
        };
        fields(document.value()).iter().find(|field| is_it(field)).map(|field| Spot::at(document, &field.at))
    }

    /// The field of a kustomization that says this value: a namespace, a label, or a replacement of the field.
    fn in_kustomizations(&mut self) -> Option<Spot> {
        let key = self.path.last()?.clone();
        let value = self.value?.clone();
        for text in self.kustomizations() {
            for document in &text.values {
                let is_it = |field: &&FileField| {
                    field.path.last() == Some(&key)
                        && field
                            .value
                            .as_ref()
                            .is_some_and(|it| !it.is_object() && scalar(it) == scalar(&value))
                };
                let all = fields(document.value());
                if let Some(field) = all.iter().find(is_it) {
                    return Some(field.spot(document));
                }
                if let Some(at) = self.replacement(document.value()) {
                    return Some(Spot::at(document, &at));
                }
            }
        }
        None
    }

    /// The path of a replacement that writes the field.
    fn replacement(&self, kustomization: &Value) -> Option<Pointer> {
        for (number, replacement) in items(kustomization, "replacements").enumerate() {
            for (target_number, target) in items(replacement, "targets").enumerate() {
                let fits = target
                    .get("select")
                    .is_none_or(|it| self.is_patched_by(Some(&Selector::of(it)), &Value::Null).is_some());
                for (path_number, path) in items(target, "fieldPaths").enumerate().filter(|_| fits) {
                    let path = path.as_str().unwrap_or_default().replace('.', "/");
                    if plain_path(&format!("/{path}")) == self.path {
                        let at = Pointer::root().key("replacements").index(number).key("targets");
                        return Some(at.index(target_number).key("fieldPaths").index(path_number));
                    }
                }
            }
        }
        None
    }

    /// The line of the template, or the value that it prints.
    fn in_chart(&mut self) -> Option<Spot> {
        let file = self.made.file.clone().filter(|file| !is_kustomization(file))?;
        let template = self.text(&file)?;
        let own = [self.own("/kind"), self.own("/metadata/name")];
        let line = TemplateLine::of(&template.source, own, &self.path, self.value);
        let prints = line.as_ref().is_none_or(|line| !line.is_whole || line.text.contains("{{"));
        // A template says the key, whatever says the value.
        let says_key = self.is_key && line.as_ref().is_some_and(|line| line.is_whole);
        let value = if prints && !says_key {
            self.in_values(line.as_ref().map_or("", |line| &line.text))
        } else {
            None
        };
        // A manifest of a kustomization has fields with places of their own.
        let is_template =
            template.source.text().contains("{{") || line.as_ref().is_some_and(|it| it.is_whole);
        value.or_else(|| {
            let TemplateLine { start, end, key, .. } = line.filter(|_| is_template)?;
            let start = if self.is_key { key } else { start };
            let span = template.source.span(start, end);
            Some(Spot::Text { source: Arc::clone(&template.source), span })
        })
    }

    /// The field of the values that says this value. `line` is that of the template.
    fn in_values(&mut self, line: &str) -> Option<Spot> {
        let value = self.value.filter(|value| !value.is_object() && !value.is_array())?.clone();
        let key = self.path.last()?.clone();
        let name = self.own("/metadata/name").to_owned();
        let mut best: Option<(Score, ValueAt)> = None;
        let unit = Arc::clone(&self.rendered.unit);
        for (order, (document, inline, all)) in self.values(&unit).into_iter().enumerate() {
            for field in all.iter().filter(|field| {
                field.value.as_ref().is_some_and(|it| !it.is_object() && scalar(it) == scalar(&value))
            }) {
                let own = field.path.last().map_or("", String::as_str);
                let printed = field.path.iter().rev().take_while(|key| says(line, key)).count();
                let fits = if own == key { 2 } else { usize::from(is_similar(own, &key)) };
                if fits + printed == 0 {
                    continue;
                }
                let score = (
                    printed > 0 || fits == 2,
                    near(&all, field, &name),
                    printed,
                    fits,
                    std::cmp::Reverse(order),
                );
                if best.as_ref().is_none_or(|(best, _)| score > *best) {
                    let (pointer, outer) = match inline {
                        Some(it) if it.is_whole => (it.at.clone(), None),
                        Some(it) => (it.at.join(&field.at), it.outer.clone()),
                        None => (field.at.clone(), None),
                    };
                    best = Some((score, (Arc::clone(&document), pointer, outer)));
                }
            }
        }
        let (_, (document, pointer, outer)) = best?;
        // What installs the chart may be printed itself.
        match self.origins.rendered.get(document.source().name()) {
            Some(by) if by.source.name() != self.rendered.source.name() => {
                let pointer = outer.unwrap_or(pointer);
                spot((by, document.start()), (&pointer, false), (self.origins, self.files))
            }
            _ => Some(Spot::Field { document, pointer, key: None }),
        }
    }

    /// The values of the chart, what counts most first.
    fn values<'u>(&mut self, unit: &'u Unit) -> Vec<ValuesIn<'u>> {
        let mut all: Vec<ValuesIn<'u>> = Vec::new();
        let layers = unit.release.iter().flat_map(|release| release.layers.iter().rev());
        let mut files: Vec<PathBuf> = Vec::new();
        for layer in layers {
            match layer {
                Layer::Inline(it) => all.push((Arc::clone(&it.document), Some(it), fields(&it.value))),
                Layer::File(file) => files.push(file.clone()),
            }
        }
        files.extend(self.files.builder.values_of(&unit.directory).into_iter().rev());
        let template = self.made.file.clone();
        // A chart in a chart has values of its own.
        let is_above = |file: &&PathBuf| match (&template, file.parent()) {
            (Some(template), Some(parent)) => template.starts_with(parent),
            _ => true,
        };
        let named = |file: &&PathBuf| {
            let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            name == VALUES_FILE || unit.tool.is_none() && name.contains("values")
        };
        let mut own: Vec<PathBuf> = unit.files.iter().filter(named).filter(is_above).cloned().collect();
        own.sort_by_key(|file| file.components().count());
        files.extend(own);
        for file in files {
            let Some(text) = self.text(&file) else { continue };
            all.extend(text.values.iter().map(|it| (it.shared_place(), None, fields(it.value()))));
        }
        all
    }
}

/// A document with values; of values in another object, these.
type ValuesIn<'u> = (Arc<DocumentPlace>, Option<&'u Inline>, Vec<FileField>);

/// The place of a value, and the field with the text in which it is.
type ValueAt = (Arc<DocumentPlace>, Pointer, Option<Pointer>);

/// How well a value fits.
type Score = (bool, usize, usize, usize, std::cmp::Reverse<usize>);

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a line says a key of the values: `.Values.ttl`, `$store.ttl`.
fn says(line: &str, key: &str) -> bool {
    line.match_indices(key).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let behind = line.get(at + key.len()..).unwrap_or_default();
        before.ends_with('.') && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
    })
}

/// Whether one name ends like the other: `storeTtl` and `ttl`.
fn is_similar(one: &str, other: &str) -> bool {
    let plain =
        |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let (one, other) = (plain(one), plain(other));
    !one.is_empty() && !other.is_empty() && (one.ends_with(&other) || other.ends_with(&one))
}

/// How much of the object's name stands beside a field of the values, or is a key above it.
fn near(all: &[FileField], field: &FileField, name: &str) -> usize {
    let fits = |text: &str| if !text.is_empty() && name.contains(text) { text.len() } else { 0 };
    let above = field.path.iter().rev().skip(1).map(|key| fits(key));
    let mut around = field.at.parent();
    let mut most = above.max().unwrap_or_default();
    while let Some(parent) = around {
        let is_beside = |other: &&FileField| other.at.parent().as_ref() == Some(&parent);
        let named = all
            .iter()
            .filter(is_beside)
            .filter(|other| other.path.last().is_some_and(|it| it.to_lowercase().contains("name")));
        let named = named.filter_map(|other| other.value.as_ref()?.as_str().map(fits));
        most = most.max(named.max().unwrap_or_default());
        if most > 0 || parent.as_str().rsplit('/').next().is_none_or(|it| it.parse::<usize>().is_err()) {
            break;
        }
        around = parent.parent();
    }
    most
}

/// The fields of a document: of a manifest, a merge patch or values; or of each operation of a JSON patch.
fn fields(value: &Value) -> Vec<FileField> {
    let mut found = Vec::new();
    let operations = value.as_array().filter(|all| all.iter().any(|it| it.get("op").is_some()));
    let Some(operations) = operations else {
        add_fields(value, &[], &Pointer::root(), None, &mut found);
        return found;
    };
    for (number, operation) in operations.iter().enumerate() {
        let at = Pointer::root().index(number);
        let path = plain_path(operation.get("path").and_then(Value::as_str).unwrap_or_default());
        let key = Some(at.key("path"));
        match operation.get("value") {
            Some(value) => add_fields(value, &path, &at.key("value"), key.as_ref(), &mut found),
            None => found.push(FileField { path, at: at.key("path"), key, value: None }),
        }
    }
    found
}

fn add_fields(
    value: &Value,
    path: &[String],
    at: &Pointer,
    key: Option<&Pointer>,
    found: &mut Vec<FileField>,
) {
    let mut todo = vec![(value, path.to_vec(), at.clone(), key.cloned())];
    while let Some((value, path, at, key)) = todo.pop() {
        if found.len() >= MOST_FIELDS {
            return;
        }
        match value {
            Value::Object(below) => todo.extend(below.iter().rev().map(|(name, value)| {
                let path = path.iter().chain([name]).cloned().collect();
                (value, path, at.key(name), None)
            })),
            Value::Array(items) => {
                let item = |(number, item)| (item, path.clone(), at.index(number), None);
                todo.extend(items.iter().enumerate().rev().map(item));
            }
            _ => {}
        }
        if !path.is_empty() {
            found.push(FileField { path, at, key, value: Some(value.clone()) });
        }
    }
}

/// A line of a template.
struct TemplateLine {
    text: String,
    /// The first byte of its key, and the stretch of its value.
    key: usize,
    start: usize,
    end: usize,
    /// Whether it has the field itself, and not only what is around it.
    is_whole: bool,
}

impl TemplateLine {
    /// The line with a field of an object of this kind and name: the one with this value, else the first; else the line with the
    /// most of the keys.
    fn of(source: &Source, own: [&str; 2], path: &[String], value: Option<&Value>) -> Option<Self> {
        let value = value.filter(|it| !it.is_object() && !it.is_array()).map(scalar);
        let most = parts(source.text()).map(|part| says_own(part, own)).max()?;
        let (mut best, mut next): (Option<(usize, bool, Self)>, usize) = (None, 0);
        let mut first = None;
        for part in parts(source.text()) {
            let start_of_part = next;
            next += part.len();
            if says_own(part, own) < most {
                continue;
            }
            first.get_or_insert_with(|| start_of_part + part.find("apiVersion:").unwrap_or_default());
            let (mut above, mut at): (Vec<(usize, String)>, usize) = (Vec::new(), start_of_part);
            for line in part.split_inclusive('\n') {
                let start = at;
                at += line.len();
                let content = line.trim_end().trim_start_matches([' ', '-']);
                let Some((key, rest)) = content.split_once(':').filter(|_| !content.starts_with(['{', '#']))
                else {
                    continue;
                };
                let indent = line.trim_end().len() - content.len();
                above.retain(|(outer, _)| *outer < indent);
                above.push((indent, key.trim_matches(['"', '\'']).to_owned()));
                let depth = above.iter().zip(path).take_while(|((_, key), own)| key == *own).count();
                let has_value =
                    depth == path.len() && value.as_ref().is_some_and(|value| rest.contains(value.as_str()));
                let is_better = best.as_ref().is_none_or(|(most, had, _)| (depth, has_value) > (*most, *had));
                if depth == above.len() && is_better {
                    let behind = content.len() - rest.trim_start().len();
                    let value_at = if rest.trim().is_empty() { 0 } else { behind };
                    let key = start + indent;
                    let (start, end) = (key + value_at, key + content.len());
                    best = Some((
                        depth,
                        has_value,
                        Self { text: rest.to_owned(), key, start, end, is_whole: depth == path.len() },
                    ));
                }
            }
        }
        let at = first?;
        let root = Self { text: String::new(), key: at, start: at, end: at, is_whole: path.is_empty() };
        Some(best.map_or(root, |(.., line)| line))
    }
}

/// The documents of a template, as far as lines divide them.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.get(1..)?.find("\n---").map_or(rest.len(), |at| at + 2);
        let (part, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

/// How well a document of a template fits: whether it says this kind, and this name, or one that is filled in.
fn says_own(part: &str, [kind, name]: [&str; 2]) -> (bool, u8) {
    let values = |key: &'static str| {
        let found = part.match_indices(key).map(|(at, _)| part.get(at + key.len()..).unwrap_or_default());
        let first_line = |text: &'_ str| text.lines().next().unwrap_or_default().trim().to_owned();
        found.map(first_line)
    };
    let is = |text: &str, value: &str| {
        let end = text.find([',', '}', ' ']).unwrap_or(text.len());
        text.get(..end).unwrap_or_default().trim_matches(['"', '\'']) == value
    };
    let named = match () {
        () if values("name:").any(|it| is(&it, name)) => 2,
        () => u8::from(values("name:").any(|it| it.contains("{{"))),
    };
    (values("kind:").any(|it| is(&it, kind)), named)
}

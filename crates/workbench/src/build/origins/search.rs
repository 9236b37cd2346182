//! Where a finding about a built object stands: the files that took part are searched for its field and value.
//!
//! ```text
//! kustomize: patches, the outermost first ──▶ the file of the object ──▶ kustomizations ──▶ the file as a whole
//! helm:      the line of the template ──▶ the values that it prints ──▶ the template as a whole
//! ```
//!
//! What a tool does with the files is not followed. Of equal places the one counts that says the name of the object.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::build::builder::Made;
use crate::build::kustomization::{Kustomization, Patch, PatchBody, Selector, is_kustomization};
use crate::build::layout::{TEMPLATES, VALUES_FILE, shown};
use crate::build::origins::files::{Files, Text};
use crate::build::origins::{Origins, Spot};
use crate::build::releases::{Inline, Layer};
use crate::build::rendered::{Rendered, RenderedObject};
use crate::paths::normal;
use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;

/// So many fields of one document are compared.
const MOST_FIELDS: usize = 20_000;

/// The spot of a field of an object that a tool printed, or of its key; of one that is missing, that of what is around it.
pub(crate) fn spot(
    of: (&Rendered, usize),
    field: (&Pointer, bool),
    (origins, files): (&Origins, &mut Files),
) -> Option<Spot> {
    let search = SpotSearch::new(of, field, (origins, &mut *files));
    search.and_then(|mut search| search.found()).or_else(|| start_of(&of.0.unit.marker, files))
}

/// Finds where the fields of documents stand that are not read yet as inputs.
pub(crate) struct SpotsOf<'s> {
    pub(crate) origins: &'s Origins,
    pub(crate) files: &'s mut Files,
}

impl SpotsOf<'_> {
    /// The file of a source, of a built one that of the chart or kustomization.
    pub(crate) fn file(&self, source: &Source) -> PathBuf {
        self.origins.rendered_in(source).map_or_else(|| source.name().into(), |it| it.unit.marker.clone())
    }

    /// The spot of a field, of a built document in the file from which it comes.
    pub(crate) fn of(&mut self, document: &Document, pointer: &Pointer) -> Spot {
        let built = of_field(document.place(), pointer, self.origins, self.files);
        built.unwrap_or_else(|| Spot::at(document, pointer))
    }
}

/// The spot of a field of a document, if memgate had it built.
pub(crate) fn of_field(
    document: &DocumentPlace,
    pointer: &Pointer,
    origins: &Origins,
    files: &mut Files,
) -> Option<Spot> {
    spot((origins.rendered_in(document.source())?, document.start()), (pointer, false), (origins, files))
}

/// The documents from which an object comes that a tool printed: that of its file and the patches for it; and its template.
pub(crate) fn came_from(
    of: (&Rendered, usize),
    inputs: (&Origins, &mut Files),
) -> (Vec<Arc<DocumentPlace>>, Option<PathBuf>) {
    let root = Pointer::root();
    let Some(mut search) = SpotSearch::new(of, (&root, false), inputs) else { return (Vec::new(), None) };
    let template = search.made.file.clone();
    let mut bases = search.bases(|count| count > 0);
    // kustomize inflates charts too, and says no template.
    if bases.is_empty() && template.is_none() {
        let is_template = |file: &&PathBuf| file.iter().any(|part| part == TEMPLATES);
        for file in of.0.unit.files.iter().filter(is_template) {
            search.made.file = Some(file.clone());
            let (found, name) = (search.fitting(), search.own("/metadata/name"));
            bases.extend(found.into_iter().filter(|it| name.contains(it.name())));
        }
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
    /// Its value; null for one that is removed.
    value: Value,
}

/// What a document is to the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartOf {
    Patch,
    Base,
    Kustomization,
}

/// A document with fields among which the one may be.
struct Candidate {
    document: Arc<Document>,
    part: PartOf,
    fields: Vec<FileField>,
    /// How much of the object's name it says.
    named: usize,
    /// Whether it is a patch that applies for certain: no regular expression and no label decides, and it says the kind itself.
    is_certain: bool,
}

impl<'s> SpotSearch<'s> {
    fn new(
        (rendered, byte): (&'s Rendered, usize),
        (pointer, is_key): (&'s Pointer, bool),
        (origins, files): (&'s Origins, &'s mut Files),
    ) -> Option<Self> {
        let object = rendered.at(byte)?;
        let (path, value) = (plain_path(pointer.as_str()), object.value.pointer(pointer.as_str()));
        let made = object.made.clone();
        Some(Self { rendered, object, made, pointer, is_key, path, value, origins, files })
    }

    fn found(&mut self) -> Option<Spot> {
        // More than a base and what builds on it may change objects in an order that their files do not say.
        let is_simple = self.rendered.unit.directories.len() < 3;
        let bases = self.bases(|count| count == 1 && is_simple);
        let fits = |document: &Arc<Document>| {
            let there = document.value().pointer(self.pointer.as_str());
            (document.name().len(), there.is_some_and(|it| self.is_value(it)))
        };
        // Of equal ones the first.
        let base = bases.into_iter().rev().max_by_key(fits);
        if let Some(base) = &base {
            self.made.file.get_or_insert_with(|| normal(Path::new(base.source().name())));
        }
        let (patches, whole) = (self.patches(), base.as_ref().map(|base| candidate(base, PartOf::Base)));
        self.best(&patches, true)
            .or_else(|| self.best(whole.as_slice(), true))
            .or_else(|| self.in_kustomizations())
            .or_else(|| self.in_chart())
            .or_else(|| self.best(&patches, false))
            .or_else(|| Some(Spot::at(base.as_ref()?, self.pointer)))
            .or_else(|| start_of(&PathBuf::from(shown(self.made.file.as_ref()?)), self.files))
    }

    /// The field that says this value, or takes it away; else the nearest one around it.
    fn best(&self, candidates: &[Candidate], is_exact: bool) -> Option<Spot> {
        let all = candidates.iter().rev().flat_map(|it| it.fields.iter().rev().map(move |field| (it, field)));
        let fitting = all.filter(|(Candidate { part, .. }, field)| {
            let is_around = self.path.starts_with(&field.path);
            match (part, self.value) {
                _ if field.path.is_empty() => is_exact && *part == PartOf::Base && self.path.is_empty(),
                _ if !is_exact => is_around,
                (PartOf::Patch, None) => is_around && field.value.is_null(),
                (_, None) => false,
                // A namespace, a label, or the path of a replacement.
                (PartOf::Kustomization, Some(value)) => {
                    let is_path = |it: &str| plain_path(&format!("/{}", it.replace('.', "/"))) == self.path;
                    let is_it = field.path.last() == self.path.last() && self.is_value(&field.value);
                    let is_replaced = field.path.last().is_some_and(|key| key == "fieldPaths");
                    is_scalar(value) && is_it || is_replaced && field.value.as_str().is_some_and(is_path)
                }
                (part, Some(value)) => {
                    // An element of a list may have moved.
                    let is_here = *part == PartOf::Patch || field.at == *self.pointer || is_scalar(value);
                    is_here && field.path == self.path && self.is_value(&field.value)
                }
            }
        });
        let score = |(it, field): &(&Candidate, &FileField)| {
            let depth = if it.part == PartOf::Kustomization { 0 } else { field.path.len() };
            (it.named, field.at == *self.pointer, depth)
        };
        // Of equal ones the first.
        let (it, FileField { at, key, .. }) = fitting.max_by_key(score)?;
        let document = it.document.shared_place();
        Some(Spot::Field { document, pointer: at.clone(), key: key.clone() })
    }

    /// Whether a value of a file is the one of the object.
    fn is_value(&self, other: &Value) -> bool {
        self.value.is_some_and(|own| match own {
            Value::Object(_) => other.is_object(),
            Value::Array(_) => other.is_array(),
            own => scalar(own) == scalar(other),
        })
    }

    fn text(&mut self, file: &Path) -> Option<Arc<Text>> {
        self.files.get(Path::new(&shown(file)))
    }

    fn own(&self, field: &str) -> &str {
        self.object.value.pointer(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The documents from which the object may come; kustomize is asked unless their number is enough.
    fn bases(&mut self, is_enough: impl Fn(usize) -> bool) -> Vec<Arc<Document>> {
        let all = self.fitting();
        let asked = || self.rendered.asked(self.object);
        let Some(made) = (!is_enough(all.len())).then(asked).flatten() else { return all };
        self.made = made.clone();
        self.fitting()
    }

    /// Those of its kind and of a part of its name; else the only one of its kind in its file.
    fn fitting(&mut self) -> Vec<Arc<Document>> {
        let texts = match self.made.file.clone() {
            // What a kustomization makes stands in no manifest. Of a chart the template is known.
            Some(file) => {
                Arc::new(self.text(&file).filter(|_| !is_kustomization(&file)).into_iter().collect())
            }
            None => self.files.manifests_of(&self.rendered.unit),
        };
        let (kind, name) = (self.own("/kind"), self.own("/metadata/name"));
        let of_kind: Vec<_> = texts.iter().filter_map(|text| text.objects.get(kind)).flatten().collect();
        let is_only = of_kind.len() == 1 && self.made.file.is_some();
        let fitting = of_kind.into_iter().filter(|(own, _)| is_only || name.contains(own.as_str()));
        fitting.map(|(_, document)| Arc::clone(document)).collect()
    }

    /// The kustomizations that took part, the last one that changed the object first.
    fn kustomizations(&mut self) -> Vec<Arc<Text>> {
        let unit = &self.rendered.unit;
        let mut all: Vec<PathBuf> = self.made.changed_in.iter().rev().cloned().collect();
        all.extend(unit.marker.file_name().map(|name| unit.directory.join(name)));
        all.extend(unit.files.iter().filter(|_| self.made.changed_in.is_empty()).cloned());
        let mut seen = BTreeSet::new();
        all.retain(|file| is_kustomization(file) && seen.insert(file.clone()));
        all.iter().filter_map(|file| self.text(file)).collect()
    }

    /// The patches that apply to the object, by their targets and names.
    fn patches(&mut self) -> Vec<Candidate> {
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
                    let own = || {
                        let named = [document.kind(), document.name()]
                            .map(|it| Some(it.to_owned()).filter(|it| !it.is_empty()));
                        let [kind @ Some(_), name @ Some(_)] = named else { return None };
                        Some(Selector { kind, name, others: Vec::new() })
                    };
                    // A patch may give the object another kind.
                    let sets_kind = target.is_some() && fields.iter().any(|field| field.path == ["kind"]);
                    let Some(selector) = target.clone().or_else(own) else { continue };
                    let Some((named, is_sure)) = self.selected(&selector, sets_kind) else { continue };
                    let is_certain = is_sure && document.kind() == self.own("/kind");
                    found.push(Candidate { document, part: PartOf::Patch, fields, named, is_certain });
                }
            }
        }
        found
    }

    /// How much of the object's name a selector says, if it may select the object, and whether it does so for certain.
    fn selected(&self, Selector { kind, name, others }: &Selector, sets_kind: bool) -> Option<(usize, bool)> {
        let is_pattern = |text: &&String| text.contains(['*', '+', '?', '|', '(', '[', '^', '$']);
        let (api_version, own_name) = (self.own("/apiVersion"), self.own("/metadata/name"));
        let own = |field: &str| match field {
            "namespace" => self.own("/metadata/namespace"),
            "apiVersion" => api_version,
            "group" => api_version.split_once('/').map_or("", |(group, _)| group),
            "version" => api_version.rsplit('/').next().unwrap_or_default(),
            _ => "",
        };
        let is_kind = kind.as_ref().is_none_or(|kind| kind == self.own("/kind"));
        let is_named = |name: &&String| own_name.contains(name.as_str());
        let named = name.as_ref().filter(|name| !is_pattern(name));
        let may_be = (is_kind || sets_kind || kind.as_ref().is_some_and(|it| is_pattern(&it)))
            && named.is_none_or(|it| is_named(&it));
        let is_certain =
            is_kind && named == name.as_ref() && others.iter().all(|(field, text)| own(field) == text);
        may_be.then(|| (named.map_or(0, String::len), is_certain))
    }

    /// The field of a kustomization that says this value: a namespace, or a label.
    fn in_kustomizations(&mut self) -> Option<Spot> {
        let texts = self.kustomizations();
        let documents = texts.iter().flat_map(|text| &text.values);
        documents.map(|it| candidate(it, PartOf::Kustomization)).find_map(|it| self.best(&[it], true))
    }

    /// The line of the template, or the value that it prints.
    fn in_chart(&mut self) -> Option<Spot> {
        let file = self.made.file.clone().filter(|file| !is_kustomization(file))?;
        let template = self.text(&file)?;
        let source = &template.source;
        let own = [self.own("/kind"), self.own("/metadata/name")];
        let line = TemplateLine::of(source.text(), own, &self.path, self.value);
        let (text, is_whole) = line.as_ref().map_or(("", false), |line| (line.text, line.is_whole));
        // A template says the key, whatever says the value.
        let may_print = !is_whole || !self.is_key && text.contains("{{");
        if let Some(spot) = may_print.then(|| self.in_values(text)).flatten() {
            return Some(spot);
        }
        // A manifest of a kustomization has fields with places of their own.
        let line = line.filter(|_| is_whole || source.text().contains("{{"))?;
        let span = source.span(if self.is_key { line.key } else { line.start }, line.end);
        Some(Spot::Text { source: Arc::clone(source), span })
    }

    /// The field of the values that says this value. `line` is that of the template.
    fn in_values(&mut self, line: &str) -> Option<Spot> {
        let (value, key) = (scalar(self.value.filter(|it| is_scalar(it))?), self.path.last()?.clone());
        let (all, name) = (self.values(), self.own("/metadata/name"));
        let fields = all.iter().enumerate().flat_map(|(number, values)| {
            values.fields.iter().map(move |field| (Reverse(number), values, field))
        });
        let scored = fields.rev().filter_map(|(number, values, field)| {
            let printed = field.path.iter().rev().take_while(|key| says(line, key)).count();
            let is_key = field.path.last() == Some(&key);
            let is_it = (printed > 0 || is_key) && scalar(&field.value) == value;
            let score = || (near(&values.fields, field, name), printed, is_key, number);
            is_it.then(|| (score(), values, field))
        });
        // Of equal ones the first.
        let (_, Values { document, inline, .. }, field) = scored.max_by_key(|(score, ..)| *score)?;
        let (pointer, outer) = match inline {
            Some(it) if it.is_whole => (it.at.clone(), None),
            Some(it) => (it.at.join(&field.at), it.outer.clone()),
            None => (field.at.clone(), None),
        };
        // What installs the chart may be printed itself.
        match self.origins.rendered.get(document.source().name()) {
            Some(by) if by.source.name() != self.rendered.source.name() => {
                let pointer = outer.unwrap_or(pointer);
                spot((by, document.start()), (&pointer, false), (self.origins, self.files))
            }
            _ => Some(Spot::Field { document: Arc::clone(document), pointer, key: None }),
        }
    }

    /// The values of the chart, what counts most first.
    fn values(&mut self) -> Vec<Values<'s>> {
        let unit = &*self.rendered.unit;
        let (mut all, mut files) = (Vec::new(), Vec::new());
        for layer in unit.release.iter().flat_map(|release| release.layers.iter().rev()) {
            match layer {
                Layer::Inline(it) => all.push(Values {
                    document: Arc::clone(&it.document),
                    inline: Some(it),
                    fields: fields(&it.value),
                }),
                Layer::File(file) => files.push(file.clone()),
            }
        }
        files.extend(self.files.builder.values_of(&unit.directory).into_iter().rev());
        let template = self.made.file.clone();
        // A chart in a chart has values of its own.
        let is_above = |file: &Path| match (&template, file.parent()) {
            (Some(template), Some(parent)) => template.starts_with(parent),
            _ => true,
        };
        let is_named = |file: &Path| {
            let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            name == VALUES_FILE || unit.tool.is_none() && name.contains("values")
        };
        let own = unit.files.iter().filter(|file| is_named(file) && is_above(file));
        let mut own: Vec<PathBuf> = own.cloned().collect();
        own.sort_by_key(|file| file.components().count());
        files.extend(own);
        for text in files.iter().filter_map(|file| self.text(file)) {
            all.extend(text.values.iter().map(|it| Values {
                document: it.shared_place(),
                inline: None,
                fields: fields(it.value()),
            }));
        }
        all
    }
}

/// A document with values; of values in another object, these.
struct Values<'s> {
    document: Arc<DocumentPlace>,
    inline: Option<&'s Inline>,
    fields: Vec<FileField>,
}

fn candidate(document: &Arc<Document>, part: PartOf) -> Candidate {
    let fields = fields(document.value());
    Candidate { document: Arc::clone(document), part, fields, named: 0, is_certain: false }
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Whether a line says a key of the values: `.Values.ttl`, `$store.ttl`.
fn says(line: &str, key: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut words = line.split(|c| !is_of_name(c) && c != '.').flat_map(|word| word.split('.').skip(1));
    words.any(|word| word == key)
}

/// How much of the object's name is a key above a field of the values, or stands beside one.
fn near(all: &[FileField], field: &FileField, name: &str) -> usize {
    let fits = |text: &str| if name.contains(text) { text.len() } else { 0 };
    let above = field.path.iter().rev().skip(1).map(|key| fits(key));
    let is_beside = |it: &&FileField| {
        let around = it.at.parent().filter(|around| *around != Pointer::root());
        it.path.last().is_some_and(|key| key.to_lowercase().ends_with("name"))
            && around.is_some_and(|around| field.at.as_str().starts_with(&format!("{}/", around.as_str())))
    };
    let beside = all.iter().filter(is_beside).filter_map(|it| it.value.as_str().map(fits));
    above.chain(beside).max().unwrap_or_default()
}

/// An operation of a JSON patch, as [`fields`] reads it.
fn operation((number, operation): (usize, &Value)) -> (Vec<String>, Pointer, Option<Pointer>, &Value) {
    let at = Pointer::root().index(number);
    let path = plain_path(operation.get("path").and_then(Value::as_str).unwrap_or_default());
    let (place, value) = match operation.get("value") {
        Some(value) => (at.key("value"), value),
        None => (at.key("path"), &Value::Null),
    };
    (path, place, Some(at.key("path")), value)
}

/// The fields of a document: of a manifest, a merge patch or values; or of each operation of a JSON patch.
fn fields(value: &Value) -> Vec<FileField> {
    let operations = value.as_array().filter(|all| all.iter().any(|it| it.get("op").is_some()));
    let mut todo = match operations {
        Some(operations) => operations.iter().enumerate().rev().map(operation).collect(),
        None => vec![(Vec::new(), Pointer::root(), None, value)],
    };
    let mut found = Vec::new();
    while let Some((path, at, key, value)) = todo.pop().filter(|_| found.len() < MOST_FIELDS) {
        match value {
            Value::Object(below) => todo.extend(below.iter().rev().map(|(name, value)| {
                let path = path.iter().chain([name]).cloned().collect();
                (path, at.key(name), None, value)
            })),
            Value::Array(items) => {
                let item = |(number, item)| (path.clone(), at.index(number), None, item);
                todo.extend(items.iter().enumerate().rev().map(item));
            }
            _ => {}
        }
        found.push(FileField { path, at, key, value: value.clone() });
    }
    found
}

/// A line of a template.
struct TemplateLine<'t> {
    /// What follows its key.
    text: &'t str,
    /// The first byte of its key, and the stretch of its value.
    key: usize,
    start: usize,
    end: usize,
    /// Whether it has the field itself, and not only what is around it.
    is_whole: bool,
}

impl<'t> TemplateLine<'t> {
    /// The line with a field of an object of this kind and name: the one with this value, else the first; else the line with the
    /// most of the keys.
    fn of(text: &'t str, own: [&str; 2], path: &[String], value: Option<&Value>) -> Option<Self> {
        let value = value.filter(|it| is_scalar(it)).map(scalar);
        let most = parts(text).map(|(_, part)| says_own(part, own)).max()?;
        let fitting: Vec<_> = parts(text).filter(|(_, part)| says_own(part, own) == most).collect();
        let (first, part) = fitting.first()?;
        let root = first + part.find("apiVersion:").unwrap_or_default();
        let mut best = Self { text: "", key: root, start: root, end: root, is_whole: path.is_empty() };
        let mut most = (0, false);
        for (mut at, part) in fitting {
            let mut above: Vec<(usize, &str)> = Vec::new();
            for line in part.split_inclusive('\n') {
                let content = line.trim_end().trim_start_matches([' ', '-']);
                let indent = line.trim_end().len() - content.len();
                let key_at = at + indent;
                at += line.len();
                let Some((key, text)) = content.split_once(':').filter(|_| !content.starts_with(['{', '#']))
                else {
                    continue;
                };
                above.retain(|(outer, _)| *outer < indent);
                above.push((indent, key.trim_matches(['"', '\''])));
                let depth = above.iter().zip(path).take_while(|((_, key), own)| key == *own).count();
                let is_whole = depth == path.len();
                let has_value = is_whole && value.as_ref().is_some_and(|value| text.contains(value));
                if depth == above.len() && (depth, has_value) > most {
                    let value = text.trim_start();
                    let behind = if value.is_empty() { 0 } else { content.len() - value.len() };
                    let (start, end) = (key_at + behind, key_at + content.len());
                    most = (depth, has_value);
                    best = Self { text, key: key_at, start, end, is_whole };
                }
            }
        }
        Some(best)
    }
}

/// The documents of a template with their first bytes, as far as lines divide them.
fn parts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let borders = || text.match_indices("\n---").map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(borders());
    let parts = starts.zip(borders().chain([text.len()]));
    parts.filter_map(|(start, end)| Some((start, text.get(start..end)?)))
}

/// How well a document of a template fits: whether it says this kind, and this name, or one that is filled in.
fn says_own(part: &str, [kind, name]: [&str; 2]) -> (bool, u8) {
    let says = |key: &str, fits: &dyn Fn(&str) -> bool| {
        let lines = part.split(key).skip(1).map(|rest| rest.lines().next().unwrap_or_default());
        lines.into_iter().any(|line| fits(line.trim()))
    };
    let is = |text: &str, value: &str| {
        text.split([',', '}', ' ']).next().is_some_and(|it| it.trim_matches(['"', '\'']) == value)
    };
    let named =
        if says("name:", &|it| is(it, name)) { 2 } else { u8::from(says("name:", &|it| it.contains("{{"))) };
    (says("kind:", &|it| is(it, kind)), named)
}

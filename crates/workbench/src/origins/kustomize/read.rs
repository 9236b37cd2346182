//! Reads the kustomizations below an overlay, and follows their objects through them as kustomize does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::kustomization::{FILE_NAMES, GENERATORS, items, text, texts};
use crate::origins::files::{Files, Text};
use crate::origins::overlay::{Layer, Made, Maker, Objects, Overlays, Patch, Piece, Target, Word};
use crate::paths::{Home, without_dots};
use memgate_manifest::document::embedded::Embedded;
use memgate_manifest::document::{Document, objects as objects_in};
use memgate_primitives::pointer::Pointer;

/// How many kustomizations may build on one another.
const MAX_DEPTH: usize = 50;

/// The kinds whose names stay as they are.
const NOT_RENAMED: [&str; 3] = ["APIService", "CustomResourceDefinition", "Namespace"];

/// The fields that say which object it is.
const IDENTITY: [&str; 3] = ["/kind", "/metadata/name", "/metadata/namespace"];

/// What the kustomization of a directory makes. Its files are read once.
pub(super) fn objects(directory: &Path, files: &mut Files) -> Arc<Objects> {
    if let Some(objects) = files.overlays.objects.get(directory) {
        return Arc::clone(objects);
    }
    let overlays = std::mem::take(&mut files.overlays);
    let mut reader = Reader { files, overlays, home: Home::of(directory, None), open: BTreeSet::new() };
    let made = reader.kustomization(directory);
    let mut objects = Objects::default();
    for made in made.iter() {
        let key = |name: &str| (made.kind.clone(), name.to_owned());
        objects.by_name.entry(key(&made.name)).or_default().push(Arc::clone(made));
        for name in made.names() {
            let key = (name.to_owned(), made.kind.clone());
            objects.by_any_name.entry(key).or_default().push(Arc::clone(made));
        }
    }
    let (mut overlays, objects) = (reader.overlays, Arc::new(objects));
    overlays.objects.insert(directory.to_owned(), Arc::clone(&objects));
    files.overlays = overlays;
    objects
}

struct Reader<'f> {
    files: &'f mut Files,
    overlays: Overlays,
    home: Home,
    /// The directories whose kustomizations are being read.
    open: BTreeSet<PathBuf>,
}

impl Reader<'_> {
    /// What a kustomization makes by itself. The recursion is bounded by [`MAX_DEPTH`].
    fn kustomization(&mut self, directory: &Path) -> Arc<Vec<Arc<Made>>> {
        let directory = without_dots(directory);
        if let Some(built) = self.overlays.built.get(&directory) {
            return Arc::clone(built);
        }
        let made = Arc::new(self.build(&directory, Vec::new()));
        self.overlays.built.insert(directory, Arc::clone(&made));
        made
    }

    /// What a kustomization makes of its own resources and of the objects before it.
    fn build(&mut self, directory: &Path, before: Vec<Arc<Made>>) -> Vec<Arc<Made>> {
        if self.open.len() >= MAX_DEPTH || !self.open.insert(directory.to_owned()) {
            return before;
        }
        let file = FILE_NAMES.iter().find_map(|name| self.text(&directory.join(name)));
        let made = match file.and_then(|file| file.values.first().cloned()) {
            Some(kustomization) => self.build_of(directory, &kustomization, before),
            None => before,
        };
        self.open.remove(directory);
        made
    }

    fn build_of(
        &mut self,
        directory: &Path,
        kustomization: &Arc<Document>,
        mut made: Vec<Arc<Made>>,
    ) -> Vec<Arc<Made>> {
        let value = kustomization.value();
        let paths = |field| items(value, field).filter_map(Value::as_str).map(|path| directory.join(path));
        for path in paths("resources").chain(paths("bases")) {
            if path.is_dir() {
                made.extend(self.kustomization(&path).iter().cloned());
            } else if let Some(text) = self.text(&path) {
                made.extend(objects_in(&text.values).iter().map(|document| Arc::new(first(document))));
            }
        }
        for path in paths("components") {
            made = self.build(&without_dots(&path), made);
        }
        let layer = Arc::new(self.layer(directory, kustomization));
        made.extend(generated(&layer));
        let kept = made.len().min(self.overlays.room);
        self.overlays.room -= kept;
        made.truncate(kept);
        made.into_iter().map(|made| Arc::new(layer.changed(made, &mut self.overlays.comparisons))).collect()
    }

    fn layer(&mut self, directory: &Path, kustomization: &Arc<Document>) -> Layer {
        let value = kustomization.value();
        let mut layer = Layer {
            kustomization: Arc::clone(kustomization),
            patches: Vec::new(),
            by_name: BTreeMap::new(),
            by_pattern: Vec::new(),
            replacements: Vec::new(),
            entries: 0,
            removes: false,
            is_open: items(value, "transformers").next().is_some(),
        };
        for (number, patch) in items(value, "patchesStrategicMerge").enumerate() {
            let at = Pointer::new("/patchesStrategicMerge").index(number);
            let Some(text) = patch.as_str() else { continue };
            let own = self.input(&directory.join(text)).map(|text| pieces(&text));
            let all = own.unwrap_or_else(|| inline(kustomization, &at));
            for piece in all {
                layer.add(piece, &Value::Null);
            }
        }
        for field in ["patches", "patchesJson6902"] {
            for (number, patch) in items(value, field).enumerate() {
                let at = Pointer::new(format!("/{field}/{number}/patch"));
                let own = text(patch, "path").and_then(|path| self.input(&directory.join(path)));
                let all = own.map_or_else(|| inline(kustomization, &at), |text| pieces(&text));
                for piece in all {
                    layer.add(piece, patch);
                }
            }
        }
        for (number, replacement) in items(value, "replacements").enumerate() {
            let own = text(replacement, "path").and_then(|path| self.input(&directory.join(path)));
            let here = Piece { document: Arc::clone(kustomization), whole: None };
            match own {
                Some(text) => layer.replacements.extend(pieces(&text).into_iter().flat_map(each_replacement)),
                None => layer.replacements.push((here, Pointer::new("/replacements").index(number))),
            }
        }
        layer.is_open |= layer.replacements.iter().any(writes_names);
        let lists = ["labels", "images", "replicas"].into_iter().chain(GENERATORS);
        layer.entries =
            layer.replacements.len() + lists.map(|field| items(value, field).count()).sum::<usize>();
        layer
    }

    fn text(&mut self, path: &Path) -> Option<Arc<Text>> {
        if self.home.has_file(path) { self.files.get(path) } else { None }
    }

    /// The text of a patch or of replacements.
    fn input(&mut self, path: &Path) -> Option<Arc<Text>> {
        if self.home.has_input(path) { self.files.get(path) } else { None }
    }
}

fn pieces(text: &Text) -> Vec<Piece> {
    text.values.iter().map(|document| Piece { document: Arc::clone(document), whole: None }).collect()
}

/// The documents in a text in a kustomization.
fn inline(kustomization: &Arc<Document>, at: &Pointer) -> Vec<Piece> {
    let Some(read) = Embedded::read(kustomization, at, &mut Vec::new()) else { return Vec::new() };
    let whole = (!read.is_placed).then(|| (Arc::clone(kustomization), at.clone()));
    let piece = |document| Piece { document: Arc::new(document), whole: whole.clone() };
    read.documents.into_iter().map(piece).collect()
}

/// The replacements of a file: one, or a list.
fn each_replacement(piece: Piece) -> Vec<(Piece, Pointer)> {
    match piece.document.value() {
        Value::Array(all) => {
            (0..all.len()).map(|number| (piece.clone(), Pointer::root().index(number))).collect()
        }
        _ => vec![(piece, Pointer::root())],
    }
}

/// Whether a replacement writes into the name or the namespace of an object, as it does where it says no field.
fn writes_names((piece, at): &(Piece, Pointer)) -> bool {
    let replacement = piece.document.value().pointer(at.as_str());
    let mut targets = replacement.into_iter().flat_map(|it| items(it, "targets"));
    targets.any(|target| {
        let mut paths = texts(target, "fieldPaths").peekable();
        paths.peek().is_none() || paths.any(|path| ["metadata.name", "metadata.namespace"].contains(&&*path))
    })
}

/// An object of a file.
fn first(document: &Arc<Document>) -> Made {
    let name = match document.name() {
        "" => document.value().pointer("/metadata/generateName").and_then(Value::as_str).unwrap_or_default(),
        name => name,
    };
    Made {
        group: document.group().to_owned(),
        kind: document.kind().to_owned(),
        name: name.to_owned(),
        namespace: document.namespace().unwrap_or_default().to_owned(),
        by: Maker::Document(Arc::clone(document)),
        before: None,
    }
}

/// What the generators of a kustomization make.
fn generated(layer: &Arc<Layer>) -> impl Iterator<Item = Arc<Made>> {
    let value = layer.kustomization.value();
    GENERATORS.into_iter().zip(["ConfigMap", "Secret"]).flat_map(move |(field, kind)| {
        let all = items(value, field).enumerate();
        let creates = |generator: &Value| text(generator, "behavior").is_none_or(|it| it == "create");
        all.filter(move |(_, generator)| creates(generator)).map(move |(number, generator)| {
            Arc::new(Made {
                group: String::new(),
                kind: kind.to_owned(),
                name: text(generator, "name").unwrap_or_default(),
                namespace: text(generator, "namespace").unwrap_or_default(),
                by: Maker::Generator(Arc::clone(layer), Pointer::root().key(field).index(number)),
                before: None,
            })
        })
    })
}

impl Layer {
    /// Adds a patch of an entry of the kustomization, which may have a target and options.
    fn add(&mut self, piece: Piece, entry: &Value) {
        let target = match entry.get("target") {
            Some(target) => Target::of(target),
            None => Target::of_patch(&piece.document),
        };
        let number = self.patches.len();
        match &target.name {
            Some(Word::Name(name)) => self.by_name.entry(name.clone()).or_default().push(number),
            _ => self.by_pattern.push(number),
        }
        let allows = |option| entry.pointer(option).is_some_and(|it| *it == true || *it == "true");
        let renames = allows("/options/allowNameChange") || allows("/options/allowKindChange");
        let removes = piece.document.value().get("$patch").is_some_and(|it| it == "delete");
        self.removes |= removes;
        let mut patch = Patch { piece, target, renames, removes };
        // Operations may rename without an option that allows it.
        let is_narrow = patch.piece.document.value().is_array();
        let moves = || IDENTITY.iter().any(|at| patch.text(at).is_some());
        patch.renames |= is_narrow && moves();
        self.patches.push(patch);
    }

    /// The patches for an object, in the order in which they are applied.
    pub(super) fn patches_for(&self, object: &Made, comparisons: &mut usize) -> Vec<&Patch> {
        let named = object.names().into_iter().filter_map(|name| self.by_name.get(name)).flatten();
        let others = self.by_pattern.iter().take(*comparisons);
        *comparisons = comparisons.saturating_sub(self.by_pattern.len());
        let numbers: BTreeSet<usize> = named.chain(others).copied().collect();
        let patches = numbers.into_iter().filter_map(|number| self.patches.get(number));
        patches.filter(|patch| patch.target.fits(object)).collect()
    }

    /// An object after this kustomization.
    fn changed(self: &Arc<Self>, before: Arc<Made>, comparisons: &mut usize) -> Made {
        let value = self.kustomization.value();
        let (mut kind, mut name, mut own) =
            (before.kind.clone(), before.name.clone(), before.namespace.clone());
        if self.patches.iter().any(|patch| patch.renames) {
            for patch in self.patches_for(&before, comparisons).into_iter().filter(|patch| patch.renames) {
                let set = |field, old: &mut String| {
                    if let Some(new) = patch.text(field) {
                        new.clone_into(old);
                    }
                };
                set("/kind", &mut kind);
                set("/metadata/name", &mut name);
                // kustomize keeps the namespace that the object had before it merges a patch into it.
                if patch.piece.document.value().is_array() {
                    set("/metadata/namespace", &mut own);
                }
            }
        }
        if !NOT_RENAMED.contains(&&*kind) {
            let affix = |field| text(value, field).unwrap_or_default();
            name = format!("{}{name}{}", affix("namePrefix"), affix("nameSuffix"));
        }
        let namespace = text(value, "namespace").unwrap_or(own);
        let (group, by) = (before.group.clone(), Maker::Layer(Arc::clone(self)));
        Made { group, kind, name, namespace, by, before: Some(before) }
    }
}

impl Patch {
    /// The text that it sets at a pointer.
    fn text(&self, pointer: &str) -> Option<&str> {
        match self.piece.document.value() {
            Value::Array(operations) => {
                let is_here = |operation: &&Value| operation.get("path").is_some_and(|path| path == pointer);
                operations.iter().rev().find(is_here)?.get("value")?.as_str()
            }
            merged => merged.pointer(pointer)?.as_str(),
        }
    }
}

impl Target {
    /// That of a selector, whose fields are patterns.
    pub(super) fn of(selector: &Value) -> Self {
        let word =
            |field| text(selector, field).filter(|text| !text.is_empty()).and_then(|text| Word::of(&text));
        Self { group: word("group"), kind: word("kind"), name: word("name"), namespace: word("namespace") }
    }

    /// The object that a patch names itself.
    fn of_patch(patch: &Document) -> Self {
        let name = |text: &str| Some(Word::Name(text.to_owned()));
        let namespace = patch.namespace().filter(|it| *it != "default");
        Self {
            group: name(patch.group()),
            kind: name(patch.kind()),
            name: name(patch.name()),
            namespace: namespace.map_or_else(|| Word::of("(default)?"), name),
        }
    }
}

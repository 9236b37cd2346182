//! The files from which helm and kustomize make objects, each read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::build::builder::Builder;
use crate::build::kustomization::{Kustomization, Patch, PatchBody, is_kustomization};
use crate::build::layout::shown;
use crate::build::texts::file;
use crate::build::unit::Unit;
use crate::paths::without_dots;
use memgate_manifest::document::embedded::Embedded;
use memgate_manifest::document::{Document, objects, values};
use memgate_manifest::mask;
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;

/// A file, as far as it can be read.
#[derive(Debug)]
pub(crate) struct Text {
    /// The text.
    pub(crate) source: Arc<Source>,
    /// Its documents.
    pub(crate) values: Vec<Arc<Document>>,
    /// Its objects, by kind, each with its name.
    pub(crate) objects: BTreeMap<String, Vec<(String, Arc<Document>)>>,
    /// The patches in the text of a kustomization.
    pub(crate) patches: TextPatches,
}

/// The patches in the text of a kustomization.
#[derive(Debug, Default)]
pub(crate) struct TextPatches {
    /// By the fields with their texts.
    pub(crate) found: BTreeMap<Pointer, Embedded>,
}

impl TextPatches {
    /// Reads the documents of a kustomization; empty for other files. Credentials in patches are masked from now on.
    pub(crate) fn read(source: &Arc<Source>, values: &[Arc<Document>]) -> Self {
        let mut patches = Self::default();
        if !is_kustomization(Path::new(source.name())) {
            return patches;
        }
        for Patch { at, body, .. } in Kustomization::of(values).patches {
            let mut documents = values.iter().filter(|_| matches!(body, PatchBody::Text(_)));
            let read = documents.find_map(|document| Embedded::read(document, &at, &mut Vec::new()));
            patches.found.extend(read.map(|read| (at, read)));
        }
        mask::mask_embedded(source, patches.found.values());
        patches
    }
}

/// The files that were read so far, by their paths without dots.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// How charts and kustomizations are built.
    pub(crate) builder: Builder,
    max_bytes: usize,
    /// Texts that replace those of files.
    instead: BTreeMap<String, String>,
    /// What was read beside this, by the same paths.
    known: BTreeMap<String, Arc<Source>>,
    texts: BTreeMap<String, Option<Arc<Text>>>,
    /// By the names of what is printed for units.
    manifests: BTreeMap<String, Arc<Vec<Arc<Text>>>>,
}

impl Files {
    /// None of the files read yet, of at most so many bytes each; of those of these names, other texts are read.
    pub(crate) fn new(builder: Builder, max_bytes: usize, instead: BTreeMap<String, String>) -> Self {
        Self { builder, max_bytes, instead, ..Self::default() }
    }

    /// Takes the texts of files that were read as manifests, so that each file has one text.
    pub(crate) fn know(&mut self, sources: &[Arc<Source>]) {
        let name = |source: &Arc<Source>| (file_name(Path::new(source.name())), Arc::clone(source));
        self.known.extend(sources.iter().map(name));
    }

    /// A file; `None` if it cannot be read.
    pub(crate) fn get(&mut self, path: &Path) -> Option<Arc<Text>> {
        let name = file_name(path);
        if let Some(text) = self.texts.get(&name) {
            return text.clone();
        }
        let source = self.known.get(&name).cloned().or_else(|| self.read(&name)).map(|source| {
            let values: Vec<_> = values(&source, &mut Vec::new()).into_iter().map(Arc::new).collect();
            let patches = TextPatches::read(&source, &values);
            let mut by_kind = BTreeMap::<_, Vec<_>>::new();
            for object in objects(&values) {
                by_kind.entry(object.kind().to_owned()).or_default().push((object.name().to_owned(), object));
            }
            Arc::new(Text { source, values, objects: by_kind, patches })
        });
        self.texts.insert(name, source.clone());
        source
    }

    /// The files of a unit that may have its objects, which are found once.
    pub(crate) fn manifests_of(&mut self, unit: &Unit) -> Arc<Vec<Arc<Text>>> {
        if let Some(known) = self.manifests.get(&unit.source_name()) {
            return Arc::clone(known);
        }
        let files = if unit.tool.is_some() { &unit.resources } else { &unit.files };
        let files = files.iter().filter(|file| !is_kustomization(file));
        let found = Arc::new(files.filter_map(|file| self.get(Path::new(&shown(file)))).collect());
        self.manifests.insert(unit.source_name(), Arc::clone(&found));
        found
    }

    /// The texts of all files that were read.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.texts.values().flatten().map(|text| &text.source)
    }

    fn read(&self, name: &str) -> Option<Arc<Source>> {
        let text = match self.instead.get(name) {
            Some(text) => Ok(Source::new(name, text.as_str())),
            None => file(Path::new(name), self.max_bytes),
        };
        text.ok().map(Arc::new)
    }
}

/// The name of a file in outputs: its path without dots.
pub(crate) fn file_name(path: &Path) -> String {
    without_dots(path).to_string_lossy().into_owned()
}

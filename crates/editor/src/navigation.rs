//! Questions about a place in an open file; go to definition, and references.

use std::sync::Arc;

use lsp_types::Location;

use crate::buffers::Buffer;
use crate::names::{NamedPlace, names};
use crate::positions::Lines;
use crate::uri;
use crate::workspace::{Root, name, path};
use memgate_manifest::place::{DocumentPlace, LastSource};
use memgate_manifest::source::{Source, Span};
use memgate_model::object::Reference;
use memgate_workbench::files::inputs::Inputs;
use memgate_workbench::files::load::{Error, load};
use memgate_workbench::files::run::Run;

/// A question about a place or a range in an open file.
pub(crate) struct Question<'q> {
    /// What is read around the file.
    pub(crate) run: Run,
    /// The root of the file.
    pub(crate) root: Root,
    /// The file.
    pub(crate) buffer: &'q Buffer,
    /// The byte in its text at which the place or the range starts.
    pub(crate) start: usize,
    /// The byte behind the range; of a place the same.
    pub(crate) end: usize,
}

/// Where the object stands to which the place refers.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn definition(question: &Question<'_>) -> Result<Vec<Location>, Error> {
    let inputs = load(&question.run.plan)?;
    let names = names(&inputs, Some(&question.file()));
    let found = question.named(&names).filter_map(|(object, _)| find(object, &inputs)).collect();
    Ok(question.locations(found))
}

/// Where the object of the place is referred to: the one to which the place refers, else the one around it. With
/// `declares`, also where that object stands.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn references(mut question: Question<'_>, declares: bool) -> Result<Vec<Location>, Error> {
    question.run.plan.checks_only_open = false;
    let inputs = load(&question.run.plan)?;
    let names = names(&inputs, None);
    let is_around = |name: &&NamedPlace| name.is_own && question.is_in(&name.place);
    let around = || names.iter().rfind(is_around).map(|name| &name.object);
    let Some(object) = question.named(&names).next().map(|(object, _)| object).or_else(around) else {
        return Ok(Vec::new());
    };
    let (mut found, mut last) = (Vec::new(), LastSource::default());
    for name in names.iter().filter(|name| !name.is_own && name.object == *object) {
        last.is_now(&name.place);
        found.extend(name.span().map(|span| (Arc::clone(name.place.source()), span)));
    }
    found.extend(find(object, &inputs).filter(|_| declares));
    Ok(question.locations(found))
}

/// Where an object stands.
pub(crate) fn find(object: &Reference, inputs: &Inputs) -> Option<(Arc<Source>, Span)> {
    inputs.places.of_object(std::iter::once(object.kind), [&object.namespace, &object.name])
}

impl Question<'_> {
    /// The name of the file.
    pub(crate) fn file(&self) -> String {
        name(&self.root, &self.buffer.path)
    }

    /// Whether the place, or a part of the range, is in an object.
    pub(crate) fn is_in(&self, place: &DocumentPlace) -> bool {
        place.source().name() == self.file() && self.is_at(place.span())
    }

    /// The objects that the place names, each with the stretch of its name.
    pub(crate) fn named<'n>(&self, all: &'n [NamedPlace]) -> impl Iterator<Item = (&'n Reference, Span)> {
        let around = all.iter().filter(|name| !name.is_own && self.is_in(&name.place));
        around.filter_map(|name| Some((&name.object, name.span()?))).filter(|(_, span)| self.is_at(*span))
    }

    /// Whether the place, or a part of the range, is in a stretch of the file.
    pub(crate) fn is_at(&self, span: Span) -> bool {
        self.touches(span.start, span.end)
    }

    /// The same of a stretch between two bytes.
    pub(crate) const fn touches(&self, start: usize, end: usize) -> bool {
        start <= self.end && end >= self.start
    }

    /// Stretches of sources as places that an editor can open, each once, without those of texts that are not files. Each text
    /// is divided into lines once.
    fn locations(&self, mut spans: Vec<(Arc<Source>, Span)>) -> Vec<Location> {
        spans.sort_by(|(one, a), (two, b)| (one.name(), a.start).cmp(&(two.name(), b.start)));
        let of_source = |spans: &[(Arc<Source>, Span)]| {
            let (source, _) = spans.first()?;
            let uri = uri::of_path(&path(&self.root, source.name()))?;
            let lines = Lines::new(source.text());
            let place = |(_, span): &(Arc<Source>, Span)| lines.range(span.start, span.end);
            Some(spans.iter().map(|it| Location::new(uri.clone(), place(it))).collect::<Vec<_>>())
        };
        let sources = spans.chunk_by(|(one, _), (two, _)| one.name() == two.name());
        let mut locations: Vec<Location> = sources.filter_map(of_source).flatten().collect();
        locations.dedup();
        locations
    }
}

//! Questions about a place in an open file; go to definition, and references.

use std::sync::Arc;

use lsp_types::Location;

use crate::buffers::Buffer;
use crate::objects::{Link, Loaded, Viewed, load_views, locations};
use crate::positions::Encoding;
use crate::workspace::{Root, name};
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_workbench::load::Error;
use memgate_workbench::run::Run;

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
    /// How the client counts columns.
    pub(crate) encoding: Encoding,
}

/// Where the object stands to which the place refers.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn definition(question: &Question<'_>) -> Result<Vec<Location>, Error> {
    let mut found = Vec::new();
    for loaded in load_views(&question.run, |place| question.is_in(place))? {
        found.extend(question.links(&loaded).filter_map(|link| link.target.find(&loaded.inputs)));
    }
    Ok(question.locations(found))
}

/// Where the object of the place is referred to: the one to which the place refers, else the one around it. With
/// `declares`, also where that object stands.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn references(mut question: Question<'_>, declares: bool) -> Result<Vec<Location>, Error> {
    question.run.plan.checks_only_open = false;
    let mut found = Vec::new();
    for loaded in load_views(&question.run, |_| true)? {
        let around = || loaded.objects.iter().find(|it| question.is_in(&it.object.object.place));
        let linked = question.links(&loaded).next().map(|link| link.target);
        let Some(target) = linked.or_else(|| around().map(Viewed::target)) else { continue };
        for viewed in &loaded.objects {
            let source = viewed.object.object.place.source();
            let links = viewed.links().into_iter().filter(|link| link.target.is(&target));
            found.extend(links.map(|link| (Arc::clone(source), link.span)));
        }
        found.extend(target.find(&loaded.inputs).filter(|_| declares));
    }
    Ok(question.locations(found))
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

    /// What the place refers to, by the views of the objects around it.
    pub(crate) fn links<'l>(&self, loaded: &'l Loaded) -> impl Iterator<Item = Link<'l>> {
        let around = loaded.objects.iter().filter(|viewed| self.is_in(&viewed.object.object.place));
        around.flat_map(Viewed::links).filter(|link| self.is_at(link.span))
    }

    /// Whether the place, or a part of the range, is in a stretch of the file.
    pub(crate) fn is_at(&self, span: Span) -> bool {
        self.touches(span.start, span.end)
    }

    /// The same of a stretch between two bytes.
    pub(crate) const fn touches(&self, start: usize, end: usize) -> bool {
        start <= self.end && end >= self.start
    }

    /// The places in files, each once.
    fn locations(&self, found: Vec<(Arc<Source>, Span)>) -> Vec<Location> {
        let mut locations = locations(&self.root, found, self.encoding);
        locations.dedup();
        locations
    }
}

//! Questions about a place in an open file; go to definition, and references.

use std::sync::Arc;

use lsp_types::Location;

use crate::buffers::Buffer;
use crate::names::{Name, names};
use crate::objects::{Link, Loaded, Target, Viewed, load_views, locations};
use crate::workspace::{Root, name};
use memgate_manifest::place::{DocumentPlace, LastSource};
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
}

/// Where the object stands to which the place refers.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn definition(question: &Question<'_>) -> Result<Vec<Location>, Error> {
    let (mut found, file) = (Vec::new(), question.file());
    for loaded in load_views(&question.run, |place| question.is_in(place))? {
        let names = names(&loaded.inputs, Some(&file));
        let Links { named, viewed } = question.links(&loaded, &names);
        let links = if named.is_empty() { viewed } else { named };
        found.extend(links.iter().filter_map(|link| link.target.find(&loaded.inputs)));
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
        let names = names(&loaded.inputs, None);
        let Some(target) = target(&question, &loaded, &names) else { continue };
        for viewed in &loaded.objects {
            let source = viewed.object.object.place.source();
            let links = viewed.links().into_iter().filter(|link| link.target.is(&target));
            found.extend(links.map(|link| (Arc::clone(source), link.span)));
        }
        let mut last = LastSource::default();
        for name in names.iter().filter(|name| !name.is_own && Target::of(&name.object).is(&target)) {
            last.is_now(&name.place);
            found.extend(name.span().map(|span| (Arc::clone(name.place.source()), span)));
        }
        found.extend(target.find(&loaded.inputs).filter(|_| declares));
    }
    Ok(question.locations(found))
}

fn target<'l>(question: &Question<'_>, loaded: &'l Loaded, names: &'l [Name]) -> Option<Target<'l>> {
    let Links { named, viewed } = question.links(loaded, names);
    let link = named.into_iter().chain(viewed).next();
    let is_around = |name: &&Name| name.is_own && question.is_in(&name.place);
    let around = || names.iter().rfind(is_around).map(|name| Target::of(&name.object));
    link.map(|link| link.target).or_else(around)
}

/// What a place leads to.
pub(crate) struct Links<'l> {
    /// The objects that it names.
    pub(crate) named: Vec<Link<'l>>,
    /// Other objects, such as the memory of an agent that it names.
    pub(crate) viewed: Vec<Link<'l>>,
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

    /// What the place names, by the tables of references, and what else it leads to, by the views of the objects.
    pub(crate) fn links<'l>(&self, loaded: &'l Loaded, all: &'l [Name]) -> Links<'l> {
        let around = loaded.objects.iter().filter(|viewed| self.is_in(&viewed.object.object.place));
        let mut viewed: Vec<_> =
            around.flat_map(Viewed::links).filter(|link| self.is_at(link.span)).collect();
        let around = all.iter().filter(|name| !name.is_own && self.is_in(&name.place));
        let link =
            |name: &'l Name| Some(Link { span: name.span()?, target: Target::of(&name.object), view: None });
        let mut named: Vec<_> = around.filter_map(link).filter(|link| self.is_at(link.span)).collect();
        // The views know more of an object.
        let known = viewed.extract_if(.., |link| named.iter().any(|it| it.target.is(&link.target)));
        let known: Vec<_> = known.collect();
        named.retain(|link| !known.iter().any(|it| it.target.is(&link.target)));
        named.extend(known);
        Links { named, viewed }
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
        let mut locations = locations(&self.root, found);
        locations.dedup();
        locations
    }
}

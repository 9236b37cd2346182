//! The objects of open files, what they refer to, and where that is.

use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;

use lsp_types::Location;

use crate::positions::Lines;
use crate::uri;
use crate::workspace::{Root, path};
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_model::family::Family;
use memgate_model::memory_view::MemoryView;
use memgate_model::object::Reference;
use memgate_platforms::state_kinds;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::inputs::Inputs;
use memgate_workbench::load::{Error, load};
use memgate_workbench::objects::{CheckedObject, UndecidedObject};
use memgate_workbench::run::Run;
use memgate_workbench::view::view_object;

/// An object with its views.
pub(crate) struct Viewed {
    /// The object.
    pub(crate) object: UndecidedObject,
    /// Its views; none if it has nothing to do with memory.
    pub(crate) views: Vec<MemoryView>,
}

/// The name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'v> {
    /// The platform, by which kinds of the same name differ; `None` for a kind that several have.
    pub(crate) family: Option<&'v str>,
    /// The kind.
    pub(crate) kind: &'v str,
    /// The namespace; empty for a cluster-wide kind.
    pub(crate) namespace: &'v str,
    /// The name.
    pub(crate) name: &'v str,
}

/// A reference from an object to another one.
pub(crate) struct Link<'v> {
    /// The field that refers, with its key.
    pub(crate) span: Span,
    /// The other object.
    pub(crate) target: Target<'v>,
    /// For a memory resource that was found, its view.
    pub(crate) view: Option<&'v MemoryView>,
}

/// What was loaded of one set of files.
pub(crate) struct Loaded {
    /// The files, without their objects.
    pub(crate) inputs: Inputs,
    /// The objects of the files that were asked for.
    pub(crate) objects: Vec<Viewed>,
}

/// Loads the files of a run, with the views of some objects in them.
///
/// # Errors
/// When the files cannot be loaded at all.
pub(crate) fn load_views(
    run: &Run,
    is_chosen: impl Fn(&DocumentPlace) -> bool,
) -> Result<Vec<Loaded>, Error> {
    let with_views = |mut inputs: Inputs| {
        let objects = std::mem::take(&mut inputs.objects).into_iter();
        let chosen = objects.filter(|it| !it.is_exempt() && is_chosen(&it.object.place));
        let viewed = chosen.map(|object| {
            // An object that cannot be decided is an error of its file, which a diagnostic shows.
            let views =
                view_object(&object, &inputs.snapshot, run.occasion).map(|it| it.views).unwrap_or_default();
            Viewed { object, views }
        });
        let objects = viewed.collect();
        Loaded { inputs, objects }
    };
    Ok(vec![with_views(load(&run.plan)?)])
}

impl Viewed {
    /// What the object refers to, by its views.
    pub(crate) fn links(&self) -> Vec<Link<'_>> {
        let object = &*self.object.object;
        self.views.iter().flat_map(|view| links(object, view)).collect()
    }
}

fn links<'v>(object: &CheckedObject, view: &'v MemoryView) -> Vec<Link<'v>> {
    let span = |field: &Pointer| {
        let found = object.place.locate(&object.in_document(field));
        found.exact.then(|| found.whole())
    };
    let sources = view.sources.iter().filter_map(|source| {
        let MemoryView { family, kind, namespace, name, .. } = &source.view;
        let target = Target { family: Some(family), kind, namespace, name };
        Some(Link { span: span(&source.field)?, target, view: Some(&source.view) })
    });
    let is_source: BTreeSet<_> = view
        .sources
        .iter()
        .map(|source| [source.view.kind, &source.view.namespace, &source.view.name])
        .collect();
    let others = view.references.iter().filter(|it| !is_source.contains(&[it.kind, &it.namespace, &it.name]));
    let references = others.filter_map(|reference| {
        let (namespace, name) = (&*reference.namespace, &*reference.name);
        let target = Target { family: None, kind: reference.kind, namespace, name };
        Some(Link { span: span(&reference.field)?, target, view: None })
    });
    let secrets = view.secrets.iter().filter_map(|secret| {
        let target =
            Target { family: None, kind: "Secret", namespace: &secret.namespace, name: &secret.name };
        Some(Link { span: span(&secret.field)?, target, view: None })
    });
    sources.chain(references).chain(secrets).collect()
}

impl<'v> Target<'v> {
    /// An object by its name.
    pub(crate) fn of(Reference { kind, namespace, name }: &'v Reference) -> Self {
        let has = |family: &&&'static Family| state_kinds(slice::from_ref(*family)).any(|it| it == *kind);
        let family = memgate_platforms::ALL.iter().find(has).filter(|_| !kind.group.is_empty());
        Self { family: family.map(|family| family.name), kind: kind.kind, namespace, name }
    }

    /// Whether both are the same object.
    pub(crate) fn is(&self, other: &Target<'_>) -> bool {
        let is_same_family = self.family.zip(other.family).is_none_or(|(one, two)| one == two);
        is_same_family && [self.kind, self.namespace, self.name] == [other.kind, other.namespace, other.name]
    }

    /// Where the object stands.
    pub(crate) fn find(&self, inputs: &Inputs) -> Option<(Arc<Source>, Span)> {
        let families = &inputs.snapshot.settings.families;
        let chosen: Vec<_> =
            families.iter().copied().filter(|it| self.family.is_none_or(|name| it.name == name)).collect();
        let kinds = state_kinds(&chosen).filter(|kind| kind.kind == self.kind);
        inputs.places.of_object(kinds, [self.namespace, self.name])
    }
}

/// Stretches of sources as places that an editor can open, without those of texts that are not files. Each text is
/// divided into lines once.
pub(crate) fn locations(root: &Root, mut spans: Vec<(Arc<Source>, Span)>) -> Vec<Location> {
    spans.sort_by(|(one, a), (two, b)| (one.name(), a.start).cmp(&(two.name(), b.start)));
    let of_source = |spans: &[(Arc<Source>, Span)]| {
        let (source, _) = spans.first()?;
        let uri = uri::of_path(&path(root, source.name()))?;
        let lines = Lines::new(source.text());
        let place = |(_, span): &(Arc<Source>, Span)| lines.range(span.start, span.end);
        Some(spans.iter().map(|it| Location::new(uri.clone(), place(it))).collect::<Vec<_>>())
    };
    spans.chunk_by(|(one, _), (two, _)| one.name() == two.name()).filter_map(of_source).flatten().collect()
}

/// The file and line of a stretch.
pub(crate) fn at_line(source: &Source, span: Span) -> String {
    format!("{}:{}", source.name().trim_start_matches("./"), span.line)
}

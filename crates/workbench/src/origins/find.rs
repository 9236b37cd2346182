//! Finds the spot of a field of an object: of a rendered object in the file from which it comes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::origins::files::Files;
use crate::origins::spot::Spot;
use crate::origins::{Origins, RenderedObject, helm, kustomize};
use crate::paths::Home;
use crate::repository::{Tool, Unit};
use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;

/// The file of a document: of a rendered one the file that made it.
pub(crate) fn file_of(place: &DocumentPlace, origins: &Origins, files: &mut Files) -> String {
    let spot = of_field(place, &Pointer::root(), origins, files);
    spot.as_ref().map_or_else(|| place.source(), Spot::source).name().to_owned()
}

/// Finds where the fields of documents stand that are not read yet as inputs.
pub(crate) struct SpotsOf<'s> {
    pub(crate) origins: &'s Origins,
    pub(crate) files: &'s mut Files,
}

impl SpotsOf<'_> {
    /// The file of a source, of a rendered one that of the chart or kustomization.
    pub(crate) fn file(&self, source: &Source) -> PathBuf {
        self.origins.rendered.get(source.name()).map_or_else(|| source.name().into(), Unit::marker)
    }

    /// The spot of a field, of a rendered document in the file from which it comes.
    pub(crate) fn of(&mut self, document: &Document, pointer: &Pointer) -> Spot {
        let name = document.source().name();
        let rendered = self.origins.rendered.get(name).and_then(|unit| {
            let release = self.origins.releases.get(name);
            let object = RenderedObject { unit, release, value: document.value(), file: None };
            let spot = of_object(object, pointer, false, (self.origins, self.files))?;
            // Of what a rendered object installs.
            let is_rendered = self.origins.rendered.contains_key(spot.source().name());
            if is_rendered { start_of(&unit.marker(), self.files) } else { Some(spot) }
        });
        let own = || Spot::Field { document: document.shared_place(), pointer: pointer.clone(), key: None };
        rendered.unwrap_or_else(own)
    }
}

/// The spot of a field of a document, if memgate rendered it.
pub(crate) fn of_field(
    document: &DocumentPlace,
    pointer: &Pointer,
    origins: &Origins,
    files: &mut Files,
) -> Option<Spot> {
    of_object(origins.rendered_at(document.source(), document.start())?, pointer, false, (origins, files))
}

/// The spot of a field of a rendered object, or of its key, else the file that made the object.
pub(crate) fn of_object(
    object: RenderedObject<'_>,
    pointer: &Pointer,
    at_key: bool,
    (origins, files): (&Origins, &mut Files),
) -> Option<Spot> {
    let found = match object.unit.tool {
        Tool::Helm => helm::spot(object, pointer, at_key, files),
        Tool::Kustomize => kustomize::spot(object, pointer, files),
    };
    // The object with the values of a release may be one that kustomize printed.
    let found = match found {
        Some(Spot::Field { document, pointer, key }) => {
            match origins.rendered_at(document.source(), document.start()) {
                Some(release) => kustomize::spot(release, &pointer, files),
                None => Some(Spot::Field { document, pointer, key }),
            }
        }
        found => found,
    };
    // Any text of an object may look like the name of its file.
    let is_near = |file: &&str| Home::of(object.unit.absolute(), None).has_file(Path::new(file));
    let named = || start_of(Path::new(object.file.filter(is_near)?), files);
    found.or_else(named).or_else(|| start_of(&object.unit.marker(), files))
}

/// The first line of a file that made an object.
pub(crate) fn start_of(file: &Path, files: &mut Files) -> Option<Spot> {
    let source = Arc::clone(&files.get(file)?.source);
    let span = source.span(0, 0);
    Some(Spot::Text { source, span })
}

//! Finds the spot of a field of a document: of a built object in the file from which it comes.

use std::path::PathBuf;

use crate::build::origins::Origins;
use crate::build::origins::files::Files;
use crate::build::origins::search::spot;
use crate::build::origins::spot::Spot;
use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;

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

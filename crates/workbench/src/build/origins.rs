//! Where objects come from that helm or kustomize made, and where a finding about one stands: `search` finds the text from which
//! a value comes, so that findings stand where a person would edit ([`trace`](crate::files::trace)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build::rendered::Rendered;
use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_primitives::pointer::Pointer;

pub(crate) mod files;
pub(crate) mod search;

/// What was built, and the files from which it was.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// What memgate had built, by the names of the sources.
    pub(crate) rendered: BTreeMap<String, Arc<Rendered>>,
    /// The files in which findings about these objects stand.
    traced: Vec<Arc<Source>>,
}

impl Origins {
    /// Adds the files of other inputs.
    pub(crate) fn extend(&mut self, others: Self) {
        self.rendered.extend(others.rendered);
        self.traced.extend(others.traced);
    }

    /// What a tool printed in which a document is.
    pub(crate) fn rendered_in(&self, source: &Source) -> Option<&Rendered> {
        self.rendered.get(source.name()).map(|rendered| &**rendered)
    }

    /// Whether anything was rendered.
    pub(crate) fn has_rendered(&self) -> bool {
        !self.rendered.is_empty()
    }

    /// Adds files in which findings stand.
    pub(crate) fn add_traced(&mut self, files: impl Iterator<Item = Arc<Source>>) {
        self.traced.extend(files);
        self.deduplicate();
    }

    /// Leaves each file once.
    pub(crate) fn deduplicate(&mut self) {
        let mut seen = BTreeSet::new();
        self.traced.retain(|source| seen.insert(Arc::as_ptr(source)));
    }

    /// The files in which findings about rendered objects stand, each once. They are none of the sources that were read.
    pub fn traced(&self) -> &[Arc<Source>] {
        &self.traced
    }
}

/// A place in a file.
#[derive(Debug, Clone)]
pub enum Spot {
    /// A field of a document.
    Field {
        /// The document.
        document: Arc<DocumentPlace>,
        /// The field in it.
        pointer: Pointer,
        /// Where the key of the field stands as the value of another one: the `path` of a JSON patch.
        key: Option<Pointer>,
    },
    /// A stretch of a text that cannot be read as documents, such as a template.
    Text {
        /// The text.
        source: Arc<Source>,
        /// The stretch.
        span: Span,
    },
}

impl Spot {
    /// The file.
    pub fn source(&self) -> &Arc<Source> {
        match self {
            Self::Field { document, .. } => document.source(),
            Self::Text { source, .. } => source,
        }
    }

    /// The line at which the document starts, or the stretch.
    pub(crate) fn first_line(&self) -> usize {
        match self {
            Self::Field { document, .. } => document.span().line,
            Self::Text { span, .. } => span.line,
        }
    }

    /// A field of a document.
    pub(crate) fn at(document: &Document, pointer: &Pointer) -> Self {
        Self::Field { document: document.shared_place(), pointer: pointer.clone(), key: None }
    }

    /// The stretch of a caret at the value.
    pub fn caret(&self) -> Span {
        self.caret_at(false)
    }

    /// The same, or that of a caret at the key.
    pub(crate) fn caret_at(&self, at_key: bool) -> Span {
        match self {
            Self::Field { document, pointer, .. } => document.locate(pointer).carets(at_key).0,
            Self::Text { span, .. } => *span,
        }
    }
}

/// The spots of a rendered object, by the pointers in it that findings name. Empty for an object that itself stands where a
/// person would edit it, but with others at the same place: one fault there is one finding.
#[derive(Debug, Clone, Default)]
pub struct Spots(BTreeMap<Pointer, Spot>);

impl Spots {
    /// Adds the spot of a field.
    pub(crate) fn insert(&mut self, pointer: Pointer, spot: Spot) {
        self.0.insert(pointer, spot);
    }

    /// The spot of a field, else that of the object.
    pub(crate) fn get(&self, pointer: &Pointer) -> Option<&Spot> {
        self.0.get(pointer).or_else(|| self.0.get(&Pointer::root()))
    }
}

/// Where a finding stands: at a field of its own document, or at a spot in the file from which that was rendered.
#[derive(Debug, Clone)]
pub(crate) enum FindingSpot<'c> {
    /// A field; and where its key is a value, that place.
    Field(&'c DocumentPlace, Pointer, Option<Pointer>),
    Text(&'c Arc<Source>, Span),
}

impl<'c> FindingSpot<'c> {
    /// That of a field of a document with these spots.
    pub(crate) fn of(document: &'c DocumentPlace, spots: Option<&'c Spots>, pointer: &Pointer) -> Self {
        match spots.and_then(|spots| spots.get(pointer)) {
            None => Self::Field(document, pointer.clone(), None),
            Some(Spot::Field { document, pointer, key }) => {
                Self::Field(document, pointer.clone(), key.clone())
            }
            Some(Spot::Text { source, span }) => Self::Text(source, *span),
        }
    }

    /// The file.
    pub(crate) fn source(&self) -> &'c Arc<Source> {
        match self {
            Self::Field(document, ..) => document.source(),
            Self::Text(source, _) => source,
        }
    }

    /// Whether the field itself stands there, and not only a parent of it.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Self::Field(document, pointer, _) => document.locate(pointer).exact,
            Self::Text(..) => true,
        }
    }

    /// The stretches of the carets, as [`Location::carets`](memgate_manifest::source::Location::carets).
    pub(crate) fn carets(&self, at_key: bool) -> (Span, Option<Span>) {
        match self {
            Self::Field(document, _, Some(key)) if at_key => document.locate(key).carets(false),
            Self::Field(document, pointer, _) => document.locate(pointer).carets(at_key),
            Self::Text(_, span) => (*span, None),
        }
    }
}

//! Sources to values: part by part, so that only one part is in memory at a time, or as a whole, to be edited.

use std::sync::Arc;

use serde_json::Value;

use crate::manifest::error::{Error, SyntaxError};
use crate::manifest::outline::{NodeId, Outline, Syntax};
use crate::manifest::outlines::Outlines;
use crate::manifest::parts::Part;
use crate::manifest::place::DocumentPlace;
use crate::manifest::source::Source;
use crate::manifest::value::ValueReader;
use crate::manifest::yaml::MAX_ERRORS;

/// A document of a source, or what is wrong with it.
pub(super) type RootValue = Result<(NodeId, Value), Box<SyntaxError>>;

/// The outline of a whole source, and the value of each of its documents, the empty ones included.
pub(super) fn read(source: &Arc<Source>) -> (Outline, Vec<RootValue>) {
    let Syntax { outline, roots } = Outlines::new(source).syntax(Part::whole(source), 0);
    let mut repeated = 0;
    let values = root_values(source, &outline, roots, &mut repeated);
    (outline, values)
}

/// The values of documents; `repeated` is what aliases have repeated before, and then what they have in all.
fn root_values(
    source: &Arc<Source>,
    outline: &Outline,
    roots: Vec<Result<NodeId, SyntaxError>>,
    repeated: &mut usize,
) -> Vec<RootValue> {
    let mut reader = ValueReader::new(source, outline, *repeated);
    let read = |root: Result<NodeId, SyntaxError>| {
        let root = root.map_err(Box::new)?;
        Ok((root, reader.read(root)?))
    };
    let values = roots.into_iter().map(read).collect();
    *repeated = reader.repeated;
    values
}

/// Reads a source part by part: of each its documents as they are, Lists whole, and errors.
pub(super) struct PartReader {
    outlines: Arc<Outlines>,
    parts: std::vec::IntoIter<Part>,
    /// How many documents came before, those with errors too.
    index: usize,
    /// How many of them are not well-formed.
    errors: usize,
    repeated: usize,
}

impl PartReader {
    /// A reader of all of a source.
    pub(super) fn new(source: &Arc<Source>) -> Self {
        let outlines = Arc::new(Outlines::new(source));
        let parts = outlines.parts().into_iter();
        Self { outlines, parts, index: 0, errors: 0, repeated: 0 }
    }
}

impl Iterator for PartReader {
    type Item = Vec<Result<(DocumentPlace, Value), Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = self.parts.next().filter(|_| self.errors < MAX_ERRORS);
        let Some(part) = part else {
            // Outlines take ten times their text, and few of them are asked for again.
            self.outlines.forget();
            return None;
        };
        let (outline, roots) = self.outlines.read(part, self.errors);
        self.errors += roots.iter().filter(|root| root.is_err()).count();
        let values = root_values(self.outlines.source(), &outline, roots, &mut self.repeated);
        let mut documents = Vec::with_capacity(values.len());
        for value in values {
            let index = self.index;
            self.index += 1;
            match value {
                Ok((_, Value::Null)) => {}
                Ok((root, value)) => {
                    let place = DocumentPlace::new(&self.outlines, part, &outline, root, index);
                    documents.push(Ok((place, value)));
                }
                Err(error) => documents.push(Err(Error::Syntax(error))),
            }
        }
        Some(documents)
    }
}

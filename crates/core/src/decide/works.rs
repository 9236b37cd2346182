//! What counts the steps of a decision about a resource: each part of it has a budget of its own.

use crate::model::request::{Operation, Request};
use crate::model::work::Work;

/// What counts the steps of a decision about a resource.
pub(super) struct Works<'c> {
    /// About the object.
    pub(super) new: Work<'c>,
    /// About reading the stored object.
    pub(super) old: Work<'c>,
    /// About its findings, which nobody reads. They are wanted also where it is too large to be read whole.
    pub(super) old_findings: Work<'c>,
    /// About the object once more, for the rare case that words are missing.
    pub(super) again: Work<'c>,
    /// About the object and its schema, where no apiserver has checked them. It counts apart, so that a family
    /// says the same everywhere.
    pub(super) schema: Work<'c>,
    /// About the stored object and the schema.
    pub(super) old_schema: Work<'c>,
}

impl<'c> Works<'c> {
    pub(super) fn new(request: &Request<'c>) -> Self {
        let cancelled = request.cancelled;
        let is_update = request.operation == Operation::Update;
        let bytes = |text: Option<&str>| text.map_or(0, str::len);
        let (size, old_size) = (bytes(request.object), bytes(request.old_object));
        Self {
            new: Work::new(cancelled).about(size).compared(is_update),
            old: Work::wordless(cancelled).about(old_size),
            old_findings: Work::wordless(cancelled).about(old_size),
            again: Work::wordy(cancelled).about(size).compared(is_update),
            schema: Work::wordless(cancelled).about(size),
            old_schema: Work::wordless(cancelled).about(old_size),
        }
    }
}

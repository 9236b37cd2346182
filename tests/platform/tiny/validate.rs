//! What is wrong with a Notebook.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::codes::URL_REQUIRED;

pub(crate) fn validate(subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    let url = subject.object.at(&["spec", "url"]).and_then(Tree::text).unwrap_or_default();
    if subject.operation == Operation::Delete || !url.is_empty() {
        return Vec::new();
    }
    vec![Finding::deny(&URL_REQUIRED, Pointer::new("/spec/url"), "spec.url is required")]
}

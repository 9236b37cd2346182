//! What a decision about a platform's own object is about.

use crate::kind::Kind;
use crate::request::Operation;
use crate::tree::Tree;

/// One object of a family's own kind, to be validated or defaulted.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'t> {
    /// Its kind.
    pub kind: &'static Kind,
    /// The operation of the request.
    pub operation: Operation,
    /// The namespace of the request.
    pub namespace: &'t str,
    /// The name of the object.
    pub name: &'t str,
    /// The object; for a DELETE the one that is deleted.
    pub object: &'t Tree,
    /// The stored object, for an UPDATE.
    pub old: Option<&'t Tree>,
}

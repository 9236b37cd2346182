//! Reads labels, fields and lists of the family's objects.

use memgate_model::tree::Tree;
use memgate_primitives::members::ByKey;

/// The value of a label; `None` when it is absent or empty.
pub(crate) fn label<'t>(object: &'t Tree, key: &str) -> Option<&'t str> {
    object.at(&["metadata", "labels"])?.entry(key).filter(|value| !value.is_empty())
}

/// An object at a path.
pub(crate) fn section<'t>(tree: &'t Tree, path: &[&str]) -> Option<&'t Tree> {
    tree.at(path).filter(|section| section.is_object())
}

/// Whether a field that is false by default is true.
pub(crate) fn is_true(object: &Tree, path: &[&str]) -> bool {
    object.at(path) == Some(&Tree::Boolean(true))
}

/// The first index of each name in a list.
pub(super) type Places<'t> = ByKey<&'t str, usize>;

/// Finds the first index of each of these names.
pub(super) fn first_places<'t>(
    names: impl DoubleEndedIterator<Item = Option<&'t str>> + ExactSizeIterator,
) -> Places<'t> {
    // Going backwards, the first index of a name overwrites later ones.
    names.enumerate().rev().filter_map(|(place, name)| Some((name?, place))).collect()
}

/// Reads each object of a list.
pub(super) fn list<'t, T>(tree: &'t Tree, path: &[&str], read: impl Fn(usize, &'t Tree) -> T) -> Vec<T> {
    objects(tree, path).map(|(index, element)| read(index, element)).collect()
}

/// The objects of a list, with their indexes.
pub(super) fn objects<'t>(
    tree: &'t Tree,
    path: &[&str],
) -> impl Iterator<Item = (usize, &'t Tree)> + use<'t> {
    let elements = tree.list_at(path);
    elements.iter().enumerate().filter(|(_, element)| element.is_object())
}

/// The strings of a list. The apiserver refuses a list with other elements.
pub(super) fn texts<'t>(tree: &'t Tree, path: &[&str]) -> impl Iterator<Item = &'t str> + use<'t> {
    let elements = tree.list_at(path);
    elements.iter().filter_map(Tree::text)
}

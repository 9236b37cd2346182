//! Reads the lists of an Ensemble.

use memgate_model::tree::Tree;
use memgate_primitives::members::ByKey;

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
    let elements = tree.at(path).map(Tree::elements).unwrap_or_default();
    elements.iter().enumerate().filter(|(_, element)| element.is_object())
}

/// The strings of a list. The apiserver refuses a list with other elements.
pub(super) fn texts<'t>(tree: &'t Tree, path: &[&str]) -> impl Iterator<Item = &'t str> + use<'t> {
    let elements = tree.at(path).map(Tree::elements).unwrap_or_default();
    elements.iter().filter_map(Tree::text)
}

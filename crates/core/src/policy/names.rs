//! Lists of names and patterns of names, as policies write them.

use std::collections::BTreeSet;

use crate::model::finding::{Cause, quoted};
use crate::model::glob::Glob;
use crate::model::name::is_dns_subdomain;

use super::reader::Reader;

/// The most entries of a list.
pub(super) const MAX_ENTRIES: usize = 256;

/// The most characters of a name or a pattern of names.
pub(super) const MAX_NAME_CHARS: usize = 253;

/// The most characters of the name of a namespace.
const MAX_NAMESPACE_CHARS: usize = 63;

/// Patterns of names of objects.
pub(super) fn names(reader: &Reader<'_>) -> Vec<Glob> {
    let mut globs = Vec::new();
    for (pattern, element) in reader.texts(1, MAX_ENTRIES, MAX_NAME_CHARS) {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.*?".contains(&byte);
        if pattern.bytes().all(fits) {
            globs.push(Glob::new(pattern));
        } else {
            let message = format!(
                "{} fits no name; use a-z, 0-9, \"-\" and \".\", and the patterns * and ?",
                quoted(pattern)
            );
            element.fault(Cause::Invalid, &message);
        }
    }
    globs
}

/// Names of namespaces, without patterns.
pub(super) fn namespaces(reader: &Reader<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (name, element) in reader.texts(1, MAX_ENTRIES, MAX_NAMESPACE_CHARS) {
        if is_dns_subdomain(name) {
            names.insert(name.to_owned());
        } else {
            let message = format!("{} is no name of a namespace; patterns do not count here", quoted(name));
            element.fault(Cause::Invalid, &message);
        }
    }
    names
}

//! Lists of names and patterns of names, as policies write them.

use std::collections::BTreeSet;

use memgate_model::finding::Cause;
use memgate_primitives::glob::Glob;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::quoted;
use memgate_schema::metadata_fault::{wrong_key, wrong_label_value};

use super::reader::Reader;

/// The most entries of a list.
pub(super) const MAX_ENTRIES: usize = 256;

/// The most characters of a name or a pattern of names.
pub(super) const MAX_NAME_CHARS: usize = 253;

/// The most characters of the key of a label: a prefix, `/` and a name.
pub(super) const MAX_KEY_CHARS: usize = MAX_NAME_CHARS + 1 + 63;

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
            let message =
                format!("{} is not the name of a namespace; patterns do not count here", quoted(name));
            element.fault(Cause::Invalid, &message);
        }
    }
    names
}

/// The fault of an invalid key of a label.
pub(super) fn wrong_label_key(key: &str) -> Option<String> {
    wrong_key(key).map(|fault| format!("{} is not the key of a label: {}", quoted(key), fault.words()))
}

/// The key of a label.
pub(super) fn label_key<'v>(reader: &Reader<'v>) -> Option<&'v str> {
    let key = reader.text(MAX_KEY_CHARS)?;
    let Some(wrong) = wrong_label_key(key) else { return Some(key) };
    reader.fault(Cause::Invalid, &wrong);
    None
}

/// The value of a label.
pub(super) fn label_value<'v>(reader: &Reader<'v>) -> Option<&'v str> {
    let Some(value) = reader.value().as_str() else {
        reader.fault(Cause::TypeInvalid, "must be a string");
        return None;
    };
    let Some(fault) = wrong_label_value(value) else { return Some(value) };
    reader
        .fault(Cause::Invalid, &format!("{} is not the value of a label: {}", quoted(value), fault.words()));
    None
}

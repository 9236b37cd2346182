//! Lists of names and patterns of names, as policies write them.

use std::collections::BTreeSet;

use memgate_model::finding::Cause;
use memgate_primitives::glob::Glob;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::{quoted, quoted_key, quoted_text};
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
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.*?".contains(&byte);
    reader.each(MAX_ENTRIES, MAX_NAME_CHARS, |pattern| {
        let form = "use a-z, 0-9, \"-\" and \".\", and the patterns * and ?";
        let fault = || (Cause::Invalid, format!("{} fits no name; {form}", quoted_text(pattern)));
        pattern.bytes().all(fits).then(|| Glob::new(pattern)).ok_or_else(fault)
    })
}

/// Names of namespaces, without patterns.
pub(super) fn namespaces(reader: &Reader<'_>) -> BTreeSet<String> {
    let names = reader.each(MAX_ENTRIES, MAX_NAMESPACE_CHARS, |name| {
        let message =
            || format!("{} is not the name of a namespace; patterns do not count here", quoted(name));
        is_dns_subdomain(name).then(|| name.to_owned()).ok_or_else(|| (Cause::Invalid, message()))
    });
    names.into_iter().collect()
}

/// The fault of an invalid key of a label.
pub(super) fn wrong_label_key(key: &str) -> Option<String> {
    wrong_key(key).map(|fault| format!("{} is not the key of a label: {}", quoted_key(key), fault.words()))
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
    reader.fault(
        Cause::Invalid,
        &format!("{} is not the value of a label: {}", quoted_key(value), fault.words()),
    );
    None
}

//! Faults of names, keys, labels and times in metadata, with the messages of the apiserver.

use memgate_primitives::name::is_dns_subdomain;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// The longest name of a label or value of one, in bytes.
const MAX_LABEL_BYTES: usize = 63;
const LONG_LABEL: &str = "must be no more than 63 bytes";
/// The longest name of an object, in bytes.
const MAX_NAME_BYTES: usize = 253;
const LONG_NAME: &str = "must be no more than 253 bytes";

/// What is wrong: a message in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault(&'static [&'static str]);

impl Fault {
    /// The message.
    pub fn words(self) -> String {
        self.0.concat()
    }
}

/// What is wrong with the beginning of a name that the apiserver makes: with a letter in the place of a hyphen
/// at its end, or with the five characters that it adds.
pub fn wrong_base(base: &str, wrong_name: fn(&str) -> Option<Fault>) -> Option<Fault> {
    /// What remains of a long beginning. Source: k8s.io/apiserver, `storage/names/generate.go`.
    const MAX_CHARS: usize = 58;
    if base.len() > 2 * MAX_NAME_BYTES {
        return wrong_name(base);
    }
    let stem = match base.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let kept = rest.char_indices().next_back().map_or(0, |(last, _)| last);
            format!("{}a", rest.get(..kept).unwrap_or_default())
        }
        None => base.to_owned(),
    };
    let made: String = base.chars().take(MAX_CHARS).chain("xxxxx".chars()).collect();
    wrong_name(&stem).or_else(|| wrong_name(&made))
}

/// What is wrong with the name of an object.
pub fn wrong_subdomain(name: &str) -> Option<Fault> {
    if name.len() > MAX_NAME_BYTES {
        return Some(Fault(&[LONG_NAME]));
    }
    (!is_dns_subdomain(name)).then_some(Fault(&[SUBDOMAIN]))
}

/// What is wrong with a name that is a part of host names.
pub fn wrong_label(name: &str) -> Option<Fault> {
    if name.len() > MAX_LABEL_BYTES {
        return Some(Fault(&[LONG_LABEL]));
    }
    if !is_dns_subdomain(name) {
        return Some(Fault(&[LABEL]));
    }
    name.contains('.').then_some(Fault(&["must not contain dots"]))
}

/// What is wrong with the value of a label.
pub fn wrong_label_value(value: &str) -> Option<Fault> {
    if value.len() > MAX_LABEL_BYTES {
        return Some(Fault(&[LONG_LABEL]));
    }
    (!value.is_empty() && !is_name_part(value)).then_some(Fault(&[LABEL_VALUE]))
}

/// What is wrong with the key of a label or annotation: a name, with or without a domain in front.
pub fn wrong_key(key: &str) -> Option<Fault> {
    let (prefix, name) = match key.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Some(Fault(&[
                "a valid label key ",
                NAME_PART,
                " with an optional DNS subdomain prefix and '/'",
            ]));
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    match prefix {
        Some("") => return Some(Fault(&["prefix part must be non-empty"])),
        Some(prefix) if prefix.len() > MAX_NAME_BYTES => return Some(Fault(&["prefix part ", LONG_NAME])),
        Some(prefix) if !is_dns_subdomain(prefix) => return Some(Fault(&["prefix part ", SUBDOMAIN])),
        Some(_) | None => {}
    }
    if name.is_empty() {
        return Some(Fault(&["name part must be non-empty"]));
    }
    if name.len() > MAX_LABEL_BYTES {
        return Some(Fault(&["name part ", LONG_LABEL]));
    }
    (!is_name_part(name)).then_some(Fault(&["name part ", NAME_PART]))
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let (first, last) = (text.bytes().next(), text.bytes().last());
    let ends = [first, last].into_iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()));
    ends && text.bytes().all(inner)
}

//! Messages: templates, their length, and lists of names in them.
//!
//! In a template, `{}` is a name in quotes, `{name}` one without, `{/}` a namespace and a name in quotes, `{text}` a value in
//! quotes, `{value}` one without, `{key}` a key in quotes, `{bare}` a text as it is and `{field}` the field.

use std::borrow::Cow;

use memgate_model::finding::{Code, Finding};
use memgate_primitives::credential::masked_start;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{plain, quoted, quoted_key, quoted_text, shown_name};
use memgate_primitives::pointer::Pointer;

/// The length up to which kubectl shows a warning in one piece.
/// Source: Kubernetes documentation, dynamic admission control, response.
pub(crate) const MAX_MESSAGE_CHARS: usize = 120;

/// The longest part of a name in a message. Valid names are never longer.
pub(crate) const MAX_NAME_CHARS: usize = 256;

/// How many users of an object a message names, on every platform.
pub(crate) const MAX_NAMES: usize = 3;

/// How many users of an object are many: they are not counted.
pub(crate) const MANY: usize = 1_001;

/// Whether a message is short enough for a warning.
pub fn fits(message: &str) -> bool {
    message.chars().count() <= MAX_MESSAGE_CHARS
}

/// A template, filled with names and values that are truncated as far as needed.
pub fn filled<const N: usize>(template: &str, values: [&str; N]) -> String {
    fit_message(|limit| fill(template, "", &values, limit))
}

/// A warning with such a message.
pub(crate) fn warning<const N: usize>(
    code: &'static Code,
    at: impl Into<Pointer>,
    template: &str,
    values: [&str; N],
) -> Finding {
    Finding::warn(code, at, filled(template, values))
}

/// A template, filled with names and values of at most `limit` characters.
pub(crate) fn fill<T: AsRef<str>>(template: &str, field: &str, values: &[T], limit: usize) -> String {
    let mut values = values.iter().map(AsRef::as_ref);
    let mut parts = template.split('{');
    let mut message = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (form, rest) = part.split_once('}').unwrap_or_default();
        let mut value = || values.next().unwrap_or_default();
        message += &match form {
            "" => quoted(&truncate(value(), limit)),
            "name" => truncate(value(), limit),
            "/" => quoted(&[truncate(value(), limit), truncate(value(), limit)].join("/")),
            "value" => truncate_text(value(), limit),
            "text" => quoted_text(&truncate_text(value(), limit)),
            "key" => quoted_key(value()),
            "field" => field.to_owned(),
            _ => value().to_owned(),
        };
        message += rest;
    }
    message
}

/// Builds a message with the largest limit for its names at which the message fits.
pub(crate) fn fit_message(message: impl Fn(usize) -> String) -> String {
    /// Shorter names would not be recognisable.
    const MIN_NAME_CHARS: usize = 8;
    let whole = message(MAX_NAME_CHARS);
    if fits(&whole) {
        return whole;
    }
    // A larger limit never makes the message shorter.
    let (mut best, mut too_long) = (MIN_NAME_CHARS, MAX_NAME_CHARS);
    while too_long - best > 1 {
        let limit = best.midpoint(too_long);
        if fits(&message(limit)) {
            best = limit;
        } else {
            too_long = limit;
        }
    }
    message(best)
}

/// The first characters of a name, with an ellipsis if it is longer. Of what cannot be a name the start and the length.
pub(crate) fn truncate(name: &str, limit: usize) -> String {
    match shown_name(name) {
        Cow::Borrowed(name) => truncate_text(name, limit),
        Cow::Owned(shown) => shown,
    }
}

/// The first characters of a text, with an ellipsis if it is longer. Control characters become spaces.
pub(crate) fn truncate_text(text: &str, limit: usize) -> String {
    // What is cut off must not make a key unrecognisable.
    let name = masked_start(text);
    let name = plain(&name);
    if name.chars().nth(limit).is_none() {
        return name.into_owned();
    }
    name.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// What is said of the rest of these, of which so many are named.
pub fn more_of(all: usize, named: usize) -> String {
    if all >= MANY { " and many more".to_owned() } else { more(all.saturating_sub(named)) }
}

/// Lists these names, at most `max_names` of them: `a, b, c and 2 more`.
pub fn and_more(names: &[String], max_names: usize) -> String {
    let rest = names.len().saturating_sub(max_names);
    names.get(..max_names).unwrap_or(names).join(", ") + &more(rest)
}

/// The same for things of which `name` makes the name that is shown. From [`MANY`] on they are not counted.
pub(crate) fn first_of<T>(
    all: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    max_names: usize,
    name: impl FnMut(T) -> String,
) -> String {
    let all = all.into_iter();
    let more = more_of(all.len(), max_names);
    all.take(max_names).map(name).collect::<Vec<_>>().join(", ") + &more
}

/// `"a", "b" or "c"`.
pub(crate) fn one_of(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_names_and_not_the_text() {
        let long = "n".repeat(200);
        let message = filled(&format!("{{name}} and {{name}} {}", "t".repeat(80)), [&long, "short"]);
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
        assert!(message.starts_with("nnnn") && message.contains("… and short tttt"), "{message}");
        assert_eq!(filled("{value}", ["a\nb"]), "a b");
        assert_eq!(filled("only {name}", ["a"]), "only a");
    }

    #[test]
    fn fills_templates() {
        let values = ["a", "b", "ns", "o", "c d", "E_F", "-1"];
        let message = filled("{} {name} {/} {text} {key} {bare}", values);
        assert_eq!(message, "\"a\" b \"ns/o\" \"c d\" \"E_F\" -1");
    }

    #[test]
    fn counts_what_it_does_not_name() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(and_more(&names, 3), "a, b, c");
        assert_eq!(and_more(&names, 1), "a and 2 more");
        assert_eq!(and_more(&[], 3), "");
    }
}

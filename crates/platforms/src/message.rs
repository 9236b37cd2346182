//! Messages: their length, and lists of names in them.

use std::borrow::Cow;

use memgate_primitives::credential::masked_start;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{plain, shown_name};

/// The length up to which kubectl shows a warning in one piece.
/// Source: Kubernetes documentation, dynamic admission control, response.
pub(crate) const MAX_MESSAGE_CHARS: usize = 120;

/// The longest part of a name in a message. Valid names are never longer.
pub(crate) const MAX_NAME_CHARS: usize = 256;

/// How many users of an object a message names, on every platform.
pub(crate) const MAX_NAMES: usize = 3;

/// Whether a message is short enough for a warning.
pub fn fits(message: &str) -> bool {
    message.chars().count() <= MAX_MESSAGE_CHARS
}

/// Builds a message with these names, truncated as far as needed.
pub fn fit_names<const N: usize>(names: [&str; N], message: impl Fn([&str; N]) -> String) -> String {
    fit(names, truncate, message)
}

/// The same with other texts of a user, such as values.
pub fn fit_texts<const N: usize>(texts: [&str; N], message: impl Fn([&str; N]) -> String) -> String {
    fit(texts, truncate_text, message)
}

fn fit<const N: usize>(
    texts: [&str; N],
    truncate: fn(&str, usize) -> String,
    message: impl Fn([&str; N]) -> String,
) -> String {
    fit_message(|limit| {
        let texts = texts.map(|text| truncate(text, limit));
        message(texts.each_ref().map(String::as_str))
    })
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

/// Lists these names, at most `max_names` of them: `a, b, c and 2 more`.
pub fn and_more(names: &[String], max_names: usize) -> String {
    first_of(names, max_names, String::clone)
}

/// The same for things of which `name` makes the name that is shown.
pub(crate) fn first_of<T>(
    all: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    max_names: usize,
    name: impl FnMut(T) -> String,
) -> String {
    let all = all.into_iter();
    let rest = all.len().saturating_sub(max_names);
    all.take(max_names).map(name).collect::<Vec<_>>().join(", ") + &more(rest)
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
        let message =
            fit_names([&long, "short"], |[long, short]| format!("{long} and {short} {}", "t".repeat(80)));
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
        assert!(message.starts_with("nnnn") && message.contains("… and short tttt"), "{message}");
        assert_eq!(fit_texts(["a\nb"], |[name]| name.to_owned()), "a b");
        assert_eq!(fit_names(["a"], |[a]| format!("only {a}")), "only a");
    }

    #[test]
    fn counts_what_it_does_not_name() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(and_more(&names, 3), "a, b, c");
        assert_eq!(and_more(&names, 1), "a and 2 more");
        assert_eq!(and_more(&[], 3), "");
    }
}

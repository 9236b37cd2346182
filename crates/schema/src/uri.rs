//! URLs, as the format `uri` and the function `isURL` of rules take them.

/// An absolute URL, or an absolute path.
pub(super) fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let is_absolute =
        text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let is_absolute = is_absolute || text == "*";
    is_absolute && !authority.contains(' ') && !text.chars().any(char::is_control)
}

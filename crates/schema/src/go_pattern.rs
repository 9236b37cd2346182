//! Regular expressions of Go, which definitions are written in, in the syntax of the crate `regex`.

/// A pattern of Go in the syntax of the crate `regex`. They differ in that classes as `\d` are ASCII in Go, and
/// in which characters have no special meaning.
pub(crate) fn translate(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut in_class = false;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => escape(rest.next(), in_class, &mut text),
            '[' if in_class && rest.as_str().starts_with(':') => {
                // A named class stands as it is, up to its end.
                text.push('[');
                for inner in rest.by_ref() {
                    text.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' if in_class => text.push_str("\\["),
            '[' => {
                in_class = true;
                text.push('[');
                for start in ['^', ']'] {
                    if let Some(behind) = rest.as_str().strip_prefix(start) {
                        rest = behind.chars();
                        text.push_str(if start == '^' { "^" } else { "\\]" });
                    }
                }
            }
            ']' if in_class => {
                in_class = false;
                text.push(']');
            }
            '{' if !in_class && !is_repetition(rest.as_str()) => text.push_str("\\{"),
            other => text.push(other),
        }
    }
    text
}

/// A class of characters in ASCII, or another escape as it is. Within a class it is a class of its own.
fn escape(escaped: Option<char>, in_class: bool, text: &mut String) {
    match escaped {
        Some('d') => text.push_str("[0-9]"),
        Some('w') => text.push_str("[0-9A-Za-z_]"),
        Some('s') => text.push_str("[\\t\\n\\f\\r ]"),
        Some('D') => text.push_str("[^0-9]"),
        Some('W') => text.push_str("[^0-9A-Za-z_]"),
        Some('S') => text.push_str("[^\\t\\n\\f\\r ]"),
        Some('b') if !in_class => text.push_str("(?-u:\\b)"),
        other => {
            text.push('\\');
            text.extend(other);
        }
    }
}

/// Whether what follows `{` makes it a repetition, rather than a brace.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest.split_once('}') else { return false };
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

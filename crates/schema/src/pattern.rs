//! Regular expressions of definitions, which are in the syntax of Go.
//! Source: Go, package regexp/syntax.

use regex::Regex;

use crate::crd::Pattern;

/// Whether some part of a text matches. A pattern that cannot be read refuses nothing: the apiserver would not
/// have taken its definition.
pub(super) fn matches(pattern: &Pattern, text: &str) -> bool {
    let compiled = pattern.compiled.get_or_init(|| Regex::new(&translate(&pattern.text)).ok());
    compiled.as_ref().is_none_or(|regex| regex.is_match(text))
}

/// A pattern of Go in the syntax of the crate `regex`. They differ in that classes as `\d` are ASCII in Go, and
/// in which characters have no special meaning.
fn translate(pattern: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_patterns_as_go_does() {
        for (pattern, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{664}", false),
            (r"^[\d_]+$", "1_2", true),
            (r"^[^\s]+$", "a b", false),
            (r"^\S+$", "ab", true),
            (r"\bx\b", "a x", true),
            (r"^[a-z[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "]", false),
            (r"^[[:alpha:]_]+$", "a_", true),
            (r"^{x}$", "{x}", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^https?:\/\/", "http://x", true),
            (r"^\pL+$", "é", true),
            (r"^a$", "a\n", false),
            (r"(?i)^A$", "a", true),
            (r"^(unclosed", "anything", true),
        ] {
            let pattern = Pattern::new(pattern);
            assert_eq!(matches(&pattern, text), expected, "{} on {text:?}", pattern.text);
        }
    }
}

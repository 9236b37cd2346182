//! How typed rules and matches write CEL: literals, lists, and patterns as regular expressions.

use std::fmt::Write as _;

use memgate_model::cel_view::MessagePart;

/// The value of the entry `it` of a path of a view.
pub(super) const VALUE: &str = "it.split(' ', 2)[1]";

/// A fault with the indexes of lists left out of its field, in CEL.
pub const WITHOUT_INDEXES: &str = "(fault.split(' ', 2)[0].split('[').map(part, part.substring(part.indexOf(']') + 1)).join('[') + ' ' + \
     fault.split(' ', 2)[1])";

/// Why a list of words is not compared in CEL.
pub(super) const NOT_ASCII: &str = "CEL knows no small letters beyond ASCII";

/// A part of a message.
pub(super) fn text(text: impl Into<String>) -> MessagePart {
    MessagePart::Text(text.into())
}

/// A text in CEL.
pub fn literal(text: &str) -> String {
    let mut literal = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => literal.extend(['\\', c]),
            c if c.is_control() => {
                let _infallible = write!(literal, "\\U{:08x}", u32::from(c));
            }
            c => literal.push(c),
        }
    }
    literal.push('\'');
    literal
}

/// A list of texts in CEL.
pub fn list(texts: &[impl AsRef<str>]) -> String {
    let literals: Vec<String> = texts.iter().map(|text| literal(text.as_ref())).collect();
    format!("[{}]", literals.join(", "))
}

/// A regular expression, as a text in CEL, that fits what one of the patterns fits.
pub fn globs<'g>(globs: impl IntoIterator<Item = &'g str>) -> String {
    let patterns: Vec<String> = globs.into_iter().map(|glob| expression(glob, true)).collect();
    literal(&format!("(?s)^({})$", patterns.join("|")))
}

/// A regular expression in CEL that fits what the pattern of a tenant fits; `tenant` is the expression of it.
pub(super) fn pattern_of_tenant(pattern: &str, tenant: &str) -> String {
    let parts: Vec<String> =
        pattern.split("{tenant}").map(|part| literal(&expression(part, false))).collect();
    // The other characters of labels and names have no special meaning in a regular expression.
    let of_tenant = format!(" + {tenant}.replace('.', '[.]') + ");
    format!("'(?s)^' + {} + '$'", parts.join(&of_tenant))
}

/// A pattern as a regular expression, without its ends. `?` is one character where the pattern knows it.
fn expression(pattern: &str, knows_one: bool) -> String {
    let mut expression = String::new();
    for c in pattern.chars() {
        match c {
            '*' => expression.push_str(".*"),
            '?' if knows_one => expression.push('.'),
            c if c.is_ascii_punctuation() && c != '-' && c != '_' && c != '/' => {
                expression.extend(['\\', c]);
            }
            c => expression.push(c),
        }
    }
    expression
}

/// A value in CEL as messages show it: what could hold a credential or break a line is not shown.
pub fn shown_in_cel(value: &str) -> String {
    format!("({value}.matches('^[-A-Za-z0-9._/ ]{{0,64}}$') ? {value} : '…')")
}

/// The name of an object in CEL as messages show it, with its quotes: of a text that cannot be one only its start and its
/// length.
fn name_in_cel(name: &str) -> String {
    let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let start = format!("{name}.substring(0, size({name}) > 4 ? 4 : size({name}) - 1)");
    format!(
        "(size({name}) == 0 ? '\"\"' : {name}.matches('^{label}([.]{label})*$') ? '\"' + {name} + '\"' : '\"' + {start} + '…\" (' \
         + string(size({name})) + ' characters)')"
    )
}

/// A message about a fault, as an expression. `word` is the expression of the word at an index.
pub fn message(
    parts: &[MessagePart],
    (before, behind): (&str, &str),
    word: impl Fn(usize) -> String,
) -> String {
    let mut texts = Vec::new();
    let mut pending = before.to_owned();
    for part in parts {
        let (quote, found) = match part {
            MessagePart::Text(text) => {
                pending.push_str(text);
                continue;
            }
            // The last word is made of parts that are shown already, or is a number.
            MessagePart::Plain(index) => ("", word(*index)),
            MessagePart::Quoted(index) => ("\"", shown_in_cel(&word(*index))),
            MessagePart::Name(index) => ("", name_in_cel(&word(*index))),
        };
        pending.push_str(quote);
        texts.extend([literal(&std::mem::replace(&mut pending, quote.to_owned())), found]);
    }
    pending.push_str(behind);
    texts.push(literal(&pending));
    texts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_texts_that_stay_texts() {
        for (text, expected) in [
            ("a", "'a'"),
            ("it's", r"'it\'s'"),
            (r"a\b", r"'a\\b'"),
            ("a\nb", r"'a\U0000000ab'"),
            ("$self.x", "'$self.x'"),
        ] {
            assert_eq!(literal(text), expected);
        }
        assert_eq!(list(&["a".to_owned(), "b".to_owned()]), "['a', 'b']");
    }

    #[test]
    fn writes_patterns_as_regular_expressions() {
        assert_eq!(globs(["team-?", "a.b*"]), r"'(?s)^(team-.|a\\.b.*)$'");
        assert_eq!(
            pattern_of_tenant("{tenant}-*", "tenant"),
            "'(?s)^' + '' + tenant.replace('.', '[.]') + '-.*' + '$'"
        );
    }
}

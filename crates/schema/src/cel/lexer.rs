//! The words of a rule in CEL. Texts of bytes (`b'…'`) are not read.
//! Source: google/cel-spec, `doc/langdef.md`, "Syntax".

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    Name(&'t str),
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    Symbol(&'static str),
    End,
}

/// The symbols, longer ones first.
const SYMBOLS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "+", "-", "*", "/",
    "%", "!", "<", ">",
];

/// A word and the text behind it; why there is none.
type Read<'t> = Result<(Token<'t>, &'t str), String>;

/// All words of a rule, and the end.
///
/// # Errors
/// What cannot be read.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, behind)| behind).trim_start();
            continue;
        }
        let (token, behind) = token(rest)?;
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens.push(Token::End);
    Ok(tokens)
}

fn token(text: &str) -> Read<'_> {
    let is_digit = |c: char| c.is_ascii_digit();
    if text.starts_with(is_digit) || text.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_digit)) {
        return number(text);
    }
    let quoted = |text: &str| text.starts_with(['\'', '"']);
    if quoted(text) {
        return string(text, false);
    }
    if let Some(raw) = text.strip_prefix(['r', 'R']).filter(|rest| quoted(rest)) {
        return string(raw, true);
    }
    if text.strip_prefix(['b', 'B']).is_some_and(quoted) {
        return Err("it has a text of bytes".to_owned());
    }
    let (name, behind) = split(text, |c| c.is_ascii_alphanumeric() || c == '_');
    if !name.is_empty() {
        return Ok((Token::Name(name), behind));
    }
    for symbol in SYMBOLS {
        if let Some(behind) = text.strip_prefix(symbol) {
            return Ok((Token::Symbol(symbol), behind));
        }
    }
    Err(format!("{:?} is not expected", text.chars().next().unwrap_or_default()))
}

/// The start of a text whose characters belong together, and the rest.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn number(text: &str) -> Read<'_> {
    let unsigned = |number: Option<u64>, behind: &str| match behind.strip_prefix(['u', 'U']) {
        Some(_) => number.map(Token::Uint),
        None => number.map(Token::Int),
    };
    let behind_suffix = |behind| str::strip_prefix(behind, ['u', 'U']).unwrap_or(behind);
    let (token, behind) = if let Some(hexadecimal) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        let (digits, behind) = split(hexadecimal, |c| c.is_ascii_hexdigit());
        (unsigned(u64::from_str_radix(digits, 16).ok(), behind), behind_suffix(behind))
    } else {
        let is_digit = |c: char| c.is_ascii_digit();
        let (whole, mut behind) = split(text, is_digit);
        if let Some(fraction) = behind.strip_prefix('.').filter(|rest| rest.starts_with(is_digit)) {
            behind = split(fraction, is_digit).1;
        }
        if let Some(exponent) = behind.strip_prefix(['e', 'E']) {
            behind = split(exponent.strip_prefix(['+', '-']).unwrap_or(exponent), is_digit).1;
        }
        let written = text.strip_suffix(behind).unwrap_or(text);
        if written == whole {
            (unsigned(whole.parse().ok(), behind), behind_suffix(behind))
        } else {
            (written.parse().ok().map(Token::Double), behind)
        }
    };
    let token = token.ok_or_else(|| "a number is not valid".to_owned())?;
    Ok((token, behind))
}

/// A text in quotes, which are single or triple.
fn string(text: &str, is_raw: bool) -> Read<'_> {
    let unclosed = || "a text is not closed".to_owned();
    let mark = ["'''", r#"""""#, "'", "\""].into_iter().find(|mark| text.starts_with(mark)).unwrap_or("'");
    let mut rest = text.strip_prefix(mark).ok_or_else(unclosed)?;
    let mut read = String::new();
    loop {
        if let Some(behind) = rest.strip_prefix(mark) {
            return Ok((Token::Text(read), behind));
        }
        let mut characters = rest.chars();
        match characters.next().ok_or_else(unclosed)? {
            '\n' if mark.len() == 1 => return Err(unclosed()),
            '\\' if is_raw => {
                read.push('\\');
                read.extend(characters.next());
                rest = characters.as_str();
            }
            '\\' => {
                let (character, behind) =
                    escaped(characters.as_str()).ok_or_else(|| "an escape is not valid".to_owned())?;
                read.push(character);
                rest = behind;
            }
            other => {
                read.push(other);
                rest = characters.as_str();
            }
        }
    }
}

/// The character that an escape stands for; the text is what follows the backslash.
fn escaped(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    let (digits, radix) = match characters.next()? {
        'a' => return Some(('\u{7}', characters.as_str())),
        'b' => return Some(('\u{8}', characters.as_str())),
        'f' => return Some(('\u{c}', characters.as_str())),
        'n' => return Some(('\n', characters.as_str())),
        'r' => return Some(('\r', characters.as_str())),
        't' => return Some(('\t', characters.as_str())),
        'v' => return Some(('\u{b}', characters.as_str())),
        same @ ('\\' | '\'' | '"' | '`' | '?') => return Some((same, characters.as_str())),
        'x' | 'X' => (characters.as_str().get(..2)?, 16),
        'u' => (characters.as_str().get(..4)?, 16),
        'U' => (characters.as_str().get(..8)?, 16),
        '0'..='3' => (text.get(..3)?, 8),
        _ => return None,
    };
    let behind = if radix == 8 { text } else { characters.as_str() };
    let code = u32::from_str_radix(digits, radix).ok()?;
    Some((char::from_u32(code)?, behind.strip_prefix(digits)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_texts() {
        for (text, expected) in [
            ("12", Token::Int(12)),
            ("0xfF", Token::Int(255)),
            ("7u", Token::Uint(7)),
            ("1.5e-1", Token::Double(0.15)),
            (".5", Token::Double(0.5)),
            ("9223372036854775808", Token::Int(1 << 63)),
            (r"'a\'\n\u00e9\x41\101'", Token::Text("a'\néAA".into())),
            (r#"r"\d\"""#, Token::Text("\\d\\\"".into())),
            ("'''a'\nb'''", Token::Text("a'\nb".into())),
            ("a_1", Token::Name("a_1")),
        ] {
            assert_eq!(tokens(text), Ok(vec![expected, Token::End]), "{text}");
        }
        assert_eq!(tokens(" // nothing\n // at all"), Ok(vec![Token::End]));
        for text in ["'a", "'a\nb'", r"'\q'", "99999999999999999999", "1e999999x'", "#", "'''a", "0x", "é"] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}

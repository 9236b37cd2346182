//! Connection strings of `key=value` pairs.
//! Source: PostgreSQL documentation, libpq, keyword/value connection strings.

/// Whether a text begins with a pair, and so is no endpoint of another form.
pub(super) fn is_pairs(text: &str) -> bool {
    let Some((key, _)) = text.split_once('=') else { return false };
    let key = key.trim();
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The pairs, up to where the text has another form.
pub(super) fn read(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some((key, behind)) = rest.split_once('=') {
        let (value, behind) = value(behind.trim_start());
        pairs.push((key.trim().to_owned(), value));
        rest = behind;
    }
    pairs
}

/// A value and what follows it. It ends at white space unless it is in quotes, and a backslash takes the next
/// character along.
fn value(text: &str) -> (String, &str) {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return (value, characters.as_str()),
            blank if quoted.is_none() && blank.is_whitespace() => {
                return (value, text.get(at..).unwrap_or_default());
            }
            other => value.push(other),
        }
    }
    (value, "")
}

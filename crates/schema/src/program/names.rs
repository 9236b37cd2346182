//! The names of fields in rules, where some cannot be written as they are.
//! Source: Kubernetes documentation, "Validation rules", escaping.

/// The names that a rule cannot write as they are.
const RESERVED: [&str; 21] = [
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
];

/// What a rule writes for parts of names.
const ESCAPES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// A name as rules write it.
pub(crate) fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    // Most names: no escape is of letters and digits alone.
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return name.to_owned();
    }
    ESCAPES.into_iter().fold(name.to_owned(), |name, (plain, escape)| name.replace(plain, escape))
}

/// The name that a rule writes in this way.
pub(crate) fn unescaped(written: &str) -> String {
    let word = written.strip_prefix("__").and_then(|word| word.strip_suffix("__"));
    if let Some(word) = word.filter(|word| RESERVED.contains(word)) {
        return word.to_owned();
    }
    ESCAPES.into_iter().rfold(written.to_owned(), |name, (plain, escape)| name.replace(escape, plain))
}

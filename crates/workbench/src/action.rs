//! The actions `{{ … }}` of a template: what they begin and end, and the values that they print.

use memgate_manifest::comments::action_length;
use serde_json::Value;

/// Functions that print a value as it is, perhaps in another form.
const PRINTING: [&str; 20] = [
    "quote", "squote", "toYaml", "toYamlPretty", "toJson", "nindent", "indent", "default", "required", "int",
    "int64", "float64", "toString", "trim", "tpl", "coalesce", "index", "fromYaml", "print", "toRawJson",
];

/// What an action does to the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action<'t> {
    /// It begins a block, perhaps one with another dot.
    Begin(Block<'t>),
    /// Another branch of a block.
    Else,
    /// The end of a block.
    End,
    /// It prints nothing: a comment, a variable.
    Silent,
    /// It prints this expression.
    Print(&'t str),
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block<'t> {
    /// The dot stays.
    If,
    /// The dot is this expression.
    With(&'t str),
    /// The dot is unknown: a loop, or a template that others call.
    Other {
        /// Whether its text stands elsewhere.
        is_defined: bool,
    },
}

/// The value that a dot stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dot {
    /// That of the whole chart.
    Root,
    /// This path of the values.
    Values(Vec<String>),
    /// Another one.
    Unknown,
}

/// The first action of a text: the byte at which it starts, and the one behind it. One without an end goes to the end.
pub(crate) fn find(text: &str) -> Option<(usize, usize)> {
    let start = text.find("{{")?;
    let action = text.get(start..)?;
    let end = action_length(action).unwrap_or(action.len());
    Some((start, start + end))
}

/// The line of a template that printed one of its lines, both from 0, as far as that can be told: an action alone on a line
/// that trims it prints none.
pub(crate) fn line_that_printed(template: &str, printed: usize) -> usize {
    let is_silent = |line: &str| {
        let line = line.trim();
        let is_trimmed = line.starts_with("{{-") || line.ends_with("-}}");
        is_trimmed && find(line) == Some((0, line.len())) && !matches!(read(line), Action::Print(_))
    };
    let mut printing = template.lines().enumerate().filter(|(_, line)| !is_silent(line));
    printing.nth(printed).map_or(printed, |(number, _)| number)
}

/// What an action does.
pub(crate) fn read(action: &str) -> Action<'_> {
    let inner = action.strip_prefix("{{").unwrap_or(action);
    let inner = inner.strip_suffix("}}").unwrap_or(inner);
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner).trim();
    let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    match word {
        "if" => Action::Begin(Block::If),
        "with" => Action::Begin(Block::With(rest)),
        "range" | "block" => Action::Begin(Block::Other { is_defined: false }),
        "define" => Action::Begin(Block::Other { is_defined: true }),
        "else" => Action::Else,
        "end" => Action::End,
        "" | "break" | "continue" => Action::Silent,
        _ if inner.starts_with("/*") || word.starts_with('$') && is_assignment(rest) => Action::Silent,
        _ => Action::Print(inner),
    }
}

fn is_assignment(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.starts_with(":=") || rest.starts_with('=')
}

/// The number of blanks with which `indent` or `nindent` begins the lines of an expression.
pub(crate) fn indent(expression: &str) -> Option<usize> {
    let (_, behind) = expression.rsplit_once("indent ")?;
    behind.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The paths of the values that an expression may print; none if it does more than to print one.
pub(crate) fn paths(expression: &str, dot: &Dot) -> Vec<Vec<String>> {
    let (mut paths, mut is_indexed) = (Vec::<Vec<String>>::new(), false);
    let mut rest = expression;
    while let Some(first) = rest.trim_start_matches(is_between).chars().next() {
        rest = rest.trim_start_matches(is_between);
        if matches!(first, '"' | '`') {
            let (text, behind) = rest.get(1..).and_then(|it| it.split_once(first)).unwrap_or_default();
            if let Some(path) = paths.last_mut().filter(|_| is_indexed) {
                path.push(text.to_owned());
            }
            rest = behind;
            continue;
        }
        let end = rest.find(is_between).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        if let Some(field) = field(word, dot) {
            if let Field::OfValues(path) = field {
                paths.push(path);
            }
        } else if let Some(path) = paths.last_mut().filter(|_| is_indexed && word.parse::<usize>().is_ok()) {
            path.push(word.to_owned());
        } else if PRINTING.contains(&word) {
            is_indexed = word == "index";
        } else if word.parse::<f64>().is_err() && !["true", "false"].contains(&word) {
            return Vec::new();
        }
    }
    paths
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, '|' | '(' | ')')
}

/// A field that an action names.
enum Field {
    /// This path of the values.
    OfValues(Vec<String>),
    /// Of something else.
    Other,
}

/// The path of `.Values.a.b`, or of a field of a dot; `None` for words that are not fields.
fn field(word: &str, dot: &Dot) -> Option<Field> {
    let (dot, fields) = match word.strip_prefix('$') {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => (&Dot::Root, rest),
        Some(_) => return None,
        None => (dot, word),
    };
    let fields = if fields.is_empty() { "" } else { fields.strip_prefix('.')? };
    let fields = fields.split('.').filter(|field| !field.is_empty()).map(str::to_owned);
    Some(match dot {
        Dot::Root => {
            let mut fields = fields;
            let is_of_values = fields.next().as_deref() == Some("Values");
            if is_of_values { Field::OfValues(fields.collect()) } else { Field::Other }
        }
        Dot::Values(path) => Field::OfValues(path.iter().cloned().chain(fields).collect()),
        Dot::Unknown => Field::Other,
    })
}

/// The expression of a text that is one action and nothing else, with or without quotes.
pub(crate) fn only_expression(text: &str) -> Option<&str> {
    let text = unquoted(text);
    let (0, end) = find(text)? else { return None };
    match read(text.get(..end)?) {
        Action::Print(expression) if end == text.len() => Some(expression),
        _ => None,
    }
}

/// Whether the text of a scalar in a template can have become this value; `None` if the text says nothing about it.
pub(crate) fn fits(text: &str, value: &Value) -> Option<bool> {
    let text = unquoted(text);
    if text.is_empty() || text.starts_with(['|', '>', '{', '[', '&', '*', '!']) && !text.starts_with("{{") {
        return None;
    }
    let Some(printed) = scalar(value) else { return (!text.contains("{{")).then_some(false) };
    let (mut rest, mut behind, mut is_first, mut known) = (printed.as_str(), text, true, 0);
    while let Some((start, end)) = find(behind) {
        let literal = behind.get(..start)?;
        if !matches!(read(behind.get(start..end)?), Action::Print(_) | Action::Silent) {
            return None;
        }
        let at = if is_first { rest.starts_with(literal).then_some(0) } else { rest.find(literal) };
        let Some(at) = at else { return Some(false) };
        rest = rest.get(at + literal.len()..)?;
        (behind, is_first, known) = (behind.get(end..)?, false, known + literal.len());
    }
    if is_first {
        return Some(printed == behind || is_same_number(&printed, behind));
    }
    let is_known = known + behind.len() > 0;
    if rest.ends_with(behind) { is_known.then_some(true) } else { Some(false) }
}

/// A text without the quotes around it.
pub(crate) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let without = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    without('"').or_else(|| without('\'')).unwrap_or(text)
}

/// The text of a scalar.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.trim_end().to_owned()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    number(one).is_some() && number(one) == number(other)
}

/// Whether an expression prints a value of the values as this one, and the fault of that is one of the values. Maps may have
/// fields of other files. Quotes are up to the template, unless it prints the value as YAML.
pub(crate) fn is_printed_as(value: &Value, printed: &Value, expression: &str) -> bool {
    let is_quoted_number = |text: &str| text.parse::<f64>().is_ok() || matches!(text, "true" | "false");
    let keeps_type = expression.contains("toYaml") || expression.contains("toJson");
    match (value, printed) {
        (Value::Object(_), Value::Object(_)) => true,
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => value == printed,
        _ if keeps_type => value == printed,
        (Value::String(_), Value::String(text)) if is_quoted_number(text) => false,
        (Value::String(_), Value::Bool(_) | Value::Number(_))
        | (Value::Bool(_) | Value::Number(_), Value::String(_)) => false,
        _ => match (scalar(value), scalar(printed)) {
            (Some(one), Some(other)) => one == other || is_same_number(&one, &other),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn knows_the_paths_that_an_expression_prints() {
        let with = Dot::Values(vec!["redis".to_owned()]);
        for (expression, dot, expected) in [
            (".Values.a.b", &Dot::Root, vec!["a/b"]),
            (".Values.a.b | quote", &Dot::Root, vec!["a/b"]),
            ("$.Values.a", &with, vec!["a"]),
            (".port | int", &with, vec!["redis/port"]),
            ("toYaml . | nindent 4", &with, vec!["redis"]),
            ("toYaml .Values.a | nindent 4", &Dot::Root, vec!["a"]),
            ("default \"x y\" .Values.a", &Dot::Root, vec!["a"]),
            ("default .Values.global.a .Values.a", &Dot::Root, vec!["global/a", "a"]),
            ("index .Values \"a-b\" \"c\"", &Dot::Root, vec!["a-b/c"]),
            ("index .Values.a 1", &Dot::Root, vec!["a/1"]),
            ("required \"set it\" .Values.a", &Dot::Root, vec!["a"]),
            (".Release.Name", &Dot::Root, vec![]),
            ("printf \"%s-x\" .Values.a", &Dot::Root, vec![]),
            ("include \"c.labels\" .", &Dot::Root, vec![]),
            (".Values.a | upper", &Dot::Root, vec![]),
            ("$x.a", &Dot::Root, vec![]),
            (".a", &Dot::Unknown, vec![]),
            ("\"open", &Dot::Root, vec![]),
        ] {
            let paths: Vec<String> = paths(expression, dot).iter().map(|path| path.join("/")).collect();
            assert_eq!(paths, expected, "{expression}");
        }
    }

    #[test]
    fn compares_the_text_of_a_template_with_what_was_printed() {
        for (text, value, expected) in [
            ("redis", json!("redis"), Some(true)),
            ("'redis'", json!("redis"), Some(true)),
            ("redis", json!("rediss"), Some(false)),
            ("8080", json!(8080), Some(true)),
            ("1.0", json!(1), Some(true)),
            ("true", json!(true), Some(true)),
            ("{{ .Release.Name }}-cache", json!("prod-cache"), Some(true)),
            ("{{ .Release.Name }}-cache", json!("prod-notes"), Some(false)),
            ("a-{{ .x }}-b-{{ .y }}", json!("a-1-b-2"), Some(true)),
            ("a-{{ .x }}-b-{{ .y }}", json!("b-1-b-2"), Some(false)),
            ("{{ .x }}", json!("anything"), None),
            ("{{ if .x }}a{{ end }}", json!("b"), None),
            ("|", json!("text"), None),
            ("", json!({}), None),
            ("redis", json!({"a": 1}), Some(false)),
            ("{{ open", json!("x"), None),
        ] {
            assert_eq!(fits(text, &value), expected, "{text}");
        }
    }

    #[test]
    fn a_value_stands_in_the_values_if_their_change_mends_it() {
        for (value, printed, expression, expected) in [
            (json!("redis"), json!("redis"), ".x", true),
            (json!("redis"), json!("rediss"), ".x", false),
            (json!(""), json!(null), ".x", true),
            (json!(5), json!(5.0), ".x", true),
            (json!(5), json!("5"), ".x | quote", false),
            (json!("5"), json!("5"), ".x | quote", false),
            (json!("5"), json!(5), ".x", false),
            (json!("5"), json!("5"), "toYaml .x", true),
            (json!({"a": 1}), json!({"b": 1}), "toYaml .x", true),
            (json!({"a": 1}), json!("a"), ".x", false),
            (json!([1]), json!([1]), "toYaml .x", true),
        ] {
            assert_eq!(
                is_printed_as(&value, &printed, expression),
                expected,
                "{value} {printed} {expression}"
            );
        }
    }

    #[test]
    fn knows_the_line_that_printed_one() {
        let template = "{{- if .a }}\nkind: X\n{{/* silent */}}\n{{- $x := 1 }}\nname: {{ .b }}\n{{ .c }}\n{{- end }}\nlast";
        for (printed, expected) in [(0, 1), (1, 2), (2, 4), (3, 5), (4, 7), (9, 9)] {
            assert_eq!(line_that_printed(template, printed), expected);
        }
    }

    #[test]
    fn reads_actions_with_their_comments() {
        assert_eq!(find("a {{/* }} */}} b"), Some((2, 14)));
        assert_eq!(find("a {{ b"), Some((2, 6)));
        assert_eq!(read("{{- with .Values.a -}}"), Action::Begin(Block::With(".Values.a")));
        assert_eq!(read("{{- $x := .Values.a }}"), Action::Silent);
        assert_eq!(read("{{ $x.a }}"), Action::Print("$x.a"));
        assert_eq!(indent("include \"a\" . | nindent 12"), Some(12));
        assert_eq!(indent("indent 4 .x"), Some(4));
        assert_eq!(indent(".x"), None);
    }
}

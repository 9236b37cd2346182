//! What a place is filled with.

use serde_json::{Map, Value, json};

use crate::shape::Sort;
use crate::words::{
    EQUAL, IN_URLS, KEYS, STARTS, UNIQUE, UNITS, Unit, WORDINGS, Wording, almost, reword, sample,
};

/// Elements and values of the wrong type, or empty ones.
const LITERALS: [&str; 9] = ["{}", "\"\"", "[]", "1", "true", "null", "1.5e300", "\"x\"", "{\"a\":[{}]}"];

/// No beginning.
const PLAIN: Unit = ("", "");

/// One way to fill a place.
#[derive(Debug, Clone)]
pub(crate) enum Fill {
    /// Elements of a list that are always the same text.
    Literal(&'static str),
    /// Elements of a list with the required fields, or with all.
    Elements { full: bool, wording: Wording },
    /// The element that the list has already, with other words.
    Template(Wording),
    /// Elements with fields whose names are almost right.
    Misspelt,
    /// Elements that are lists in lists, so deep.
    Nested(usize),
    /// Members of a map.
    Members(Wording, Wording),
    /// Unknown members, or members of the wrong type, always with the same text.
    Unknown(Wording, &'static str),
    /// Fields whose names are almost right.
    Almost,
    /// The right fields again and again.
    Again,
    /// One long text with a beginning.
    Text(Unit, Unit),
    /// One number of many digits.
    Digits(&'static str),
    /// One value of lists, or of objects, as deep as there is room.
    Deep(&'static str),
}

/// Where a fill goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Among the elements of a list.
    Element,
    /// Among the members of an object.
    Member,
    /// In the place of the value.
    Whole,
}

impl Fill {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Literal(text) => (*text).to_owned(),
            Self::Elements { full: true, wording } => format!("full-{}", wording.name),
            Self::Elements { full: false, wording } => format!("required-{}", wording.name),
            Self::Template(wording) => format!("template-{}", wording.name),
            Self::Misspelt => "misspelt".to_owned(),
            Self::Nested(depth) => format!("nested-{depth}"),
            Self::Members(key, value) => format!("key-{}-value-{}", key.name, value.name),
            Self::Unknown(key, value) => format!("key-{}:{value}", key.name),
            Self::Almost => "misspelt-fields".to_owned(),
            Self::Again => "repeated-fields".to_owned(),
            Self::Text(start, unit) => format!("text-{}{}", start.0, unit.0),
            Self::Digits(start) => format!("digits-{start}9"),
            Self::Deep(what) => format!("deep-{what}"),
        }
    }

    pub(crate) const fn frame(&self) -> Frame {
        match self {
            Self::Members(..) | Self::Unknown(..) | Self::Almost | Self::Again => Frame::Member,
            Self::Text(..) | Self::Digits(_) | Self::Deep(_) => Frame::Whole,
            _ => Frame::Element,
        }
    }

    /// Whether parts differ in their numbers alone.
    pub(crate) const fn is_counted(&self) -> bool {
        matches!(
            self,
            Self::Literal(_)
                | Self::Elements { .. }
                | Self::Template(_)
                | Self::Nested(_)
                | Self::Members(..)
                | Self::Unknown(..)
        )
    }

    /// One part; with [`Frame::Whole`] a value of about so many bytes.
    pub(crate) fn part(
        &self,
        number: usize,
        room: usize,
        schema: &Value,
        template: Option<&Value>,
    ) -> String {
        let items = &schema["items"];
        let entries = &schema["additionalProperties"];
        match self {
            Self::Literal(text) => (*text).to_owned(),
            Self::Elements { full, wording } => sample(items, *full, *wording, number).to_string(),
            Self::Template(wording) => {
                let mut element = template.cloned().unwrap_or_default();
                reword(&mut element, *wording, number);
                element.to_string()
            }
            Self::Misspelt => misspell(&sample(items, true, UNIQUE, number), number).to_string(),
            Self::Nested(depth) => format!("{}{}", "[".repeat(*depth), "]".repeat(*depth)),
            Self::Members(key, value) => {
                format!("{}:{}", json!(key.word(number)), sample(entries, false, *value, number))
            }
            Self::Unknown(key, value) => format!("{}:{value}", json!(key.word(number))),
            Self::Almost => format!("{}:1", json!(almost(field(schema, number).0, number))),
            Self::Again => {
                let (name, field) = field(schema, number);
                format!("{}:{}", json!(name), sample(field, false, UNIQUE, number))
            }
            Self::Text(start, unit) => {
                let count = room.saturating_sub(start.1.len() + 2) / unit.1.len();
                format!("\"{}{}\"", start.1, unit.1.repeat(count))
            }
            Self::Digits(start) => format!("{start}{}", "9".repeat(room.saturating_sub(start.len()).max(1))),
            Self::Deep("lists") => format!("{}{}", "[".repeat(room / 2), "]".repeat(room / 2)),
            Self::Deep(_) => format!("{}1{}", "{\"a\":".repeat(room / 6), "}".repeat(room / 6)),
        }
    }
}

/// A field of a schema, another one with each number.
fn field(schema: &Value, number: usize) -> (&str, &Value) {
    let fields: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    let chosen = fields.get(number % fields.len().max(1));
    chosen.map_or(("name", &Value::Null), |(name, field)| (name.as_str(), *field))
}

fn misspell(value: &Value, number: usize) -> Value {
    let Some(fields) = value.as_object() else { return json!({"nam": 1}) };
    let fields = fields.iter().map(|(name, value)| (almost(name, number), value.clone()));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// All fills of a place of this sort.
pub(crate) fn fills(sort: Sort, schema: &Value) -> Vec<Fill> {
    match sort {
        Sort::List => list_fills(schema),
        Sort::Map => map_fills(),
        Sort::Object => object_fills(schema),
        Sort::Text => text_fills(),
        Sort::Number => ["", "1.", "1e", "-"].map(Fill::Digits).into_iter().chain(wrong()).collect(),
        Sort::Any => wrong().chain(text_fills()).collect(),
    }
}

/// What is wrong nearly everywhere.
fn wrong() -> impl Iterator<Item = Fill> {
    let literals = ["{}", "\"\"", "1"].map(Fill::Literal);
    let one = [Fill::Text(PLAIN, UNITS[0]), Fill::Deep("lists"), Fill::Deep("objects")];
    literals.into_iter().chain(one).chain([Fill::Unknown(KEYS[0], "1")])
}

fn list_fills(schema: &Value) -> Vec<Fill> {
    let mut fills: Vec<_> = LITERALS.map(Fill::Literal).into();
    let is_object = schema["items"]["type"] == "object";
    for wording in WORDINGS {
        fills.extend([Fill::Elements { full: false, wording }, Fill::Template(wording)]);
        if is_object {
            fills.push(Fill::Elements { full: true, wording });
        }
    }
    fills.extend([Fill::Misspelt, Fill::Nested(8), Fill::Nested(100), Fill::Text(PLAIN, UNITS[0])]);
    fills.extend([Fill::Deep("lists"), Fill::Deep("objects"), Fill::Unknown(KEYS[0], "1")]);
    fills
}

fn map_fills() -> Vec<Fill> {
    let mut fills: Vec<_> = WORDINGS.map(|value| Fill::Members(KEYS[0], value)).into();
    fills.extend(KEYS.iter().skip(1).map(|key| Fill::Members(*key, UNIQUE)));
    fills.extend(LITERALS.map(|literal| Fill::Unknown(KEYS[0], literal)));
    fills.extend(wrong());
    fills
}

fn object_fills(schema: &Value) -> Vec<Fill> {
    let mut fills: Vec<_> = KEYS.map(|key| Fill::Unknown(key, "1")).into();
    let values = ["{}", "[]", "null", "\"\"", "\"postgres://u:p@h/d\""];
    fills.extend(values.map(|value| Fill::Unknown(KEYS[0], value)));
    if schema["properties"].as_object().is_some_and(|fields| !fields.is_empty()) {
        fills.extend([Fill::Almost, Fill::Again]);
    }
    fills.extend(wrong());
    fills
}

fn text_fills() -> Vec<Fill> {
    let plain = UNITS.iter().map(|unit| Fill::Text(PLAIN, *unit));
    let in_urls = UNITS.iter().filter(|unit| IN_URLS.contains(&unit.0));
    let urls = in_urls.flat_map(|unit| STARTS.map(|start| Fill::Text(start, *unit)));
    let wrong = [Fill::Literal("{}"), Fill::Literal("1"), Fill::Deep("lists"), Fill::Unknown(KEYS[0], "1")];
    plain.chain(urls).chain(wrong).collect()
}

/// The fills of two places at once, for rules that compare one list with another.
pub(crate) fn pairs(sort: Sort) -> Vec<Fill> {
    match sort {
        Sort::List => vec![
            Fill::Elements { full: true, wording: UNIQUE },
            Fill::Elements { full: true, wording: EQUAL },
        ],
        _ => vec![Fill::Members(KEYS[0], UNIQUE), Fill::Members(KEYS[1], EQUAL)],
    }
}

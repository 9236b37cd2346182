//! The fields that may hold a credential: the rows of `fields.yaml`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{MARKER, known_keys};

/// Objects with the marker in one place.
pub(crate) struct Field {
    pub(crate) name: String,
    /// A word in the line of the credential.
    pub(crate) beside: String,
    /// Whether a finding is about that very line; otherwise it is shown where the object is one line.
    pub(crate) here: bool,
    /// Whether the platform's own operator copies this value into pods, and memgate as well.
    pub(crate) copied: bool,
    /// YAML, with `MARK` or, in base64, `MARK64` for the marker.
    objects: String,
    /// The first of the known forms that each `FORM` stands for in turn.
    pub(crate) first_form: Option<usize>,
}

impl Field {
    /// Keys of known forms in many places, some of them copied.
    pub(crate) fn anywhere(name: &str, objects: &str, first: usize) -> Self {
        Self {
            name: name.to_owned(),
            beside: String::new(),
            here: false,
            copied: true,
            objects: objects.to_owned(),
            first_form: Some(first),
        }
    }

    /// The objects as YAML.
    pub(crate) fn text(&self) -> String {
        let text = known_keys::written(self.objects.trim_start(), self.first_form);
        let text = text.replace("MARK64", &STANDARD.encode(MARKER)).replace("MARK", MARKER);
        text.replace("UPPER", &MARKER.to_ascii_uppercase())
    }
}

/// The table as it is written; its head says what the keys are.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    around: BTreeMap<String, String>,
    fields: Vec<Row>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    field: Place,
    text: String,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    name: String,
    beside: String,
    #[serde(default)]
    here: bool,
    #[serde(default)]
    copied: bool,
    r#in: Option<String>,
}

/// All rows of the table.
pub(crate) fn all() -> Vec<Field> {
    let table: Table = serde_saphyr::from_str(include_str!("fields.yaml")).expect("a table of fields");
    let field = |Row { field: Place { name, beside, here, copied, r#in }, text }| {
        let objects = match r#in {
            Some(around) => filled(&table.around[&around], &text),
            None => text + "\n",
        };
        Field { name, beside, here, copied, objects, first_form: None }
    };
    table.fields.into_iter().map(field).collect()
}

/// Objects with a text in the place of `HOLE`, each line of it in the same column.
fn filled(around: &str, text: &str) -> String {
    let (before, _) = around.split_once("HOLE").expect("a hole");
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
    around.replace("HOLE", &text.replace('\n', &format!("\n{}", " ".repeat(column))))
}

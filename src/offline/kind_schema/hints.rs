//! Hints of families for editors, beyond the definitions of their kinds.
//!
//! A definition has exactly the constraints of the platform's own. Further facts from its documentation (known values,
//! defaults) would change what an apiserver stores if they were in the definition.

use std::sync::Arc;

use serde_json::{Map, Value};

use memgate_manifest::document::values;
use memgate_manifest::source::Source;

/// JSON Schema by field, such as `spec.tools[].name`.
pub(super) type Hints = Map<String, Value>;

/// The hints of a family, by kind.
pub(super) fn read(text: &str) -> Map<String, Value> {
    // They are part of the program, and a test checks that they can be read.
    let documents = values(&Arc::new(Source::new("<hints>", text)), &mut Vec::new());
    documents.first().and_then(|document| document.value().as_object()).cloned().unwrap_or_default()
}

/// Adds hints to the schema of a kind. Returns the fields that the schema lacks.
pub(super) fn add<'h>(hints: &'h Hints, schema: &mut Value) -> Vec<&'h str> {
    let mut lost = Vec::new();
    for (field, hint) in hints {
        match (find(schema, field), hint) {
            (Some(Value::Object(schema)), Value::Object(hint)) => {
                schema.extend(hint.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => lost.push(field.as_str()),
        }
    }
    lost
}

fn find<'s>(schema: &'s mut Value, field: &str) -> Option<&'s mut Value> {
    field.split('.').try_fold(schema, |schema, step| {
        let name = step.trim_end_matches("[]");
        let field = schema.get_mut("properties")?.get_mut(name)?;
        if name == step { Some(field) } else { field.get_mut("items") }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{combined, definitions};
    use super::*;
    use memgate_core::family;

    #[test]
    fn are_about_fields_that_there_are() {
        let definitions = definitions();
        for family in family::ALL {
            let hints = read(family.definitions.hints);
            assert!(!hints.is_empty(), "{} has none, or they cannot be read", family.name);
            for kind in hints.keys() {
                let has_kind = definitions.iter().any(|it| it.kind == *kind && !it.hints.is_empty());
                assert!(has_kind, "{} has no {kind}", family.name);
            }
        }
        let lost: Vec<_> = definitions.iter().flat_map(|it| it.lost_hints()).collect();
        assert!(lost.is_empty(), "{lost:?}");
        assert!(combined(&definitions).to_string().contains("recall_memory"));
    }
}

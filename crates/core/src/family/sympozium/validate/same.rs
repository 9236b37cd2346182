//! Whether two parts of objects say the same, whatever the order of their fields.

use std::collections::BTreeSet;

use crate::model::schema::Schema;
use crate::model::tree::Tree;

/// Whether nothing that is read tells the two apart. Of fields that are not read only the names are
/// known.
pub(super) fn same(a: Option<&Tree>, b: Option<&Tree>, schema: &Schema) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    match (a, b, schema) {
        (Tree::List(a), Tree::List(b), Schema::List(element)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b), element))
        }
        (Tree::Map(_), Tree::Map(_), schema) => {
            let unknown = |tree: &'_ Tree| tree.unknown_fields().map(str::to_owned).collect::<BTreeSet<_>>();
            let fields = schema.fields().iter();
            unknown(a) == unknown(b)
                && fields.into_iter().all(|field| same(a.get(field.name), b.get(field.name), &field.schema))
        }
        (Tree::Texts(a, odd), Tree::Texts(b, other_odd), _) => {
            let sorted = |entries: &[(String, String)]| entries.iter().cloned().collect::<BTreeSet<_>>();
            sorted(a) == sorted(b) && odd == other_odd
        }
        _ => a == b,
    }
}

/// The schema of what stands at a path of field names; anything when the path leaves the table.
pub(super) fn shape_at(schema: &Schema, path: &[&str]) -> Schema {
    path.iter().fold(*schema, |schema, name| {
        let schema = if let Schema::List(element) = schema { *element } else { schema };
        schema.fields().iter().find(|field| field.name == *name).map_or(Schema::Any, |field| field.schema)
    })
}

//! `operations`: which operations on memory an agent may have.

use memgate_model::cel_view::{CelSide, InCel};
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::reader::Reader;
use super::super::text::value;
use super::words::{Allowed, fields};

#[derive(Debug)]
struct Operations(Allowed);

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny"])?;
    Some(Box::new(Operations(Allowed::read(&fields))))
}

impl TypedRule for Operations {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        for operation in judged.view.operations.iter().flatten() {
            if !self.0.accepts(&operation.name) {
                let message = format!("operation {} is not allowed", value(judged, &operation.name));
                outcome.add(operation.field.clone(), message, &operation.name);
            }
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        let end = " is not allowed".to_owned();
        self.0.add_in_cel(said, side, ("operations", "operations"), ("operation ", end));
    }
}

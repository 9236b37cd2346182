//! `operations`: which operations on memory an agent may have.

use crate::model::cel_view::{CelSide, InCel, MessagePart};
use crate::model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::in_cel::{NOT_ASCII, text};
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
    fn judge(&self, judged: &Judged<'_>) -> RuleOutcome {
        let mut outcome = RuleOutcome::default();
        for operation in judged.view.operations.iter().flatten() {
            if !self.0.accepts(&operation.name) {
                let message = format!("operation {} is not allowed", value(judged, &operation.name));
                outcome.add(operation.field.clone(), message, &operation.name);
            }
        }
        outcome
    }

    fn in_cel(&self, side: &CelSide<'_>) -> InCel {
        let mut said = InCel::default();
        let Some(accepts) = self.0.in_cel() else {
            said.leave_out("operations", NOT_ASCII);
            return said;
        };
        if let Some(operations) = said.entries(side, "operations", "operations") {
            let message = vec![text("operation "), MessagePart::Quoted(1), text(" is not allowed")];
            said.add(format!("{operations}.filter(it, !({accepts}))"), message);
        }
        said
    }
}

//! `providers`: which providers of a backend may be used.

use memgate_model::cel_view::{CelSide, InCel};
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::reader::Reader;
use super::super::text::{use_one_of, value};
use super::words::{Allowed, fields};

#[derive(Debug)]
struct Providers(Allowed);

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny"])?;
    Some(Box::new(Providers(Allowed::read(&fields))))
}

impl TypedRule for Providers {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        if let Some(provider) = judged.view.provider.as_ref().filter(|provider| !self.0.accepts(provider)) {
            let shown = value(judged, provider);
            let message = format!("provider {shown} is not allowed{}", use_one_of(self.0.instead()));
            outcome.add(judged.view.pointer("provider"), message, provider);
        }
        judged.note_unknown("provider", outcome);
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        let end = format!(" is not allowed{}", use_one_of(self.0.instead()));
        self.0.add_in_cel(said, side, ("provider", "providers"), ("provider ", end));
    }
}

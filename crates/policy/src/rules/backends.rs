//! `backends`: where memory may be kept, and whether it must outlive its process.

use memgate_model::cel_view::{CelSide, InCel, MessagePart};
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::in_cel::text;
use super::super::reader::Reader;
use super::super::text::{use_one_of, value};
use super::words::{Allowed, fields};

#[derive(Debug)]
struct Backends {
    allowed: Allowed,
    must_be_durable: bool,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny", "durable"])?;
    let must_be_durable = fields.get("durable").and_then(|it| it.flag()) == Some(true);
    Some(Box::new(Backends { allowed: Allowed::read(&fields), must_be_durable }))
}

impl TypedRule for Backends {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let Some(backend) = &judged.view.backend else { return judged.note_unknown("backend", outcome) };
        let shown = value(judged, backend);
        if !self.allowed.accepts(backend) {
            let message = format!("backend {shown} is not allowed{}", use_one_of(self.allowed.instead()));
            outcome.add(judged.view.pointer("backend"), message, backend);
        }
        if self.must_be_durable && judged.view.durable == Some(false) {
            let message = format!("backend {shown} loses its memory with its process");
            let remark = judged.remark("durable");
            // Where the backend does not decide, its place is not that of the fault.
            let path = if remark.is_empty() { "backend" } else { "durable" };
            outcome.add_remarked(judged.view.pointer(path), (message, remark), backend);
        }
        if self.must_be_durable {
            judged.note_unknown("durable", outcome);
        }
    }

    fn reads_other_objects(&self) -> bool {
        self.must_be_durable
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        if !self.allowed.is_empty() {
            let end = format!(" is not allowed{}", use_one_of(self.allowed.instead()));
            self.allowed.add_in_cel(said, side, ("backend", "backends"), ("backend ", end));
        }
        if self.must_be_durable
            && let Some(durable) = said.entries(side, "durable", "backends.durable")
            && let Some(backends) = said.entries(side, "backend", "backends.durable")
        {
            let message =
                [text("backend "), MessagePart::Quoted(1), text(" loses its memory with its process")];
            let list = format!("{durable}.exists(it, it.endsWith(' false')) ? {backends} : []");
            said.add(list, message.into());
        }
    }
}

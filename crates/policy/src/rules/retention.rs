//! `retention`: how long entries must and may be kept.

use memgate_model::cel_view::{CelSide, InCel};
use memgate_model::finding::Cause;
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::reader::{Fields, Reader};
use super::super::values::{SECOND, duration, not_a_duration};
use super::bounds::{Bound, Bounds, Number};
use super::words::fields;

/// How long entries are kept, in seconds; bounds are in nanoseconds.
const TTL: Number = Number {
    path: "ttlSeconds",
    field: "retention",
    unit: SECOND,
    zero: ["entries never expire; set a TTL", "entries never expire; set a TTL of at most "],
    around: ["TTL of ", "s is "],
};

#[derive(Debug)]
struct Retention(Bounds);

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["min", "max", "zero"])?;
    let (min, max) = (bound(&fields, "min"), bound(&fields, "max"));
    Some(Box::new(Retention(Bounds { min, max, zero: Bounds::zero(&fields) })))
}

fn bound(fields: &Fields<'_>, field: &str) -> Option<Bound> {
    let reader = fields.get(field)?;
    let text = reader.text(64)?;
    match duration(text) {
        None => reader.fault(Cause::Invalid, &not_a_duration(text)),
        Some(value) if value <= 0 => reader.fault(Cause::Invalid, "must be longer than nothing"),
        Some(value) => return Some(Bound { written: text.to_owned(), shown: shown(text, value), value }),
    }
    None
}

/// `30d (2592000s)`.
fn shown(text: &str, nanoseconds: i128) -> String {
    let (whole, rest) = (nanoseconds / SECOND, nanoseconds % SECOND);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:09}") };
    format!("{text} ({whole}{}s)", fraction.trim_end_matches('0'))
}

impl TypedRule for Retention {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        if let Some(seconds) = judged.view.ttl_seconds {
            self.0.judge(&TTL, seconds, judged, outcome);
        }
        judged.note_unknown(TTL.path, outcome);
    }

    /// What counts for a Query without a TTL is in another object.
    fn reads_other_objects(&self) -> bool {
        true
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        self.0.in_cel(&TTL, side, said);
        if let Some(reason) = side.default_unsaid(TTL.path) {
            said.leave_out("retention of Queries without spec.ttl", reason);
        }
    }
}

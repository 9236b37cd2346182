//! `capacity`: how much memory may hold.

use memgate_model::cel_view::{CelSide, InCel, MessagePart};
use memgate_model::finding::Cause;
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};
use memgate_primitives::plain_text::quoted;
use memgate_primitives::quantity::billionths;

use super::super::in_cel::{VALUE, literal, text};
use super::super::reader::{Fields, Reader};
use super::super::text::number;
use super::bounds::{Bound, Bounds, Number};
use super::words::fields;

/// What a byte is in a quantity.
const BYTE: i128 = 1_000_000_000;

/// How many entries are kept.
const MAX_ENTRIES: Number = Number {
    path: "maxEntries",
    field: "capacity.maxEntries",
    unit: 1,
    zero: ["maxEntries 0 is unlimited; set a limit", "maxEntries 0 is unlimited; set at most "],
    around: ["maxEntries ", " is "],
};

#[derive(Debug)]
struct Capacity {
    entries: Option<Bounds>,
    storage: Option<Quantity>,
}

/// A quantity as it is written, and in billionths.
#[derive(Debug)]
pub(super) struct Quantity {
    pub(super) text: String,
    pub(super) billionths: i128,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["maxEntries", "storage"])?;
    let entries = fields.get("maxEntries").and_then(|it| entries(&it));
    let storage = fields.get("storage").and_then(|it| self::fields(&it, &["max"]));
    let storage = storage.and_then(|fields| quantity(&fields, "max"));
    Some(Box::new(Capacity { entries, storage }))
}

fn entries(reader: &Reader<'_>) -> Option<Bounds> {
    let fields = fields(reader, &["min", "max", "zero"])?;
    let bound = |field| {
        let value = fields.get(field)?.integer(1, i64::MAX)?;
        let written = value.to_string();
        Some(Bound { shown: written.clone(), written, value: value.into() })
    };
    Some(Bounds { min: bound("min"), max: bound("max"), zero: Bounds::zero(&fields) })
}

/// The quantity of a field; a number counts as its text.
pub(super) fn quantity(fields: &Fields<'_>, field: &str) -> Option<Quantity> {
    let reader = fields.get(field)?;
    let text = match reader.value() {
        serde_json::Value::Number(number) => number.to_string(),
        _ => reader.text(64)?.to_owned(),
    };
    match billionths(&text) {
        Some(billionths) if billionths >= 0 => Some(Quantity { text, billionths }),
        _ => {
            reader.fault(Cause::Invalid, &format!("{} is not a quantity; write it like 10Gi", quoted(&text)));
            None
        }
    }
}

impl TypedRule for Capacity {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        if let Some((entries, count)) = self.entries.as_ref().zip(judged.view.max_entries) {
            entries.judge(&MAX_ENTRIES, count, judged, outcome);
        }
        if self.entries.is_some() {
            judged.note_unknown(MAX_ENTRIES.path, outcome);
        }
        if let Some((storage, max)) = judged.view.storage.as_ref().zip(self.storage.as_ref())
            && storage.bytes.saturating_mul(BYTE) > max.billionths
        {
            let shown = number(judged, &storage.text);
            let message = format!("storage {shown} is above {}", max.text);
            outcome.add(judged.view.pointer("storageBytes"), message, &storage.text);
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        if let Some(max) = &self.storage
            && let Some(sizes) = said.entries(side, "storageBytes", "capacity.storage")
        {
            if max.billionths % BYTE == 0 {
                let limit = literal(&max.text);
                let message =
                    vec![text("storage "), MessagePart::Plain(1), text(format!(" is above {}", max.text))];
                let list = format!("{sizes}.filter(it, quantity({VALUE}).isGreaterThan(quantity({limit})))");
                said.add(list, message);
            } else {
                said.leave_out(
                    "capacity.storage",
                    "sizes are rounded up to bytes here, and the limit is none",
                );
            }
        }
        if let Some(entries) = &self.entries {
            entries.in_cel(&MAX_ENTRIES, side, said);
        }
    }
}

//! `capacity`: how much memory may hold.

use crate::model::finding::{Cause, quoted};
use crate::model::quantity::billionths;
use crate::model::typed_rule::{Judged, Outcome, TypedRule};

use super::super::reader::{Fields, Reader};
use super::super::text::number;
use super::retention::ZERO;
use super::words::fields;

/// What a byte is in a quantity.
const BYTE: i128 = 1_000_000_000;

#[derive(Debug)]
struct Capacity {
    entries: Entries,
    storage: Option<Quantity>,
}

#[derive(Debug, Default)]
struct Entries {
    min: Option<i64>,
    max: Option<i64>,
    /// Whether there may be no limit, where the rule says so.
    zero: Option<bool>,
}

/// A quantity as it is written, and in billionths.
#[derive(Debug)]
pub(super) struct Quantity {
    pub(super) text: String,
    pub(super) billionths: i128,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["maxEntries", "storage"])?;
    let entries = fields.get("maxEntries").and_then(|it| entries(&it)).unwrap_or_default();
    let storage = fields.get("storage").and_then(|it| self::fields(&it, &["max"]));
    let storage = storage.and_then(|fields| quantity(&fields, "max"));
    Some(Box::new(Capacity { entries, storage }))
}

fn entries(reader: &Reader<'_>) -> Option<Entries> {
    let fields = fields(reader, &["min", "max", "zero"])?;
    let limit = |field| fields.get(field)?.integer(1, i64::MAX);
    Some(Entries { min: limit("min"), max: limit("max"), zero: fields.choice("zero", &ZERO) })
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
            reader.fault(Cause::Invalid, &format!("{} is no quantity; write it like 10Gi", quoted(&text)));
            None
        }
    }
}

impl TypedRule for Capacity {
    fn judge(&self, judged: &Judged<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.judge_entries(judged, &mut outcome);
        if let Some((storage, max)) = judged.view.storage.as_ref().zip(self.storage.as_ref())
            && storage.bytes.saturating_mul(BYTE) > max.billionths
        {
            let shown = number(judged, &storage.text);
            let message = format!("storage {shown} is above {}", max.text);
            outcome.add(judged.view.pointer("storageBytes"), message, &storage.text);
        }
        outcome
    }
}

impl Capacity {
    fn judge_entries(&self, judged: &Judged<'_>, outcome: &mut Outcome) {
        let Some(count) = judged.view.max_entries else { return };
        let shown = number(judged, &count.to_string());
        let mut add = |message| outcome.add(judged.view.pointer("maxEntries"), message, count.to_string());
        match (self.entries.max, self.entries.zero) {
            (Some(max), None | Some(false)) if count == 0 => {
                add(format!("maxEntries 0 is unlimited; set at most {max}"));
            }
            (None, Some(false)) if count == 0 => add("maxEntries 0 is unlimited; set a limit".to_owned()),
            (Some(max), _) if count > max => add(format!("maxEntries {shown} is above {max}")),
            _ => {}
        }
        if let Some(min) = self.entries.min.filter(|min| count > 0 && count < *min) {
            add(format!("maxEntries {shown} is below {min}"));
        }
    }
}

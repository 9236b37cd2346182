//! `capacity`: how much memory may hold.

use crate::model::cel_view::{CelSide, InCel, MessagePart};
use crate::model::finding::{Cause, quoted};
use crate::model::quantity::billionths;
use crate::model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::in_cel::{VALUE, literal, text};
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
    fn judge(&self, judged: &Judged<'_>) -> RuleOutcome {
        let mut outcome = RuleOutcome::default();
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

    fn in_cel(&self, side: &CelSide<'_>) -> InCel {
        let mut said = InCel::default();
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
        if self.entries.asks()
            && let Some(counts) = said.entries(side, "maxEntries", "capacity.maxEntries")
        {
            self.entries.in_cel(&counts, &mut said);
        }
        said
    }
}

impl Entries {
    const fn asks(&self) -> bool {
        self.min.is_some() || self.max.is_some() || self.zero.is_some()
    }

    fn in_cel(&self, counts: &str, said: &mut InCel) {
        let count = format!("int({VALUE})");
        let mut add = |condition: String, message: Vec<MessagePart>| {
            said.add(format!("{counts}.filter(it, {condition})"), message);
        };
        match (self.max, self.zero) {
            (Some(max), None | Some(false)) => {
                let message = format!("maxEntries 0 is unlimited; set at most {max}");
                add(format!("{count} == 0"), vec![text(message)]);
            }
            (None, Some(false)) => {
                add(format!("{count} == 0"), vec![text("maxEntries 0 is unlimited; set a limit")]);
            }
            _ => {}
        }
        let shown = |end: String| vec![text("maxEntries "), MessagePart::Plain(1), text(end)];
        if let Some(max) = self.max {
            add(format!("{count} > {max}"), shown(format!(" is above {max}")));
        }
        if let Some(min) = self.min {
            add(format!("{count} > 0 && {count} < {min}"), shown(format!(" is below {min}")));
        }
    }
}

impl Capacity {
    fn judge_entries(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
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

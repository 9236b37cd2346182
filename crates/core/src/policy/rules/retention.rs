//! `retention`: how long entries must and may be kept.

use crate::model::cel_view::{CelSide, InCel, MessagePart};
use crate::model::finding::Cause;
use crate::model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::in_cel::{VALUE, text};
use super::super::reader::{Fields, Reader};
use super::super::text::number;
use super::super::values::{SECOND, duration, not_a_duration};
use super::words::fields;

#[derive(Debug)]
struct Retention {
    min: Option<Limit>,
    max: Option<Limit>,
    /// Whether entries may be kept for ever, where the rule says so.
    zero: Option<bool>,
}

/// A duration as it is written, and in nanoseconds.
#[derive(Debug)]
struct Limit {
    text: String,
    nanoseconds: i128,
}

/// Whether nothing, which means without limit, is allowed.
pub(super) const ZERO: [(&str, bool); 2] = [("allow", true), ("forbid", false)];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["min", "max", "zero"])?;
    let (min, max) = (limit(&fields, "min"), limit(&fields, "max"));
    Some(Box::new(Retention { min, max, zero: fields.choice("zero", &ZERO) }))
}

fn limit(fields: &Fields<'_>, field: &str) -> Option<Limit> {
    let reader = fields.get(field)?;
    let text = reader.text(64)?;
    match duration(text) {
        None => reader.fault(Cause::Invalid, &not_a_duration(text)),
        Some(nanoseconds) if nanoseconds <= 0 => reader.fault(Cause::Invalid, "must be longer than nothing"),
        Some(nanoseconds) => return Some(Limit { text: text.to_owned(), nanoseconds }),
    }
    None
}

impl Limit {
    /// `30d (2592000s)`.
    fn shown(&self) -> String {
        let (whole, rest) = (self.nanoseconds / SECOND, self.nanoseconds % SECOND);
        let fraction = if rest == 0 { String::new() } else { format!("{rest:09}") };
        let point = if rest == 0 { "" } else { "." };
        format!("{} ({whole}{point}{}s)", self.text, fraction.trim_end_matches('0'))
    }
}

impl TypedRule for Retention {
    fn judge(&self, judged: &Judged<'_>) -> RuleOutcome {
        let mut outcome = RuleOutcome::default();
        let Some(seconds) = judged.view.ttl_seconds else { return outcome };
        let shown = number(judged, &seconds.to_string());
        let mut add = |message| outcome.add(judged.view.pointer("ttlSeconds"), message, seconds.to_string());
        let ttl = i128::from(seconds) * SECOND;
        match (&self.max, self.zero) {
            (Some(max), None | Some(false)) if seconds == 0 => {
                add(format!("entries never expire; set a TTL of at most {}", max.text));
            }
            (None, Some(false)) if seconds == 0 => add("entries never expire; set a TTL".to_owned()),
            (Some(max), _) if ttl > max.nanoseconds => {
                add(format!("TTL of {shown}s is above {}", max.shown()));
            }
            _ => {}
        }
        if let Some(min) = self.min.as_ref().filter(|min| seconds > 0 && ttl < min.nanoseconds) {
            add(format!("TTL of {shown}s is below {}", min.shown()));
        }
        outcome
    }

    fn in_cel(&self, side: &CelSide<'_>) -> InCel {
        let mut said = InCel::default();
        let Some(ttls) = said.entries(side, "ttlSeconds", "retention") else { return said };
        let ttl = format!("int({VALUE})");
        let mut add = |condition: String, message: Vec<MessagePart>| {
            said.add(format!("{ttls}.filter(it, {condition})"), message);
        };
        match (&self.max, self.zero) {
            (Some(max), None | Some(false)) => {
                let message = format!("entries never expire; set a TTL of at most {}", max.text);
                add(format!("{ttl} == 0"), vec![text(message)]);
            }
            (None, Some(false)) => {
                add(format!("{ttl} == 0"), vec![text("entries never expire; set a TTL")]);
            }
            _ => {}
        }
        let shown = |side: &str, limit: &Limit| {
            vec![text("TTL of "), MessagePart::Plain(1), text(format!("s is {side} {}", limit.shown()))]
        };
        // Whole seconds are above a limit if they are above its whole seconds.
        if let Some(max) = &self.max {
            add(format!("{ttl} > {}", max.nanoseconds / SECOND), shown("above", max));
        }
        if let Some(min) = &self.min {
            let least = (min.nanoseconds + SECOND - 1) / SECOND;
            add(format!("{ttl} > 0 && {ttl} < {least}"), shown("below", min));
        }
        said
    }
}

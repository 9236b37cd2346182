//! `retention` and `capacity`: bounds of numbers, of which 0 may mean "without limit".

use memgate_model::finding::Cause;
use memgate_model::typed_rule::TypedRule;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::quantity::billionths;

use super::check::{Bound, Check, Condition, Shows, Zero};
use super::checks::Checks;
use super::words::fields;
use crate::reader::Reader;
use crate::values::{SECOND, positive};

/// The words for `zero`: whether 0 is allowed.
const ZERO: [(&str, bool); 2] = [("allow", true), ("forbid", false)];

/// A number of which 0 means "without limit", and the words of messages about it.
struct Number {
    /// The path in the view.
    path: &'static str,
    /// The field of the policy.
    field: &'static str,
    /// The message about 0, and the same up to the greatest value.
    zero: [&'static str; 2],
    /// The message about another number, up to the number and behind it.
    around: [&'static str; 2],
}

/// How long entries are kept, in seconds.
const TTL: Number = Number {
    path: "ttlSeconds",
    field: "retention",
    zero: ["entries never expire; set a TTL", "entries never expire; set a TTL of at most "],
    around: ["TTL of ", "s is "],
};

/// How many entries are kept.
const ENTRIES: Number = Number {
    path: "maxEntries",
    field: "capacity.maxEntries",
    zero: ["maxEntries 0 is unlimited; set a limit", "maxEntries 0 is unlimited; set at most "],
    around: ["maxEntries ", " is "],
};

/// A bound as a policy writes it, as messages show it, and the least and the greatest whole number that it lets pass.
struct Limit {
    written: String,
    shown: String,
    least: i128,
    most: i128,
}

/// A quantity as it is written, and in billionths.
#[derive(Debug)]
pub(super) struct Quantity {
    pub(super) text: String,
    pub(super) billionths: i128,
}

pub(super) fn retention(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    Some(Box::new(Checks::of_type(checks(&TTL, reader, time)?)))
}

pub(super) fn capacity(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["maxEntries", "storage"])?;
    let entries = fields.get("maxEntries").and_then(|it| checks(&ENTRIES, &it, count)).unwrap_or_default();
    let storage = fields.get("storage").and_then(|it| self::fields(&it, &["max"]));
    let storage = storage.and_then(|fields| quantity(&fields.get("max")?)).map(|max| {
        let says = ("storage ", Shows::Number, format!(" is above {}", max.text));
        let bound = Bound { value: max.billionths, written: max.text, zero: Zero::Number };
        Check::new("storageBytes", "capacity.storage", "max", Condition::AtMost(bound), says)
    });
    Some(Box::new(Checks::of_type(entries.into_iter().chain(storage))))
}

/// The conditions on a number: of those above the limit 0 is the greatest, since it is without limit.
fn checks(
    number: &Number,
    reader: &Reader<'_>,
    limit: fn(&Reader<'_>) -> Option<Limit>,
) -> Option<Vec<Check>> {
    let fields = fields(reader, &["min", "max", "zero"])?;
    let of = |field| limit(&fields.get(field)?);
    let (min, max, zero) = (of("min"), of("max"), fields.choice("zero", &ZERO));
    let [without_max, up_to_max] = number.zero;
    let about_zero = match (&max, zero) {
        (Some(max), None | Some(false)) => Some(format!("{up_to_max}{}", max.written)),
        (None, Some(false)) => Some(without_max.to_owned()),
        _ => None,
    };
    let zero = if about_zero.is_some() { Zero::Forbidden } else { Zero::Unlimited };
    let check = |name, condition, says| Check::new(number.path, number.field, name, condition, says);
    let [before, behind] = number.around;
    let says = |side, limit: &Limit| (before, Shows::Number, format!("{behind}{side} {}", limit.shown));
    let bound = |value: i128| Bound { value, written: value.to_string(), zero };
    let forbidden = about_zero.map(|message| check("max", Condition::NotZero, ("", Shows::Nothing, message)));
    let above = max.map(|max| check("max", Condition::AtMost(bound(max.most)), says("above", &max)));
    let below = min.map(|min| check("min", Condition::AtLeast(bound(min.least)), says("below", &min)));
    Some([forbidden, above, below].into_iter().flatten().collect())
}

fn count(reader: &Reader<'_>) -> Option<Limit> {
    let value = reader.integer(1, i64::MAX)?;
    let (written, whole) = (value.to_string(), i128::from(value));
    Some(Limit { shown: written.clone(), written, least: whole, most: whole })
}

/// `30d (2592000s)`.
fn time(reader: &Reader<'_>) -> Option<Limit> {
    let (text, value) = positive(reader)?;
    let (whole, rest) = (value / SECOND, value % SECOND);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:09}") };
    let shown = format!("{text} ({whole}{}s)", fraction.trim_end_matches('0'));
    let least = whole + i128::from(rest > 0);
    Some(Limit { written: text.to_owned(), shown, least, most: whole })
}

/// The quantity here; a number counts as its text.
pub(super) fn quantity(reader: &Reader<'_>) -> Option<Quantity> {
    let text = match reader.value() {
        serde_json::Value::Number(number) => number.to_string(),
        _ => reader.text(64)?.to_owned(),
    };
    match billionths(&text) {
        Some(billionths) if billionths >= 0 => Some(Quantity { text, billionths }),
        _ => {
            reader.fault(
                Cause::Invalid,
                &format!("{} is not a quantity; write it like 10Gi", quoted_text(&text)),
            );
            None
        }
    }
}

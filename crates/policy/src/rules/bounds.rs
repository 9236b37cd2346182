//! A least and a greatest value of a number of which 0 means "without limit".

use memgate_model::cel_view::{CelSide, InCel, MessagePart};
use memgate_model::typed_rule::{Judged, RuleOutcome};

use super::super::in_cel::{VALUE, text};
use super::super::reader::Fields;
use super::super::text::number;

/// The words for `zero`: whether 0 is allowed.
const ZERO: [(&str, bool); 2] = [("allow", true), ("forbid", false)];

/// The bounds of a rule.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
    /// Whether 0 is allowed, where the rule says so. With a greatest value it is not, unless the rule allows it.
    pub(super) zero: Option<bool>,
}

/// One bound.
#[derive(Debug)]
pub(super) struct Bound {
    /// As it is written.
    pub(super) written: String,
    /// As messages show it.
    pub(super) shown: String,
    /// The bound in units of [`Number::unit`].
    pub(super) value: i128,
}

/// The number in a view that has bounds, and the words of messages about it.
pub(super) struct Number {
    /// The path in the view.
    pub(super) path: &'static str,
    /// The field of a policy for which an export gives a reason.
    pub(super) field: &'static str,
    /// What one of the number is in the unit of bounds.
    pub(super) unit: i128,
    /// The message about 0, and the same up to the greatest value.
    pub(super) zero: [&'static str; 2],
    /// The message about another number, up to the number and behind it.
    pub(super) around: [&'static str; 2],
}

impl Bounds {
    /// Whether 0 is allowed, as a field of the rule says.
    pub(super) fn zero(fields: &Fields<'_>) -> Option<bool> {
        fields.choice("zero", &ZERO)
    }

    /// The message about 0; `None` where it is allowed.
    fn about_zero(&self, number: &Number) -> Option<String> {
        let [without_max, up_to_max] = number.zero;
        match (&self.max, self.zero) {
            (Some(max), None | Some(false)) => Some(format!("{up_to_max}{}", max.written)),
            (None, Some(false)) => Some(without_max.to_owned()),
            _ => None,
        }
    }

    pub(super) fn judge(&self, number: &Number, value: i64, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let (shown, in_units) = (self::number(judged, &value.to_string()), i128::from(value) * number.unit);
        let [before, behind] = number.around;
        let about = |side: &str, bound: &Bound| format!("{before}{shown}{behind}{side} {}", bound.shown);
        let zero = self.about_zero(number).filter(|_| value == 0);
        let above = self.max.as_ref().filter(|max| in_units > max.value).map(|max| about("above", max));
        let below = self.min.as_ref().filter(|min| value > 0 && in_units < min.value);
        let below = below.map(|min| about("below", min));
        for message in zero.into_iter().chain(above).chain(below) {
            let remark = judged.remark(number.path);
            outcome.add_remarked(judged.view.pointer(number.path), (message, remark), value.to_string());
        }
    }

    pub(super) fn in_cel(&self, number: &Number, side: &CelSide<'_>, said: &mut InCel) {
        if self.min.is_none() && self.max.is_none() && self.zero.is_none() {
            return;
        }
        let Some(entries) = said.entries(side, number.path, number.field) else { return };
        let value = format!("int({VALUE})");
        let mut add = |condition: String, message: Vec<MessagePart>| {
            said.add(format!("{entries}.filter(it, {condition})"), message);
        };
        if let Some(message) = self.about_zero(number) {
            add(format!("{value} == 0"), vec![text(message)]);
        }
        let [before, behind] = number.around;
        let about = |side: &str, bound: &Bound| {
            vec![text(before), MessagePart::Plain(1), text(format!("{behind}{side} {}", bound.shown))]
        };
        // A whole number is above a bound if it is above the whole part of the bound.
        if let Some(max) = &self.max {
            add(format!("{value} > {}", max.value / number.unit), about("above", max));
        }
        if let Some(min) = &self.min {
            let least = (min.value + number.unit - 1) / number.unit;
            add(format!("{value} > 0 && {value} < {least}"), about("below", min));
        }
    }
}

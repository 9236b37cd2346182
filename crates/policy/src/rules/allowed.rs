//! `backends`, `providers`, `operations` and `sharing`: which words are allowed.

use memgate_model::typed_rule::TypedRule;

use super::check::{Bound, Check, Condition, Scalar, Shows, Zero};
use super::checks::Checks;
use super::words::{Allowed, Words, fields};
use crate::reader::Reader;
use crate::text::use_one_of;

pub(super) fn backends(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny", "durable"])?;
    let must_be_durable = fields.get("durable").and_then(|it| it.flag()) == Some(true);
    let condition = Condition::In { values: [Scalar::Flag(true)].into(), written: Vec::new(), wanted: true };
    let loses = ("backend ", Shows::Backend, " loses its memory with its process".to_owned());
    let durable =
        must_be_durable.then(|| Check::new("durable", "backends.durable", "durable", condition, loses));
    let allowed = check(Allowed::read(&fields), "backend", "backends", ("backend ", true));
    Some(Box::new(Checks::of_type(allowed.into_iter().chain(durable))))
}

pub(super) fn providers(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny"])?;
    let allowed = check(Allowed::read(&fields), "provider", "providers", ("provider ", true));
    Some(Box::new(Checks::of_type(allowed)))
}

pub(super) fn operations(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny"])?;
    let allowed = check(Allowed::read(&fields), "operations[]", "operations", ("operation ", false));
    Some(Box::new(Checks::of_type(allowed)))
}

pub(super) fn sharing(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["visibility", "maxWriters"])?;
    let visibility = Allowed { allow: Words::read(&fields, "visibility"), deny: None };
    let path = "sharing.configs[].visibility";
    let visibility = check(visibility, path, "sharing.visibility", ("visibility ", true));
    let max = fields.get("maxWriters").and_then(|it| it.integer(0, i64::from(u32::MAX)));
    let writers = max.map(|max| {
        let bound = Bound { value: max.into(), written: max.to_string(), zero: Zero::Number };
        let says = ("", Shows::Number, format!(" configs may write; the limit is {max}"));
        Check::new("sharing.writers", "sharing.maxWriters", "max", Condition::AtMost(bound), says)
    });
    Some(Box::new(Checks::of_type(visibility.into_iter().chain(writers))))
}

/// That each value at a path is allowed, unless every word is. `what` begins the message, which says what to use
/// instead if `says_instead`.
fn check(
    allowed: Allowed,
    path: &'static str,
    field: &str,
    (what, says_instead): (&str, bool),
) -> Option<Check> {
    let instead = allowed.allow.as_ref().filter(|_| says_instead).map(|allow| allow.texts.as_slice());
    let behind = format!(" is not allowed{}", use_one_of(instead));
    let is_empty = allowed.allow.is_none() && allowed.deny.is_none();
    let condition = Condition::Allowed(allowed);
    (!is_empty).then(|| Check::new(path, field, "allow", condition, (what, Shows::Value, behind)))
}

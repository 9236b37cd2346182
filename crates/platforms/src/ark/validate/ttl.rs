//! Durations of a Query and of the ArkConfig, as Go reads them.

use memgate_model::finding::{Code, Finding};
use memgate_primitives::budget::Budget;
use memgate_primitives::duration;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::ttl::SECOND;
use super::denial;

/// The nanoseconds of a duration. For another text, the duration that was probably meant: Go has no days.
pub(super) fn nanoseconds(text: &str) -> Result<i64, Option<String>> {
    let in_hours = || {
        let days = text.strip_suffix('d').filter(|days| days.bytes().all(|byte| byte.is_ascii_digit()))?;
        let hours = format!("{}h", days.parse::<u32>().ok()?.checked_mul(24)?);
        duration::nanoseconds(&hours).map(|_| format!("{hours} for {text}"))
    };
    duration::nanoseconds(text).ok_or_else(in_hours)
}

/// The denial of a text that is not a duration; without the duration that was meant, an example.
pub(super) fn not_a_duration(
    work: &Budget<'_>,
    code: &'static Code,
    pointer: &'static str,
    (text, instead): (&str, Option<String>),
    example: &'static str,
) -> Finding {
    let pointer = Pointer::new(pointer);
    let (field, shown) = (pointer.field(), quoted(text));
    let end =
        instead.map_or_else(|| format!("write for example {example}"), |instead| format!("use {instead}"));
    denial(work, code, pointer, move || format!("{field} must be a Go duration, not {shown}; {end}"))
}

/// The warning about a duration, if it is below one second.
pub(super) fn too_short(
    (text, nanoseconds): (&str, i64),
    code: &'static Code,
    pointer: &'static str,
) -> Option<Finding> {
    let pointer = Pointer::new(pointer);
    let (field, shown) = (pointer.field(), quoted(text));
    let message = format!("{field} is below one second: {shown}; ARK's broker refuses the messages");
    (nanoseconds < SECOND).then(|| Finding::warn(code, pointer, message))
}

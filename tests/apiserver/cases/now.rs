//! A case with dates of policies, as of now: a real apiserver and its memgate have no other time.

use anyhow::{Context, Result};
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

/// How long a run may take before a date comes that the case has before it.
const HOURS_LEFT: i64 = 12;

/// The case with the dates of its state moved by the time that has passed since its `at`. The days in what it expects
/// move too.
///
/// # Errors
/// When its `at` is not a time.
pub(super) fn moved(case: &Value) -> Result<Value> {
    let Some(at) = case["at"].as_str() else { return Ok(case.clone()) };
    let at: Timestamp = at.parse().context("at is not a time")?;
    let mut dates = Vec::new();
    collect(&case["state"], &mut dates);
    let is_soon = |date: &Timestamp| at < *date && *date <= at + HOURS_LEFT.hours();
    let at = if dates.iter().any(is_soon) { at - HOURS_LEFT.hours() } else { at };
    let passed = Timestamp::now().as_second() - at.as_second();
    let (mut text, mut expect) = (case.to_string(), case["expect"].to_string());
    for date in dates {
        let (old, new) = (date.to_string(), Timestamp::from_second(date.as_second() + passed)?.to_string());
        text = text.replace(&format!("{old:?}"), &format!("{new:?}"));
        expect = expect.replace(&old[..10], &new[..10]);
    }
    let mut moved: Value = serde_json::from_str(&text)?;
    moved["expect"] = serde_json::from_str(&expect)?;
    Ok(moved)
}

fn collect(value: &Value, dates: &mut Vec<Timestamp>) {
    match value {
        Value::String(text) => {
            dates.extend(text.parse::<Timestamp>().ok().filter(|date| !dates.contains(date)));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, dates)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, dates)),
        _ => {}
    }
}

//! Durations as Go reads them.

use std::time::Duration;

/// A duration that is not negative; `None` for any other text.
pub fn parse(text: &str) -> Option<Duration> {
    u64::try_from(nanoseconds(text)?).ok().map(Duration::from_nanos)
}

/// Nanoseconds; `None` when Go's `time.ParseDuration` would refuse the text.
/// Source: Go, package time, `ParseDuration`.
pub fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, unsigned) = signed(text);
    if unsigned == "0" {
        return Some(0);
    }
    if unsigned.is_empty() {
        return None;
    }
    let mut rest = unsigned;
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (value, behind) = term(rest)?;
        total = total.checked_add(value).filter(|total| *total <= 1 << 63)?;
        rest = behind;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// The duration that a text with days or weeks means, as Go reads it: `720h` for `30d`. `None` for any other text.
pub fn in_hours(text: &str) -> Option<String> {
    let (mut hours, mut shorter, mut rest, mut has_days) = (0_u64, String::new(), text, false);
    while !rest.is_empty() {
        let (number, behind) = digits(rest);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at(end);
        let factor = match unit {
            "w" => 7 * 24,
            "d" => 24,
            "h" => 1,
            "" => return None,
            _ => 0,
        };
        has_days |= factor > 1;
        if factor == 0 {
            shorter.push_str(number);
            shorter.push_str(unit);
        }
        hours = number.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(hours)?;
        rest = next;
    }
    let whole = format!("{hours}h{shorter}");
    (has_days && nanoseconds(&whole).is_some()).then_some(whole)
}

/// One number with its unit, and the rest of the text.
fn term(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, behind) = rest.split_at(end);
    let unit = parse_unit(unit)?;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|n| *n <= 1 << 63)? };
    Some((whole.checked_mul(unit)?.checked_add(fraction_of(unit, fraction)?)?, behind))
}

/// Whether a number is negative, and the number without its sign.
pub(crate) fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// The digits with which a text begins, and the rest.
pub fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn parse_unit(name: &str) -> Option<i128> {
    Some(match name {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The part of a unit that the digits behind the point stand for, rounded down. More digits than
/// this tell no nanoseconds apart.
fn fraction_of(unit: i128, fraction: &str) -> Option<i128> {
    const FRACTION_DIGITS: u32 = 18;
    let kept: String =
        fraction.chars().chain(std::iter::repeat('0')).take(FRACTION_DIGITS as usize).collect();
    Some(kept.parse::<i128>().ok()?.checked_mul(unit)? / 10_i128.pow(FRACTION_DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_days_and_weeks_as_hours() {
        for (text, expected) in [
            ("30d", Some("720h")),
            ("2w", Some("336h")),
            ("1d12h", Some("36h")),
            ("1w2d3h4m5s", Some("219h4m5s")),
            ("1d30m", Some("24h30m")),
            ("0d", Some("0h")),
            ("720h", None),
            ("1.5d", None),
            ("-1d", None),
            ("30", None),
            ("30 d", None),
            ("1d5", None),
            ("1d2y", None),
            ("d", None),
            ("", None),
            ("99999999d", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(in_hours(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn reads_what_go_reads() {
        for (text, expected) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            (".5h", Some(1_800_000_000_000)),
            ("1.h", Some(3_600_000_000_000)),
            ("168h", Some(604_800_000_000_000)),
            ("2\u{b5}s", Some(2_000)),
            ("2\u{3bc}s", Some(2_000)),
            ("+3ms", Some(3_000_000)),
            ("-1s", Some(-1_000_000_000)),
            ("0", Some(0)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562047h47m16.854775808s", None),
            ("-2562047h47m16.854775808s", Some(i64::MIN)),
            ("9999999999999999999999h", None),
            ("7d", None),
            ("1w", None),
            ("15 minutes", None),
            ("24", None),
            ("", None),
            ("-", None),
            ("h", None),
            (".h", None),
            ("1h ", None),
            ("1.2.3h", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}

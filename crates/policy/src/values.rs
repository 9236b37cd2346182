//! Durations, points in time and names as policies write them.

use jiff::Timestamp;
use jiff::civil::Date;

use memgate_model::finding::Cause;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::plain_text::quoted_text;

use crate::reader::Reader;

/// Nanoseconds of a second.
pub(crate) const SECOND: i128 = 1_000_000_000;

/// Nanoseconds of a day.
pub(crate) const DAY: i128 = 86_400 * SECOND;

/// A duration in nanoseconds, in Go's form or in whole days such as `30d`; `None` for any other text.
pub fn duration(text: &str) -> Option<i128> {
    match text.strip_suffix('d') {
        Some(days) => {
            let plain = (1..=6).contains(&days.len()) && days.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| days.parse::<i128>().ok().map(|days| days * DAY)).flatten()
        }
        None => nanoseconds(text).map(i128::from),
    }
}

/// The duration that a field has, as text and in nanoseconds, if it is longer than nothing.
pub(crate) fn positive<'v>(reader: &Reader<'v>) -> Option<(&'v str, i128)> {
    let text = reader.text(64)?;
    let message = match duration(text) {
        Some(value) if value > 0 => return Some((text, value)),
        Some(_) => "must be longer than nothing".to_owned(),
        None => format!("{} is not a duration; write it like 720h or 30d", quoted_text(text)),
    };
    reader.fault(Cause::Invalid, &message);
    None
}

/// A point in time in RFC 3339, with `T` and an offset; `None` for any other text. [`Timestamp`] ends some hours before
/// the year 9999 does, and later times count as its last instant.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let has_offset = text.ends_with('Z') || {
        let at = text.len().checked_sub(6)?;
        matches!(bytes.get(at), Some(b'+' | b'-')) && bytes.get(at + 3) == Some(&b':')
    };
    if bytes.get(10) != Some(&b'T')
        || bytes.get(13) != Some(&b':')
        || bytes.get(16) != Some(&b':')
        || !has_offset
    {
        return None;
    }
    if let Ok(timestamp) = text.parse() {
        return Some(timestamp);
    }
    let date: Date = text.get(..10)?.parse().ok()?;
    (date == Date::MAX || date.tomorrow().is_ok_and(|next| next == Date::MAX)).then_some(Timestamp::MAX)
}

/// The day of a point in time, in UTC: `2027-01-15`.
pub(crate) fn day(timestamp: Timestamp) -> String {
    timestamp.strftime("%Y-%m-%d").to_string()
}

/// Whether a text is small letters, digits and single hyphens between them.
pub(crate) fn is_kebab(text: &str) -> bool {
    let good = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.split('-').all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, expected) in [
            ("30d", Some(30 * DAY)),
            ("0d", Some(0)),
            ("2160h", Some(90 * DAY)),
            ("0", Some(0)),
            ("1h30m", Some(5400 * SECOND)),
            ("1.5d", None),
            ("-1d", None),
            ("d", None),
            ("9999999d", None),
            ("30 d", None),
            ("1w", None),
            ("", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn reads_points_in_time() {
        let second = |text| timestamp(text).map(Timestamp::as_second);
        assert_eq!(second("2027-01-15T00:00:00Z"), Some(1_800_000_000 - 28_800));
        assert_eq!(second("2027-01-15T01:00:00+01:00"), second("2027-01-15T00:00:00Z"));
        assert!(timestamp("2027-01-15T00:00:00.5Z") > timestamp("2027-01-15T00:00:00Z"));
        assert_eq!(timestamp("9999-12-31T23:59:59Z"), Some(Timestamp::MAX));
        for wrong in [
            "", "2027-01-15", "2027-01-15T00:00:00", "2027-01-15 00:00:00Z", "2027-02-30T00:00:00Z",
            "2027-01-15T00:00Z", "2027-01-15T00:00:00+0100", "2027-01-15T00:00:00Z[UTC]",
            "2027-01-15T25:00:00Z", "tomorrow",
        ] {
            assert_eq!(timestamp(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn writes_days_in_utc() {
        assert_eq!(timestamp("2027-01-15T00:30:00+01:00").map(day).as_deref(), Some("2027-01-14"));
    }

    #[test]
    fn knows_kebab_case() {
        assert!(["a", "a-b", "own-collection", "1a"].into_iter().all(is_kebab));
        assert!(!["", "-a", "a-", "a--b", "A", "a_b", "a.b"].into_iter().any(is_kebab));
    }
}

//! Flags that take a duration: `5s`, `250ms`, `168h`.

use std::ops::RangeInclusive;
use std::time::Duration;

use memgate_primitives::duration;

/// The longest timeout that a flag takes. A longer one is a mistake, since no run lasts a day.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// The validity of a certificate that a flag takes. Seconds are for tests, a hundred years for clusters without
/// renewal.
const VALIDITY: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_hours(876_000);

/// Parses a timeout of up to [`MAX_TIMEOUT`].
///
/// # Errors
/// When the text is not a duration, or the duration is zero or too long.
pub fn parse(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .filter(|duration| !duration.is_zero() && *duration <= MAX_TIMEOUT)
        .ok_or_else(|| "give a duration above zero, such as 5s or 10m, at most 24h".to_owned())
}

/// Parses how long a certificate is valid.
///
/// # Errors
/// When the text is not a duration, or the duration is out of range.
pub fn parse_validity(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .filter(|duration| VALIDITY.contains(duration))
        .ok_or_else(|| "give a duration such as 168h, from 10s to 876000h (a hundred years)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, seconds) in [("5s", 5), ("10m", 600), ("24h", 86_400), ("1h30m", 5400)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "5", "0s", "-5s", "five", "5x", "86401s", "9223372036854775807s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_the_validity_of_certificates() {
        for (text, hours) in [("168h", 168), ("8760h", 8760), ("876000h", 876_000)] {
            assert_eq!(parse_validity(text), Ok(Duration::from_hours(hours)), "{text}");
        }
        assert_eq!(parse_validity("10s"), Ok(Duration::from_secs(10)));
        for text in ["", "365", "500ms", "9999ms", "876001h", "99999999h"] {
            assert!(parse_validity(text).is_err(), "{text}");
        }
    }
}

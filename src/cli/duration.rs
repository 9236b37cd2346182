//! Durations as they are typed: `5s`, `250ms`, `168h`.

use std::time::Duration;

use jiff::SignedDuration;

/// The duration that a text says.
///
/// # Errors
/// When it says none, or one that is not positive.
pub fn parse(text: &str) -> Result<Duration, String> {
    let said = || "give a duration such as 5s, 10m or 168h".to_owned();
    let duration: SignedDuration = text.parse().map_err(|_| said())?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero()).ok_or_else(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_type() {
        for (text, seconds) in
            [("5s", 5), ("10m", 600), ("168h", 604_800), ("1h30m", 5400), ("8760h", 31_536_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "5", "0s", "-5s", "five", "5x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

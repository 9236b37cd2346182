//! Reads durations and sizes in the forms of Kubernetes.

use std::time::Duration;

/// The longest text that is read as a duration: any sensible one is shorter.
const MAX_DURATION_BYTES: usize = 32;

/// The binary multiples of a Kubernetes quantity, and the decimal ones.
const MULTIPLES: [(&str, usize); 6] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// Reads a duration as Go writes it: `10s`, `1m30s`, `1.5s`, `500ms`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    if rest.is_empty() || rest.len() > MAX_DURATION_BYTES {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (value, tail) = rest.split_at(number);
        let letters = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let seconds = value.parse::<f64>().ok()? * unit_seconds(unit)?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = tail;
    }
    Some(total)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        "us" | "µs" | "μs" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}

/// Reads a number of bytes: `8Mi`, `64k`, `1048576`.
#[must_use]
pub fn bytes(text: &str) -> Option<usize> {
    let multiple = MULTIPLES.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = multiple.unwrap_or((text, 1));
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse::<usize>().ok()?.checked_mul(factor)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_as_go_does() {
        for (text, millis) in
            [("10s", 10_000), ("1m30s", 90_000), ("1.5s", 1_500), ("4ms", 4), ("2m", 120_000), ("0s", 0)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1..2s", "1 s", "1d", &format!("{}s", "9".repeat(40))] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn reads_sizes_as_kubernetes_does() {
        for (text, size) in
            [("8Mi", 8 << 20), ("64Ki", 64 << 10), ("1Gi", 1 << 30), ("5k", 5_000), ("17", 17)]
        {
            assert_eq!(bytes(text), Some(size), "{text}");
        }
        for text in ["", "Mi", "-1", "+1", "1.5Mi", "8MiB", "8 Mi", "8mi", "99999999999Gi"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}

//! Kubernetes quantities, such as the size of a volume or the memory of a container.

use crate::duration::signed;

/// The value in billionths, rounded up as Kubernetes does; `None` if the text is not a quantity. A value
/// that does not fit counts as the largest number.
/// Source: k8s.io/apimachinery, `pkg/api/resource/quantity.go`.
pub fn billionths(text: &str) -> Option<i128> {
    let (negative, unsigned) = signed(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let (tens, twos) = parse_suffix(suffix)?;
    let digits = format!("{whole}{fraction}");
    let exponent = tens - i64::try_from(fraction.len()).ok()?;
    let value = scaled(digits.trim_start_matches('0'), exponent, twos);
    Some(if negative { -value } else { value })
}

/// The factor of a suffix: a power of ten, in billionths, and a power of two.
fn parse_suffix(suffix: &str) -> Option<(i64, u32)> {
    let tens = |tens| (tens + 9, 0);
    let twos = |twos| (9, twos);
    Some(match suffix {
        "n" => tens(-9),
        "u" => tens(-6),
        "m" => tens(-3),
        "" => tens(0),
        "k" => tens(3),
        "M" => tens(6),
        "G" => tens(9),
        "T" => tens(12),
        "P" => tens(15),
        "E" => tens(18),
        "Ki" => twos(10),
        "Mi" => twos(20),
        "Gi" => twos(30),
        "Ti" => twos(40),
        "Pi" => twos(50),
        "Ei" => twos(60),
        other => tens(i64::from(other.strip_prefix(['e', 'E'])?.parse::<i16>().ok()?)),
    })
}

/// `digits` times ten to the `exponent` times two to the `twos`.
fn scaled(digits: &str, exponent: i64, twos: u32) -> i128 {
    if digits.is_empty() {
        return 0;
    }
    let ten = |exponent: i64| u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    let times = |number: &str| number.parse::<i128>().ok().and_then(|number| number.checked_mul(1 << twos));
    if exponent >= 0 {
        let value = times(digits).zip(ten(exponent)).and_then(|(number, ten)| number.checked_mul(ten));
        return value.unwrap_or(i128::MAX);
    }
    match (times(digits), ten(-exponent)) {
        (Some(number), Some(ten)) => number / ten + i128::from(number % ten != 0),
        (None, _) => i128::MAX,
        (_, None) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubernetes_reads() {
        const ONE: i128 = 1_000_000_000;
        for (text, expected) in [
            ("1", Some(ONE)),
            ("1.", Some(ONE)),
            (".5", Some(ONE / 2)),
            ("+1k", Some(1000 * ONE)),
            ("-1k", Some(-1000 * ONE)),
            ("1Ki", Some(1024 * ONE)),
            ("1e3", Some(1000 * ONE)),
            ("1E3", Some(1000 * ONE)),
            ("1E", Some(1_000_000_000_000_000_000 * ONE)),
            ("100m", Some(ONE / 10)),
            ("0.1n", Some(1)),
            ("0", Some(0)),
            ("00.0Gi", Some(0)),
            ("1e30000", Some(i128::MAX)),
            ("1e-30000", Some(1)),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("1 Gi", None),
            ("1GB", None),
            ("1gi", None),
            ("ten", None),
            ("e3", None),
        ] {
            assert_eq!(billionths(text), expected, "{text}");
        }
        assert_eq!(billionths("1Gi"), billionths("1024Mi"));
        assert_eq!(billionths("1.5Gi"), billionths("1536Mi"));
    }
}

//! Reads sizes in the forms of Kubernetes.

/// The binary multiples of a Kubernetes quantity, and the decimal ones.
const MULTIPLES: [(&str, usize); 6] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

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

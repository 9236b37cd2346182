//! Figures of tables, from what was counted.

use hdrhistogram::Histogram;

/// What a row says of so many times, of which some were refusals.
pub(crate) fn latency_figures(times: &Histogram<u64>, refused: u64) -> [(&'static str, f64); 5] {
    let at = |percentile| millis(times.value_at_quantile(percentile));
    [
        ("p50, ms", at(0.5)),
        ("p99, ms", at(0.99)),
        ("p99.9, ms", at(0.999)),
        ("most, ms", millis(times.max())),
        ("refused, %", percent(refused, times.len())),
    ]
}

/// How much of the whole a part is.
#[allow(clippy::cast_precision_loss, reason = "a count of seconds")]
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Nanoseconds as milliseconds.
#[allow(clippy::cast_precision_loss, reason = "less than a minute")]
pub(crate) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1_000_000.0
}

//! The metrics of a replica, as far as the status has them.

use std::collections::BTreeMap;

/// What one replica says.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) version: Option<String>,
    pub(super) memory: f64,
    cpu_seconds: f64,
    start: f64,
    /// The number of reviews up to a time, by the bits of the time, which have the order of the times.
    reviews: BTreeMap<u64, f64>,
}

impl Metrics {
    /// Reads the text format.
    pub(super) fn read(text: &str) -> Self {
        let mut metrics = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let label = |key: &str| labels.split_once(&format!("{key}=\""))?.1.split('"').next();
            let Ok(value) = value.parse::<f64>() else { continue };
            match name {
                "memgate_build_info" => metrics.version = label("version").map(str::to_owned),
                "process_resident_memory_bytes" => metrics.memory = value,
                "process_cpu_seconds_total" => metrics.cpu_seconds = value,
                "process_start_time_seconds" => metrics.start = value,
                "memgate_admission_duration_seconds_bucket" => {
                    if let Some(Ok(limit)) = label("le").map(|le| le.trim_start_matches('+').parse::<f64>()) {
                        *metrics.reviews.entry(limit.to_bits()).or_default() += value;
                    }
                }
                _ => {}
            }
        }
        metrics
    }

    /// The cores of CPU that it used since its start, on average.
    #[expect(clippy::cast_precision_loss, reason = "a time of this millennium is exact")]
    pub(super) fn cores(&self, now: i64) -> f64 {
        let seconds = now as f64 - self.start;
        if self.start > 0.0 && seconds >= 1.0 { self.cpu_seconds / seconds } else { 0.0 }
    }
}

/// The time that 99 of 100 reviews of all replicas stay below, as far as the histogram tells it.
pub(super) fn p99(metrics: &[Metrics]) -> Option<f64> {
    let mut all: BTreeMap<u64, f64> = BTreeMap::new();
    for (limit, count) in metrics.iter().flat_map(|metrics| &metrics.reviews) {
        *all.entry(*limit).or_default() += count;
    }
    let total = all.values().next_back().copied().filter(|total| *total > 0.0)?;
    let (limit, _) = all.into_iter().find(|(_, count)| *count >= 0.99 * total)?;
    Some(f64::from_bits(limit)).filter(|limit| limit.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_replica_costs() {
        let bucket = |webhook: &str, le: &str, count: u32| {
            format!(
                "memgate_admission_duration_seconds_bucket{{le=\"{le}\",webhook=\"{webhook}\"}} {count}\n"
            )
        };
        let mut text = "memgate_build_info{version=\"0.1.0\"} 1\nprocess_resident_memory_bytes 1048576\n\
                        process_cpu_seconds_total 5.5\nprocess_start_time_seconds 1000.0\n# EOF\n"
            .to_owned();
        for (webhook, counts) in [("mutate", [90, 99, 100]), ("validate", [99, 100, 100])] {
            for (le, count) in ["0.001", "0.0025", "+Inf"].into_iter().zip(counts) {
                text.push_str(&bucket(webhook, le, count));
            }
        }
        let metrics = Metrics::read(&text);
        assert_eq!((metrics.version.as_deref(), metrics.memory), (Some("0.1.0"), 1_048_576.0));
        assert!((metrics.cores(1011) - 0.5).abs() < 1e-9 && metrics.cores(0) == 0.0);
        assert_eq!(p99(&[metrics]), Some(0.0025));
        assert_eq!(p99(&[Metrics::read(&bucket("mutate", "0.001", 0))]), None);
        assert_eq!(p99(&[Metrics::read(&(bucket("m", "5.0", 1) + &bucket("m", "+Inf", 9)))]), None);
    }
}

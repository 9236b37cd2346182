//! The `process_*` metrics that every Prometheus client library has.
//!
//! They are read from `/proc` at each scrape; without `/proc` they are left out.

use std::fmt;
use std::fs::{read_dir, read_to_string};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The unit of CPU time in `/proc`: the same on every architecture for which memgate is built.
const TICKS_PER_SECOND: f64 = 100.0;

/// The series of this process.
#[derive(Debug)]
pub(super) struct Process {
    /// When it started. It is read once, because the value moves when the clock is corrected, which would look like a
    /// restart.
    start: Option<f64>,
}

impl Process {
    /// This process.
    pub(super) fn new() -> Self {
        Self { start: start_seconds() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if let Some(seconds) = cpu_seconds() {
            let (name, help) = ("process_cpu_seconds", "CPU time used, of the user's and the system's");
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        if let Some(seconds) = self.start {
            let (name, help) =
                ("process_start_time_seconds", "When the process started, in seconds since 1970");
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(seconds).encode(metric)?;
        }
        let gauges = [
            ("process_resident_memory_bytes", "Memory in use", resident_bytes()),
            ("process_threads", "Threads", status("Threads:")),
            ("process_open_fds", "Open file descriptors", open_files()),
            ("process_max_fds", "The most file descriptors that may be open", max_files()),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

/// The number behind a word in `/proc/self/status`.
fn status(word: &str) -> Option<i64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

fn resident_bytes() -> Option<i64> {
    status("VmRSS:")?.checked_mul(1024)
}

/// Without the descriptor that reading the directory takes.
fn open_files() -> Option<i64> {
    i64::try_from(read_dir("/proc/self/fd").ok()?.count()).ok()?.checked_sub(1)
}

/// How many file descriptors this process may have; `None` without `/proc`.
pub(crate) fn max_files() -> Option<i64> {
    let limits = read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The 14th and 15th field of `/proc/self/stat`.
fn cpu_seconds() -> Option<f64> {
    Some((stat_field(14)? + stat_field(15)?) / TICKS_PER_SECOND)
}

/// The 22nd field of `/proc/self/stat` counts from the start of the machine.
fn start_seconds() -> Option<f64> {
    let stat = read_to_string("/proc/stat").ok()?;
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(booted.trim().parse::<f64>().ok()? + stat_field(22)? / TICKS_PER_SECOND)
}

/// A number of `/proc/self/stat`, counted from 1. The second field is a name in parentheses with any characters.
fn stat_field(number: usize) -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use memgate_certs::clock::Clock;

    #[test]
    fn reads_what_the_kernel_says() {
        assert!(resident_bytes().unwrap() > 1 << 20, "less than any program needs");
        assert!(status("Threads:").unwrap() >= 1);
        let before = open_files().unwrap();
        let _files: Vec<_> = (0..50).map(|_| std::fs::File::open("/proc/self/status").unwrap()).collect();
        assert!(open_files().unwrap() >= before + 25, "50 files were opened");
        assert!(max_files().unwrap() >= 50);
        assert!(cpu_seconds().unwrap() >= 0.0);
        let now = Clock::default().now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - start_seconds().unwrap();
        assert!((-2.0..86_400.0).contains(&age), "a test that has run for {age} s");
    }
}

//! The flags of `memgate serve` that bound how much it accepts, and how long callers may take.

use std::time::Duration;

use anyhow::ensure;

use crate::cli::duration::{MAX_TIMEOUT, parse};
use memgate_primitives::{duration, quantity};
use memgate_server::options::{Limits, Options, Timers};

/// The longest that a request may wait before it gets 429. After a later one, the apiserver has little time left to try
/// again.
const MAX_QUEUE_WAIT: Duration = Duration::from_secs(1);

/// Limits and timers.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// The largest body of a request; a larger one gets 413
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "8Mi")]
    max_body_bytes: usize,

    /// The most requests at once; one more gets 429
    #[arg(long, value_name = "COUNT", value_parser = parse_count, default_value = "1024")]
    max_requests: usize,

    /// The most bytes of bodies and answers at once; a request beyond it gets 429
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "40Mi")]
    max_bytes_in_flight: usize,

    /// The most bytes of objects of the cluster in memory; objects beyond it are looked up when they are needed
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "128Mi")]
    max_state: usize,

    /// The most connections; one more closes the one that has been idle the longest
    #[arg(long, value_name = "COUNT", value_parser = parse_count, default_value = "2048")]
    max_connections: usize,

    /// How long a request waits for room before it gets 429
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "4ms")]
    queue_wait: Duration,

    /// How long a TLS handshake may take
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "5s")]
    timeout_handshake: Duration,

    /// How long the head of a request may take, from its first byte
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "10s")]
    timeout_head: Duration,

    /// How long the body of a request may take
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "10s")]
    timeout_body: Duration,

    /// How long a caller may take to read its answer; then its connection is closed
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "10s")]
    timeout_write: Duration,

    /// How long a connection may be idle; apiservers keep theirs for 90s, and lose reviews on one that
    /// is closed earlier
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "2m")]
    timeout_idle: Duration,

    /// How long pods of controllers are held while their agent or memory does not exist yet, from when it was
    /// found missing; with 0, and with --state, they are not held
    #[arg(long, value_name = "DURATION", value_parser = parse_grace, default_value = "30s")]
    reference_grace: Duration,
}

impl LimitArgs {
    /// Checks them against each other and sets them.
    ///
    /// # Errors
    /// When two of them contradict each other.
    pub fn apply(&self, options: &mut Options) -> anyhow::Result<()> {
        let limits = Limits {
            body: self.max_body_bytes,
            body_bytes: self.max_bytes_in_flight,
            requests: self.max_requests,
            connections: self.max_connections,
            wait: self.queue_wait,
            state: self.max_state,
            ..options.limits.clone()
        };
        self.check(&limits)?;
        options.limits = limits;
        options.reference_grace = self.reference_grace;
        options.timers = Timers {
            handshake: self.timeout_handshake,
            head: self.timeout_head,
            body: self.timeout_body,
            write: self.timeout_write,
            idle: self.timeout_idle,
            ..options.timers.clone()
        };
        Ok(())
    }

    fn check(&self, limits: &Limits) -> anyhow::Result<()> {
        ensure!(
            limits.body <= limits.body_bytes,
            "--max-body-bytes ({}) must not be above --max-bytes-in-flight ({})",
            limits.body,
            limits.body_bytes
        );
        ensure!(
            limits.requests < limits.connections,
            "--max-requests ({}) must be below --max-connections ({}): each request has a connection, and a \
             caller needs one to get 429",
            limits.requests,
            limits.connections
        );
        ensure!(
            limits.wait <= MAX_QUEUE_WAIT,
            "--queue-wait ({:?}) must be at most 1s: a caller that is refused late has less time to ask \
             again",
            limits.wait
        );
        ensure!(
            self.timeout_idle >= self.timeout_head,
            "--timeout-idle ({:?}) must not be below --timeout-head ({:?})",
            self.timeout_idle,
            self.timeout_head
        );
        Ok(())
    }
}

/// A duration, which may be zero. Whole seconds are accepted without a unit, so that users can write 0.
///
/// # Errors
/// When the text is not a duration, or is more than a day.
pub(super) fn parse_grace(text: &str) -> Result<Duration, String> {
    let seconds = || text.parse::<u32>().ok().map(|seconds| Duration::from_secs(seconds.into()));
    let grace = duration::parse(text).or_else(seconds).filter(|grace| *grace <= MAX_TIMEOUT);
    grace.ok_or_else(|| "give a duration such as 30s or 2m, at most 24h, or 0 for none".to_owned())
}

/// A number of bytes, such as `8Mi`.
///
/// # Errors
/// When the text is not a size, or is zero.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let bytes = quantity::billionths(text).map(|billionths| billionths / 1_000_000_000);
    let size = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|size| *size > 0);
    size.ok_or_else(|| "give a number of bytes above zero, such as 8Mi, 512Ki or 1048576".to_owned())
}

/// A count.
///
/// # Errors
/// When the text is not a whole number, or is zero.
pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "give a whole number above zero".to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;

    use super::*;
    use memgate_certs::tls::CertSource;

    #[derive(Debug, Parser)]
    struct TestArgs {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn options(flags: &[&str]) -> Result<Options, String> {
        let args =
            TestArgs::try_parse_from(["serve"].iter().chain(flags)).map_err(|error| error.to_string())?;
        let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca: PathBuf::new() });
        args.limits.apply(&mut options).map_err(|error| error.to_string())?;
        Ok(options)
    }

    #[test]
    fn has_the_defaults_of_the_server() {
        let options = options(&[]).expect("good");
        assert_eq!(format!("{:?}", options.limits), format!("{:?}", Limits::default()));
        assert_eq!(format!("{:?}", options.timers), format!("{:?}", Timers::default()));
        assert_eq!(options.reference_grace, Duration::from_secs(30));
    }

    #[test]
    fn sets_every_option() {
        let flags = "--max-body-bytes=1Mi --max-requests=8 --max-bytes-in-flight=4194304 --max-connections=16 \
                     --max-state=64Mi --queue-wait=1.5ms --timeout-handshake=1s --timeout-head=2s --timeout-body=3s \
                     --timeout-write=4s --timeout-idle=1m30s";
        let options = options(&flags.split_whitespace().collect::<Vec<_>>()).expect("good");
        let Limits { body, body_bytes, requests, connections, wait, state, .. } = options.limits;
        assert_eq!((body, body_bytes, requests, connections), (1 << 20, 4 << 20, 8, 16));
        assert_eq!(state, 64 << 20);
        assert_eq!(wait, Duration::from_micros(1500));
        let Timers { handshake, head, body, write, idle, .. } = options.timers;
        assert_eq!([handshake, head, body, write, idle], [1, 2, 3, 4, 90].map(Duration::from_secs));
    }

    #[test]
    fn accepts_a_grace_time_of_zero_without_a_unit() {
        for (text, seconds) in [("0", 0), ("0s", 0), ("45", 45), ("45s", 45), ("2m", 120)] {
            let options = options(&[&format!("--reference-grace={text}")]).expect("good");
            assert_eq!(options.reference_grace, Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn refuses_contradictions() {
        for (flag, expected) in [
            ("--max-body-bytes=0", "above zero"),
            ("--max-body-bytes=8MB", "8Mi"),
            ("--max-body-bytes=41Mi", "--max-bytes-in-flight (41943040)"),
            ("--max-bytes-in-flight=4Mi", "--max-body-bytes (8388608)"),
            ("--max-requests=2048", "--max-connections (2048)"),
            ("--max-connections=0", "whole number"),
            ("--queue-wait=2s", "at most 1s"),
            ("--timeout-head=5", "such as 5s"),
            ("--timeout-body=0s", "above zero"),
            ("--timeout-idle=9s", "--timeout-head (10s)"),
            ("--timeout-idle=10000000000000000000s", "at most 24h"),
            ("--reference-grace=-1", "such as 30s"),
            ("--reference-grace=25h", "at most 24h"),
        ] {
            let error = options(&[flag]).expect_err(flag);
            assert!(error.contains(expected), "{flag}: {error}");
        }
    }
}

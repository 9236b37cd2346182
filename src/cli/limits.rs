//! The flags and keys of `memgate serve` that bound how much it accepts, and how long callers may take.

use std::time::Duration;

use crate::cli::duration::{MAX_TIMEOUT, parse};
use crate::cli::server_keys::ServerKeys;
use memgate_primitives::{duration, quantity};
use memgate_server::options::{Limits, Options, Timers};

/// The longest that a request may wait before it gets 429. After a later one, the apiserver has little time left to try
/// again.
const MAX_QUEUE_WAIT: Duration = Duration::from_secs(1);

/// Limits and timers.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// The most bytes of objects of the cluster in memory; objects beyond it are looked up when they are needed
    /// [default: 128Mi]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_state: Option<usize>,

    /// How long pods of controllers are held while their agent or memory does not exist yet, from when it was
    /// found missing; with 0, and with --state, they are not held [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_grace)]
    reference_grace: Option<Duration>,
}

impl LimitArgs {
    /// Sets those of the settings file, and these, which win.
    ///
    /// # Errors
    /// Those of [`set_limits`].
    pub fn apply(&self, keys: &ServerKeys, options: &mut Options) -> anyhow::Result<()> {
        set_limits(keys, options)?;
        options.reference_grace = self.reference_grace.unwrap_or(options.reference_grace);
        options.limits.state = self.max_state.unwrap_or(options.limits.state);
        Ok(())
    }
}

/// Sets the limits of the settings file, and checks them against each other.
///
/// # Errors
/// When a value cannot be used, or two of them contradict each other.
pub fn set_limits(keys: &ServerKeys, options: &mut Options) -> anyhow::Result<()> {
    keys.set("referenceGrace", parse_grace, &mut options.reference_grace)?;
    let (limits, timers) = (&mut options.limits, &mut options.timers);
    keys.set("maxState", parse_size, &mut limits.state)?;
    keys.set("maxBodyBytes", parse_size, &mut limits.body)?;
    keys.set("maxRequests", parse_count, &mut limits.requests)?;
    keys.set("maxBytesInFlight", parse_size, &mut limits.body_bytes)?;
    keys.set("maxConnections", parse_count, &mut limits.connections)?;
    keys.set("queueWait", parse, &mut limits.wait)?;
    keys.set("timeoutHandshake", parse, &mut timers.handshake)?;
    keys.set("timeoutHead", parse, &mut timers.head)?;
    keys.set("timeoutBody", parse, &mut timers.body)?;
    keys.set("timeoutWrite", parse, &mut timers.write)?;
    keys.set("timeoutIdle", parse, &mut timers.idle)?;
    keys.set("drain", parse_drain, &mut timers.drain_grace)?;
    check(keys, limits, timers)
}

fn check(keys: &ServerKeys, limits: &Limits, timers: &Timers) -> anyhow::Result<()> {
    let (body, bytes) = (limits.body, limits.body_bytes);
    let message = format!("{body} must not be above maxBytesInFlight ({bytes})");
    keys.ensure(body <= bytes, "maxBodyBytes", &message)?;
    let (requests, connections) = (limits.requests, limits.connections);
    let message = format!(
        "{requests} must be below maxConnections ({connections}): each request has a connection, and a caller needs \
         one to get 429"
    );
    keys.ensure(requests < connections, "maxRequests", &message)?;
    let message = "give at most 1s: a caller that is refused late has less time to ask again".to_owned();
    keys.ensure(limits.wait <= MAX_QUEUE_WAIT, "queueWait", &message)?;
    let (idle, head) = (timers.idle, timers.head);
    keys.ensure(idle >= head, "timeoutIdle", &format!("{idle:?} must not be below timeoutHead ({head:?})"))
}

/// The seconds for which a server that shuts down goes on serving.
fn parse_drain(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs).filter(|drain| *drain <= MAX_TIMEOUT);
    seconds.ok_or_else(|| "give a number of seconds, at most 86400".to_owned())
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
    use crate::cli::server_keys::tests::of as keys;
    use memgate_certs::tls::CertSource;

    #[derive(Debug, Parser)]
    struct TestArgs {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn options(flags: &[&str], file: &str) -> Result<Options, String> {
        let args =
            TestArgs::try_parse_from(["serve"].iter().chain(flags)).map_err(|error| error.to_string())?;
        let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca: PathBuf::new() });
        args.limits.apply(&keys(file), &mut options).map_err(|error| error.to_string())?;
        Ok(options)
    }

    #[test]
    fn has_the_defaults_of_the_server() {
        let options = options(&[], "").expect("good");
        assert_eq!(format!("{:?}", options.limits), format!("{:?}", Limits::default()));
        assert_eq!(format!("{:?}", options.timers), format!("{:?}", Timers::default()));
        assert_eq!(options.reference_grace, Duration::from_secs(30));
    }

    #[test]
    fn sets_every_option() {
        let file = "{maxBodyBytes: 1Mi, maxRequests: 8, maxBytesInFlight: 4194304, maxConnections: 16, queueWait: 1.5ms, \
                    timeoutHandshake: 1s, timeoutHead: 2s, timeoutBody: 3s, timeoutWrite: 4s, timeoutIdle: 1m30s, drain: 50}";
        let options = options(&["--max-state=64Mi"], file).expect("good");
        let Limits { body, body_bytes, requests, connections, wait, state, .. } = options.limits;
        assert_eq!((body, body_bytes, requests, connections), (1 << 20, 4 << 20, 8, 16));
        assert_eq!(state, 64 << 20);
        assert_eq!(wait, Duration::from_micros(1500));
        let Timers { handshake, head, body, write, idle, drain_grace, .. } = options.timers;
        assert_eq!(
            [handshake, head, body, write, idle, drain_grace],
            [1, 2, 3, 4, 90, 50].map(Duration::from_secs)
        );
    }

    #[test]
    fn accepts_a_grace_time_of_zero_without_a_unit() {
        for (text, seconds) in [("0", 0), ("0s", 0), ("45", 45), ("45s", 45), ("2m", 120)] {
            let options = options(&[&format!("--reference-grace={text}")], "").expect("good");
            assert_eq!(options.reference_grace, Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn refuses_flags_that_cannot_be_used() {
        for (flag, expected) in [
            ("--max-state=0", "above zero"),
            ("--max-state=8MB", "8Mi"),
            ("--reference-grace=-1", "such as 30s"),
            ("--reference-grace=25h", "at most 24h"),
        ] {
            let error = options(&[flag], "").expect_err(flag);
            assert!(error.contains(expected), "{flag}: {error}");
        }
    }

    #[test]
    fn refuses_keys_that_cannot_be_used() {
        for (line, expected) in [
            ("maxBodyBytes: 0", "maxBodyBytes: give a number of bytes above zero"),
            ("maxBodyBytes: 8MB", "8Mi"),
            ("maxBodyBytes: 41Mi", "maxBodyBytes: 42991616 must not be above maxBytesInFlight (41943040)"),
            ("maxBytesInFlight: 4Mi", "maxBodyBytes: 20971520 must not"),
            ("maxRequests: 2048", "maxConnections (2048)"),
            ("maxConnections: 0", "whole number"),
            ("queueWait: 2s", "at most 1s"),
            ("timeoutHead: \"5\"", "such as 5s"),
            ("timeoutBody: 0s", "above zero"),
            ("timeoutIdle: 9s", "timeoutHead (10s)"),
            ("timeoutIdle: 10000000000000000000s", "at most 24h"),
            ("drain: 86401", "at most 86400"),
        ] {
            let error = options(&[], line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}

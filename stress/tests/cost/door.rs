//! A way in: what an input is sent to, and what that cost.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Result;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::input::Input;
use crate::support::process::threads;

/// What an input is sent to.
pub(crate) trait Door {
    /// The text that is sent, of about so many bytes.
    fn text(&self, input: &Input<'_>, size: usize) -> String;

    /// Sends it once.
    fn ask(&mut self, input: &Input<'_>, text: &str) -> Result<Cost>;
}

/// What one input cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// As HTTP has it; 0 when there was no answer in time, or the program ended.
    pub(crate) status: u16,
    pub(crate) body: usize,
    pub(crate) cpu: Duration,
    /// The answer without its patch.
    pub(crate) response: usize,
    /// The patch, decoded.
    pub(crate) patch: usize,
    /// The peak of resident memory; 0 where it cannot be told.
    pub(crate) peak: u64,
}

impl Cost {
    /// With the sizes of an answer.
    pub(crate) fn with_answer(self, status: u16, answer: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(answer).unwrap_or_default();
        let patch = value["response"]["patch"].as_str().unwrap_or_default();
        let decoded = BASE64_STANDARD.decode(patch).map_or(0, |patch| patch.len());
        Self { status, response: answer.len() - patch.len(), patch: decoded, ..self }
    }
}

/// How long a process is left before it is looked at again.
const REST: Duration = Duration::from_micros(300);

/// CPU time of a process in nanoseconds, by thread, once none of them runs: the kernel adds up the time of a
/// thread when it sleeps, else every few milliseconds, and memory is given back after the answer. This one
/// sleeps too, so its own time is right as well.
pub(crate) fn cpu_at_rest(process: u32) -> Result<BTreeMap<u32, u64>> {
    for _ in 0..1000 {
        std::thread::sleep(REST);
        if !runs(process)? {
            break;
        }
    }
    threads(process)
}

/// Whether a thread of the process runs, other than this one.
fn runs(process: u32) -> Result<bool> {
    let own = fs::read_link("/proc/thread-self")?;
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let entry = entry?;
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let is_running = stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('R'));
        if is_running && own.file_name() != Some(entry.file_name().as_os_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The time between two readings.
pub(crate) fn spent(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> Duration {
    let nanos = after.iter().map(|(thread, nanos)| nanos - before.get(thread).unwrap_or(&0));
    Duration::from_nanos(nanos.sum())
}

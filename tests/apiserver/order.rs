//! That any order works: pods of controllers wait for what comes after them. How late a pod is, is what the
//! apiserver says of its creation.
//!
//! ```text
//! examples   each directory of examples/, applied as it is
//! orders     agent, memory and workload in every order
//! grace      what never comes, and what comes late
//! ```

mod examples;
mod grace;
mod orders;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::{fixture::Trial, support::webhook::Webhook};

/// Within how many seconds pods have their memory, from when the last thing that they need was there. This is
/// what memgate promises; on a quiet machine it is one or two.
const PROMISED_SECONDS: i64 = 15;

pub(crate) fn trials() -> Vec<Trial> {
    [examples::trials(), orders::trials(), grace::trials()].into_iter().flatten().collect()
}

/// When an object was created, in seconds since 1970.
fn created(object: &Value) -> Result<i64> {
    let text = object["metadata"]["creationTimestamp"].as_str().context("no creationTimestamp")?;
    Ok(text.parse::<Timestamp>()?.as_second())
}

/// How many pods of a family a memgate has held.
fn held(memgate: &Webhook, family: &str) -> Result<u64> {
    let (_, metrics) = memgate.probe("/metrics").context("memgate has no metrics")?;
    let series = format!("memgate_pods_held_total{{family=\"{family}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok());
    Ok(count.unwrap_or_default())
}

/// How late things were, by what they are, for people to read.
#[derive(Default)]
struct Delays(BTreeMap<i64, usize>);

impl Delays {
    fn add(&mut self, seconds: i64) {
        *self.0.entry(seconds).or_default() += 1;
    }

    /// # Errors
    /// When one is longer than what is promised.
    fn finish(self, what: &str) -> Result<()> {
        let all: Vec<String> =
            self.0.iter().map(|(seconds, count)| format!("{count} after {seconds} s")).collect();
        println!("{what}: {}", all.join(", "));
        let longest = self.0.last_key_value().map_or(0, |(seconds, _)| *seconds);
        ensure!(longest <= PROMISED_SECONDS, "{what}: {}", all.join(", "));
        Ok(())
    }
}

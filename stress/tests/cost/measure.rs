//! What inputs cost, against what they may.
#![allow(clippy::cast_precision_loss, reason = "shares are shown with two digits")]

use std::time::Duration;

use anyhow::Result;

use crate::door::{Cost, Door};
use crate::input::Input;

/// CPU time that any review may take.
pub(crate) const PER_REVIEW: Duration = Duration::from_millis(5);
/// CPU time that each KB of the body may take on top of that.
pub(crate) const PER_KB: Duration = Duration::from_micros(40);
/// How many times as much an input of twice the size may cost.
const MAX_GROWTH: f64 = 2.2;
/// Less than this is not compared: it is made of what every review costs.
const FLOOR: Duration = Duration::from_millis(2);
/// An answer without its patch.
const MAX_RESPONSE: usize = 64 << 10;
/// A patch.
const MAX_PATCH: usize = 1 << 20;
/// Resident memory: three quarters of the limit that the installation gives.
pub(crate) const MAX_PEAK: u64 = 192 << 20;
/// An answer that will not be any better the second time.
const HOPELESS: f64 = 20.0;

/// An input of one size, with what it cost.
#[derive(Debug, Clone)]
pub(crate) struct Measured<'s> {
    pub(crate) input: Input<'s>,
    pub(crate) size: usize,
    pub(crate) cost: Cost,
    /// How many times as much as half of it costs, where that was measured.
    pub(crate) growth: Option<f64>,
}

/// The bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    Cpu,
    Growth,
    Answer,
    Memory,
    Status,
}

impl Bound {
    pub(crate) const ALL: [Self; 5] = [Self::Cpu, Self::Growth, Self::Answer, Self::Memory, Self::Status];

    /// What is asked, for a heading.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU time: 40 µs per KB and 5 ms",
            Self::Growth => "Growth: 2.2 times the cost for twice the size",
            Self::Answer => "Answer: 64 KiB beside a patch of 1 MiB",
            Self::Memory => "Resident memory: 192 MiB",
            Self::Status => "An answer, and none that blames memgate",
        }
    }
}

/// The CPU time that a body of so many bytes may take.
pub(crate) fn allowed(body: usize) -> Duration {
    PER_REVIEW + PER_KB.mul_f64(body as f64 / 1024.0)
}

impl Measured<'_> {
    /// What it took of what a bound allows; more than 1 is too much.
    pub(crate) fn share(&self, bound: Bound) -> f64 {
        let Cost { status, body, cpu, response, patch, peak } = self.cost;
        match bound {
            Bound::Cpu => cpu.as_secs_f64() / allowed(body).as_secs_f64(),
            Bound::Growth => self.growth.unwrap_or(0.0) / MAX_GROWTH,
            Bound::Answer => (response as f64 / MAX_RESPONSE as f64).max(patch as f64 / MAX_PATCH as f64),
            Bound::Memory => peak as f64 / MAX_PEAK as f64,
            Bound::Status => {
                if status == 0 || status == 500 || status == 504 {
                    100.0
                } else {
                    0.0
                }
            }
        }
    }

    /// The worst share of all bounds.
    pub(crate) fn worst(&self) -> f64 {
        Bound::ALL.into_iter().map(|bound| self.share(bound)).fold(0.0, f64::max)
    }

    /// Compares it with an input of half the size.
    pub(crate) fn compare(&mut self, half: &Measured<'_>) {
        if half.cost.cpu >= FLOOR && half.cost.status == self.cost.status {
            self.growth = Some(self.cost.cpu.as_secs_f64() / half.cost.cpu.as_secs_f64());
        }
    }
}

/// The least of up to six runs; one is enough when it is well within the bounds. What else a machine does only adds.
pub(crate) fn measure<'s>(door: &mut dyn Door, input: &Input<'s>, size: usize) -> Result<Measured<'s>> {
    let text = door.text(input, size);
    let mut best = Measured { input: input.clone(), size, cost: door.ask(input, &text)?, growth: None };
    for _ in 0..5 {
        if best.worst() < 0.8 || best.worst() > HOPELESS {
            break;
        }
        let next = door.ask(input, &text)?;
        let (cpu, peak) = (best.cost.cpu.min(next.cpu), best.cost.peak.min(next.peak));
        best.cost = Cost { cpu, peak, ..next };
    }
    Ok(best)
}

//! The program that is measured, as a process of its own, and one caller.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::caller::Caller;
use crate::door::{Cost, Door, cpu_at_rest, spent};
use crate::input::Input;
use crate::support::memory::kib;
use crate::support::scratch::Scratch;
use crate::support::webhook::{Serve, Webhook};

/// A server that holds so much more than at its start is started again, so that one input is not blamed for another.
const TIDY_KIB: u64 = 64 << 10;

/// A server with its state, and a connection that is kept.
pub(crate) struct Target {
    program: PathBuf,
    state: PathBuf,
    _scratch: Scratch,
    running: Running,
}

struct Running {
    /// Ends with this.
    _webhook: Webhook,
    pid: u32,
    /// What it holds with its state and its policies, in KiB.
    at_start: u64,
    caller: Caller,
}

impl Target {
    /// Starts the program with this state.
    pub(crate) fn start(program: &Path, state: &Value) -> Result<Self> {
        let scratch = Scratch::new("cost")?;
        let state = scratch.write("state.json", &state.to_string())?;
        let running = Running::start(program, &state)?;
        Ok(Self { program: program.to_owned(), state, _scratch: scratch, running })
    }

    /// Starts it again, with nothing left of what came before.
    fn restart(&mut self) -> Result<()> {
        self.running = Running::start(&self.program, &self.state)?;
        Ok(())
    }
}

impl Door for Target {
    fn text(&self, input: &Input<'_>, size: usize) -> String {
        input.review(size)
    }

    /// Without an answer the program is started again.
    fn ask(&mut self, input: &Input<'_>, text: &str) -> Result<Cost> {
        let tidy = self.running.at_start + TIDY_KIB;
        if kib(self.running.pid, "VmRSS:").is_none_or(|resident| resident > tidy) {
            self.restart()?;
        }
        for _ in 0..3 {
            let running = &mut self.running;
            running.forget_peak()?;
            let before = cpu_at_rest(running.pid)?;
            let answer = running.caller.exchange(input.call.path(), text);
            let after = cpu_at_rest(running.pid).unwrap_or_default();
            let peak = kib(running.pid, "VmHWM:").unwrap_or(0) << 10;
            let cost = Cost { body: text.len(), cpu: spent(&before, &after), peak, ..Cost::default() };
            match answer {
                // A thread that has ended took its time along.
                Ok((status, answer)) if before.keys().all(|thread| after.contains_key(thread)) => {
                    return Ok(cost.with_answer(status, &answer));
                }
                Ok(_) => {}
                Err(_) => {
                    self.restart()?;
                    return Ok(cost);
                }
            }
        }
        bail!("threads end all the time")
    }
}

impl Running {
    fn start(program: &Path, state: &Path) -> Result<Self> {
        let serve = Serve::new(program).arg("--state").arg(state).arg("--log").arg("error");
        let mut webhook = serve.ready()?;
        let pid = webhook.process().id().context("the program has ended")?;
        let caller = Caller::new(webhook.addresses().listen, webhook.ca())?;
        let at_start = kib(pid, "VmRSS:").unwrap_or_default();
        Ok(Self { _webhook: webhook, pid, at_start, caller })
    }

    fn forget_peak(&self) -> Result<()> {
        let file = format!("/proc/{}/clear_refs", self.pid);
        fs::write(&file, "5").with_context(|| format!("failed to write {file}"))
    }
}

//! Inputs as files: `memgate check FILE`.
//!
//! The process is read after its end and before it is waited for, when its statistics are complete and still
//! there. What it takes to start, with the state and an object of a few lines, is not counted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::door::{Cost, Door};
use crate::input::Input;
use crate::support::scratch::Scratch;

/// How long it may run; far more than any bound.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// JSON that is read as YAML.
    Flow,
    /// YAML with a line for each value.
    Block,
}

/// The command with its state.
pub(crate) struct Files {
    form: Form,
    program: PathBuf,
    scratch: Scratch,
    state: PathBuf,
    /// The CPU time of a base that nothing was filled into.
    starts: BTreeMap<String, Duration>,
}

impl Files {
    /// Checks with this program and this state.
    pub(crate) fn new(program: &Path, state: &Value, form: Form) -> Result<Self> {
        let scratch = Scratch::new("cost")?;
        let state = scratch.write("state.json", &state.to_string())?;
        Ok(Self { form, program: program.to_owned(), scratch, state, starts: BTreeMap::new() })
    }

    /// The status, the CPU time, and the bytes of all output.
    fn run(&self, text: &str) -> Result<(u16, Duration, usize)> {
        let name = if self.form == Form::Json { "input.json" } else { "input.yaml" };
        let file = self.scratch.write(name, text)?;
        let (out, err) = (self.scratch.path().join("out"), self.scratch.path().join("err"));
        let mut child = Command::new(&self.program)
            .arg("check")
            .arg(&file)
            .arg("--with")
            .arg(&self.state)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()?;
        let ended = wait_for_end(&child);
        let cpu = cpu_of_ended(&child)?;
        if !ended {
            child.kill()?;
        }
        let code = child.wait()?.code();
        let told = String::from_utf8_lossy(&fs::read(&err)?).into_owned();
        let status = match code {
            _ if !ended => 0,
            // 2 is for what cannot be read, which is said; a panic is something else.
            Some(0..=3) if !told.contains("panicked") && !told.contains("internal") => 200,
            _ => 500,
        };
        Ok((status, cpu, told.len() + usize::try_from(fs::metadata(&out)?.len())?))
    }
}

impl Door for Files {
    fn text(&self, input: &Input<'_>, size: usize) -> String {
        let text = input.object(size, 0);
        let value = if self.form == Form::Block { serde_json::from_str::<Value>(&text).ok() } else { None };
        value.and_then(|value| serde_saphyr::to_string(&value).ok()).unwrap_or(text)
    }

    fn ask(&mut self, input: &Input<'_>, text: &str) -> Result<Cost> {
        let start = match self.starts.get(&input.base.name) {
            Some(start) => *start,
            None => {
                let small = input.base.object.to_string();
                let runs = (0..3).map(|_| Ok(self.run(&small)?.1)).collect::<Result<Vec<_>>>()?;
                let start = runs.into_iter().min().unwrap_or_default();
                self.starts.insert(input.base.name.clone(), start);
                start
            }
        };
        let (status, cpu, response) = self.run(text)?;
        Ok(Cost { status, body: text.len(), cpu: cpu.saturating_sub(start), response, ..Cost::default() })
    }
}

/// Waits until it has ended, and leaves it there to be read; `false` when that takes too long.
fn wait_for_end(child: &Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if stat(child).is_some_and(|stat| stat.first().is_some_and(|state| state == "Z")) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// The fields of `/proc/PID/stat` after the name.
fn stat(child: &Child) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Of its first thread in nanoseconds, or of all of them in hundredths of a second where that is more.
fn cpu_of_ended(child: &Child) -> Result<Duration> {
    let first = fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let nanos = first.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    let stat = stat(child).context("another waiter has taken the result of the command")?;
    let ticks = [11, 12].map(|field: usize| stat.get(field).and_then(|ticks| ticks.parse::<u64>().ok()));
    let all = Duration::from_millis(ticks.into_iter().flatten().sum::<u64>() * 10);
    let first = Duration::from_nanos(nanos.context("the kernel keeps no statistics of its scheduler")?);
    // A hundredth more or less is how the ticks are rounded.
    Ok(if all > first + Duration::from_millis(20) { all } else { first })
}

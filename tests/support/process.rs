//! Child processes that cannot outlive the test, not even when it is killed.
//!
//! ```text
//! test ──pipe──> sh (watchdog) ──> the program
//! ```
//!
//! Each program is the child of a small shell that reads a pipe which only this process can write.
//! A line names a signal to pass on; the end of the pipe, which comes with [`Process::drop`] and
//! with any death of ours, kills the program. As the shell is its parent and has not yet waited
//! for it, the id cannot meanwhile have gone to someone else's process.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};

use super::{memory::kib, wait};

/// Runs `"$@"` until it ends by itself, or until standard input ends, and exits with its status
/// (128 + n for signal n). The program itself reads nothing and does not hold the pipe.
const WATCHDOG: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
(
    while read -r signal; do kill -s "$signal" "$child"; done
    kill -s KILL "$child"
) <&3 2>/dev/null &
reader=$!
exec 3<&- </dev/null
wait "$child"
status=$?
kill -s KILL "$reader" 2>/dev/null
exit "$status"
"#;

/// What the watchdog itself finds on its `PATH`; it needs none of it, as all it calls is built in.
const SYSTEM_PATH: &str = "/usr/bin:/bin";

/// Enough of a log to hold the reason why a program ended.
const TAIL_LINES: usize = 25;

/// A running program whose output goes to a file.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    watchdog: Child,
    log: PathBuf,
}

/// What a program uses of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory, in KiB.
    pub(crate) memory: u64,
    /// Open file descriptors.
    pub(crate) files: u64,
}

impl Process {
    /// Starts `command` with its output appended to `log`. Of the environment it gets what the
    /// command sets itself, and a plain `PATH`.
    pub(crate) fn start(name: &str, command: &Command, log: &Path) -> Result<Self> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("failed to open {}", log.display()))?;
        let mut watchdog = Command::new("/bin/sh");
        watchdog
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .env("PATH", SYSTEM_PATH)
            .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output);
        if let Some(dir) = command.get_current_dir() {
            watchdog.current_dir(dir);
        }
        Ok(Self {
            name: name.to_owned(),
            watchdog: watchdog.spawn().with_context(|| format!("failed to start {name}"))?,
            log: log.to_owned(),
        })
    }

    /// The id of its process; `None` when it has ended.
    pub(crate) fn id(&self) -> Option<u32> {
        let shell = self.watchdog.id();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).ok()?;
        // The program is the first child of its watchdog, the reader of the pipe the second.
        children.split_whitespace().next()?.parse().ok()
    }

    /// What it uses now; `None` when it has ended.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let id = self.id()?;
        let files = fs::read_dir(format!("/proc/{id}/fd")).ok()?.count() as u64;
        Some(Usage { memory: kib(id, "VmRSS:")?, files })
    }

    /// The most resident memory that it ever had, in KiB; `None` when it has ended.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        kib(self.id()?, "VmHWM:")
    }

    /// How long it has computed; `None` when it has ended.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        cpu_time(self.id()?)
    }

    /// Sends a signal by its name without `SIG`, such as `TERM`.
    ///
    /// # Errors
    /// When the program has ended already.
    pub(crate) fn signal(&mut self, signal: &str) -> Result<()> {
        let pipe = self.watchdog.stdin.as_mut();
        let pipe = pipe.with_context(|| format!("{} is being killed", self.name))?;
        pipe.write_all(format!("{signal}\n").as_bytes())
            .with_context(|| format!("{} has ended, so there is nothing to signal", self.name))
    }

    /// How it ended, or `None` while it runs. A signal n shows as exit code 128 + n.
    pub(crate) fn exited(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.watchdog.try_wait()?)
    }

    /// Asks until there is an answer, as long as the program runs.
    ///
    /// # Errors
    /// As [`wait::until`], and when the program ends; the text closes with the end of its log.
    pub(crate) fn until<T>(&mut self, what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let answer = wait::until(what, || match self.exited()? {
            Some(status) => bail!("{} ended ({status})", self.name),
            None => ask(),
        });
        answer.map_err(|error| {
            let tail = self.log_tail();
            anyhow!("{error:#}\nthe end of the log of {}:\n{tail}", self.name)
        })
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let what = format!("{} to end", self.name);
        wait::until(&what, || self.exited())
    }

    /// Kills it and waits until it is gone; nothing happens when it has ended before.
    pub(crate) fn kill(&mut self) -> Result<ExitStatus> {
        drop(self.watchdog.stdin.take());
        Ok(self.watchdog.wait()?)
    }

    /// Everything it wrote so far.
    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last lines that it wrote.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.len().saturating_sub(TAIL_LINES);
        lines.split_at(tail).1.join("\n")
    }
}

/// How long each thread of the process of this id has computed, in nanoseconds, by its id. The kernel adds up the time of a
/// thread when it sleeps, else every few milliseconds.
pub(crate) fn threads(id: u32) -> Result<BTreeMap<u32, u64>> {
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{id}/task"))? {
        let entry = entry?;
        let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else { continue };
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        let thread = entry.file_name().to_string_lossy().parse()?;
        threads.insert(thread, nanos.context("the kernel keeps no statistics of its scheduler")?);
    }
    Ok(threads)
}

/// How long the process of this id has computed; `None` when it has ended.
pub(crate) fn cpu_time(id: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may hold blanks; after it, the 12th and the 13th field are ticks of a hundredth of a second.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the watchdog kills it anyway.
        let _ = self.kill();
    }
}

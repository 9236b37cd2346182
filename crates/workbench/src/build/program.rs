//! Runs another program for its output, without a shell, for a bounded time, or until the user ends it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::tempfile;

/// A flag that is set once. All clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often to check whether a program has ended or must be ended.
const POLL: Duration = Duration::from_millis(5);
/// How much of a program's standard error is kept, in bytes.
const MAX_COMPLAINT_BYTES: u64 = 64 << 10;
/// How much it may write there, in bytes.
const MAX_WRITTEN_COMPLAINT: u64 = 64 << 20;
/// How many lines of it are reported: the last ones say what went wrong.
const MAX_COMPLAINT_LINES: usize = 5;

/// The limits of a program.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long it may take; [`Duration::MAX`] for no limit.
    pub time: Duration,
    /// How much it may write, in bytes.
    pub bytes: usize,
    /// Ends it when it is set.
    pub stop: Stop,
}

/// Why a program has no output.
#[derive(Debug)]
pub enum Failure {
    /// The program does not exist.
    Missing,
    /// It cannot be run.
    Start(io::Error),
    /// It took too long.
    TooLong,
    /// It wrote too much.
    TooMuch,
    /// The user has ended it.
    Stopped,
    /// It failed; the last lines of its standard error.
    Failed(String),
}

/// Runs a command and returns its output. It gets no input.
///
/// # Errors
/// When it cannot be run, fails, or exceeds a limit; then it is killed.
pub fn output(command: &mut Command, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let output = run(command.stdin(Stdio::null()), limits)?;
    if output.status.success() { Ok(output.stdout) } else { Err(Failure::Failed(last_lines(&output.stderr))) }
}

/// Runs a command to its end, also to an unsuccessful one. The caller has set its standard input. The output is returned
/// with the end of what the command wrote to standard error. Both are files until then: a program whose output is
/// not read would wait for ever.
///
/// # Errors
/// When it cannot be run, when the user ends it, or when it exceeds a limit; then it is killed.
pub fn run(command: &mut Command, limits: &Limits) -> Result<Output, Failure> {
    let output = tempfile().map_err(Failure::Start)?;
    let complaint = tempfile().map_err(Failure::Start)?;
    command.stdout(output.try_clone().map_err(Failure::Start)?);
    command.stderr(complaint.try_clone().map_err(Failure::Start)?);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::Missing,
        _ => Failure::Start(error),
    })?;
    let status = follow(&mut child, &output, &complaint, limits);
    if status.is_err() {
        // Both fail harmlessly if it has ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
    let status = status?;
    if is_interrupted(status) || (!status.success() && limits.stop.is_set()) {
        return Err(Failure::Stopped);
    }
    let (stdout, stderr) = (end_of(output, u64::MAX)?, end_of(complaint, MAX_COMPLAINT_BYTES)?);
    Ok(Output { status, stdout, stderr })
}

fn follow(
    child: &mut Child,
    output: &File,
    complaint: &File,
    limits: &Limits,
) -> Result<ExitStatus, Failure> {
    let written = |file: &File| file.metadata().map(|file| file.len()).map_err(Failure::Start);
    let end = Instant::now().checked_add(limits.time);
    loop {
        let status = child.try_wait().map_err(Failure::Start)?;
        if written(output)? > limits.bytes as u64 || written(complaint)? > MAX_WRITTEN_COMPLAINT {
            return Err(Failure::TooMuch);
        }
        if let Some(status) = status {
            return Ok(status);
        }
        if limits.stop.is_set() {
            return Err(Failure::Stopped);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Err(Failure::TooLong);
        }
        thread::sleep(POLL);
    }
}

/// Whether the user ended the program: it gets Ctrl-C too, maybe before this process does.
#[cfg(unix)]
fn is_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    matches!(status.signal(), Some(INTERRUPT | TERMINATE))
}

#[cfg(windows)]
fn is_interrupted(status: ExitStatus) -> bool {
    status.code() == Some(CONTROL_C)
}

/// The numbers of the signals with which users end programs.
#[cfg(unix)]
const INTERRUPT: i32 = 2;
#[cfg(unix)]
const TERMINATE: i32 = 15;

/// The exit code of a program that Ctrl-C ended: STATUS_CONTROL_C_EXIT.
#[cfg(windows)]
const CONTROL_C: i32 = 0xC000_013A_u32.cast_signed();

/// The last bytes of a file.
fn end_of(mut file: File, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let length = file.metadata().map_err(Failure::Start)?.len();
    let start = SeekFrom::Start(length.saturating_sub(max_bytes));
    file.seek(start).and_then(|_| file.read_to_end(&mut bytes)).map_err(Failure::Start)?;
    Ok(bytes)
}

/// The last lines that are not blank, joined to one.
fn last_lines(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    lines.get(lines.len().saturating_sub(MAX_COMPLAINT_LINES)..).unwrap_or_default().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limits: &Limits) -> Result<Vec<u8>, Failure> {
        output(Command::new("/bin/sh").args(["-c", script]), limits)
    }

    fn wide() -> Limits {
        Limits { time: Duration::from_mins(1), bytes: 1000, stop: Stop::default() }
    }

    #[test]
    fn returns_the_output_of_a_program() {
        assert_eq!(shell("echo no >&2; echo yes", &wide()).expect("runs"), b"yes\n");
        assert!(matches!(
            output(&mut Command::new("no-such-program-anywhere"), &wide()),
            Err(Failure::Missing)
        ));
        let failed = shell("echo a; echo ' b ' >&2; echo >&2; echo c >&2; exit 3", &wide());
        assert!(matches!(failed, Err(Failure::Failed(why)) if why == "b; c"));
    }

    #[test]
    fn ends_a_program_that_takes_or_writes_too_much() {
        let brief = Limits { time: Duration::from_millis(50), ..wide() };
        assert!(matches!(shell("exec sleep 100", &brief), Err(Failure::TooLong)));
        assert!(matches!(shell("exec >&- 2>&-; exec sleep 100", &brief), Err(Failure::TooLong)));
        assert!(matches!(shell("while :; do echo y; done", &wide()), Err(Failure::TooMuch)));
        assert!(matches!(shell("exec yes >&2", &wide()), Err(Failure::TooMuch)));
    }

    #[test]
    fn ends_a_program_when_the_user_ends_the_command() {
        let limits = Limits { time: Duration::MAX, ..wide() };
        limits.stop.set();
        assert!(matches!(shell("exec sleep 100", &limits), Err(Failure::Stopped)));
        assert!(matches!(shell("exec >&- 2>&-; exec sleep 100", &limits), Err(Failure::Stopped)));
        assert!(matches!(shell("exit 1", &limits), Err(Failure::Stopped)));
    }

    #[cfg(unix)]
    #[test]
    fn knows_that_the_user_ended_a_program_before_this_process_does() {
        // SIGINT has no effect in what a shell started in the background.
        let ended = shell("kill -TERM $$", &wide());
        assert!(matches!(ended, Err(Failure::Stopped)), "{ended:?}");
        assert!(matches!(shell("kill -KILL $$", &wide()), Err(Failure::Failed(_))));
    }
}

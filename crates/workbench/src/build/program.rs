//! Runs another program for its output, without a shell, for a bounded time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::tempfile;

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
/// When it cannot be run, or exceeds a limit; then it is killed.
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
        if end.is_some_and(|end| Instant::now() >= end) {
            return Err(Failure::TooLong);
        }
        thread::sleep(POLL);
    }
}

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
        Limits { time: Duration::from_mins(1), bytes: 1000 }
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
}

//! Runs another program for its output, without a shell, for a bounded time.

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::offline::stop::Stop;

/// How often to check whether a program has ended or must be ended.
const POLL: Duration = Duration::from_millis(5);
/// How much of a program's standard error is kept, in bytes.
const MAX_COMPLAINT_BYTES: u64 = 64 << 10;
/// How many lines of it are reported.
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
    /// It failed; the first lines of its standard error.
    Failed(String),
}

/// Runs a program and returns its output. It gets no input, and the environment of this process.
///
/// # Errors
/// When it cannot be run, fails, or exceeds a limit; then it is killed.
pub fn output(program: &str, arguments: &[OsString], limits: &Limits) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let output = run(&mut command, limits)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Failure::Failed(first_lines(&output.stderr)))
    }
}

/// Runs a command to its end, also to an unsuccessful one. The caller has set its standard input and output. The output
/// is returned if it is a pipe, with the beginning of what the command wrote to standard error.
///
/// # Errors
/// When it cannot be run, or exceeds a limit; then it is killed.
pub fn run(command: &mut Command, limits: &Limits) -> Result<Output, Failure> {
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::Missing,
        _ => Failure::Start(error),
    })?;
    let result = follow(&mut child, limits);
    if result.is_err() {
        // Both fail harmlessly if it has ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
    result
}

fn follow(child: &mut Child, limits: &Limits) -> Result<Output, Failure> {
    let patience = Patience { end: Instant::now().checked_add(limits.time), stop: &limits.stop };
    let max_bytes = (limits.bytes as u64).saturating_add(1);
    let output = child.stdout.take().map(|stream| in_background(stream, max_bytes));
    let complaint = child.stderr.take().map(|stream| in_background(stream, MAX_COMPLAINT_BYTES));
    let stdout = bytes(output, &patience)?;
    if stdout.len() > limits.bytes {
        return Err(Failure::TooMuch);
    }
    let stderr = bytes(complaint, &patience)?;
    Ok(Output { status: wait(child, &patience)?, stdout, stderr })
}

/// When to end a program.
struct Patience<'s> {
    end: Option<Instant>,
    stop: &'s Stop,
}

impl Patience<'_> {
    fn check(&self) -> Result<(), Failure> {
        if self.stop.is_set() {
            return Err(Failure::Stopped);
        }
        if self.end.is_some_and(|end| Instant::now() >= end) { Err(Failure::TooLong) } else { Ok(()) }
    }
}

/// Reads a stream to its end on another thread, and keeps `max_bytes` of it: a program whose output is not read would
/// wait for ever. The thread ends with the stream.
fn in_background(mut stream: impl Read + Send + 'static, max_bytes: u64) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let result = stream.by_ref().take(max_bytes).read_to_end(&mut bytes).map(|_| bytes);
        // The receiver is gone when the program was ended.
        let _ = sender.send(result);
        let _ = io::copy(&mut stream, &mut io::sink());
    });
    receiver
}

fn bytes(stream: Option<Receiver<io::Result<Vec<u8>>>>, patience: &Patience<'_>) -> Result<Vec<u8>, Failure> {
    let Some(stream) = stream else { return Ok(Vec::new()) };
    loop {
        match stream.recv_timeout(POLL) {
            Ok(bytes) => return bytes.map_err(Failure::Start),
            Err(RecvTimeoutError::Timeout) => patience.check()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
        }
    }
}

fn wait(child: &mut Child, patience: &Patience<'_>) -> Result<ExitStatus, Failure> {
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::Start)? {
            return Ok(status);
        }
        patience.check()?;
        thread::sleep(POLL);
    }
}

/// The first lines that are not blank, joined to one.
fn first_lines(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(MAX_COMPLAINT_LINES).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limits: &Limits) -> Result<Vec<u8>, Failure> {
        output("/bin/sh", &["-c".into(), script.into()], limits)
    }

    fn wide() -> Limits {
        Limits { time: Duration::from_mins(1), bytes: 1000, stop: Stop::default() }
    }

    #[test]
    fn returns_the_output_of_a_program() {
        assert_eq!(shell("echo no >&2; echo yes", &wide()).expect("runs"), b"yes\n");
        assert!(matches!(output("no-such-program-anywhere", &[], &wide()), Err(Failure::Missing)));
        let failed = shell("echo a; echo ' b ' >&2; echo >&2; echo c >&2; exit 3", &wide());
        assert!(matches!(failed, Err(Failure::Failed(why)) if why == "b; c"));
    }

    #[test]
    fn ends_a_program_that_takes_or_writes_too_much() {
        let brief = Limits { time: Duration::from_millis(50), ..wide() };
        assert!(matches!(shell("exec sleep 100", &brief), Err(Failure::TooLong)));
        assert!(matches!(shell("exec >&- 2>&-; exec sleep 100", &brief), Err(Failure::TooLong)));
        assert!(matches!(shell("while :; do echo y; done", &wide()), Err(Failure::TooMuch)));
    }

    #[test]
    fn ends_a_program_when_the_user_ends_the_command() {
        let limits = Limits { time: Duration::MAX, ..wide() };
        limits.stop.set();
        assert!(matches!(shell("exec sleep 100", &limits), Err(Failure::Stopped)));
        assert!(matches!(shell("exec >&- 2>&-; exec sleep 100", &limits), Err(Failure::Stopped)));
    }
}

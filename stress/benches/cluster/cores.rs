//! Who computes where: the server that is measured has a core, the load another one, and the apiserver with its store
//! what the server leaves of its own.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};

/// The core of the server that is measured.
pub(crate) const SERVER: &str = "0";

/// That of the load.
pub(crate) const LOAD: &str = "1";

/// Gives the thread that calls this a core, which what it starts has too.
pub(crate) fn move_to(core: &str) -> Result<()> {
    run("taskset", &["-c", "-p", core, &this_thread()?])
}

/// Has the thread that calls this take what others leave of a core.
pub(crate) fn step_back_to(core: &str) -> Result<()> {
    move_to(core)?;
    run("chrt", &["-i", "-p", "0", &this_thread()?])
}

fn this_thread() -> Result<String> {
    // `PID/task/TID`
    let thread = fs::read_link("/proc/thread-self")?;
    let number = thread.file_name().and_then(|name| name.to_str());
    number.map(str::to_owned).context("a thread without a number")
}

/// Does work in a thread on this core, where whatever it starts stays.
pub(crate) fn on<T: Send>(core: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let thread = move || {
        move_to(core)?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(thread).join()).map_err(|_| anyhow!("it panicked"))?
}

/// Lets a process have what others leave of a core.
pub(crate) fn leave_rest_to(core: &str, process: u32) -> Result<()> {
    let process = process.to_string();
    run("taskset", &["-a", "-c", "-p", core, &process])?;
    run("chrt", &["-a", "-i", "-p", "0", &process])
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    let status = command.args(arguments).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("{program} does not start"))?;
    ensure!(status.success(), "{program} {}: {status}", arguments.join(" "));
    Ok(())
}

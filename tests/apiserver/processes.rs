//! That the programs which tests start end with them, however that end comes.

use std::{
    env, fs,
    path::Path,
    process::{self, Command, ExitCode},
    thread,
};

use anyhow::{Context, Result, ensure};

use crate::{
    fixture::{Fixture, Trial},
    support::{process::Process, scratch::Scratch, wait},
};

/// Set for a copy of this test program that is to start a child and then to die of an abort.
const DIES: &str = "MEMGATE_TEST_DIES_IN";

/// Writes down its id and then runs far longer than any test.
const CHILD: &str = "echo $$ > pid.new && mv pid.new pid && exec sleep 86399";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("processes::end_with_a_dead_test", end_with_a_dead_test),
        Trial::new("processes::end_with_a_panic", end_with_a_panic),
        Trial::new("processes::tell_how_they_ended", tell_how_they_ended),
    ]
}

/// What this program is to do instead of testing, if anything.
pub(crate) fn role() -> Option<fn() -> ExitCode> {
    env::var_os(DIES).map(|_| die as fn() -> ExitCode)
}

/// Dies without any destructor, as by SIGKILL.
fn die() -> ExitCode {
    let dir = env::var_os(DIES).unwrap_or_default();
    let _child = start(Path::new(&dir)).expect("the child starts");
    child_id(Path::new(&dir)).expect("the child writes down its id");
    process::abort()
}

fn end_with_a_dead_test(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("process")?;
    let status = Command::new(env::current_exe()?).env(DIES, scratch.path()).output()?.status;
    ensure!(status.code().is_none(), "it should have aborted, but ended: {status}");
    wait_until_gone(&child_id(scratch.path())?)
}

fn end_with_a_panic(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("process")?;
    let dir = scratch.path().to_owned();
    let panicked = thread::spawn(move || {
        let _child = start(&dir).expect("the child starts");
        child_id(&dir).expect("the child writes down its id");
        // Unlike `panic!`, this prints nothing, since the test has not failed.
        std::panic::resume_unwind(Box::new("on purpose"))
    })
    .join();
    let panicked: thread::Result<()> = panicked;
    ensure!(panicked.is_err(), "the thread should have panicked");
    wait_until_gone(&child_id(scratch.path())?)
}

fn tell_how_they_ended(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("process")?;
    let rows = [
        ("exit 7", "", 7),
        // 128 + 15, as shells tell it.
        ("echo up; exec sleep 86399", "TERM", 143),
        ("trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done", "TERM", 3),
    ];
    for (number, (script, signal, expected)) in rows.into_iter().enumerate() {
        let log = scratch.path().join(format!("{number}.log"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let mut process = Process::start("script", &command, &log)?;
        if !signal.is_empty() {
            wait::until("the script to begin", || Ok(process.log().contains("up").then_some(())))?;
            process.signal(signal)?;
        }
        let status = process.wait()?;
        ensure!(status.code() == Some(expected), "{script}: {status}");
    }
    Ok(())
}

fn start(dir: &Path) -> Result<Process> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", CHILD]).current_dir(dir);
    Process::start("child", &command, &dir.join("child.log"))
}

fn child_id(dir: &Path) -> Result<String> {
    let id = wait::until("the child's id", || Ok(fs::read_to_string(dir.join("pid")).ok()))?;
    Ok(id.trim().to_owned())
}

/// The id alone could be someone else's by now, so the command line counts.
fn wait_until_gone(id: &str) -> Result<()> {
    let file = Path::new("/proc").join(id).join("cmdline");
    ensure!(Path::new("/proc/self/cmdline").exists(), "this needs /proc");
    wait::until("the child to be gone", || {
        let command = fs::read_to_string(&file).unwrap_or_default();
        Ok((!command.contains("86399")).then_some(()))
    })
    .with_context(|| format!("process {id} outlived the test that started it"))
}

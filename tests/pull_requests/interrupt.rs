//! That nothing is left behind when the user ends a check while it waits for another program.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::moved;
use crate::rendering::charted;
use crate::repository::{Checked, Repository, files, path};

/// Whom the signal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// The whole process group, as Ctrl-C on a terminal does.
    Group,
    /// memgate alone, as many a CI runner does.
    Memgate,
}

/// A program that says so when it is asked for something, and then never answers.
fn waits(repository: &Repository) -> String {
    format!(": > {}; exec sleep 600", repository.beside_it("asked").display())
}

/// Runs a check whose program waits, ends it, and looks what is left.
fn end(repository: &Repository, arguments: &[&str], (signal, to): (&str, To), has_begun: bool) {
    let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
    command.args(["check", "--base", "main"]).args(arguments).process_group(0);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("memgate starts");
    while !repository.beside_it("asked").exists() {
        assert!(child.try_wait().expect("can be asked").is_none(), "it ends before it is ended");
        sleep(Duration::from_millis(10));
    }
    assert_eq!(!files(&repository.temporary()).is_empty(), has_begun, "there is something to put away");
    let whom = if to == To::Group { format!("-{}", child.id()) } else { child.id().to_string() };
    let killed = Command::new("kill").args([signal, "--", &whom]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    Checked::of(&output).expect_failure("error: interrupted");
    repository.expect_nothing_left();
}

#[test]
fn while_git_reads() {
    for step in ["cat-file", "ls-tree"] {
        for end_by in [("-INT", To::Group), ("-INT", To::Memgate), ("-TERM", To::Memgate)] {
            let repository = moved();
            let waits = waits(&repository);
            let script = format!("case \"$*\" in *{step}*) {waits};; esac\nPATH={} exec git \"$@\"", path());
            repository.stand_in("git", &script);
            end(&repository, &["deploy"], end_by, step == "cat-file");
        }
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn while_helm_renders_the_base() {
    for to in [To::Group, To::Memgate] {
        let repository = charted();
        // It has no other program on its `PATH`.
        let waits = waits(&repository).replace("sleep", "/bin/sleep");
        let version = "version*) echo v3.16.2;;";
        repository.stand_in("helm", &format!("case \"$*\" in {version} *memgate-base-*) {waits};; esac"));
        end(&repository, &["."], ("-INT", to), true);
    }
}

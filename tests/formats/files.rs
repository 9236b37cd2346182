//! Outputs are written whole or not at all, and a failure to write is reported.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

use crate::run::{BAD, Scratch, many};

#[test]
fn a_full_disk_is_said_in_words() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    let to_stdout = |words: &[&str]| {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        scratch.command(words).stdout(full).output().expect("memgate runs")
    };
    let check = ["check", "bad.yaml", "-o"];
    let mut outputs = vec![
        ("standard output", to_stdout(&["check", "bad.yaml"])),
        ("/dev/full", scratch.run(&[&check[..], &["json=/dev/full"]].concat())),
    ];
    for format in ["concise", "json", "github", "gitlab", "sarif", "junit"] {
        outputs.push(("standard output", to_stdout(&[&check[..], &[format]].concat())));
    }
    for (place, output) in outputs {
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        let expected = format!(
            "failed to write {}: no space left on device",
            match place {
                "standard output" => "to standard output",
                file => file,
            }
        );
        assert!(complaint.contains(&expected) && !complaint.contains("os error"), "{complaint}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let scratch = Scratch::with(&[("many.yaml", &many(40))]);
    for format in ["text", "json", "sarif"] {
        let mut child = scratch
            .command(&["check", "many.yaml", "-o", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("memgate runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{format}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!complaint.contains("ipe") && !complaint.contains("panicked"), "{complaint}");
    }
}

/// The system ends a process that writes more than it may, in the middle of a file.
#[test]
fn who_ends_in_the_middle_leaves_the_old_file() {
    let scratch = Scratch::with(&[("many.yaml", &many(10)), ("out.json", "old\n")]);
    let line = format!(
        "ulimit -c 0; ulimit -f 8; exec '{}' check many.yaml -o json=out.json",
        env!("CARGO_BIN_EXE_memgate")
    );
    let status = Command::new("sh")
        .args(["-c", &line])
        .current_dir(scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert_ne!(status.expect("sh runs").code(), Some(1));
    assert_eq!(scratch.read("out.json"), "old\n");
    scratch.run(&["check", "many.yaml", "-o", "json=out.json"]);
    assert!(scratch.read("out.json").ends_with("\n}\n"));
}

#[test]
fn links_and_permissions_stay() {
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("real.json", "old")]);
    let real = scratch.path().join("real.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("set");
    symlink("real.json", scratch.path().join("link.json")).expect("linked");
    scratch.run(&["check", "bad.yaml", "-o", "json=link.json", "-o", "sarif=new.sarif"]);
    assert!(scratch.path().join("link.json").is_symlink());
    assert!(scratch.read("real.json").starts_with('{'));
    let mode =
        |name: &str| fs::metadata(scratch.path().join(name)).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode("real.json"), 0o640);
    assert_eq!(mode("new.sarif") & 0o600, 0o600);
    let left: Vec<_> = fs::read_dir(scratch.path())
        .expect("a directory")
        .map(|it| it.expect("an entry").file_name())
        .collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn a_file_that_cannot_be_made_is_said() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    let output = scratch.run(&["check", "bad.yaml", "-o", "json=missing/out.json"]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(complaint, "error: failed to write missing/out.json: no such file or directory\n");
}

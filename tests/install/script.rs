//! install.sh.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::release::{ROOT, Release, VERSION, archives, made, run, text};

#[test]
fn a_newcomer_gets_from_nothing_to_a_finding() {
    let release = Release::new();
    let said = release.install(&[], &[]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let installed = release.installed();
    let lines = text(&said.stdout);
    assert!(lines.contains(&format!("installed memgate {VERSION} as {}", installed.display())), "{lines}");
    assert!(lines.contains("is not in PATH"), "{lines}");
    let found =
        Command::new(&installed).args(["check", "docs/tour"]).current_dir(ROOT).output().expect("runs");
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    assert!(text(&found.stdout).contains("deny["), "{}", text(&found.stdout));
    // Again, over the one that is there.
    assert!(release.install(&[&format!("v{VERSION}")], &[]).status.success());
    let left = fs::read_dir(installed.parent().expect("a folder")).expect("a folder").count();
    assert_eq!(left, 1, "nothing but the program is left");
}

/// What was wrong, and that nothing was installed.
fn refused(release: &Release, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let said = release.install(arguments, variables);
    assert!(!said.status.success(), "{}", text(&said.stdout));
    assert!(!release.installed().exists(), "something was installed");
    text(&said.stderr)
}

#[test]
fn what_is_not_whole_is_not_installed() {
    let release = Release::new();
    let archive = release.folder().join(Release::name() + ".tar.gz");
    let whole = fs::read(&archive).expect("an archive");
    for damaged in [&whole[..whole.len() / 2], &[][..], &[&whole[..], b"x"].concat()[..]] {
        fs::write(&archive, damaged).expect("an archive");
        let said = refused(&release, &[], &[]);
        assert!(said.contains("has the sum") && said.contains("nothing was installed"), "{said}");
    }
    fs::remove_file(&archive).expect("an archive");
    assert!(refused(&release, &[], &[]).contains("found no"));
    fs::write(release.folder().join("SHA256SUMS"), "").expect("sums");
    assert!(refused(&release, &[], &[]).contains("SHA256SUMS has no memgate-"));
}

#[test]
#[ignore = "needs curl or wget"]
fn a_connection_that_breaks_installs_nothing() {
    let release = Release::new();
    let place = served(&release, false);
    assert!(refused(&release, &[], &[("MEMGATE_RELEASES", &place)]).contains("failed to fetch http://"));
    let place = served(&release, true);
    let said = release.install(&[], &[("MEMGATE_RELEASES", &place)]);
    assert!(said.status.success() && release.installed().exists(), "{}", text(&said.stderr));
}

/// The releases over HTTP; archives break off in the middle unless they are to be whole.
fn served(release: &Release, is_whole: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address");
    let releases = release.directory.path().join("releases");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = String::new();
            let mut lines = BufReader::new(&stream).lines();
            while let Some(Ok(line)) =
                lines.next().filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty()))
            {
                request.push_str(&line);
            }
            let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let body = fs::read(releases.join(&path)).unwrap_or_default();
            let sent = if is_whole || !path.ends_with(".tar.gz") { body.len() } else { body.len() / 2 };
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            // The client may have closed the connection.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..sent]));
        }
    });
    format!("http://{address}")
}

#[test]
fn half_of_the_script_does_nothing() {
    let release = Release::new();
    let script = include_str!("../../tools/install.sh");
    let half = release.directory.path().join("half.sh");
    for tenths in 1..10 {
        fs::write(&half, &script[..script.len() * tenths / 10]).expect("a script");
        let mut command = Command::new("sh");
        command.arg(&half).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", release.home());
        command.env("MEMGATE_RELEASES", release.url()).output().expect("a shell");
        assert!(!release.installed().exists(), "{tenths} tenths installed something");
    }
}

#[test]
fn says_what_to_set_and_what_is_not_there() {
    let release = Release::new();
    assert!(
        refused(&release, &[], &[("MEMGATE_RELEASES", "")])
            .contains("set MEMGATE_RELEASES to the place of releases")
    );
    assert!(refused(&release, &[], &[("MEMGATE_RELEASES", "ftp://x")]).contains("is not an https://"));
    assert!(refused(&release, &["9.9.9"], &[]).contains("v9.9.9/SHA256SUMS"));
}

#[test]
fn an_unknown_machine_learns_how_to_build() {
    let release = Release::new();
    for (system, architecture, expected) in [
        ("Linux", "riscv64", "there is no archive for riscv64; cargo install --locked --path ."),
        ("Plan9", "x86_64", "there is no archive for Plan9; cargo install --locked --path ."),
        ("MINGW64_NT-10.0", "x86_64", "on Windows, unpack memgate-"),
    ] {
        let path = machine(&release, system, architecture);
        let said = refused(&release, &[], &[("PATH", &path)]);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_mac_gets_its_archive() {
    let release = Release::new();
    let path = machine(&release, "Darwin", "arm64");
    let said = refused(&release, &[], &[("PATH", &path)]);
    assert!(said.contains(&format!("SHA256SUMS has no memgate-{VERSION}-darwin-aarch64.tar.gz")), "{said}");
    let built = release.directory.path().join("static");
    run(Command::new("cp").arg("-R").arg(made().join("static")).arg(&built));
    let own = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    run(Command::new("cp").arg("-R").arg(built.join(own)).arg(built.join("aarch64-apple-darwin")));
    archives(release.directory.path(), "releases", &["darwin-aarch64"]);
    let said = release.install(&[], &[("PATH", &path)]);
    assert!(said.status.success() && release.installed().exists(), "{}", text(&said.stderr));
}

/// A PATH on which `uname` tells of another machine.
fn machine(release: &Release, system: &str, architecture: &str) -> String {
    let programs = release.directory.path().join("programs");
    fs::create_dir_all(&programs).expect("a folder");
    let uname = programs.join("uname");
    let script = format!("#!/bin/sh\n[ \"$1\" = -m ] && echo {architecture} || echo {system}\n");
    fs::write(&uname, script).expect("a program");
    run(Command::new("chmod").arg("755").arg(&uname));
    format!("{}:/usr/bin:/bin", programs.display())
}

#[test]
fn the_version_is_that_of_the_program() {
    let script = include_str!("../../tools/install.sh");
    assert!(script.contains(&format!("version=\"${{1:-{VERSION}}}\"")));
    let template = include_str!("../../ci/memgate.gitlab-ci.yml");
    assert!(template.contains(&format!("MEMGATE_VERSION: \"{VERSION}\"")));
}

/// What `cargo binstall` asks for is what `tools/build-archives.sh` makes.
#[test]
fn binstall_asks_for_the_archive_of_each_system() {
    let read = |file: &str| fs::read_to_string(Path::new(ROOT).join(file)).expect("a text");
    let (manifest, script) = (read("Cargo.toml"), read("tools/build-archives.sh"));
    for (section, system, url, program) in [
        ("", "linux", "linux-{ target-arch }.tar.gz", "linux-{ target-arch }/memgate\""),
        (
            ".overrides.x86_64-apple-darwin",
            "darwin-x86_64",
            "darwin-x86_64.tar.gz",
            "darwin-x86_64/memgate\"",
        ),
        (
            ".overrides.aarch64-apple-darwin",
            "darwin-aarch64",
            "darwin-aarch64.tar.gz",
            "darwin-aarch64/memgate\"",
        ),
        (
            ".overrides.x86_64-pc-windows-gnu",
            "windows-x86_64",
            "windows-x86_64.zip",
            "windows-x86_64/memgate.exe\"",
        ),
        (
            ".overrides.x86_64-pc-windows-msvc",
            "windows-x86_64",
            "windows-x86_64.zip",
            "windows-x86_64/memgate.exe\"",
        ),
    ] {
        let start = format!("[package.metadata.binstall{section}]\n");
        let (_, text) = manifest.split_once(&start).unwrap_or_else(|| panic!("there is no {start}"));
        let text = text.split("\n[").next().unwrap_or_default();
        assert!(
            text.contains(&format!("/v{{ version }}/memgate-{{ version }}-{url}\"")),
            "{section}: {text}"
        );
        assert!(text.contains(&format!("bin-dir = \"memgate-{{ version }}-{program}")), "{section}: {text}");
        assert!(script.contains(system), "{system}");
    }
}

#[test]
fn says_how_it_is_called() {
    let release = Release::new();
    let help = release.install(&["--help"], &[]);
    assert!(help.status.success(), "{help:?}");
    assert!(String::from_utf8_lossy(&help.stdout).starts_with("MEMGATE_RELEASES=URL"), "{help:?}");
    assert!(refused(&release, &["--verbose"], &[]).contains("there is no option --verbose"));
}

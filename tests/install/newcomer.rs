//! The commands of README's section "Get it" that work without Rust, word by word: tools/install.sh and a release are enough.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::release::{ROOT, Release, text};

/// README's block of commands that begins with tools/install.sh.
fn commands() -> String {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("## Get it\n").expect("the section");
    let (_, block) = section.split_once("```sh\nsh tools/install.sh\n").expect("commands");
    let (rest, _) = block.split_once("```").expect("an end");
    format!("sh tools/install.sh\n{rest}")
}

/// A directory of the programs of this machine, those of Rust left out.
fn programs(release: &Release) -> String {
    let folder = release.directory.path().join("programs");
    fs::create_dir(&folder).expect("a folder");
    for entry in ["/usr/bin", "/bin"].into_iter().flat_map(|from| fs::read_dir(from).expect("programs")) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !["cargo", "rust", "memgate"].iter().any(|left_out| name.starts_with(left_out)) {
            // What is in both folders is there already.
            let _ = std::os::unix::fs::symlink(&path, folder.join(name));
        }
    }
    folder.display().to_string()
}

fn follow(release: &Release, releases: &str) -> Output {
    let here = release.directory.path().join("here");
    fs::create_dir_all(here.join("tools")).expect("a folder");
    fs::copy(Path::new(ROOT).join("tools/install.sh"), here.join("tools/install.sh")).expect("a script");
    let mut command = Command::new("sh");
    command.args(["-ec", &commands()]).env_clear().current_dir(here);
    command.env("PATH", programs(release)).env("HOME", release.home()).env("MEMGATE_RELEASES", releases);
    command.output().expect("a shell")
}

#[test]
fn gets_to_a_finding() {
    let release = Release::new();
    let said = follow(&release, &release.url());
    let lines = text(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{}", text(&said.stderr));
    assert!(lines.contains("\ndeny[arkonis/redis-required]: "), "{lines}");
    assert!(lines.contains("--> memory.yaml:4:"), "{lines}");
    let rust = ["cargo", "rustc"].map(|name| release.directory.path().join("programs").join(name).exists());
    assert_eq!(rust, [false, false]);
}

#[test]
fn learns_what_to_set() {
    let release = Release::new();
    let said = follow(&release, "");
    assert!(!said.status.success() && said.stdout.is_empty(), "{}", text(&said.stdout));
    assert!(
        text(&said.stderr).contains("set MEMGATE_RELEASES to the place of releases"),
        "{}",
        text(&said.stderr)
    );
}

//! What the commands print: one file a scenario, `tests/ui/<command>/<scenario>.txt`.
//!
//! A file is an archive of texts, like Go's txtar. At its head are the command line, with `< file` behind it where
//! standard input is read, and the exit code. Then there is a section for each file: the inputs, and what came out.
//!
//! ```text
//! memgate check deploy --output json=out.json
//! exit code 1
//! -- deploy/memory.yaml --
//! kind: ArkMemory
//! -- bin/helm (executable) --
//! #!/bin/sh
//! -- windows.yaml (escaped) --
//! kind: ArkMemory\x0d
//! -- stdout (no newline at end) --
//! {"findings": []}
//! -- stderr --
//! 1 object checked
//! -- written/out.json --
//! ```
//!
//! `stdout` and `stderr` are left out when empty. Below `written/` are files that the command has to write, and an empty
//! one there is one that it must not write. Programs below `bin/` are the command's `PATH`. All else is input. Each
//! scenario runs in a directory of its own with the inputs, and with an empty environment.
//!
//! `(escaped)` is for what is not seen in an editor: bytes that are not UTF-8, control characters, the mark of the byte
//! order, and lines that look like the mark of a section. There `\x0d` is a byte and `\\` is a backslash. Several
//! attributes are separated by a comma and a blank.
//!
//! `tests/ui/codes/<family>.txt` has what `check` prints about the failing example of each code's page, with line, column
//! and caret: one section a code.
//!
//! `BLESS=1 cargo test --test ui` writes down what came out; read the diff. It leaves inputs as they are. For a new
//! scenario write the command line and the inputs.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "support/archive.rs"]
mod archive;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use memgate_core::decide::codes;

use archive::Archive;

/// What no user should read: numbers of errors, and values as a debugger prints them.
const JARGON: [&str; 7] = ["(os error", "Error(", "Error {", "Some(", "Err(", "Ok(", " '\""];

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let programs = tempfile::tempdir().expect("a folder");
    let mut trials = codes(&root.join("codes"));
    for command in folders(&root).into_iter().filter(|folder| !folder.ends_with("codes")) {
        for path in archive::files(&command) {
            let name = archive::name(&path, &root);
            let programs = programs.path().join(&name);
            let archive = unpack_programs(&path, &programs);
            trials.push(Trial::test(name, move || run(&path, archive?, &programs.join("bin"))));
        }
    }
    assert!(!trials.is_empty(), "no scenario in {}", root.display());
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(programs);
    conclusion.exit();
}

/// Reads a scenario and writes its programs, before any trial runs: a file that a process has open for writing cannot be
/// run, not even when that process is a child that another trial has just started.
fn unpack_programs(path: &Path, programs: &Path) -> Result<Archive, String> {
    let archive = Archive::read(path)?;
    let unpacked = archive.unpack(programs, |path| path.starts_with("bin/"));
    unpacked.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(archive)
}

/// The expected texts of the codes of a family.
struct Family {
    path: PathBuf,
    archive: Mutex<Archive>,
}

impl Family {
    fn read(path: PathBuf) -> Arc<Self> {
        let archive = if path.exists() { Archive::read(&path) } else { Ok(Archive::default()) };
        let archive = Mutex::new(archive.expect("is an archive"));
        Arc::new(Self { path, archive })
    }

    /// Makes a change while no other trial makes one, and writes it down if there is one.
    fn change(&self, change: impl FnOnce(&mut Archive)) -> Result<(), Failed> {
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let before = archive.text();
        change(&mut archive);
        Ok(write_changed(&self.path, &before, &archive)?)
    }
}

/// A trial for each code whose failing example is a manifest. Cases, which show deletions and updates, have no
/// place in a file. Left out are codes about files of `--policy` and kustomizations, and one that hangs on the day.
fn codes(folder: &Path) -> Vec<Trial> {
    let left_out = ["policy/default-missing", "policy/unused", "policy/exemption-unused"];
    let mut families: BTreeMap<_, _> = archive::files(folder)
        .into_iter()
        .map(|path| (archive::name(&path, folder), Family::read(path)))
        .collect();
    let mut trials = Vec::new();
    let mut names = BTreeSet::new();
    for code in codes::all(&memgate_platforms::ALL).filter(|code| !left_out.contains(&code.name)) {
        let section = code.page.text().split_once("## Failing example\n\n```yaml\n");
        let Some((example, _)) = section.and_then(|(_, section)| section.split_once("```")) else { continue };
        let (of, _) = code.name.split_once('/').expect("a family and a name");
        let family = families.entry(of.to_owned());
        let family = Arc::clone(family.or_insert_with(|| Family::read(folder.join(format!("{of}.txt")))));
        names.insert(code.name);
        trials.push(Trial::test(format!("codes/{}", code.name), move || {
            run_example(code.name, example, &family)
        }));
    }
    trials.push(Trial::test("codes: each section has a code", move || expect_no_others(&families, &names)));
    trials
}

fn run_example(code: &str, example: &str, family: &Family) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("example.yaml"), example)?;
    let output = execute("memgate check example.yaml", folder.path(), folder.path())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let place = text.split_once(&format!("[{code}]")).map(|(_, behind)| behind);
    if !place.is_some_and(|behind| behind.contains("--> example.yaml:")) {
        return Err(format!("no place of {code} in:\n{text}").into());
    }
    let mut wrong = Vec::new();
    family.change(|archive| compare(archive, code, &output.stdout, &mut wrong))?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Fails when a section is left of a code that does not exist, or that has no failing example any more.
fn expect_no_others(families: &BTreeMap<String, Arc<Family>>, names: &BTreeSet<&str>) -> Result<(), Failed> {
    let mut others = Vec::new();
    for family in families.values() {
        let is_other = |path: &str| !names.contains(path);
        family.change(|archive| {
            if blesses() {
                archive.sections.retain(|section| !is_other(&section.path));
            }
            let paths = archive.sections.iter().map(|section| section.path.clone());
            others.extend(paths.filter(|path| is_other(path)));
        })?;
    }
    if others.is_empty() { Ok(()) } else { Err(format!("without a code: {}", others.join(", ")).into()) }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("is a folder").map(|entry| entry.expect("can be read").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn run(path: &Path, mut archive: Archive, programs: &Path) -> Result<(), Failed> {
    let before = archive.text();
    let copy = tempfile::tempdir()?;
    archive.unpack_inputs(copy.path())?;
    let output = execute(archive.command_line(), copy.path(), programs)?;
    let mut wrong = Vec::new();
    expect_plain_words(&output, &mut wrong);
    compare(&mut archive, "stdout", &output.stdout, &mut wrong);
    compare(&mut archive, "stderr", &output.stderr, &mut wrong);
    compare_code(&mut archive, output.status.code(), &mut wrong);
    let sections = archive.sections.iter().map(|section| section.path.clone());
    let written: Vec<_> = sections.filter(|path| path.starts_with("written/")).collect();
    for path in written {
        let file = path.strip_prefix("written/").expect("is below it");
        let bytes = fs::read(copy.path().join(file)).unwrap_or_default();
        compare(&mut archive, &path, &bytes, &mut wrong);
    }
    write_changed(path, &before, &archive)?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Fails when what a command printed, on either stream, has words of programmers.
fn expect_plain_words(output: &Output, wrong: &mut Vec<String>) {
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(stream);
        let lines = text.lines().filter(|line| JARGON.iter().any(|word| line.contains(word)));
        wrong.extend(lines.map(|line| format!("not for users: {line}")));
        // `failed to read x: failed to read x: …`
        let parts = |line: &str| line.split(": ").map(str::to_owned).collect::<Vec<_>>();
        let errors = text.lines().filter(|line| line.starts_with("error: "));
        let doubled = |line: &&str| parts(line).windows(2).any(|pair| pair.iter().min() == pair.iter().max());
        wrong.extend(errors.filter(doubled).map(|line| format!("says it twice: {line}")));
    }
}

fn execute(line: &str, folder: &Path, programs: &Path) -> Result<Output, Failed> {
    let (line, stdin) = match line.trim().split_once(" < ") {
        Some((line, file)) => (line, Stdio::from(fs::File::open(folder.join(file))?)),
        None => (line.trim(), Stdio::null()),
    };
    let mut words = line.split_whitespace();
    if words.next() != Some("memgate") {
        return Err("the head does not start with memgate".into());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    command.args(words).env_clear().current_dir(folder).stdin(stdin);
    if programs.is_dir() {
        command.env("PATH", programs);
    }
    Ok(command.output()?)
}

/// Whether what came out becomes what is expected.
fn blesses() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn compare_code(archive: &mut Archive, code: Option<i32>, wrong: &mut Vec<String>) {
    let code = code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
    let got = format!("exit code {code}\n");
    let (line, expected) = archive.head.split_once('\n').unwrap_or_default();
    if expected == got {
        return;
    }
    if blesses() {
        archive.head = format!("{line}\n{got}");
    } else {
        wrong.push(difference("head", expected.as_bytes(), got.as_bytes()));
    }
}

fn compare(archive: &mut Archive, path: &str, got: &[u8], wrong: &mut Vec<String>) {
    let expected = archive.bytes(path);
    if expected == got {
        return;
    }
    if blesses() {
        archive.set(path, got);
    } else {
        wrong.push(difference(path, expected, got));
    }
}

fn difference(name: &str, expected: &[u8], got: &[u8]) -> String {
    let (expected, got) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(got));
    let diff = similar::TextDiff::from_lines(expected.as_ref(), got.as_ref());
    format!("{name}:\n{}", diff.unified_diff().header("expected", "got"))
}

/// Writes an archive that is not as it was, and removes the file of an empty one.
fn write_changed(path: &Path, before: &str, archive: &Archive) -> std::io::Result<()> {
    match archive.text() {
        text if text == before => Ok(()),
        text if text.is_empty() => fs::remove_file(path),
        text => fs::write(path, text),
    }
}

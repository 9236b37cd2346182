//! What the commands print: one folder a case under `tests/ui/<command>/<case>/`.
//!
//! `cmd` holds the command line, with `< file` behind it where standard input is read. Everything
//! else in the folder is input, save `stdout`, `stderr` (left out when empty), `code` and, below
//! `written/`, files that the command has to write. Each case runs in a copy of its folder, with an
//! empty environment. `BLESS=1 cargo test --test ui` writes down what came out; read the diff.
//!
//! Below `tests/ui/codes` stands what `check` prints about the failing example of each code's page: with line,
//! column and caret.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use memgate_core::decide::codes;

const EXPECTED: [&str; 6] = ["cmd", "stdout", "stderr", "code", "written", "bin"];

/// What no user should read: numbers of errors, and values as a debugger prints them.
const JARGON: [&str; 7] = ["(os error", "Error(", "Error {", "Some(", "Err(", "Ok(", " '\""];

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut trials = Vec::new();
    trials.extend(codes(&root.join("codes")));
    for command in folders(&root).into_iter().filter(|folder| !folder.ends_with("codes")) {
        for case in folders(&command) {
            let name = case.strip_prefix(&root).expect("is below the root").display().to_string();
            trials.push(Trial::test(name, move || run(&case)));
        }
    }
    assert!(!trials.is_empty(), "no case in {}", root.display());
    libtest_mimic::run(&arguments, trials).exit();
}

/// A trial for each code whose failing example is a manifest. Cases, which show deletions and updates, have no
/// place in a file. Left out are codes about files of `--with` and `--policy`, and one that hangs on the day.
fn codes(folder: &Path) -> Vec<Trial> {
    let left_out =
        ["memgate/state-unused", "policy/default-missing", "policy/unused", "policy/exemption-unused"];
    let checked = codes::all(&memgate_platforms::ALL).filter(move |code| !left_out.contains(&code.name));
    let codes = checked.filter_map(|code| {
        let (_, section) = code.page.text().split_once("## Failing example\n\n```yaml\n")?;
        let (example, _) = section.split_once("```")?;
        let expected = folder.join(format!("{}.txt", code.name));
        let run = move || run_example(code.name, example, &expected);
        Some(Trial::test(format!("codes/{}", code.name), run))
    });
    codes.collect()
}

fn run_example(code: &str, example: &str, expected: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("example.yaml"), example)?;
    let output = execute("memgate check example.yaml", folder.path(), folder.path())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let place = text.split_once(&format!("[{code}]")).map(|(_, behind)| behind);
    if !place.is_some_and(|behind| behind.contains("--> example.yaml:")) {
        return Err(format!("no place of {code} in:\n{text}").into());
    }
    let mut wrong = Vec::new();
    compare(expected, &output.stdout, &mut wrong)?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("is a folder").map(|entry| entry.expect("can be read").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn run(case: &Path) -> Result<(), Failed> {
    let line = fs::read_to_string(case.join("cmd")).map_err(|error| format!("cmd: {error}"))?;
    let copy = tempfile::tempdir()?;
    copy_inputs(case, copy.path(), true)?;
    let output = execute(&line, copy.path(), &case.join("bin"))?;
    let code = output.status.code().map_or_else(|| "killed".to_owned(), |code| code.to_string());
    let mut wrong = Vec::new();
    expect_plain_words(&output, &mut wrong);
    compare(&case.join("stdout"), &output.stdout, &mut wrong)?;
    compare(&case.join("stderr"), &output.stderr, &mut wrong)?;
    compare(&case.join("code"), format!("{code}\n").as_bytes(), &mut wrong)?;
    let written = case.join("written");
    if written.is_dir() {
        for entry in fs::read_dir(&written)? {
            let name = entry?.file_name();
            let bytes = fs::read(copy.path().join(&name)).unwrap_or_default();
            compare(&written.join(&name), &bytes, &mut wrong)?;
        }
    }
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
        return Err("cmd does not start with memgate".into());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    command.args(words).env_clear().current_dir(folder).stdin(stdin);
    // Not the copy of them: a file that a process has open for writing cannot be run, not even when that process is
    // a child that another test has just started.
    if programs.is_dir() {
        command.env("PATH", programs);
    }
    Ok(command.output()?)
}

fn copy_inputs(from: &Path, to: &Path, top: bool) -> Result<(), Failed> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if top && EXPECTED.iter().any(|expected| name == *expected) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::create_dir(to.join(&name))?;
            copy_inputs(&entry.path(), &to.join(&name), false)?;
        } else {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}

fn compare(path: &Path, got: &[u8], wrong: &mut Vec<String>) -> Result<(), Failed> {
    let expected = fs::read(path).unwrap_or_default();
    if expected == got {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        if got.is_empty() {
            fs::remove_file(path)?;
        } else {
            fs::write(path, got)?;
        }
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().display();
    let (expected, got) = (String::from_utf8_lossy(&expected), String::from_utf8_lossy(got));
    let diff = similar::TextDiff::from_lines(expected.as_ref(), got.as_ref());
    wrong.push(format!("{name}:\n{}", diff.unified_diff().header("expected", "got")));
    Ok(())
}

//! Tests that node runs: each exported constant of the modules in a folder is a function, and a trial.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

/// Runs the scenarios in `tests/NAME/scenarios` with the packages of `tools/NAME`. Each needs `programs`.
pub(crate) fn run(name: &'static str, programs: &str) {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).join("scenarios");
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let of_file = |file: &PathBuf| trials(name, file, programs);
    libtest_mimic::run(&arguments, files.iter().flat_map(of_file).collect()).exit();
}

fn trials(name: &'static str, file: &Path, programs: &str) -> Vec<Trial> {
    let text = fs::read_to_string(file).expect("a file");
    let scenarios = text.lines().filter_map(|line| line.strip_prefix("export const ")?.split_once(" ="));
    let module = file.file_stem().expect("a name").display();
    let trial = |(scenario, _): (&str, &str)| {
        let title = format!("{module}::{scenario}");
        let (file, scenario) = (file.to_owned(), scenario.to_owned());
        super::needs::needs(programs, Trial::test(title, move || run_one(name, &file, &scenario)))
    };
    scenarios.map(trial).collect()
}

fn run_one(name: &str, file: &Path, scenario: &str) -> Result<(), Failed> {
    let output = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/run.mjs"))
        .arg(file)
        .arg(scenario)
        .env("MEMGATE", env!("CARGO_BIN_EXE_memgate"))
        .env("NODE_MODULES", super::npm::installed(name))
        .output()
        .map_err(|error| Failed::from(format!("node: {error}")))?;
    // Numbers that are worth reading, and decide nothing.
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() {
        return Ok(());
    }
    Err(Failed::from(String::from_utf8_lossy(&output.stderr)))
}

//! Packages of Python that tests run: those of a `requirements.txt` with sums, installed once into the user's cache
//! directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const ADVICE: &str = "this test needs python3 with venv on the PATH, and on the first run PyPI's packages";
const FILE: &str = "requirements.txt";

/// The virtual environment with what a folder below `tools` asks for.
pub(crate) fn installed(name: &str) -> PathBuf {
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(name).join(FILE);
    let cache = super::cache::folder(name);
    // Another run may install it at the same time; the lock ends with the file.
    let lock = File::create(cache.join("lock")).expect("the cache directory can be written");
    lock.lock().expect("is locked");
    // A virtual environment knows its own path, so it cannot get its name later. The copy of the list is written last.
    let (folder, written) = (cache.join("installed"), cache.join(FILE));
    let text = fs::read(&wanted).expect("is read");
    if fs::read(&written).ok().as_ref() != Some(&text) {
        let _ = fs::remove_file(&written);
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        run(Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"])
            .arg("--requirement")
            .arg(&wanted));
        fs::write(&written, text).expect("is written");
    }
    folder
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {ADVICE}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed ({}); {ADVICE}\n{stderr}", output.status);
}

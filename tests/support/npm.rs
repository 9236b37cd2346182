//! Packages of npm that tests run: of the versions and with the sums of a `package-lock.json`, installed once into the
//! user's cache directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const ADVICE: &str =
    "this test needs node and npm (20 or newer) on the PATH, and on the first run npm's registry";

/// The files that say what is installed.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// The folder `node_modules` with what a folder below `tools` asks for.
pub(crate) fn installed(name: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(name);
    let cache = super::cache::folder(name);
    // Another run may install it at the same time; the lock ends with the file.
    let lock = File::create(cache.join("lock")).expect("the cache directory can be written");
    lock.lock().expect("is locked");
    let folder = cache.join("installed");
    let is_there = FILES.iter().all(|file| {
        let read = |folder: &Path| fs::read(folder.join(file)).ok();
        read(&folder).is_some() && read(&folder) == read(&tools)
    });
    if !is_there {
        install(&tools, &cache, &folder);
    }
    folder.join("node_modules")
}

/// Installs into a folder that gets its name when everything is there.
fn install(tools: &Path, cache: &Path, folder: &Path) {
    let unfinished = tempfile::tempdir_in(cache).expect("a folder in the cache directory");
    for file in FILES {
        fs::copy(tools.join(file), unfinished.path().join(file)).expect("is copied");
    }
    let npm = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(unfinished.path())
        .output()
        .unwrap_or_else(|error| panic!("npm: {error}; {ADVICE}"));
    let stderr = String::from_utf8_lossy(&npm.stderr);
    assert!(npm.status.success(), "npm ci failed ({}); {ADVICE}\n{stderr}", npm.status);
    // What an older lock file asked for.
    let _ = fs::remove_dir_all(folder);
    fs::rename(unfinished.keep(), folder).expect("is renamed");
}

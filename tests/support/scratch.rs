//! Temporary directories, removed on exit, and by the next run when there was no orderly exit.
//!
//! A killed test process cannot clean up, and etcd's files take 64 MB. So the owner of a directory
//! holds a lock in it, and a new owner first removes the directories whose lock is free.

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;

const PREFIX: &str = "memgate-test-";
const LOCK: &str = "owner.lock";

/// Directories younger than this are left alone: their owner may be about to lock them.
const MIN_AGE_TO_SWEEP: Duration = Duration::from_mins(1);

/// A directory of our own.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: TempDir,
    _lock: File,
}

impl Scratch {
    /// A new, empty directory whose name holds `purpose`.
    pub(crate) fn new(purpose: &str) -> Result<Self> {
        sweep(&env::temp_dir());
        let mut dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{purpose}-"))
            .tempdir()
            .context("failed to create a temporary directory")?;
        let lock = File::create(dir.path().join(LOCK))?;
        lock.lock()?;
        if keeps() {
            dir.disable_cleanup(true);
            fs::remove_file(dir.path().join(LOCK))?;
            eprintln!("kept for you to look at: {}", dir.path().display());
        }
        Ok(Self { dir, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file in it and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }
}

fn keeps() -> bool {
    env::var_os("MEMGATE_TEST_KEEP").is_some_and(|value| !value.is_empty())
}

/// Removes what dead owners left; a directory without a lock file was kept on purpose.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && is_abandoned(&entry.path().join(LOCK)) {
            // A second run that sweeps at the same moment may be first.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else {
        return false;
    };
    let age = file.metadata().and_then(|meta| meta.modified());
    let old = age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > MIN_AGE_TO_SWEEP));
    old && file.try_lock().is_ok()
}

//! A memory cgroup for a program, as a container has one.
//!
//! Not `ulimit -v`: that bounds addresses rather than memory, and an allocator asks for many of the former. It
//! needs a machine where this user may make cgroups, which is root's right as a rule.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::scratch::Scratch;

/// A cgroup of our own; empty when this is dropped, and then removed.
#[derive(Debug)]
pub(crate) struct MemoryCgroup {
    path: PathBuf,
    files: &'static Files,
}

/// How the files of a version are named.
#[derive(Debug)]
struct Files {
    root: &'static str,
    limit: &'static str,
    current: &'static str,
    peak: &'static str,
    /// The file that counts processes killed for want of memory, by lines `oom_kill N`.
    events: &'static str,
}

const VERSIONS: [Files; 2] = [
    Files {
        root: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        current: "memory.usage_in_bytes",
        peak: "memory.max_usage_in_bytes",
        events: "memory.oom_control",
    },
    Files {
        root: "/sys/fs/cgroup",
        limit: "memory.max",
        current: "memory.current",
        peak: "memory.peak",
        events: "memory.events",
    },
];

impl MemoryCgroup {
    /// A new cgroup with this limit in bytes.
    ///
    /// # Errors
    /// When this user may not make one, with the reason.
    pub(crate) fn new(limit: u64) -> Result<Self> {
        let mut why = String::new();
        for files in &VERSIONS {
            let path = Path::new(files.root).join(format!("memgate-test-{}", std::process::id()));
            let made =
                fs::create_dir(&path).and_then(|()| fs::write(path.join(files.limit), limit.to_string()));
            match made {
                Ok(()) => return Ok(Self { path, files }),
                Err(error) => {
                    let _ = fs::remove_dir(&path);
                    why = format!("{why}; {}: {error}", path.display());
                }
            }
        }
        bail!("no memory cgroup can be made here, which takes root{why}")
    }

    /// A program that runs `program` in this cgroup.
    pub(crate) fn program(&self, program: &Path, scratch: &Scratch) -> Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;

        let at = scratch.path().join("in-cgroup");
        let (procs, program) = (self.path.join("cgroup.procs"), fs::canonicalize(program)?);
        let script =
            format!("#!/bin/sh\necho $$ > '{}'\nexec '{}' \"$@\"\n", procs.display(), program.display());
        fs::write(&at, script)?;
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?;
        Ok(at)
    }

    /// What its processes use now, in bytes, with the buffers of their sockets.
    pub(crate) fn current(&self) -> Result<u64> {
        self.number(self.files.current)
    }

    /// The most that they ever used.
    pub(crate) fn peak(&self) -> Result<u64> {
        self.number(self.files.peak)
    }

    /// How many of its processes were killed for want of memory.
    pub(crate) fn kills(&self) -> Result<u64> {
        let text = self.read(self.files.events)?;
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.context("the kernel counts no kills")?.trim().parse().context("a number of kills")
    }

    fn number(&self, file: &str) -> Result<u64> {
        self.read(file)?.trim().parse().with_context(|| format!("{file} holds no number"))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        // The last process may still be on its way out; what cannot be removed now holds no memory.
        let _ = fs::remove_dir(&self.path);
    }
}

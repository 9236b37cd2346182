//! A memory cgroup of our own, of version 1 or 2; it takes root to make one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::scratch::Scratch;

/// Where cgroups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The cgroup, removed with this.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Cgroup {
    /// A new one that holds so many bytes.
    ///
    /// # Errors
    /// When this machine has no such cgroups, or does not let us make one; the text says which.
    pub(crate) fn new(limit: u64) -> Result<Self> {
        let (parent, version) = parent()?;
        let path = parent.join(format!("memgate-test-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| {
            format!("failed to make the memory cgroup {}; this needs root", path.display())
        })?;
        let cgroup = Self { path, version };
        let limits = match version {
            Version::One => ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
            Version::Two => ["memory.max", "memory.swap.max"],
        };
        let swap = if version == Version::One { limit } else { 0 };
        cgroup.write(limits[0], limit)?;
        // Not there where the kernel counts no swap, and then there is none to take.
        if cgroup.path.join(limits[1]).exists() {
            cgroup.write(limits[1], swap)?;
        }
        Ok(cgroup)
    }

    /// The file to which a process is added.
    pub(crate) fn members(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// The most bytes that it has held.
    pub(crate) fn peak(&self) -> Result<u64> {
        let file = if self.version == Version::One { "memory.max_usage_in_bytes" } else { "memory.peak" };
        self.read(file)?.trim().parse().with_context(|| format!("{file} is not a number"))
    }

    /// How many processes the kernel has killed for want of memory.
    pub(crate) fn kills(&self) -> Result<u64> {
        let file = if self.version == Version::One { "memory.oom_control" } else { "memory.events" };
        let text = self.read(file)?;
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|kills| kills.parse().ok()).with_context(|| format!("{file} counts no kills"))
    }

    /// A program in `scratch` that runs `program` in this cgroup.
    pub(crate) fn program(&self, program: &Path, scratch: &Scratch) -> Result<PathBuf> {
        let at = scratch.path().join("in-cgroup");
        let program = fs::canonicalize(program)?;
        let (members, program) = (self.members(), program.display());
        let script = format!("#!/bin/sh\necho $$ > '{}'\nexec '{program}' \"$@\"\n", members.display());
        fs::write(&at, script)?;
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?;
        Ok(at)
    }

    fn write(&self, file: &str, value: u64) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).with_context(|| format!("failed to write {}", path.display()))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel lets go of the last process a moment after its end.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn parent() -> Result<(PathBuf, Version)> {
    let mount = Path::new(MOUNT);
    if mount.join("memory/memory.limit_in_bytes").exists() {
        return Ok((mount.join("memory"), Version::One));
    }
    let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
    if !controllers.split_whitespace().any(|controller| controller == "memory") {
        bail!("there is no memory cgroup below {MOUNT}, of version 1 or 2, so this cannot be measured here");
    }
    let subtree = mount.join("cgroup.subtree_control");
    fs::write(&subtree, "+memory")
        .with_context(|| format!("failed to write {}; this needs root", subtree.display()))?;
    Ok((mount.to_path_buf(), Version::Two))
}

//! The memory of a process.

use std::fs;

/// A size of the memory of the process of this id, in KiB, by its name in `/proc/PID/status`; `None` when it has ended.
pub(crate) fn kib(id: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix(field))?;
    size.trim().trim_end_matches(" kB").parse().ok()
}

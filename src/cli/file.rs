//! Files that are whole: whoever reads one never sees half of it, also when memgate ends while it writes.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::model::causes::in_words;

/// What a new file may be used for, before the umask: reports are for others to read.
const NEW_FILE: u32 = 0o666;

/// Writes a file beside the path, and gives it its name when it is whole. A link keeps its place, and a file its
/// permissions. What is no file (a pipe, a device) is written as it is.
///
/// # Errors
/// When it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write(path, bytes)
        .map_err(|error| anyhow::Error::msg(in_words(&error)))
        .with_context(|| format!("failed to write {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = target(path)?;
    let old = match fs::metadata(&target) {
        Ok(old) if !old.is_file() => {
            return fs::OpenOptions::new().write(true).open(&target)?.write_all(bytes);
        }
        Ok(old) => Some(old.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let folder =
        target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".memgate-")
        .permissions(Permissions::from_mode(NEW_FILE))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(permissions) = old {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(&target)?;
    Ok(())
}

/// The file that the path means: that at the end of its links.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

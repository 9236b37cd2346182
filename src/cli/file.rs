//! Writes files as a whole: a reader never sees half of one, even if memgate ends while it writes.

#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use memgate_primitives::causes::in_words;
use memgate_workbench::paths::leads_out_of_tree;

/// The mode of a new file, before the umask: other users may read reports.
const NEW_FILE: u32 = 0o666;

/// Refuses a path of the work tree that leads out of it, or into git's own files: a change may bring a link of that name.
///
/// # Errors
/// When it does.
pub fn refuse_link(path: &Path) -> anyhow::Result<()> {
    let why = "a link on its way leads out of the work tree, or into .git; name a file elsewhere, or remove the link";
    anyhow::ensure!(!leads_out_of_tree(path), "failed to write {}: {why}", path.display());
    Ok(())
}

/// Writes a temporary file beside the path and renames it. Links and permissions stay, but none that leads out of the work
/// tree is followed. A pipe or a device is written directly.
///
/// # Errors
/// When it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_with(path, bytes, NEW_FILE)
}

/// Writes a file like [`write_whole`]; a new one has this mode, before the umask.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_with(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    refuse_link(path)?;
    write(path, bytes, mode)
        .map_err(|error| anyhow::Error::msg(in_words(&error)))
        .with_context(|| format!("failed to write {}", path.display()))
}

/// Replaces the text of a file like [`write_whole`], if it still holds the text that was read.
///
/// # Errors
/// When the file is read-only, has changed since it was read, or cannot be written.
pub fn rewrite_whole(path: &Path, before: &str, after: &str) -> anyhow::Result<()> {
    let read = || Ok::<_, io::Error>((fs::metadata(path)?, fs::read(path)?));
    let problem = match read() {
        Err(error) => in_words(&error),
        // A rename would succeed all the same: it needs rights on the folder only, and root has all rights.
        Ok((metadata, _)) if metadata.permissions().readonly() => "the file is read-only".to_owned(),
        Ok((_, now)) if now != before.as_bytes() => {
            "it has changed since it was read; run the command again".to_owned()
        }
        Ok(_) => return write_whole(path, after.as_bytes()),
    };
    anyhow::bail!("failed to write {}: {problem}", path.display())
}

#[cfg_attr(not(unix), expect(unused_variables, reason = "there are no permissions"))]
fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let target = target(path)?;
    let old = match fs::metadata(&target) {
        Ok(old) if !old.is_file() => {
            return fs::OpenOptions::new().write(true).open(&target)?.write_all(bytes);
        }
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let folder =
        target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".memgate-");
    #[cfg(unix)]
    builder.permissions(Permissions::from_mode(mode));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(old) = old {
        keep_owner(file.as_file(), &old);
        file.as_file().set_permissions(old.permissions())?;
    }
    file.persist(&target)?;
    Ok(())
}

/// Keeps owner and group. Without this, root in a container would become the owner. A user without the right to change
/// them is the owner already.
#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) {
    let _unless_forbidden = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _old: &Metadata) {}

/// The file at the end of all links of the path.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        fs::write(&path, text).expect("a file");
        (folder, path)
    }

    fn error(path: &Path, before: &str) -> String {
        let error = rewrite_whole(path, before, "new").expect_err("refused");
        format!("{error:#}").replace(&path.display().to_string(), "a.yaml")
    }

    #[test]
    fn a_file_that_has_changed_stays() {
        let (_folder, path) = file("changed");
        let message = "failed to write a.yaml: it has changed since it was read; run the command again";
        assert_eq!(error(&path, "old"), message);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "changed");
        fs::remove_file(&path).expect("is there");
        assert_eq!(error(&path, "old"), "failed to write a.yaml: no such file or directory");
        assert!(!path.exists());
    }

    #[test]
    fn a_read_only_file_stays_for_root_too() {
        let (_folder, path) = file("old");
        fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("permissions");
        assert_eq!(error(&path, "old"), "failed to write a.yaml: the file is read-only");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "old");
    }

    #[test]
    fn a_link_and_permissions_stay() {
        let (folder, path) = file("old");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("permissions");
        let link = folder.path().join("link.yaml");
        std::os::unix::fs::symlink("a.yaml", &link).expect("a link");
        rewrite_whole(&link, "old", "new").expect("written");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing else is left");
    }
}

//! What was looked at on disk, so that a later look finds out whether all of it is as it was.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::kustomization::FILE_NAMES;
use crate::paths::normal;
use crate::repository::CHART_FILE;

/// The coarsest steps in which file systems count times. A file that changes twice within one may look as if it had changed
/// once.
const STEP: Duration = Duration::from_secs(2);
/// The clock of a network drive may be ahead, but not by so much: what is from later has a wrong time.
const AHEAD: Duration = Duration::from_hours(24);

/// Files, directories and links, each as it was before it was read.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// The time before anything was read.
    start: SystemTime,
    /// The directories, with the names in them.
    directories: Vec<(PathBuf, Vec<OsString>)>,
    files: Vec<(PathBuf, Option<Stamp>)>,
    /// What is behind links.
    links: Vec<(PathBuf, Option<PathBuf>)>,
    /// Whether a file changed so shortly before that its next change may leave it looking the same.
    is_fresh: bool,
}

/// How a file looks from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stamp {
    /// A directory. The names in it count only where it is read.
    Directory,
    File {
        size: u64,
        modified: Option<SystemTime>,
        own: Own,
    },
}

/// What else changes with the content, as far as the system says it: the number of the file, and the time of the last
/// change of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    number: u64,
    changed: Option<SystemTime>,
}

impl Own {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let seconds = u64::try_from(metadata.ctime()).ok();
        let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok();
        let since = seconds.zip(nanoseconds).map(|(seconds, rest)| Duration::new(seconds, rest));
        let changed = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        Self { number: metadata.ino(), changed }
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self { number: 0, changed: None }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        if metadata.is_dir() {
            return Some(Self::Directory);
        }
        let (size, modified, own) = (metadata.len(), metadata.modified().ok(), Own::of(&metadata));
        Some(Self::File { size, modified, own })
    }

    /// Whether the file changed at this time, or so shortly before that one may not be told from the other.
    fn is_fresh(&self, start: SystemTime) -> bool {
        let Self::File { modified, own, .. } = self else { return false };
        let [since, until] = [start.checked_sub(STEP), start.checked_add(AHEAD)];
        let is_fresh = |time: &SystemTime| {
            since.is_none_or(|since| *time >= since) && until.is_none_or(|until| *time <= until)
        };
        modified.iter().chain(&own.changed).any(is_fresh)
    }
}

impl Footprint {
    /// Nothing was looked at yet; `start` is now.
    pub(crate) const fn new(start: SystemTime) -> Self {
        Self { start, directories: Vec::new(), files: Vec::new(), links: Vec::new(), is_fresh: false }
    }

    /// Notes a file that is going to be read, or looked for.
    pub(crate) fn file(&mut self, path: &Path) {
        let stamp = Stamp::of(path);
        self.is_fresh |= stamp.as_ref().is_some_and(|stamp| stamp.is_fresh(self.start));
        self.files.push((path.to_owned(), stamp));
    }

    /// Notes where a path leads, if that is not the path itself.
    pub(crate) fn link(&mut self, path: &Path) {
        let real = end(path);
        if real.as_ref().is_none_or(|real| *real != normal(path)) {
            self.links.push((path.to_owned(), real));
        }
    }

    /// Notes the place of a file whose text an editor has.
    pub(crate) fn open(&mut self, path: &Path) {
        self.links.push((path.to_owned(), end(path)));
    }

    /// Notes a directory that is going to be read.
    pub(crate) fn directory(&mut self, path: &Path) {
        self.directories.push((path.to_owned(), names(path).and_then(Iterator::collect).unwrap_or_default()));
    }

    /// Notes the files above a path that tell what it belongs to.
    pub(crate) fn around(&mut self, path: &Path) {
        self.file(path);
        for directory in normal(path).ancestors().skip(1) {
            for name in FILE_NAMES.iter().chain(&[CHART_FILE, ".git"]) {
                self.file(&directory.join(name));
            }
        }
    }

    /// Whether whatever changes from now on will look changed.
    pub(crate) const fn is_settled(&self) -> bool {
        !self.is_fresh
    }

    /// Whether all is as it was.
    pub(crate) fn is_unchanged(&self) -> bool {
        let has_names = |(path, known): &(PathBuf, Vec<OsString>)| {
            let mut known = known.iter();
            let is_same = |name: io::Result<OsString>| name.is_ok_and(|name| known.next() == Some(&name));
            names(path).is_ok_and(|mut names| names.all(is_same)) && known.next().is_none()
        };
        self.directories.iter().all(has_names)
            && self.files.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
            && self.links.iter().all(|(path, real)| end(path) == *real)
    }
}

/// The file to which a path leads.
fn end(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok().filter(|real| real.is_file())
}

/// The names in a directory that can mean anything to a walk, in the order in which the system has them: hidden ones are not
/// read, but for the mark of a repository.
fn names(directory: &Path) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    let is_read = |name: &OsString| !name.as_encoded_bytes().starts_with(b".") || name == ".git";
    let names = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name()));
    Ok(names.filter(move |name| name.as_ref().map_or(true, is_read)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str, age: Duration) {
        fs::write(path, text).expect("a file");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) - age;
        fs::File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("a time");
    }

    /// What was looked at in a directory with a file and a directory.
    fn seen(root: &Path, start: SystemTime) -> Footprint {
        let mut footprint = Footprint::new(start);
        footprint.directory(root);
        footprint.directory(&root.join("below"));
        footprint.file(&root.join("a.yaml"));
        footprint.file(&root.join("missing.yaml"));
        footprint.link(&root.join("link.yaml"));
        footprint.open(&root.join("open.yaml"));
        footprint
    }

    type Change = fn(&Path);

    #[test]
    fn any_change_is_seen() {
        let changes: [(&str, Change); 11] = [
            ("a size", |root| write(&root.join("a.yaml"), "a: 10", Duration::ZERO)),
            ("a time", |root| write(&root.join("a.yaml"), "a: 2", Duration::from_secs(1))),
            ("a new file", |root| write(&root.join("b.yaml"), "", Duration::ZERO)),
            ("one deeper", |root| write(&root.join("below/b.yaml"), "", Duration::ZERO)),
            ("a removed file", |root| fs::remove_file(root.join("a.yaml")).expect("is removed")),
            ("a removed directory", |root| fs::remove_dir(root.join("below")).expect("is removed")),
            ("a missing file", |root| write(&root.join("missing.yaml"), "", Duration::ZERO)),
            ("a repository", |root| fs::create_dir(root.join("below/.git")).expect("a directory")),
            ("a directory for a file", |root| {
                fs::remove_file(root.join("a.yaml")).expect("is removed");
                fs::create_dir(root.join("a.yaml")).expect("a directory");
            }),
            ("a directory for an open file", |root| {
                fs::remove_file(root.join("open.yaml")).expect("is removed");
                fs::create_dir(root.join("open.yaml")).expect("a directory");
            }),
            ("another end of a link", |root| {
                fs::remove_file(root.join("link.yaml")).expect("is removed");
                std::os::unix::fs::symlink("below", root.join("link.yaml")).expect("a link");
            }),
        ];
        for (change, make) in changes {
            let root = tempfile::tempdir().expect("a directory");
            let path = root.path();
            fs::create_dir(path.join("below")).expect("a directory");
            write(&path.join("a.yaml"), "a: 1", Duration::ZERO);
            write(&path.join(".hidden"), "", Duration::ZERO);
            write(&path.join("open.yaml"), "a: 1", Duration::ZERO);
            std::os::unix::fs::symlink("a.yaml", path.join("link.yaml")).expect("a link");
            let footprint = seen(path, SystemTime::UNIX_EPOCH);
            assert!(footprint.is_unchanged(), "{change}");
            write(&path.join(".other"), "", Duration::ZERO);
            write(&path.join("open.yaml"), "a: 10", Duration::ZERO);
            assert!(footprint.is_unchanged(), "neither a hidden file nor an open one is read");
            make(path);
            assert!(!footprint.is_unchanged(), "{change}");
        }
    }

    /// Also one of the same size whose time was set back.
    #[cfg(unix)]
    #[test]
    fn a_file_in_the_place_of_another_is_seen() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("below")).expect("a directory");
        write(&root.path().join("a.yaml"), "a: 1", Duration::ZERO);
        let footprint = seen(root.path(), SystemTime::UNIX_EPOCH);
        write(&root.path().join("below/.new"), "a: 2", Duration::ZERO);
        fs::rename(root.path().join("below/.new"), root.path().join("a.yaml")).expect("is renamed");
        assert!(!footprint.is_unchanged());
    }

    #[test]
    fn what_changed_just_now_is_not_settled() {
        let stamp = |changed: u64| Stamp::File {
            size: 1,
            modified: Some(SystemTime::UNIX_EPOCH),
            own: Own { number: 1, changed: SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(changed)) },
        };
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let fresh: Vec<bool> = [0, 97, 98, 100, 400, 1 << 20].map(|it| stamp(it).is_fresh(start)).into();
        assert_eq!(fresh, [false, false, true, true, true, false]);
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("below")).expect("a directory");
        write(&root.path().join("a.yaml"), "a: 1", Duration::ZERO);
        let now = fs::metadata(root.path().join("below")).and_then(|it| it.modified()).expect("a time");
        assert!(!seen(root.path(), now).is_settled());
        let later = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert!(seen(root.path(), later).is_settled());
    }
}

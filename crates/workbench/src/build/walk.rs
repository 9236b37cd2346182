//! Finds the files at paths: files, directories, globs and standard input; and in the repository around them what makes
//! directories kustomizations and charts, which tells which files are not manifests.
//!
//! A `.gitignore` has no effect: every manifest in a directory is found.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobMatcher;
use ignore::{DirEntry, Walk, WalkBuilder};

use crate::build::exclude::{Exclude, matcher};
use crate::build::layout::is_marker;
use crate::paths::{PROJECT_FILE, is_below, is_glob, is_manifest, normal, path_from, root_of};
use memgate_manifest::error::Error;

/// One input, in the order of the paths.
pub(crate) enum WalkedItem {
    Stdin,
    /// A file that the user named.
    Named(PathBuf),
    /// A file of a directory or glob.
    Found(PathBuf),
    /// A file that is not read, with the reason.
    Unread(PathBuf, &'static str),
    Error(Error),
}

/// So many files and directories around the inputs are looked at.
const MOST_AROUND: usize = 200_000;

/// A path of a file that comes with a change, such as `.memgate.yaml`, which leads elsewhere.
const OUTSIDE: &str = "a path in .memgate.yaml must be a file or directory below the directory of .memgate.yaml, links \
                       resolved; to read it, name it on the command line";

/// The inputs, found before any is read: a later file may tell that an earlier one is not a manifest.
pub(crate) struct Walked<'r> {
    exclude: &'r Arc<Exclude>,
    /// The directory below which every path must lead, for paths that the user did not give.
    within: Option<&'r Path>,
    /// The inputs, in the order of the paths.
    pub(crate) items: Vec<WalkedItem>,
    /// The files that make their directories kustomizations or charts, also those of the repository around the inputs.
    pub(crate) markers: Vec<PathBuf>,
    /// The directories and globs without a manifest.
    pub(crate) empty: Vec<String>,
}

impl<'r> Walked<'r> {
    pub(crate) fn new(
        inputs: &[String],
        open: &[String],
        within: Option<&'r Path>,
        exclude: &'r Arc<Exclude>,
    ) -> Self {
        let mut walked = Self { exclude, within, items: Vec::new(), markers: Vec::new(), empty: Vec::new() };
        for input in inputs {
            walked.input(input);
        }
        walked.add_around(inputs.iter().chain(open));
        walked
    }

    /// Adds the markers of the repository around the inputs, of which a part may be named. Where there is none, those of the
    /// directories above them up to the working directory.
    fn add_around<'i>(&mut self, inputs: impl Iterator<Item = &'i String>) {
        let here = normal(Path::new("."));
        let mut roots = BTreeSet::new();
        for input in inputs.filter(|input| *input != "-") {
            let named = normal(&fixed_part(&format!("{input}/")));
            let start = if named.is_dir() { &*named } else { named.parent().unwrap_or(&named) };
            let around = self.within.or_else(|| root_of(start));
            let root = around.unwrap_or_else(|| if start.starts_with(&here) { &here } else { start });
            roots.extend((named != root).then(|| root.to_owned()));
        }
        for root in roots {
            let shown = path_from(&here, &root).unwrap_or_else(|| root.clone());
            let shown = if shown.as_os_str().is_empty() { PathBuf::from(".") } else { shown };
            let entries = entries(&shown, self.exclude).flatten().filter(|it| !is_hidden(it.path(), &shown));
            let entries = entries.take(MOST_AROUND);
            let boundary = self.within.map_or_else(|| boundary(&shown), Path::to_owned);
            let is_inside = |entry: &DirEntry| !entry.path_is_symlink() || is_below(entry.path(), &boundary);
            let found = entries.filter(|it| is_marker(it.path()) && it.path().is_file() && is_inside(it));
            let found: Vec<PathBuf> = found.map(DirEntry::into_path).collect();
            self.markers.extend(found);
        }
        let mut seen = BTreeSet::new();
        self.markers.retain(|marker| seen.insert(normal(marker)));
    }

    fn input(&mut self, input: &str) {
        if input == "-" {
            return self.items.push(WalkedItem::Stdin);
        }
        if self.within.is_some_and(|within| leads_out(input, within)) {
            return self.items.push(WalkedItem::Error(Error::of_input(input, OUTSIDE)));
        }
        match fs::metadata(input) {
            Err(_) if ["http://", "https://"].iter().any(|start| input.starts_with(start)) => {
                let help = "this is an address, and memgate reads files; fetch it first: curl -fsSL ADDRESS | memgate check -";
                self.items.push(WalkedItem::Error(Error::of_input(input, help)));
            }
            Ok(metadata) if metadata.is_dir() => {
                let wanted = |path: &Path| is_manifest(path) || is_marker(path);
                self.walk(input, (Path::new(input), true), &wanted);
            }
            Ok(_) => {
                self.markers.extend(is_marker(Path::new(input)).then(|| PathBuf::from(input)));
                self.items.push(WalkedItem::Named(PathBuf::from(input)));
            }
            Err(_) if is_glob(input) => self.glob(input),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.items.push(WalkedItem::Error(Error::of_input(input, "no such file or directory")));
            }
            Err(source) => self.items.push(WalkedItem::Error(Error::Read { path: input.to_owned(), source })),
        }
    }

    fn glob(&mut self, input: &str) {
        let glob = match matcher(input) {
            Ok(glob) => glob,
            Err(error) => return self.items.push(WalkedItem::Error(error)),
        };
        // `*.txt` reads all text files; `dir/*`, which names no extension, the manifests in dir.
        let names_extension = input.rsplit('/').next().is_some_and(|last| last.contains('.'));
        let wanted = |path: &Path| matches(&glob, path) && (names_extension || is_manifest(path));
        self.walk(input, (&fixed_part(input), false), &wanted);
    }

    /// Finds the files below `root` that `wanted` selects. Symbolic links to files are followed, since a
    /// mounted ConfigMap is made of them; links to directories are not, since they may form a loop. With `all`, the others
    /// may be manifests too, under names that are not read.
    fn walk(&mut self, input: &str, (root, all): (&Path, bool), wanted: &dyn Fn(&Path) -> bool) {
        let mut errors = Vec::new();
        let boundary = self.within.map_or_else(|| boundary(root), Path::to_owned);
        let mut found = false;
        for entry in entries(root, self.exclude) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    found = true;
                    errors.push(walk_error(error, input));
                    continue;
                }
            };
            let path = entry.path();
            let is_inside = !entry.path_is_symlink() || is_below(path, &boundary);
            let is_hidden = is_hidden(path, root);
            if is_marker(path) && path.is_file() && is_inside && !is_hidden {
                self.markers.push(path.to_owned());
            }
            match judge(&entry, wanted, (is_hidden, all)) {
                EntryUse::Read if !is_inside => {
                    self.items
                        .push(WalkedItem::Unread(path.to_owned(), "a link that leads out of the repository"));
                }
                EntryUse::Read => {
                    found = true;
                    self.items.push(WalkedItem::Found(path.to_owned()));
                }
                EntryUse::Unread(reason) => self.items.push(WalkedItem::Unread(path.to_owned(), reason)),
                EntryUse::Other if !is_hidden && is_unread_directory(path, root, wanted) => {
                    self.items.push(WalkedItem::Unread(
                        path.to_owned(),
                        "a link to a directory, which is not followed",
                    ));
                }
                EntryUse::Other => {}
            }
        }
        self.items.extend(errors.into_iter().map(WalkedItem::Error));
        if !found {
            self.empty.push(input.to_owned());
        }
    }
}

/// What is below a directory, without what is git's own or left out.
fn entries(root: &Path, exclude: &Arc<Exclude>) -> Walk {
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).sort_by_file_path(Path::cmp);
    let (exclude, root) = (Arc::clone(exclude), root.to_owned());
    walk.filter_entry(move |entry| {
        let name = entry.file_name().as_encoded_bytes();
        // The links of a mounted ConfigMap lead into the second one.
        let is_left = name == b".git" || name.starts_with(b"..2");
        entry.depth() == 0 || !is_left && !exclude.excludes(entry.path(), &root)
    });
    walk.build()
}

/// The directory out of which no link of a walk may lead: the repository around it, else its own. The author of a change
/// must not learn from the output what other files of the machine hold.
fn boundary(root: &Path) -> PathBuf {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    root_of(&root).map(Path::to_owned).unwrap_or(root)
}

/// Whether a path that the user did not give leads out of a directory, or to a pipe or a device. Of a glob the directory
/// counts from which its walk starts. A path to nothing is reported as missing.
fn leads_out(input: &str, within: &Path) -> bool {
    let start = |path: &Path| {
        let mut path = path.ancestors().filter(|path| fs::symlink_metadata(path).is_ok());
        path.next().map_or_else(|| PathBuf::from("."), Path::to_owned)
    };
    let named = Path::new(input);
    match fs::metadata(named) {
        Ok(metadata) => !is_below(named, within) || !(metadata.is_file() || metadata.is_dir()),
        Err(_) if is_glob(input) => !is_below(&start(&fixed_part(input)), within),
        // Whether a file exists elsewhere is not told either.
        Err(_) => !is_below(&start(named), within),
    }
}

/// Whether a path that is read would lead to this file if that existed: it is below it, or its glob matches.
pub fn leads_to(input: &str, file: &Path) -> bool {
    normal(file).starts_with(normal(Path::new(input)))
        || is_glob(input) && matcher(input).is_ok_and(|glob| matches(&glob, &Path::new(".").join(file)))
}

/// The error of a walk, with the path at which it stopped.
fn walk_error(error: ignore::Error, input: &str) -> Error {
    let mut path = input.to_owned();
    let mut inner = &error;
    while let ignore::Error::WithDepth { err, .. } | ignore::Error::WithPath { err, .. } = inner {
        if let ignore::Error::WithPath { path: at, .. } = inner {
            path = at.to_string_lossy().into_owned();
        }
        inner = err;
    }
    // The text of the error would repeat the path.
    let kind = error.into_io_error().map(|error| error.kind());
    let source = kind.map_or_else(|| io::Error::other("cannot be listed"), io::Error::from);
    Error::Read { path, source }
}

/// How a walk treats an entry.
enum EntryUse {
    Read,
    /// It looks like a manifest and is not read, with the reason.
    Unread(&'static str),
    Other,
}

fn judge(entry: &DirEntry, wanted: &dyn Fn(&Path) -> bool, (is_hidden, all): (bool, bool)) -> EntryUse {
    let path = entry.path();
    if is_directory(entry) {
        return EntryUse::Other;
    }
    let is_link = entry.path_is_symlink();
    if !wanted(path) {
        let extension = path.extension().map(OsStr::to_ascii_lowercase).unwrap_or_default();
        let misnamed = wanted(&path.with_extension(extension));
        return match () {
            () if misnamed => EntryUse::Unread("extension not in lower case"),
            () if all && !is_link => EntryUse::Unread("not named .yaml, .yml or .json"),
            () => EntryUse::Other,
        };
    }
    match fs::metadata(path) {
        // The settings of the repository are not a manifest.
        _ if path.file_name().is_some_and(|name| name == PROJECT_FILE) => EntryUse::Other,
        _ if is_hidden && is_link => EntryUse::Other,
        _ if is_hidden => EntryUse::Unread("hidden"),
        Ok(target) if target.is_file() => EntryUse::Read,
        Err(_) if is_link => EntryUse::Unread("a link to nothing"),
        Ok(_) | Err(_) => EntryUse::Other,
    }
}

/// Whether a path below `root` is a link to a directory elsewhere, in which there may be wanted files.
fn is_unread_directory(path: &Path, root: &Path, wanted: &dyn Fn(&Path) -> bool) -> bool {
    let is_link = path != root && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let is_elsewhere = || {
        let [target, root] = [path, root].map(fs::canonicalize);
        target.is_ok_and(|it| it.is_dir() && !root.is_ok_and(|root| it.starts_with(root)))
    };
    is_link && wanted(&path.join("a.yaml")) && is_elsewhere()
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

/// Whether a path is hidden below a directory.
pub(crate) fn is_hidden(path: &Path, root: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.iter().any(|part| part != "." && part.as_encoded_bytes().starts_with(b"."))
}

/// The directories of a glob before its first wildcard, from which the walk starts.
fn fixed_part(glob: &str) -> PathBuf {
    let parts = glob.split_inclusive('/').take_while(|part| !is_glob(part) && part.ends_with('/'));
    let fixed: String = parts.collect();
    PathBuf::from(if fixed.is_empty() { "." } else { &fixed })
}

/// A walk from `.` gives `./a.yaml` for the glob `*.yaml`.
fn matches(glob: &GlobMatcher, path: &Path) -> bool {
    glob.is_match(path) || path.strip_prefix(".").is_ok_and(|path| glob.is_match(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_primitives::causes::with_causes;

    #[test]
    fn names_the_directory_that_cannot_be_listed() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = ignore::Error::WithDepth {
            depth: 1,
            err: Box::new(ignore::Error::WithPath {
                path: PathBuf::from("deploy/private"),
                err: Box::new(ignore::Error::Io(denied)),
            }),
        };
        let error = walk_error(error, "deploy");
        assert_eq!(with_causes(&error), "failed to read deploy/private: permission denied");
    }
}

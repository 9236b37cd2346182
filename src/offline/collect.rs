//! Paths to sources: files, directories, globs and standard input.
//!
//! A `.gitignore` has no effect: every manifest in a directory is read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use crate::manifest::error::Error;
use crate::manifest::source::Source;

/// The largest input that is read, in bytes. etcd takes objects of 1.5 MiB; a file of all the objects
/// of a large namespace has some ten MiB.
const MAX_INPUT_BYTES: usize = 64 << 20;

/// The name of standard input as a source.
pub(super) const STDIN: &str = "<stdin>";

/// What was read.
#[derive(Debug, Default)]
pub struct Collected {
    /// The texts, in the order of the paths, each file once; within a directory or glob by name.
    pub sources: Vec<Source>,
    /// What could not be read; all other inputs are read nevertheless.
    pub errors: Vec<Error>,
    /// What was passed by.
    pub unread: Unread,
}

/// What was passed by in directories and globs.
#[derive(Debug, Default)]
pub struct Unread {
    /// The directories and globs in which no manifest was found.
    pub empty: Vec<String>,
    /// Files that somebody could believe to be read, each with the reason: `a/.b.yaml (hidden)`.
    pub files: Vec<String>,
}

/// Reads files with any extension, directories (`*.yaml`, `*.yml` and `*.json` at any depth, as kubectl
/// does, except hidden ones), globs, and `-` for `stdin`.
#[must_use]
pub fn collect(inputs: &[String], stdin: &mut dyn Read) -> Collected {
    let mut collector = Collector { collected: Collected::default(), read_files: BTreeSet::new() };
    let mut stdin = Some(stdin);
    for input in inputs {
        if input == "-" {
            if let Some(stdin) = stdin.take() {
                collector.add(STDIN, read_bounded(stdin));
            }
        } else {
            collector.input(input);
        }
    }
    collector.collected
}

struct Collector {
    collected: Collected,
    /// The canonical paths of the files that were read.
    read_files: BTreeSet<PathBuf>,
}

impl Collector {
    fn input(&mut self, input: &str) {
        match fs::metadata(input) {
            Ok(metadata) if metadata.is_dir() => self.walk(input, Path::new(input), &is_manifest),
            Ok(_) => self.file(Path::new(input)),
            Err(_) if is_glob(input) => self.glob(input),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.collected.errors.push(Error::Missing { path: input.to_owned() });
            }
            Err(source) => self.collected.errors.push(Error::Read { path: input.to_owned(), source }),
        }
    }

    fn glob(&mut self, input: &str) {
        let glob = match GlobBuilder::new(input).literal_separator(true).build() {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => {
                let (glob, message) = (input.to_owned(), error.kind().to_string());
                return self.collected.errors.push(Error::Glob { glob, message });
            }
        };
        // `*.txt` reads all text files; `dir/*`, which names no extension, the manifests in dir.
        let names_extension = input.rsplit('/').next().is_some_and(|last| last.contains('.'));
        let wanted = |path: &Path| matches(&glob, path) && (names_extension || is_manifest(path));
        self.walk(input, &fixed_part(input), &wanted);
    }

    /// Reads the files below `root` that are wanted. Symbolic links to files are followed, since a
    /// mounted ConfigMap is made of them; links to directories are not, since they may form a loop.
    fn walk(&mut self, input: &str, root: &Path, wanted: &dyn Fn(&Path) -> bool) {
        let mut walk = WalkBuilder::new(root);
        walk.standard_filters(false).sort_by_file_path(Path::cmp);
        walk.filter_entry(|entry| entry.depth() == 0 || !is_directory(entry) || !is_hidden(entry.path()));
        let mut found = false;
        for entry in walk.build() {
            match entry {
                Ok(entry) => match judge(&entry, wanted) {
                    Judged::Read => {
                        found = true;
                        self.file(entry.path());
                    }
                    Judged::Unread(reason) => {
                        let file = format!("{} ({reason})", entry.path().display());
                        self.collected.unread.files.push(file);
                    }
                    Judged::Other => {}
                },
                Err(error) => {
                    found = true;
                    let source =
                        error.into_io_error().unwrap_or_else(|| io::Error::other("cannot be listed"));
                    self.collected.errors.push(Error::Read { path: input.to_owned(), source });
                }
            }
        }
        if !found {
            self.collected.unread.empty.push(input.to_owned());
        }
    }

    fn file(&mut self, path: &Path) {
        let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if self.read_files.insert(canonical) {
            self.add(&path.to_string_lossy(), File::open(path).and_then(read_bounded));
        }
    }

    fn add(&mut self, name: &str, bytes: io::Result<Vec<u8>>) {
        match source(name, bytes) {
            Ok(source) => self.collected.sources.push(source),
            Err(error) => self.collected.errors.push(error),
        }
    }
}

fn source(name: &str, bytes: io::Result<Vec<u8>>) -> Result<Source, Error> {
    let path = name.to_owned();
    match bytes {
        Err(source) => Err(Error::Read { path, source }),
        Ok(bytes) if bytes.len() > MAX_INPUT_BYTES => Err(Error::TooLarge { path, limit: MAX_INPUT_BYTES }),
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => Err(encoding_error(path, error.as_bytes(), error.utf8_error().valid_up_to())),
        },
    }
}

fn encoding_error(path: String, bytes: &[u8], at: usize) -> Error {
    let before = bytes.get(..at).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let message = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "this is UTF-16; save it as UTF-8".to_owned()
    } else {
        format!("byte {at} is no UTF-8; save the file as UTF-8")
    };
    Error::Encoding { path, line, message }
}

/// All bytes, or one more than the limit: the caller sees that there are too many.
fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_INPUT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

/// What a walk does with an entry.
enum Judged {
    Read,
    /// It looks like a manifest, and is not read for this reason.
    Unread(&'static str),
    Other,
}

fn judge(entry: &DirEntry, wanted: &dyn Fn(&Path) -> bool) -> Judged {
    let path = entry.path();
    if is_directory(entry) {
        return Judged::Other;
    }
    if !wanted(path) {
        let extension = path.extension().map(OsStr::to_ascii_lowercase).unwrap_or_default();
        let misnamed = wanted(&path.with_extension(extension));
        return if misnamed { Judged::Unread("extension not in lower case") } else { Judged::Other };
    }
    let is_link = entry.path_is_symlink();
    match fs::metadata(path) {
        _ if is_hidden(path) => Judged::Unread("hidden"),
        Ok(target) if target.is_file() => Judged::Read,
        Err(_) if is_link => Judged::Unread("a link to nothing"),
        Ok(_) | Err(_) => Judged::Other,
    }
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_glob(input: &str) -> bool {
    input.contains(['*', '?', '[', '{'])
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

    /// A directory with these files, each holding its own name.
    fn directory(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temporary directory");
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("parent")).expect("directories");
            fs::write(path, file).expect("file");
        }
        root
    }

    /// The names found for inputs below `root`, without it.
    fn found(root: &Path, inputs: &[&str]) -> (Vec<String>, Vec<String>, usize) {
        let inputs: Vec<String> = inputs
            .iter()
            .map(|input| if *input == "-" { "-".to_owned() } else { format!("{}/{input}", root.display()) })
            .collect();
        let collected = collect(&inputs, &mut "from stdin".as_bytes());
        let short = |name: &str| name.replace(&format!("{}/", root.display()), "");
        (
            collected.sources.iter().map(|source| short(source.name())).collect(),
            collected.errors.iter().map(|error| short(&error.to_string())).collect(),
            collected.unread.empty.len(),
        )
    }

    #[test]
    fn finds_manifests_in_a_fixed_order_each_once() {
        let files = [
            "b.yaml",
            "a/c.yml",
            "a/b/d.json",
            "a-b.yaml",
            ".hidden.yaml",
            ".git/x.yaml",
            "n.txt",
            ".gitignore",
        ];
        let root = directory(&files);
        fs::write(root.path().join(".gitignore"), "*.yaml").expect("file");
        let all = ["a/b/d.json", "a/c.yml", "a-b.yaml", "b.yaml"];
        for (inputs, expected) in [
            (vec![""], all.to_vec()),
            (vec!["b.yaml", "", "b.yaml"], vec!["b.yaml", "a/b/d.json", "a/c.yml", "a-b.yaml"]),
            (vec!["n.txt", ".hidden.yaml"], vec!["n.txt", ".hidden.yaml"]),
            (vec!["*.yaml"], vec!["a-b.yaml", "b.yaml"]),
            (vec!["*"], vec!["a-b.yaml", "b.yaml"]),
            (vec!["*.txt"], vec!["n.txt"]),
            (vec!["**/*.{yml,json}"], vec!["a/b/d.json", "a/c.yml"]),
            (vec!["a/**"], vec!["a/b/d.json", "a/c.yml"]),
            (vec!["-", "a/c.yml", "-"], vec!["<stdin>", "a/c.yml"]),
        ] {
            let (names, errors, empty) = found(root.path(), &inputs);
            let names: Vec<&str> = names.iter().map(|name| name.trim_start_matches('/')).collect();
            assert_eq!((names, errors, empty), (expected, vec![], 0), "{inputs:?}");
        }
    }

    #[test]
    fn says_what_cannot_be_read_without_hiding_the_rest() {
        let root = directory(&["good.yaml", "empty/readme.md"]);
        fs::write(root.path().join("bad.yaml"), b"a: 1\nb: \xff\n").expect("file");
        fs::write(root.path().join("wide.yaml"), b"\xff\xfea\0").expect("file");
        let inputs = ["none.yaml", "bad.yaml", "wide.yaml", "empty", "no-such-*.yaml", "[", "good.yaml"];
        let (names, errors, empty) = found(root.path(), &inputs);
        assert_eq!(names, ["good.yaml"]);
        assert_eq!(empty, 2);
        assert_eq!(
            errors,
            [
                "none.yaml: no such file or directory",
                "bad.yaml:2: byte 8 is no UTF-8; save the file as UTF-8",
                "wide.yaml:1: this is UTF-16; save it as UTF-8",
                "[: unclosed character class; missing ']'",
            ]
        );
    }

    #[test]
    fn reads_the_links_of_a_mounted_config_map() {
        let root = directory(&["..data/a.yaml"]);
        std::os::unix::fs::symlink("..data/a.yaml", root.path().join("a.yaml")).expect("link");
        std::os::unix::fs::symlink(".", root.path().join("loop")).expect("link");
        assert_eq!(found(root.path(), &[""]).0.len(), 1);
    }

    #[test]
    fn names_what_looks_like_a_manifest_and_is_not_read() {
        let files = ["a.yaml", "b.YAML", "c.Yml", "d.JSON", ".e.yaml", ".git/f.yaml", "g.txt", "h.TXT", ".i"];
        let root = directory(&files);
        for (target, link) in
            [("nothing", "k.yaml"), ("nothing", "l"), ("a.yaml", "m.yaml"), (".git", "n.yaml")]
        {
            std::os::unix::fs::symlink(target, root.path().join(link)).expect("link");
        }
        let path = root.path().display().to_string();
        let unread = |input: &str| -> Vec<String> {
            let collected = collect(&[input.to_owned()], &mut io::empty());
            collected.unread.files.iter().map(|file| file.replace(&format!("{path}/"), "")).collect()
        };
        let lower = "extension not in lower case";
        let misnamed = ["b.YAML", "c.Yml", "d.JSON"].map(|file| format!("{file} ({lower})"));
        let mut all = vec![".e.yaml (hidden)".to_owned()];
        all.extend(misnamed);
        all.push("k.yaml (a link to nothing)".to_owned());
        assert_eq!(unread(&path), all);
        assert_eq!(unread(&format!("{path}/*.txt")), [format!("h.TXT ({lower})")]);
        assert_eq!(unread(&format!("{path}/.e.yaml")), Vec::<String>::new());
    }

    #[test]
    fn bounds_what_it_reads() {
        let error = source("big.yaml", read_bounded(io::repeat(b' '))).expect_err("too large");
        assert_eq!(error.to_string(), "big.yaml: larger than 64 MiB; is this a manifest?");
    }
}

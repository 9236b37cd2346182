//! Reads the sources at paths: files, directories, globs, standard input, and the output of helm and kustomize.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::exclude::Exclude;
use crate::render::{Rendering, Unrendered, render};
use crate::repository::{Repository, Unit};
use crate::texts::{DEFAULT_MAX_BYTES, source};
use crate::walk::{Item, Walked};
use memgate_core::state::cluster_snapshot::Assumed;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;

/// How inputs are read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The files and directories that are left out of directories and globs.
    pub exclude: Arc<Exclude>,
    /// The largest input that is read, in bytes.
    pub max_bytes: usize,
    /// How to render charts and overlays in directories and globs; `None` to list them.
    pub rendering: Option<Rendering>,
    /// Texts that replace those of files, by the names of their sources.
    pub instead: BTreeMap<String, String>,
    /// The files whose texts an editor holds.
    pub open: Vec<OpenFile>,
    /// Whether only the open files are checked. The other files are their state.
    pub checks_only_open: bool,
    /// Whether the places of the objects of the state are needed.
    pub keeps_places: bool,
    /// Whether less than the whole repository is read: settings that fit nothing are not reported then.
    pub is_narrow: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            exclude: Arc::default(),
            max_bytes: DEFAULT_MAX_BYTES,
            rendering: None,
            instead: BTreeMap::new(),
            open: Vec::new(),
            checks_only_open: false,
            keeps_places: true,
            is_narrow: false,
        }
    }
}

/// A file whose text an editor holds. It need not exist.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The path, which findings show.
    pub path: PathBuf,
    /// The text; `None` for that of standard input.
    pub text: Option<Arc<str>>,
    /// Whether the file is checked although it is not below the paths that are read.
    pub is_checked_outside: bool,
    /// Whether it is judged; another one is only read with its text in place of that on disk.
    pub is_judged: bool,
}

impl Reading {
    /// Whether a source of this name is not checked itself, but state of the open files.
    pub(crate) fn is_state(&self, name: &str) -> bool {
        self.checks_only_open && !self.is_open(name)
    }

    /// Whether a file of this name is open and judged. In the working directory a name may begin with `./`.
    pub(crate) fn is_open(&self, name: &str) -> bool {
        let name = name.strip_prefix("./").unwrap_or(name);
        let is_it = |path: &str| path.strip_prefix("./").unwrap_or(path) == name;
        self.open.iter().any(|file| file.is_judged && file.path.to_str().is_some_and(is_it))
    }
}

/// The name of standard input as a source.
pub(crate) const STDIN: &str = "<stdin>";

/// The sources of the inputs.
#[derive(Debug, Default)]
pub struct Collected {
    /// The texts, in the order of the paths, each file once; within a directory or glob by name.
    pub sources: Vec<Source>,
    /// The errors of inputs that could not be read; all others are read nevertheless.
    pub errors: Vec<Error>,
    /// The files that were not read.
    pub unread: Unread,
    /// The charts and overlays that were rendered, by the names of the sources.
    pub rendered: BTreeMap<String, Unit>,
}

/// The files of directories and globs that were not read, and the kinds that a snapshot lacks.
#[derive(Debug, Default)]
pub struct Unread {
    /// The directories and globs without a manifest.
    pub empty: Vec<String>,
    /// Files that look like manifests and were not read, each with the reason: `a/.b.yaml (hidden)`.
    pub files: Vec<String>,
    /// The charts and kustomizations whose files were not read as manifests.
    pub unrendered: Vec<Unrendered>,
    /// What the file with the choices of the repository switched off.
    pub switched_off: Vec<String>,
    /// The numbers of findings that rules of the repository lower or leave out, by code.
    pub lowered: BTreeMap<String, usize>,
    /// Exclude globs that matched nothing.
    pub unused_excludes: Vec<String>,
    /// How many objects of state decisions do not look at, since they have no name and namespace that can be read.
    pub unreadable_state: usize,
    /// Whether only one of the files is checked, and the others are its state.
    pub is_partial: bool,
    /// Whether less than the repository was read: a setting without effect may have one on the rest.
    pub is_narrow: bool,
    /// The snapshot of a cluster, if one was given.
    pub assumed: Option<Assumed>,
}

impl Unread {
    /// Adds what was not read at other paths.
    pub(crate) fn extend(&mut self, other: Self) {
        self.empty.extend(other.empty);
        self.files.extend(other.files);
        self.unrendered.extend(other.unrendered);
        self.unreadable_state = self.unreadable_state.max(other.unreadable_state);
    }
}

/// Reads files with any extension, directories (`*.yaml`, `*.yml` and `*.json` at any depth, as kubectl
/// does, except hidden ones), globs, and `-` for `stdin`. In directories and globs, files from which helm or kustomize
/// makes manifests are not read: they are rendered, or listed in [`Collected::unread`].
pub fn collect(inputs: &[String], reading: &Reading, stdin: &mut dyn Read) -> Collected {
    collect_within(inputs, None, &reading.exclude, reading, stdin)
}

/// The same without what `exclude` leaves out, and for paths that the user did not give: each must lead to a file or
/// directory below `within`, an absolute path without links.
pub fn collect_within(
    inputs: &[String],
    within: Option<&Path>,
    exclude: &Arc<Exclude>,
    reading: &Reading,
    stdin: &mut dyn Read,
) -> Collected {
    let walked = Walked::new(inputs, within, exclude, reading.max_bytes);
    let open = opened(&reading.open, &walked.items, exclude);
    let (collected, stdin) = (Collected::default(), Some(stdin));
    let (read_files, units) = (BTreeSet::new(), BTreeMap::new());
    let mut reader = Reader { reading, stdin, open, collected, read_files, units };
    reader.collected.unread.empty = walked.empty;
    for item in walked.items {
        reader.item(item, &walked.repository);
    }
    reader.finish(&walked.repository);
    reader.collected
}

/// A file that an editor holds, and whether a walk decides about it: it found the file, or leaves it out.
struct Opened<'r> {
    file: &'r OpenFile,
    is_walked: bool,
}

/// The open files by their paths without links.
fn opened<'r>(open: &'r [OpenFile], items: &[Item], exclude: &Exclude) -> BTreeMap<PathBuf, Opened<'r>> {
    if open.is_empty() {
        return BTreeMap::new();
    }
    let found: BTreeSet<PathBuf> = items
        .iter()
        .filter_map(|item| match item {
            Item::Named(path) | Item::Found(path) | Item::Unread(path, _) => Some(without_links(path)),
            Item::Stdin | Item::Error(_) => None,
        })
        .collect();
    let opened = |file: &'r OpenFile| {
        let real = without_links(&file.path);
        let is_walked = found.contains(&real) || exclude.excludes_file(&file.path);
        (real, Opened { file, is_walked })
    };
    open.iter().map(opened).collect()
}

/// The path without links; of a file that does not exist as it is.
pub fn without_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads the items of a walk.
struct Reader<'r, 's> {
    reading: &'r Reading,
    /// Standard input, until it is read.
    stdin: Option<&'s mut dyn Read>,
    open: BTreeMap<PathBuf, Opened<'r>>,
    collected: Collected,
    /// The canonical paths of the files that were read.
    read_files: BTreeSet<PathBuf>,
    /// The charts and overlays, with their files.
    units: BTreeMap<Unit, Vec<String>>,
}

impl Reader<'_, '_> {
    fn item(&mut self, item: Item, repository: &Repository) {
        match item {
            Item::Stdin if self.open.is_empty() => self.stdin(STDIN),
            Item::Stdin => self.open_outside(),
            Item::Named(path) => self.file(&path),
            Item::Found(path) => match repository.unit_of(&path, self.reading.rendering.is_some()) {
                Some(unit) => {
                    self.units.entry(unit).or_default().push(path.to_string_lossy().into_owned());
                }
                None => self.file(&path),
            },
            Item::Unread(path, reason) => {
                self.collected.unread.files.push(format!("{} ({reason})", path.display()));
            }
            Item::Error(error) => self.collected.errors.push(error),
        }
    }

    fn stdin(&mut self, name: &str) {
        if let Some(stdin) = self.stdin.take() {
            self.add(source(name, Ok(stdin), self.reading.max_bytes));
        }
    }

    /// Reads the open files about which no walk decides.
    fn open_outside(&mut self) {
        let outside = self.open.values().filter(|it| !it.is_walked && it.file.is_checked_outside);
        let files: Vec<&OpenFile> = outside.map(|it| it.file).collect();
        for file in files {
            self.open(file);
        }
    }

    fn open(&mut self, file: &OpenFile) {
        let name = file.path.to_string_lossy();
        match &file.text {
            Some(text) => self.add(source(&name, Ok(text.as_bytes()), self.reading.max_bytes)),
            None => self.stdin(&name),
        }
    }

    fn file(&mut self, path: &Path) {
        let real = without_links(path);
        let open = self.open.get(&real).map(|it| it.file);
        if !self.read_files.insert(real) {
            return;
        }
        if let Some(file) = open {
            return self.open(file);
        }
        let name = path.to_string_lossy();
        self.add(match self.reading.instead.get(&*name) {
            Some(text) => Ok(Source::new(name, text.as_str())),
            None => source(&name, File::open(path), self.reading.max_bytes),
        });
    }

    /// Renders the charts and overlays if the user wants it, and lists the others.
    fn finish(&mut self, repository: &Repository) {
        for (unit, mut files) in std::mem::take(&mut self.units) {
            let rendering = self.reading.rendering.as_ref().filter(|_| cfg!(feature = "workstation"));
            if let Some(rendering) = rendering.filter(|_| repository.is_rendered(&unit)) {
                if unit.is_whole {
                    let rendered = render(&unit, rendering, self.reading.max_bytes);
                    if let Ok(source) = &rendered {
                        self.collected.rendered.insert(source.name().to_owned(), unit);
                    }
                    self.add(rendered);
                }
                continue;
            }
            files.dedup();
            self.collected.unread.unrendered.push(Unrendered { unit, files });
        }
        // Those that a command can render come first.
        self.collected.unread.unrendered.sort_by_key(|unrendered| !unrendered.unit.is_whole);
    }

    fn add(&mut self, source: Result<Source, Error>) {
        match source {
            Ok(source) => self.collected.sources.push(source),
            Err(error) => self.collected.errors.push(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

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
        let collected = collect(&inputs, &Reading::default(), &mut "from stdin".as_bytes());
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
            "b.yaml", "a/c.yml", "a/b/d.json", "a-b.yaml", ".hidden.yaml", ".git/x.yaml", "n.txt",
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
    fn reports_unreadable_files_and_reads_the_others() {
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
                "bad.yaml:2: byte 8 is not UTF-8; save the file as UTF-8",
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
    fn lists_files_that_look_like_manifests_and_are_not_read() {
        let files = ["a.yaml", "b.YAML", "c.Yml", "d.JSON", ".e.yaml", ".git/f.yaml", "g.txt", "h.TXT", ".i"];
        let root = directory(&files);
        for (target, link) in
            [("nothing", "k.yaml"), ("nothing", "l"), ("a.yaml", "m.yaml"), (".git", "n.yaml")]
        {
            std::os::unix::fs::symlink(target, root.path().join(link)).expect("link");
        }
        let path = root.path().display().to_string();
        let unread = |input: &str| -> Vec<String> {
            let collected = collect(&[input.to_owned()], &Reading::default(), &mut io::empty());
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
}

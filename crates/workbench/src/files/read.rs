//! Reads the sources at paths: files, directories, globs and standard input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::exclude::Exclude;
use crate::build::layout::Layout;
use crate::build::ours::Ours;
use crate::build::plan::{OpenFile, Plan};
use crate::build::texts::{file, may_be_manifest, source};
use crate::build::walk::{Walked, WalkedItem};
use crate::files::inputs::Inputs;
use crate::files::objects::is_ours;
use crate::paths::{looks_like_manifest, normal};
use memgate_core::state::empty;
use memgate_manifest::document::{Document, parse};
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;

/// The name of standard input as a source.
pub(crate) const STDIN: &str = "<stdin>";

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct ReadTexts {
    /// The manifests.
    pub(crate) sources: Vec<Arc<Source>>,
    /// The kustomizations and charts.
    pub(crate) layout: Layout,
    /// All files of the inputs, manifests or not.
    pub(crate) files: Vec<PathBuf>,
    /// The open files that are only parts of what is built.
    pub(crate) parts: Vec<Arc<Source>>,
}

/// Reads files with any extension, directories (`*.yaml`, `*.yml` and `*.json` at any depth, as kubectl
/// does, except hidden ones), globs, and `-` for `stdin`. Files that are only parts of what helm or kustomize builds are not read.
pub fn collect(paths: &[String], plan: &Plan, stdin: &mut dyn Read) -> Inputs {
    let mut inputs = Inputs::new(empty(plan.settings.clone()));
    inputs.sources =
        read(paths, plan.within.as_deref(), &plan.exclude, plan, stdin, (&mut inputs, false)).sources;
    inputs
}

/// The same without what `exclude` leaves out, and for paths that the user did not give: each must lead to a file or
/// directory below `within`, an absolute path without links. What is not read is added to the inputs, the texts are
/// returned.
pub(crate) fn read(
    paths: &[String],
    within: Option<&Path>,
    exclude: &Arc<Exclude>,
    plan: &Plan,
    stdin: &mut dyn Read,
    (inputs, keeps_parts): (&mut Inputs, bool),
) -> ReadTexts {
    let text = |path: &Path| plan.source(path);
    let open_paths = plan.open.iter().map(|file| file.path.to_string_lossy().into_owned());
    let walked = Walked::new(paths, &open_paths.collect::<Vec<_>>(), within, exclude);
    let layout = Layout::of(&walked.markers, &text);
    let open = opened(&plan.open, &walked.items, exclude);
    let real = real_files(&walked.items);
    inputs.empty.extend(walked.empty);
    let found = ReadTexts { layout, ..ReadTexts::default() };
    let (ours, read_files) = (Ours::new(&plan.settings), BTreeSet::new());
    let mut reader =
        ItemReader { plan, ours, keeps_parts, stdin: Some(stdin), open, inputs, found, read_files };
    for item in walked.items.into_iter().filter(|item| !is_second_way(item, &real)) {
        reader.item(item);
    }
    reader.found
}

/// The files of a walk that are not links, if there are links too.
fn real_files(items: &[WalkedItem]) -> BTreeSet<PathBuf> {
    let found =
        || items.iter().filter_map(|item| if let WalkedItem::Found(path) = item { Some(path) } else { None });
    if !found().any(|path| path.is_symlink()) {
        return BTreeSet::new();
    }
    found().filter(|path| !path.is_symlink()).map(|path| without_links(path)).collect()
}

/// Whether an item is a link to a file of the walk: settings for paths must not depend on a link that comes first.
fn is_second_way(item: &WalkedItem, real: &BTreeSet<PathBuf>) -> bool {
    matches!(item, WalkedItem::Found(path) if !real.is_empty() && path.is_symlink() && real.contains(&without_links(path)))
}

/// A file that an editor holds, and whether a walk decides about it: it found the file, or leaves it out.
struct Opened<'r> {
    file: &'r OpenFile,
    is_walked: bool,
}

/// The open files by their paths without links.
fn opened<'r>(
    open: &'r [OpenFile],
    items: &[WalkedItem],
    exclude: &Exclude,
) -> BTreeMap<PathBuf, Opened<'r>> {
    if open.is_empty() {
        return BTreeMap::new();
    }
    let found: BTreeSet<PathBuf> = items
        .iter()
        .filter_map(|item| match item {
            WalkedItem::Named(path) | WalkedItem::Found(path) | WalkedItem::Unread(path, _) => {
                Some(without_links(path))
            }
            WalkedItem::Stdin | WalkedItem::Error(_) => None,
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
fn without_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Of larger files nobody looks whether they are manifests under another name, in bytes.
const MOST_UNREAD: u64 = 1 << 20;

/// Why a part of a kustomization or chart is refused where what it becomes is meant.
const NOT_BUILT: &str = "this is a part of a kustomization or chart, and none is built here; give the output of kustomize build \
                         or helm template";

/// Reads the items of a walk.
struct ItemReader<'r, 's> {
    plan: &'r Plan,
    ours: Ours,
    /// Whether what kustomizations list is read: of state it does not matter how it is applied.
    keeps_parts: bool,
    /// Standard input, until it is read.
    stdin: Option<&'s mut dyn Read>,
    open: BTreeMap<PathBuf, Opened<'r>>,
    inputs: &'r mut Inputs,
    found: ReadTexts,
    /// The canonical paths of the files that were read.
    read_files: BTreeSet<PathBuf>,
}

impl ItemReader<'_, '_> {
    fn item(&mut self, item: WalkedItem) {
        if let WalkedItem::Named(path) | WalkedItem::Found(path) = &item {
            self.found.files.push(path.clone());
        }
        match item {
            WalkedItem::Stdin if self.open.is_empty() => {
                let text = self.stdin.take().map(|stdin| source(STDIN, Ok(stdin), self.plan.max_bytes));
                self.add(text, false);
            }
            WalkedItem::Stdin => self.open_outside(),
            WalkedItem::Named(path) if self.keeps_parts && self.found.layout.is_input(&path) => {
                self.inputs.errors.push(Error::of_input(path.to_string_lossy(), NOT_BUILT));
            }
            WalkedItem::Named(path) => self.file(&path, true),
            WalkedItem::Found(path) => self.file(&path, false),
            WalkedItem::Unread(path, reason) => {
                // What a link leads to is not known.
                let is_ours = self.open.is_empty() && self.is_ours(&path);
                if path.is_symlink() || is_ours {
                    self.inputs.skipped.push(format!("{} ({reason})", path.display()));
                }
                self.inputs.unread += usize::from(is_ours && !self.keeps_parts);
            }
            WalkedItem::Error(error) => self.inputs.errors.push(error),
        }
    }

    /// Whether a file that is not read has something of ours; under any name, objects that would be judged.
    fn is_ours(&self, path: &Path) -> bool {
        let is_small = fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= MOST_UNREAD);
        let source = Some(path).filter(|_| is_small).and_then(|path| file(path, self.plan.max_bytes).ok());
        let Some(source) = source.filter(|it| self.ours.is_in(it.text())).map(Arc::new) else { return false };
        let is_one = |it: &Document| is_ours(it.group(), it.kind(), it.value());
        looks_like_manifest(path) || parse(&source).documents.iter().any(is_one)
    }

    /// Reads the open files about which no walk decides.
    fn open_outside(&mut self) {
        let outside = self.open.values().filter(|it| !it.is_walked && it.file.is_checked_outside);
        let files: Vec<&OpenFile> = outside.map(|it| it.file).collect();
        for file in files {
            let is_part = self.found.layout.is_part(&file.path);
            self.add(Some(self.open(file)), is_part);
        }
    }

    fn open(&self, file: &OpenFile) -> Result<Source, Error> {
        source(&file.path.to_string_lossy(), Ok(file.text.as_bytes()), self.plan.max_bytes)
    }

    fn file(&mut self, path: &Path, is_named: bool) {
        let real = without_links(path);
        let open = self.open.get(&real).map(|it| it.file);
        let values = self.plan.builder.iter().flat_map(|builder| &builder.values);
        let is_values = values.into_iter().any(|(_, file)| normal(file) == normal(path));
        let layout = &self.found.layout;
        let is_part = is_values
            || if self.keeps_parts || open.is_none() && !self.open.is_empty() {
                // In an editor a base is state, however it is applied.
                layout.is_input(path)
            } else {
                layout.is_part(path)
            };
        if is_part && open.is_none() || !self.read_files.insert(real) {
            return;
        }
        let name = path.to_string_lossy();
        let text = match (open, self.plan.instead.get(&*name)) {
            (Some(file), _) => self.open(file),
            (None, Some(text)) => Ok(Source::new(name, text.as_str())),
            (None, None) => file(path, self.plan.max_bytes),
        };
        // What is very much too large is not read to its end.
        let most = (self.plan.max_bytes as u64).saturating_mul(2);
        let is_other =
            |file: File| file.metadata().is_ok_and(|it| it.len() <= most) && !may_be_manifest(file);
        if !is_named && text.is_err() && File::open(path).is_ok_and(is_other) {
            return;
        }
        self.add(Some(text), is_part);
    }

    fn add(&mut self, source: Option<Result<Source, Error>>, is_part: bool) {
        match source {
            Some(Ok(source)) if is_part => self.found.parts.push(Arc::new(source)),
            Some(Ok(source)) => self.found.sources.push(Arc::new(source)),
            Some(Err(error)) => self.inputs.errors.push(error),
            None => {}
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
        let collected = collect(&inputs, &Plan::default(), &mut "from stdin".as_bytes());
        let short = |name: &str| name.replace(&format!("{}/", root.display()), "");
        (
            collected.sources.iter().map(|source| short(source.name())).collect(),
            collected.errors.iter().map(|error| short(&error.to_string())).collect(),
            collected.empty.len(),
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
        for file in files.iter().filter(|file| **file != ".git/f.yaml") {
            let text = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n";
            fs::write(root.path().join(file), text).expect("file");
        }
        for (target, link) in
            [("nothing", "k.yaml"), ("nothing", "l"), ("a.yaml", "m.yaml"), (".git", "n.yaml")]
        {
            std::os::unix::fs::symlink(target, root.path().join(link)).expect("link");
        }
        let path = root.path().display().to_string();
        let unread = |input: &str| -> Vec<String> {
            let collected = collect(&[input.to_owned()], &Plan::default(), &mut io::empty());
            collected.skipped.iter().map(|file| file.replace(&format!("{path}/"), "")).collect()
        };
        let lower = "extension not in lower case";
        let misnamed = ["b.YAML", "c.Yml", "d.JSON"].map(|file| format!("{file} ({lower})"));
        let other = "not named .yaml, .yml or .json";
        let mut all = vec![".e.yaml (hidden)".to_owned(), format!(".i ({other})")];
        all.extend(misnamed);
        all.extend(["g.txt", "h.TXT"].map(|file| format!("{file} ({other})")));
        all.push("k.yaml (a link to nothing)".to_owned());
        assert_eq!(unread(&path), all);
        assert_eq!(unread(&format!("{path}/*.txt")), [format!("h.TXT ({lower})")]);
        assert_eq!(unread(&format!("{path}/.e.yaml")), Vec::<String>::new());
    }

    /// A file has one name, its own, and a linked directory is read where it is, or named. Links may form loops.
    #[cfg(unix)]
    #[test]
    fn links_are_followed_once_or_named() {
        use std::os::unix::fs::symlink;
        let root = directory(&["b/mem.yaml", "other/in.yaml", ".git/x", "c/only.txt"]);
        for (target, link) in [
            ("../b/mem.yaml", "b/a.yaml"),
            ("../b", "b/loop"),
            ("../other", "b/in"),
            ("/", "b/out"),
            ("../c/only.txt", "b/z.yaml"),
            ("..", "other/up"),
        ] {
            symlink(target, root.path().join(link)).expect("a link");
        }
        let unread = "a link to a directory, which is not followed";
        for (inputs, expected, named) in [
            (&[""][..], &["/b/mem.yaml", "/b/z.yaml", "/other/in.yaml"][..], &["/b/out"][..]),
            (&["b"], &["b/mem.yaml", "b/z.yaml"], &["b/in", "b/out"]),
            (&["b", "b/*.yaml"], &["b/mem.yaml", "b/z.yaml"], &["b/in", "b/out"]),
            (&["b/*.yaml"], &["b/mem.yaml", "b/z.yaml"], &[]),
            (&["b/a.yaml", "b"], &["b/a.yaml", "b/z.yaml"], &["b/in", "b/out"]),
            (&["b/in", "other"], &["b/in/in.yaml"], &["b/in/up", "other/up"]),
            (&["b/loop"], &["b/loop/mem.yaml", "b/loop/z.yaml"], &["b/loop/in", "b/loop/out"]),
        ] {
            let paths: Vec<String> =
                inputs.iter().map(|input| format!("{}/{input}", root.path().display())).collect();
            let read = collect(&paths, &Plan::default(), &mut io::empty());
            let short = |name: &str| name.replacen(&format!("{}/", root.path().display()), "", 1);
            let names: Vec<_> = read.sources.iter().map(|source| short(source.name())).collect();
            let expected: Vec<_> = expected.iter().map(|it| it.trim_start_matches('/').to_owned()).collect();
            assert_eq!(
                names.iter().map(|it| it.trim_start_matches('/')).collect::<Vec<_>>(),
                expected,
                "{inputs:?}"
            );
            let skipped: Vec<_> = read.skipped.iter().map(|it| short(it)).collect();
            for path in named {
                let path = path.trim_start_matches('/');
                assert!(
                    skipped.iter().any(|it| it.trim_start_matches('/') == format!("{path} ({unread})")),
                    "{inputs:?} {skipped:?}"
                );
            }
            assert_eq!(skipped.len(), named.len(), "{inputs:?} {skipped:?}");
        }
    }
}

//! Reads the sources at paths: files, directories, globs, standard input, and the output of helm and kustomize.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::built;
use crate::exclude::Exclude;
use crate::inputs::Inputs;
use crate::origins::Origins;
use crate::origins::files::file_name;
use crate::plan::{OpenFile, Plan};
use crate::render::Unrendered;
use crate::rendered::Rendered;
use crate::repository::{Repository, Tool, Unit, normal};
use crate::texts::{file, source};
use crate::walk::{Item, Walked};
use memgate_core::state::empty;
use memgate_manifest::error::Error;
use memgate_manifest::later::is_of_template;
use memgate_manifest::source::Source;

/// The name of standard input as a source.
pub(crate) const STDIN: &str = "<stdin>";

/// Reads files with any extension, directories (`*.yaml`, `*.yml` and `*.json` at any depth, as kubectl
/// does, except hidden ones), globs, and `-` for `stdin`. In directories and globs, files from which helm or kustomize
/// makes manifests are not read: they are rendered, or listed in [`Inputs::unrendered`].
pub fn collect(paths: &[String], plan: &Plan, stdin: &mut dyn Read) -> Inputs {
    let mut inputs = Inputs::new(empty(plan.settings.clone()));
    inputs.sources = read(paths, plan.within.as_deref(), &plan.exclude, plan, stdin, &mut inputs);
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
    inputs: &mut Inputs,
) -> Vec<Arc<Source>> {
    let text = |path: &Path| plan.source(path);
    let mut walked = Walked::new(paths, within, exclude, &text, &plan.open);
    for file in plan.open.iter().filter(|file| file.text.is_none()) {
        walked.repository.add_chart_around(&file.path, &text, &mut Vec::new());
    }
    let rendered = Rendered::new(&walked.items, &mut walked.repository, plan);
    let open = opened(&plan.open, &walked.items, exclude);
    let real = real_files(&walked.items);
    inputs.empty.extend(walked.empty);
    let (sources, read_files, units) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    let mut reader = Reader { plan, stdin: Some(stdin), open, inputs, sources, read_files, units, rendered };
    for item in walked.items.into_iter().filter(|item| !is_second_way(item, &real)) {
        reader.item(item, &walked.repository);
    }
    reader.finish(&mut walked.repository);
    Arc::make_mut(&mut reader.inputs.substitutes).know(&walked.repository);
    let sources = reader.sources;
    inputs.is_open_read_apart |= plan.open.iter().any(|file| {
        let path = &file.path;
        let is_part = walked.repository.unit_of(path, false).is_some() || walked.repository.is_patch(path);
        is_part || inputs.installers.moved.contains(&normal(path))
    });
    sources
}

/// The files of a walk that are not links, if there are links too.
fn real_files(items: &[Item]) -> BTreeSet<PathBuf> {
    let found =
        || items.iter().filter_map(|item| if let Item::Found(path) = item { Some(path) } else { None });
    if !found().any(|path| path.is_symlink()) {
        return BTreeSet::new();
    }
    found().filter(|path| !path.is_symlink()).map(|path| without_links(path)).collect()
}

/// Whether an item is a link to a file of the walk: settings for paths must not depend on a link that comes first.
fn is_second_way(item: &Item, real: &BTreeSet<PathBuf>) -> bool {
    matches!(item, Item::Found(path) if !real.is_empty() && path.is_symlink() && real.contains(&without_links(path)))
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
    plan: &'r Plan,
    /// Standard input, until it is read.
    stdin: Option<&'s mut dyn Read>,
    open: BTreeMap<PathBuf, Opened<'r>>,
    inputs: &'r mut Inputs,
    sources: Vec<Arc<Source>>,
    /// The canonical paths of the files that were read.
    read_files: BTreeSet<PathBuf>,
    /// The charts and overlays, with their files.
    units: BTreeMap<Unit, Vec<String>>,
    rendered: Rendered,
}

impl Reader<'_, '_> {
    fn item(&mut self, item: Item, repository: &Repository) {
        if let Item::Named(path) | Item::Found(path) = &item {
            self.inputs.installers.files.push(path.clone());
        }
        let unit = item.unit(repository, self.plan.rendering.is_some());
        match item {
            Item::Stdin if self.open.is_empty() => {
                let text = self.stdin(STDIN);
                self.add(text);
            }
            Item::Stdin => self.open_outside(repository),
            Item::Named(path) | Item::Found(path) => match unit {
                Some(unit) => {
                    self.open_part(&path);
                    self.units.entry(unit).or_default().push(path.to_string_lossy().into_owned());
                }
                None => self.file(&path),
            },
            Item::Unread(path, reason) => {
                self.inputs.skipped.push(format!("{} ({reason})", path.display()));
            }
            Item::Error(error) => self.inputs.errors.push(error),
        }
    }

    fn stdin(&mut self, name: &str) -> Option<Result<Source, Error>> {
        Some(source(name, Ok(self.stdin.take()?), self.plan.max_bytes))
    }

    /// Reads the open files about which no walk decides. A template or patch on standard input acts as the one of its name does.
    fn open_outside(&mut self, repository: &Repository) {
        let outside = self.open.values().filter(|it| !it.is_walked && it.file.is_checked_outside);
        let files: Vec<&OpenFile> = outside.map(|it| it.file).collect();
        for file in files {
            let is_patch = repository.is_patch(&file.path);
            let unit = repository.unit_of(&file.path, self.plan.rendering.is_some() && is_patch);
            let unit = unit.filter(|unit| unit.tool == Tool::Helm || is_patch);
            let is_part = |source: &Source| is_patch || source.text().lines().any(is_of_template);
            match (unit.filter(|_| file.text.is_none()), self.open(file)) {
                (Some(unit), Some(Ok(source))) if is_part(&source) => {
                    self.units.entry(unit).or_default().push(source.name().to_owned());
                }
                (_, text) => self.add(text),
            }
        }
    }

    fn open(&mut self, file: &OpenFile) -> Option<Result<Source, Error>> {
        let name = file.path.to_string_lossy();
        match &file.text {
            Some(text) => Some(source(&name, Ok(text.as_bytes()), self.plan.max_bytes)),
            None => self.stdin(&name),
        }
    }

    /// Reports standard input that cannot be read, in place of a file that is not a manifest.
    fn open_part(&mut self, path: &Path) {
        let open = if self.open.is_empty() { None } else { self.open.get(&without_links(path)) };
        if let Some(file) = open.map(|it| it.file).filter(|file| file.text.is_none()) {
            let name = file.path.to_string_lossy();
            let text = self.stdin.take().map(|stdin| source(&name, Ok(stdin), self.plan.max_bytes));
            self.inputs.errors.extend(text.and_then(Result::err));
        }
    }

    fn file(&mut self, path: &Path) {
        let real = without_links(path);
        let open = self.open.get(&real).map(|it| it.file);
        if !self.read_files.insert(real) {
            return;
        }
        let name = path.to_string_lossy();
        let text = match (open, self.plan.instead.get(&*name)) {
            (Some(file), _) => self.open(file),
            (None, Some(text)) => Some(Ok(Source::new(name, text.as_str()))),
            (None, None) => Some(file(path, self.plan.max_bytes)),
        };
        self.add(text);
    }

    /// Adds the charts and overlays that were rendered, and lists the others.
    fn finish(&mut self, repository: &mut Repository) {
        self.add_rendered();
        self.rendered.add_charts(&self.sources, &self.inputs.origins.rendered, repository, self.plan);
        self.add_rendered();
        self.inputs.rendered_by.append(&mut self.rendered.programs);
        let failures = std::mem::take(&mut self.rendered.failures);
        let is_failing = !failures.is_empty() || self.rendered.is_circular;
        self.inputs.errors.extend(failures);
        let (mut unrendered, renders) = (Vec::new(), self.plan.rendering.is_some() && built::HAS_WORKSTATION);
        for (mut unit, mut files) in std::mem::take(&mut self.units) {
            if renders && repository.is_rendered(&unit) {
                continue;
            }
            let mut seen = BTreeSet::new();
            files.retain(|file| seen.insert(file_name(Path::new(file))));
            let why = self.rendered.left.remove(&(unit.tool, unit.absolute().to_owned()));
            let is_failed = is_failing && unit.tool == Tool::Kustomize;
            if is_failed {
                // Its objects are judged in other namespaces than those that it gives.
                (unit.generates, unit.namespaces) = (true, BTreeSet::new());
            }
            unrendered.push(Unrendered { unit, files, why, is_failed, namespaces: None });
        }
        let is_moving =
            |unit: &&Unit| unit.tool == Tool::Kustomize && unit.generates && !unit.namespaces.is_empty();
        let moving = unrendered.iter().map(|it| &it.unit).filter(is_moving);
        let moving = moving.map(|unit| unit.absolute().to_owned()).collect();
        self.inputs.installers.moved.extend(repository.files_around(moving));
        let text = |path: &Path| self.plan.source(path);
        self.inputs.errors.extend(repository.errors_of_circles(&text));
        // Those that a command can render come first.
        unrendered.sort_by_key(|unrendered| !unrendered.unit.is_whole);
        self.inputs.unrendered.extend(unrendered);
        self.inputs.patched_by.extend(repository.patched_by());
    }

    fn add_rendered(&mut self) {
        for (unit, texts) in std::mem::take(&mut self.rendered.texts) {
            for (release, text) in texts {
                if let Ok(source) = &text {
                    let Origins { rendered, releases, .. } = &mut self.inputs.origins;
                    rendered.insert(source.name().to_owned(), unit.clone());
                    releases.extend(release.map(|release| (source.name().to_owned(), release)));
                }
                self.add(Some(text));
            }
        }
    }

    fn add(&mut self, source: Option<Result<Source, Error>>) {
        match source {
            Some(Ok(source)) => self.sources.push(Arc::new(source)),
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
        let mut all = vec![".e.yaml (hidden)".to_owned()];
        all.extend(misnamed);
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

//! The files in directories that are not manifests, but from which helm or kustomize makes manifests: templates and
//! values of charts, and patches of kustomizations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::paths::{normal, root_of, without_dots};

use crate::kustomization::{
    self, FILE_NAMES, Kustomization, PatchBody, is_kustomization, is_remote, place_of,
};
use crate::paths::{Home, leads_out};
use crate::texts::{ReadFile, file};
use memgate_manifest::document::values;
use memgate_manifest::error::{Error, SyntaxError};
use memgate_manifest::source::Source;
use memgate_platforms::message::and_more;

/// The file that makes a directory a chart.
pub(crate) const CHART_FILE: &str = "Chart.yaml";
/// So many namespaces are kept of the objects of a kustomization.
const MOST_NAMESPACES: usize = 64;
/// So many kustomizations of a circle are named.
const MOST_OF_A_CIRCLE: usize = 3;
/// The file with the values of a chart.
pub(crate) const VALUES_FILE: &str = "values.yaml";
const TEMPLATES: &str = "templates";
/// The directory of files that templates put into objects.
const FILES: &str = "files";
/// The directory of the charts that a chart depends on.
pub(crate) const SUBCHARTS: &str = "charts";

/// The program that renders a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// A chart.
    Helm,
    /// A kustomization.
    Kustomize,
}

impl Tool {
    /// The programs that do it, the first that is there, each with its command.
    pub(crate) const fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Helm => &[("helm", "template")],
            Self::Kustomize => &[("kustomize", "build"), ("kubectl", "kustomize")],
        }
    }
}

/// The charts and kustomizations among the inputs, by their absolute paths.
#[derive(Debug, Default)]
pub struct Repository {
    charts: BTreeMap<PathBuf, Chart>,
    kustomizations: BTreeMap<PathBuf, Built>,
    /// The files that are patches of one of them.
    patches: BTreeSet<PathBuf>,
    /// The kustomizations that refer to a file or directory, each as an input, and then as a resource.
    users: BTreeMap<PathBuf, [BTreeSet<PathBuf>; 2]>,
    /// The overlays, and the kustomizations on which they build.
    reached: BTreeSet<PathBuf>,
    /// The kustomizations that include themselves, each with those by way of which it does, and itself again.
    circles: Vec<Vec<PathBuf>>,
    /// Those, and the kustomizations that build on them.
    circular: BTreeSet<PathBuf>,
    /// Those that are not rendered although all are.
    left: BTreeSet<(Tool, PathBuf)>,
}

#[derive(Debug)]
struct Chart {
    /// As the user would write it.
    shown: PathBuf,
    /// Whether it only has templates for other charts.
    is_library: bool,
}

#[derive(Debug)]
struct Built {
    shown: PathBuf,
    is_component: bool,
    /// The files and directories that it refers to, by absolute paths.
    resources: BTreeSet<PathBuf>,
    inputs: BTreeSet<PathBuf>,
    generates: bool,
    remote: Option<String>,
    /// The namespace of its objects.
    namespace: Option<String>,
    /// The namespaces of the objects that it makes, alone or as a part of others; `None` for those that the objects name.
    namespaces: BTreeSet<Option<String>>,
    /// Whether another kustomization of the inputs refers to it.
    is_used: bool,
    /// Its file.
    file: PathBuf,
    /// The files of its patches, by absolute paths.
    patches: BTreeSet<PathBuf>,
    /// Of one above the inputs, those among its patches that are inputs; `None` for one that is an input itself.
    named: Option<BTreeSet<PathBuf>>,
}

/// A kustomization whose patches are judged.
#[derive(Debug, Clone)]
pub struct PatchedBy {
    /// Its file.
    pub file: PathBuf,
    /// The only patches of it that are judged, by absolute paths; `None` for all.
    pub named: Option<BTreeSet<PathBuf>>,
}

/// The chart or kustomization of a file that is not a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// The program that renders it.
    pub tool: Tool,
    /// The directory as the user would write it.
    pub directory: PathBuf,
    /// Whether it can be rendered on its own: false for a library, a Component and the base of an overlay.
    pub is_whole: bool,
    /// Whether it makes objects that no manifest names: a chart, and a kustomization with generators.
    pub generates: bool,
    /// What it takes from another repository, if anything.
    pub remote: Option<String>,
    /// The namespaces of the objects of a kustomization; empty if they may be in any.
    pub namespaces: BTreeSet<String>,
    absolute: PathBuf,
}

/// Before the file from which a document comes, in what helm and memgate print.
pub(crate) const SOURCE_COMMENT: &str = "# Source: ";

impl Unit {
    /// The file that makes the directory a chart or a kustomization.
    pub(crate) fn marker(&self) -> PathBuf {
        let names: &[&str] = match self.tool {
            Tool::Helm => &[CHART_FILE],
            Tool::Kustomize => &FILE_NAMES,
        };
        let mut files = names.iter().map(|name| without_dots(&self.directory.join(name)));
        files.find(|file| file.is_file()).unwrap_or_else(|| self.directory.clone())
    }

    /// The directory as an absolute path.
    pub(crate) fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// The path of a file that the program names, if it exists.
    pub(crate) fn path_of(&self, file: &str) -> Option<PathBuf> {
        let path = match self.tool {
            // helm starts with the name of the chart, which need not be that of its directory.
            Tool::Helm => self.directory.join(file.split_once('/')?.1),
            Tool::Kustomize => self.directory.join(file),
        };
        Home::of(&self.absolute, None).has_file(&path).then(|| without_dots(&path))
    }

    /// The template from which helm printed what is at a byte: the one that the last comment before it names.
    pub(crate) fn template_at(&self, printed: &Source, at: usize) -> Option<PathBuf> {
        let before = printed.text().get(..at).filter(|_| self.tool == Tool::Helm)?;
        let file = before.lines().rev().find_map(|line| line.strip_prefix(SOURCE_COMMENT))?;
        self.path_of(file.trim()).filter(|path| normal(path).starts_with(&self.absolute))
    }
}

/// Whether a path is that of a file that makes its directory a chart or a kustomization.
pub fn is_marker(path: &Path) -> bool {
    is_kustomization(path) || path.file_name().is_some_and(|name| name == CHART_FILE)
}

impl Repository {
    /// Adds a file that makes its directory a chart or a kustomization. Its errors go to `errors`.
    pub fn add(&mut self, file: &Path, read: ReadFile<'_>, errors: &mut Vec<Error>) {
        let shown = directory_of(file);
        let directory = normal(&shown);
        let source = match read(file) {
            Ok(source) => source,
            Err(error) => {
                errors.push(error);
                Source::new("", "")
            }
        };
        if is_kustomization(file) {
            let Kustomization {
                is_component,
                resources,
                inputs,
                plugins,
                generates,
                remote,
                patches,
                namespace,
                ..
            } = kustomization::parse(source, errors);
            let absolute = |paths: Vec<String>| -> BTreeSet<_> {
                paths.into_iter().map(|path| normal(&directory.join(path))).collect()
            };
            let patches = patches.into_iter().filter_map(|patch| match patch.body {
                PatchBody::File(path) => Some(path),
                PatchBody::Text(_) => None,
            });
            let (patches, file) = (absolute(patches.collect()), file.to_owned());
            self.patches.extend(patches.iter().cloned());
            let (resources, mut inputs, plugins) = (absolute(resources), absolute(inputs), absolute(plugins));
            // kustomize refuses a directory in place of a patch, and does not build it.
            inputs.retain(|input| plugins.contains(input) || !input.is_dir());
            let (is_used, named, namespaces) = (false, None, BTreeSet::new());
            let built = Built {
                shown,
                is_component,
                resources,
                inputs,
                generates,
                remote,
                namespace,
                namespaces,
                is_used,
                file,
                patches,
                named,
            };
            self.insert(directory, built);
        } else {
            // helm reports errors of a chart.
            let documents = values(&Arc::new(source), &mut Vec::new());
            let kind = documents.first().and_then(|document| document.value().get("type")?.as_str());
            let is_library = kind == Some("library");
            self.charts.insert(directory, Chart { shown, is_library });
        }
    }

    fn insert(&mut self, directory: PathBuf, built: Built) {
        for (number, parts) in [&built.inputs, &built.resources].into_iter().enumerate() {
            for part in parts {
                if let Some(users) = self.users.entry(part.clone()).or_default().get_mut(number) {
                    users.insert(directory.clone());
                }
            }
        }
        self.kustomizations.insert(directory, built);
    }

    /// Adds the chart, with those around it, if a walk starts within its templates.
    pub fn add_chart_around(&mut self, root: &Path, read: ReadFile<'_>, errors: &mut Vec<Error>) {
        let here = normal(Path::new("."));
        let absolute = normal(root);
        for templates in
            absolute.ancestors().filter(|path| path.file_name().is_some_and(|name| name == TEMPLATES))
        {
            let mut chart = templates.parent();
            while let Some(directory) = chart.filter(|it| it.join(CHART_FILE).is_file()) {
                let shown =
                    if root.is_absolute() { Some(directory.to_owned()) } else { path_from(&here, directory) };
                if let Some(shown) = shown.filter(|_| !self.charts.contains_key(directory)) {
                    self.add(&shown.join(CHART_FILE), read, errors);
                }
                let charts =
                    directory.parent().filter(|it| it.file_name().is_some_and(|name| name == SUBCHARTS));
                chart = charts.and_then(Path::parent);
            }
        }
    }

    /// Adds the kustomizations in directories above inputs that have some of these files, which are all inputs, as patches. Of
    /// one that is not an input itself, only those patches are judged.
    pub fn add_around<'f>(&mut self, files: impl Iterator<Item = &'f Path> + Clone, read: ReadFile<'_>) {
        let inputs: BTreeSet<PathBuf> = if self.kustomizations.is_empty() {
            BTreeSet::new()
        } else {
            files.clone().map(normal).collect()
        };
        for built in self.kustomizations.values_mut().filter(|it| !inputs.contains(&normal(&it.file))) {
            built.named = Some(built.patches.intersection(&inputs).cloned().collect());
        }
        let mut above: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
        let mut named: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for shown in files {
            let file = normal(shown);
            let parent = file.parent().unwrap_or(&file);
            let home = root_of(parent).unwrap_or(parent);
            let shown = shown.parent().map(without_dots).unwrap_or_default();
            for (up, directory) in parent.ancestors().take_while(|it| it.starts_with(home)).enumerate() {
                let marker = above.entry(directory.to_owned()).or_insert_with(|| {
                    let up = std::iter::repeat_n("..", up).collect::<PathBuf>();
                    let mut files = FILE_NAMES.iter().map(|name| without_dots(&shown.join(&up).join(name)));
                    files.find(|it| !self.kustomizations.contains_key(directory) && it.is_file())
                });
                if marker.is_some() {
                    named.entry(directory.to_owned()).or_default().insert(file.clone());
                }
            }
        }
        for (directory, named) in named {
            let Some(marker) = above.get(&directory).and_then(Option::as_ref) else { continue };
            let mut around = Self::default();
            around.add(marker, read, &mut Vec::new());
            let Some(built) = around.kustomizations.remove(&directory) else { continue };
            let named: BTreeSet<PathBuf> = built.patches.intersection(&named).cloned().collect();
            if !named.is_empty() {
                self.patches.extend(built.patches.iter().cloned());
                self.insert(directory, Built { named: Some(named), ..built });
            }
        }
    }

    /// The kustomizations with patches to judge.
    pub fn patched_by(&self) -> impl Iterator<Item = PatchedBy> {
        self.kustomizations.values().map(|it| PatchedBy { file: it.file.clone(), named: it.named.clone() })
    }

    /// Whether a file is a patch of one of the kustomizations.
    pub fn is_patch(&self, file: &Path) -> bool {
        !self.patches.is_empty() && self.patches.contains(&normal(file))
    }

    /// Finds out which kustomizations are parts of others, once all are added.
    pub fn link(&mut self) {
        let mut todo: Vec<(PathBuf, Option<String>)> = Vec::new();
        for (directory, built) in &mut self.kustomizations {
            built.is_used = self.users.contains_key(directory);
            if !built.is_used && !built.is_component {
                todo.push((directory.clone(), None));
            }
        }
        self.reach(todo);
        // One that includes itself is an overlay too, unless another one includes it.
        let mut seen = BTreeSet::new();
        for directory in self.in_circles() {
            if seen.contains(&directory) {
                continue;
            }
            let circle = self.circle(&directory, &seen);
            let mut todo = vec![directory.clone()];
            while let Some(next) = todo.pop() {
                if let Some(built) = self.kustomizations.get(&next).filter(|_| !seen.contains(&next)) {
                    todo.extend(built.resources.union(&built.inputs).cloned());
                    seen.insert(next);
                }
            }
            let is_top = circle.is_some() && !self.reached.contains(&directory);
            self.circles.extend(circle);
            if let Some(built) = self.kustomizations.get_mut(&directory).filter(|_| is_top) {
                built.is_used = false;
                self.reach(vec![(directory, None)]);
            }
        }
        let mut todo: Vec<PathBuf> = self.circles.iter().flatten().cloned().collect();
        while let Some(next) = todo.pop() {
            if !self.circular.contains(&next) {
                todo.extend(self.users.get(&next).into_iter().flatten().flatten().cloned());
                self.circular.insert(next);
            }
        }
    }

    /// Whether a unit is a kustomization that includes itself, or builds on one.
    pub(crate) fn is_circular(&self, unit: &Unit) -> bool {
        unit.tool == Tool::Kustomize && self.circular.contains(&unit.absolute)
    }

    /// The way from a kustomization to itself, if it is in a circle. What was seen already does not lead to it.
    fn circle(&self, start: &Path, seen: &BTreeSet<PathBuf>) -> Option<Vec<PathBuf>> {
        let mut from: BTreeMap<&Path, &Path> = BTreeMap::new();
        let mut todo = VecDeque::from([start]);
        while let Some(next) = todo.pop_front() {
            let built = self.kustomizations.get(next)?;
            for part in built.resources.union(&built.inputs) {
                let is_new = !from.contains_key(&**part) && !seen.contains(part);
                if is_new && self.kustomizations.contains_key(part) {
                    from.insert(part, next);
                    todo.push_back(part);
                }
            }
        }
        let mut way = vec![start.to_owned()];
        while way.len() == 1 || way.last().is_none_or(|last| last != start) {
            way.push((*from.get(&**way.last()?)?).to_owned());
        }
        way.reverse();
        Some(way)
    }

    /// The errors about kustomizations that include themselves, each at the path that leads to the next one.
    pub(crate) fn errors_of_circles(&self, read: ReadFile<'_>) -> impl Iterator<Item = Error> {
        self.circles.iter().filter_map(move |way| {
            let first = self.kustomizations.get(way.first()?)?;
            let others = way.get(1..way.len() - 1)?.iter().filter_map(|it| self.kustomizations.get(it));
            let others: Vec<_> =
                others.map(|it| without_dots(&it.shown).to_string_lossy().into_owned()).collect();
            let by_way = if others.is_empty() {
                String::new()
            } else {
                format!(", by way of {}", and_more(&others, MOST_OF_A_CIRCLE))
            };
            let message = format!("this kustomization includes itself{by_way}; kustomize build fails");
            let (source, span) = place_of(way.get(1)?, read(&first.file).ok()?, &first.shown);
            Some(Error::Syntax(Box::new(SyntaxError::new(&source, span, message))))
        })
    }

    /// The kustomizations in a circle, and their parts. Components among them are used by others, or by none.
    fn in_circles(&self) -> Vec<PathBuf> {
        let rest: BTreeMap<&PathBuf, &Built> = self.kustomizations.iter().collect();
        let parts = |built: &Built| -> Vec<PathBuf> {
            let all = built.resources.union(&built.inputs);
            all.filter(|part| rest.contains_key(part)).cloned().collect()
        };
        let mut users: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for part in rest.values().flat_map(|built| parts(built)) {
            *users.entry(part).or_default() += 1;
        }
        let is_unused = |directory: &&&PathBuf| !users.contains_key(**directory);
        let mut todo: Vec<PathBuf> = rest.keys().filter(is_unused).map(|it| (*it).clone()).collect();
        let mut peeled = BTreeSet::new();
        while let Some(next) = todo.pop() {
            for part in rest.get(&next).map(|built| parts(built)).unwrap_or_default() {
                let left = users.entry(part.clone()).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    todo.push(part);
                }
            }
            peeled.insert(next);
        }
        let is_left =
            |(directory, built): &(&&PathBuf, &&Built)| !built.is_component && !peeled.contains(**directory);
        rest.iter().filter(is_left).map(|(directory, _)| (*directory).clone()).collect()
    }

    /// Notes what the kustomizations reach, with the namespaces that outer ones give.
    fn reach(&mut self, mut todo: Vec<(PathBuf, Option<String>)>) {
        while let Some((next, outer)) = todo.pop() {
            let Some(built) = self.kustomizations.get_mut(&next) else { continue };
            let namespace = outer.or_else(|| built.namespace.clone());
            let namespace = namespace.filter(|_| built.namespaces.len() < MOST_NAMESPACES);
            if built.namespaces.insert(namespace.clone()) {
                let parts = built.resources.iter().chain(&built.inputs);
                todo.extend(parts.map(|part| (part.clone(), namespace.clone())));
            }
            self.reached.insert(next);
        }
    }

    /// The kustomizations by their directories, with the files and directories from which they are built.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&PathBuf, impl Iterator<Item = &PathBuf>)> {
        self.kustomizations
            .iter()
            .map(|(directory, built)| (directory, built.resources.iter().chain(&built.inputs)))
    }

    /// The directories of the kustomizations from which these are built, and their own, with the files of the kustomizations.
    pub(crate) fn reached_from(&self, mut todo: Vec<PathBuf>) -> BTreeMap<PathBuf, &Path> {
        let mut reached = BTreeMap::new();
        while let Some(next) = todo.pop() {
            let Some(built) = self.kustomizations.get(&next) else { continue };
            if reached.insert(next, &*built.file).is_none() {
                todo.extend(built.resources.iter().chain(&built.inputs).cloned());
            }
        }
        reached
    }

    /// What leads out of the repository among the files from which a unit is built, in words: a link, or for kustomize a path.
    pub(crate) fn way_out_of(&self, unit: &Unit, max_bytes: usize) -> Option<String> {
        let here = normal(Path::new("."));
        let shown = |path: &Path| path_from(&here, path).unwrap_or_else(|| path.to_owned());
        let link = |path: &Path| {
            let words = || format!("{} is a link that leads out of the repository", shown(path).display());
            leads_out(path).then(words)
        };
        if unit.tool == Tool::Kustomize {
            let home = Home::of(&unit.absolute, None);
            let outside = |path: &Path| {
                let words = || format!("{} is not in the repository", shown(path).display());
                home.is_left_by(path).then(words)
            };
            let (mut todo, mut seen) = (vec![unit.absolute.clone()], BTreeSet::new());
            while let Some(directory) = todo.pop() {
                if !seen.insert(directory.clone()) {
                    continue;
                }
                for part in self.parts_of(&directory, max_bytes) {
                    if let Some(way) = link(&part).or_else(|| outside(&part)) {
                        return Some(way);
                    }
                    todo.extend(part.is_dir().then_some(part));
                }
            }
            return None;
        }
        let mut todo = vec![unit.absolute.clone()];
        while let Some(directory) = todo.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => todo.push(entry.path()),
                    Ok(kind) if kind.is_symlink() => {
                        if let Some(link) = link(&entry.path()) {
                            return Some(link);
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// The files and directories from which a kustomization is built, which need not be among the inputs.
    fn parts_of(&self, directory: &Path, max_bytes: usize) -> Vec<PathBuf> {
        if let Some(built) = self.kustomizations.get(directory) {
            return built.resources.union(&built.inputs).cloned().collect();
        }
        let marker = FILE_NAMES.iter().map(|name| directory.join(name)).find(|marker| marker.is_file());
        let text = marker.and_then(|marker| file(&marker, max_bytes).ok());
        let read = text.map(|text| kustomization::parse(text, &mut Vec::new())).unwrap_or_default();
        let local = read.resources.into_iter().filter(|it| !is_remote(it)).chain(read.inputs);
        local.map(|path| normal(&directory.join(path))).collect()
    }

    /// The files and directories from which kustomizations are built that have one of these.
    pub(crate) fn files_around(&self, mut todo: Vec<PathBuf>) -> BTreeSet<PathBuf> {
        let mut around = BTreeSet::new();
        while let Some(next) = todo.pop() {
            if !around.contains(&next) {
                todo.extend(self.users.get(&next).into_iter().flatten().flatten().cloned());
                around.insert(next);
            }
        }
        let reached = self.reached_from(around.into_iter().collect()).into_keys();
        let built = reached.filter_map(|directory| self.kustomizations.get(&directory));
        built.flat_map(|built| &built.resources).cloned().collect()
    }

    /// The chart or kustomization of a file; `None` for a manifest. With `rendered`, the resources of an overlay belong to
    /// it too, since kustomize prints their objects.
    pub fn unit_of(&self, file: &Path, rendered: bool) -> Option<Unit> {
        if self.charts.is_empty() && self.kustomizations.is_empty() {
            return None;
        }
        let file = normal(file);
        self.chart_of(&file).or_else(|| self.kustomization_of(&file, rendered))
    }

    fn chart_of(&self, file: &Path) -> Option<Unit> {
        let (directory, _) = file
            .ancestors()
            .skip(1)
            .filter_map(|directory| self.charts.get_key_value(directory))
            .find(|(directory, _)| file.strip_prefix(directory).is_ok_and(is_part_of_chart))?;
        // helm renders a chart with the charts in it.
        let mut whole = directory.as_path();
        while let Some(parent) = whole
            .parent()
            .filter(|parent| parent.file_name().is_some_and(|name| name == SUBCHARTS))
            .and_then(Path::parent)
            .filter(|parent| self.charts.contains_key(*parent))
        {
            whole = parent;
        }
        let chart = self.charts.get(whole)?;
        let (directory, is_whole) = (chart.shown.clone(), !chart.is_library);
        Some(Unit {
            tool: Tool::Helm,
            directory,
            is_whole,
            generates: true,
            remote: None,
            namespaces: BTreeSet::new(),
            absolute: whole.to_owned(),
        })
    }

    fn kustomization_of(&self, file: &Path, rendered: bool) -> Option<Unit> {
        let own = file.parent().filter(|_| is_kustomization(file));
        let [inputs_of, resources_of] = self.users.get(file).map_or([None; 2], |of| of.each_ref().map(Some));
        let inputs_of = inputs_of.and_then(BTreeSet::first).map(PathBuf::as_path);
        let mut rendered_with = resources_of.into_iter().flatten().filter(|_| rendered);
        let rendered_with = rendered_with.find(|it| self.reached.contains(*it)).map(PathBuf::as_path);
        let all = own.into_iter().chain(inputs_of).chain(rendered_with);
        let (directory, built) =
            all.filter_map(|it| self.kustomizations.get_key_value(it)).min_by_key(|it| it.0)?;
        Some(Unit {
            tool: Tool::Kustomize,
            directory: built.shown.clone(),
            is_whole: !built.is_used && !built.is_component,
            generates: built.generates,
            remote: built.remote.clone(),
            // One that objects name themselves is not known.
            namespaces: built.namespaces.iter().cloned().collect::<Option<_>>().unwrap_or_default(),
            absolute: directory.clone(),
        })
    }

    /// Leaves units unrendered. Files of overlays are read one by one then, unless others build on them.
    pub fn leave(&mut self, units: impl Iterator<Item = Unit>) {
        self.left.extend(units.map(|unit| (unit.tool, unit.absolute)));
        let is_top = |(directory, built): &(&PathBuf, &Built)| {
            let is_left = || self.left.contains(&(Tool::Kustomize, (*directory).clone()));
            !built.is_used && !built.is_component && !is_left()
        };
        let tops = self.kustomizations.iter().filter(is_top).map(|(directory, _)| directory.clone());
        self.reached = self.reached_from(tops.collect()).into_keys().collect();
    }

    /// Whether a unit is rendered when all whole ones are.
    pub fn is_rendered(&self, unit: &Unit) -> bool {
        match unit.tool {
            Tool::Helm => !self.left.contains(&(unit.tool, unit.absolute.clone())),
            Tool::Kustomize => self.reached.contains(&unit.absolute),
        }
    }
}

/// Whether helm does not install a file of a chart unchanged; `relative` is its path in the chart.
fn is_part_of_chart(relative: &Path) -> bool {
    let mut parts = relative.components().filter_map(|part| part.as_os_str().to_str());
    let (Some(first), rest) = (parts.next(), parts.next()) else { return false };
    let stem = |name: &str| name.rsplit_once('.').map_or_else(String::new, |(stem, _)| stem.to_owned());
    match rest {
        None => first == CHART_FILE || is_values(&stem(first)),
        Some(second) => [TEMPLATES, FILES].contains(&first) || first == "ci" && is_values(&stem(second)),
    }
}

/// `values`, `values-prod`, `values.schema`, `prod-values`.
fn is_values(stem: &str) -> bool {
    stem.starts_with("values") || stem.ends_with("values")
}

/// The name of the file with the choices of a repository.
pub const PROJECT_FILE: &str = ".memgate.yaml";

/// Whether a file has the extension of a manifest.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

/// Whether a path is a glob.
pub fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// The file with the choices for these paths: the one that all of them have, else that of the working directory.
pub fn project_file_for(paths: &[String]) -> Option<PathBuf> {
    let here = normal(Path::new("."));
    let mut files =
        paths.iter().filter(|path| *path != "-").map(|path| find(&normal(&start_of_search(path)), &here));
    let first = files.next().filter(|first| files.all(|file| file == *first));
    first.unwrap_or_else(|| find(&here, &here))
}

/// The nearest file from a directory up to the root of its repository, as a path from `here`. Outside of a repository
/// only `here` can have one, since any user may write into the directories above.
fn find(directory: &Path, here: &Path) -> Option<PathBuf> {
    let (from, root) = root_of(directory).map_or((here, here), |root| (directory, root));
    // A link among the directories may lead out of the repository.
    let real_root = fs::canonicalize(root).ok()?;
    let is_inside = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real.starts_with(&real_root));
    let has_file = |path: &Path| fs::symlink_metadata(path.join(PROJECT_FILE)).is_ok();
    let mut directories = from.ancestors().take_while(|path| path.starts_with(root));
    let found = directories.find(|path| has_file(path) && is_inside(path))?;
    path_from(here, &found.join(PROJECT_FILE))
}

/// An absolute path as one from a directory.
pub(crate) fn path_from(directory: &Path, path: &Path) -> Option<PathBuf> {
    let (depth, common) = directory.ancestors().enumerate().find(|(_, above)| path.starts_with(above))?;
    let up = std::iter::repeat_n("..", depth).collect::<PathBuf>();
    Some(up.join(path.strip_prefix(common).ok()?))
}

/// The directory at which the search for a path begins.
fn start_of_search(path: &str) -> PathBuf {
    let path = Path::new(path);
    let mut directories = path.ancestors().filter(|it| it.is_dir());
    directories.next().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The directory of a file; `.` for a plain name.
fn directory_of(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_parts_of_a_chart() {
        for (path, expected) in [
            ("Chart.yaml", true),
            ("values.yaml", true),
            ("values-prod.yaml", true),
            ("values.schema.json", true),
            ("templates/a.yaml", true),
            ("templates/sub/a.yaml", true),
            ("ci/kind-values.yaml", true),
            ("crds/a.yaml", false),
            ("files/dashboard.json", true),
            ("agent.yaml", false),
        ] {
            assert_eq!(is_part_of_chart(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn shortens_paths() {
        for (path, expected) in
            [("a/../b", "b"), ("../a/./b", "../a/b"), ("a/../../b", "../b"), ("/../a", "/a")]
        {
            assert_eq!(without_dots(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    /// helm and kustomize print what they read, wherever it is.
    #[test]
    fn knows_what_leads_out_of_the_repository() {
        let root = tempfile::tempdir().expect("temporary directory");
        for (name, text) in [
            ("real/a.yaml", "a: 1"),
            ("real/kustomization.yaml", "resources: [a.yaml]"),
            ("repo/.git/HEAD", ""),
            ("repo/plain/kustomization.yaml", "resources: [a.yaml, ../base, https://h.example/r?ref=v1]"),
            ("repo/plain/a.yaml", "a: 1"),
            ("repo/base/kustomization.yaml", "resources: []"),
            ("repo/linked/kustomization.yaml", "resources: [a.yaml]"),
            ("repo/out/kustomization.yaml", "resources: [../../real]"),
            ("repo/far/kustomization.yaml", "resources: [../out]"),
            ("repo/chart/Chart.yaml", "name: c"),
            ("repo/chart/templates/b.yaml", "a: 1"),
            ("repo/leaky/Chart.yaml", "name: c"),
            ("repo/leaky/templates/b.yaml", "a: 1"),
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("file");
        }
        for (target, link) in [("../../real/a.yaml", "linked/a.yaml"), ("../../../real", "leaky/templates/x")]
        {
            std::os::unix::fs::symlink(target, root.path().join("repo").join(link)).expect("a link");
        }
        let read = |path: &Path| file(path, 1 << 20);
        for (marker, expected) in [
            ("plain/kustomization.yaml", None),
            (
                "linked/kustomization.yaml",
                Some("repo/linked/a.yaml is a link that leads out of the repository"),
            ),
            ("out/kustomization.yaml", Some("/real is not in the repository")),
            ("far/kustomization.yaml", Some("/real is not in the repository")),
            ("chart/Chart.yaml", None),
            ("leaky/Chart.yaml", Some("repo/leaky/templates/x is a link that leads out of the repository")),
        ] {
            let marker = root.path().join("repo").join(marker);
            let mut repository = Repository::default();
            repository.add(&marker, &read, &mut Vec::new());
            repository.link();
            let unit = repository.unit_of(&marker, false).expect("a unit");
            let way_out = repository.way_out_of(&unit, 1 << 20);
            let is_expected = match (&way_out, expected) {
                (Some(way_out), Some(expected)) => way_out.ends_with(expected),
                (way_out, expected) => way_out.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{}: {way_out:?}", marker.display());
        }
    }

    #[test]
    fn finds_the_nearest_file_up_to_the_root() {
        let root = tempfile::tempdir().expect("temporary directory");
        let (root, inner) = (root.path().to_owned(), root.path().join("a/b"));
        fs::create_dir_all(&inner).expect("directories");
        let write = |directory: &str| {
            fs::write(root.join(directory).join(PROJECT_FILE), "strict: true").expect("file");
        };
        write("");
        assert_eq!(find(&root, &root), Some(PathBuf::from(PROJECT_FILE)));
        assert_eq!(find(&inner, &inner), None, "no repository");
        assert_eq!(find(&inner, &root), Some(PathBuf::from(PROJECT_FILE)), "that of the working directory");
        fs::create_dir(root.join(".git")).expect("directory");
        assert_eq!(find(&inner, &inner), Some(Path::new("../..").join(PROJECT_FILE)));
        assert_eq!(find(&inner, &root.join("c/d")), Some(Path::new("../..").join(PROJECT_FILE)));
        write("a");
        assert_eq!(find(&inner, &inner), Some(Path::new("..").join(PROJECT_FILE)));
        assert_eq!(find(&inner, &root.join("c")), Some(Path::new("../a").join(PROJECT_FILE)));
        fs::create_dir(inner.join(".git")).expect("directory");
        assert_eq!(find(&inner, &inner), None, "a repository in a repository");
    }
}

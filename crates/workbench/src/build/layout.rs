//! The kustomizations and charts of a repository: which of them are built, and which files are only parts of them.
//!
//! ```text
//! markers ──▶ what each names ──▶ the tops: what nothing else uses ──▶ the files that a top reaches
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::kustomization::{
    ChartOf, FILE_NAMES, Kustomization, PatchBody, is_content, is_kustomization, is_remote, items, parse,
    text, texts, unclear_key,
};
use crate::build::texts::ReadFile;
use crate::paths::{Home, is_manifest, leads_out, normal, path_from, root_around, root_of, without_dots};
use memgate_manifest::document::{Document, values};
use memgate_manifest::source::Source;
use memgate_primitives::credential::masked;
use serde_json::Value;

/// The file that makes a directory a chart.
pub(crate) const CHART_FILE: &str = "Chart.yaml";
/// The file with the values of a chart.
pub(crate) const VALUES_FILE: &str = "values.yaml";
pub(crate) const TEMPLATES: &str = "templates";
/// The directory of files that templates put into objects.
const FILES: &str = "files";
/// The directory of the charts that a chart depends on.
const SUBCHARTS: &str = "charts";
/// The most files of one unit that are looked at.
const MOST_FILES: usize = 20_000;

/// The program that builds a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// A kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

/// The kustomizations and charts, by their absolute directories.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    kustomizations: BTreeMap<PathBuf, Overlay>,
    charts: BTreeMap<PathBuf, Chart>,
    /// The directories that use a file or directory.
    users: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

#[derive(Debug)]
struct Overlay {
    /// Its file, as the user would write it.
    file: PathBuf,
    read: Kustomization,
    /// The files and directories that it names.
    parts: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Chart {
    file: PathBuf,
    /// Whether it only has templates for other charts.
    is_library: bool,
    /// The charts in other directories that it uses.
    parts: BTreeSet<PathBuf>,
}

/// A directory that is built on its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Top {
    /// The program that builds it.
    pub tool: Tool,
    /// The directory.
    pub directory: PathBuf,
}

/// The files from which a top is built.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    pub(crate) files: BTreeSet<PathBuf>,
    /// The directories of the kustomizations and charts among them, the top first.
    pub(crate) directories: Vec<PathBuf>,
    /// The manifests among them, of a kustomization.
    pub(crate) resources: BTreeSet<PathBuf>,
    /// Why it is not built, if there is a reason.
    pub(crate) refusal: Option<String>,
    /// What is wrong with it already.
    pub(crate) fault: Option<String>,
}

impl Layout {
    /// That of these files, each of which makes its directory a kustomization or a chart.
    pub(crate) fn of<'m>(markers: impl IntoIterator<Item = &'m PathBuf>, read: ReadFile<'_>) -> Self {
        let mut layout = Self::default();
        for marker in markers {
            layout.add(marker, read);
        }
        layout
    }

    fn add(&mut self, marker: &Path, read: ReadFile<'_>) {
        let Some(directory) = normal(marker).parent().map(Path::to_owned) else { return };
        let source = read(marker).ok();
        let parts: BTreeSet<PathBuf> = if is_kustomization(marker) {
            if self.kustomizations.contains_key(&directory) {
                return;
            }
            let is_template = source.as_ref().is_some_and(|source| source.text().contains("{{"));
            let mut read = source.map(parse).unwrap_or_default();
            if read.fault.is_some() && !is_template {
                // Which files it lists is not known.
                read.resources.extend(manifests_in(&directory));
            }
            let local = read.paths().filter(|path| !is_remote(&directory, path));
            let parts: BTreeSet<_> = local.map(|path| normal(&directory.join(path))).collect();
            let overlay = Overlay { file: without_dots(marker), read, parts: parts.clone() };
            self.kustomizations.insert(directory.clone(), overlay);
            parts
        } else {
            let documents = source.map(|it| values(&Arc::new(it), &mut Vec::new())).unwrap_or_default();
            let value = documents.first().map(|document| document.value().clone()).unwrap_or_default();
            let is_library = text(&value, "type").as_deref() == Some("library");
            let dependencies = items(&value, "dependencies").filter_map(|it| text(it, "repository"));
            let local =
                dependencies.filter_map(|it| Some(normal(&directory.join(it.strip_prefix("file://")?))));
            let entries = fs::read_dir(directory.join(SUBCHARTS)).into_iter().flatten().flatten();
            let links = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_symlink()));
            let linked = links.filter_map(|entry| fs::canonicalize(entry.path()).ok());
            let parts: BTreeSet<_> = local.chain(linked).collect();
            let chart = Chart { file: without_dots(marker), is_library, parts: parts.clone() };
            self.charts.insert(directory.clone(), chart);
            parts
        };
        for part in parts {
            self.users.entry(part).or_default().insert(directory.clone());
        }
    }

    /// The kustomizations that nothing else uses, and the charts. Of kustomizations that include each other the first is one:
    /// kustomize says that they do.
    pub(crate) fn tops(&self) -> Vec<Top> {
        let is_whole = |(directory, overlay): &(&PathBuf, &Overlay)| {
            !overlay.read.is_component && !self.users.contains_key(*directory)
        };
        let mut tops: Vec<&PathBuf> =
            self.kustomizations.iter().filter(is_whole).map(|(directory, _)| directory).collect();
        let mut reached = BTreeSet::new();
        for top in &tops {
            self.reach_into(top, &mut reached);
        }
        for (directory, overlay) in &self.kustomizations {
            if !overlay.read.is_component && !reached.contains(directory) {
                tops.push(directory);
                self.reach_into(directory, &mut reached);
            }
        }
        let top = |tool| move |directory: &PathBuf| Top { tool, directory: directory.clone() };
        let is_alone = |(directory, chart): &(&PathBuf, &Chart)| {
            !chart.is_library && !self.users.contains_key(*directory) && self.chart_above(directory).is_none()
        };
        let charts = self.charts.iter().filter(is_alone).map(|(directory, _)| directory);
        tops.into_iter().map(top(Tool::Kustomize)).chain(charts.map(top(Tool::Helm))).collect()
    }

    fn reach_into(&self, top: &PathBuf, reached: &mut BTreeSet<PathBuf>) {
        let mut todo = vec![top];
        while let Some(next) = todo.pop() {
            if let Some(overlay) = self.kustomizations.get(next)
                && reached.insert(next.clone())
            {
                todo.extend(overlay.parts.iter().filter(|part| self.kustomizations.contains_key(*part)));
            }
        }
    }

    /// The chart in whose directory of charts this one lies.
    fn chart_above<'d>(&self, directory: &'d Path) -> Option<&'d Path> {
        let charts = directory.parent().filter(|it| it.file_name().is_some_and(|name| name == SUBCHARTS))?;
        charts.parent().filter(|above| self.charts.contains_key(*above))
    }

    /// What is built in a directory: a kustomization or chart that a release names need not be one that nothing else uses.
    pub(crate) fn top_at(&self, directory: &Path) -> Option<Top> {
        let directory = directory.to_owned();
        let tool = match () {
            () if self.kustomizations.contains_key(&directory) => Tool::Kustomize,
            () if self.charts.contains_key(&directory) => Tool::Helm,
            () => return None,
        };
        Some(Top { tool, directory })
    }

    /// The file that makes the directory a kustomization or chart, as the user would write it.
    pub(crate) fn marker(&self, top: &Top) -> PathBuf {
        let file = match top.tool {
            Tool::Kustomize => self.kustomizations.get(&top.directory).map(|it| &it.file),
            Tool::Helm => self.charts.get(&top.directory).map(|it| &it.file),
        };
        file.cloned().unwrap_or_else(|| top.directory.clone())
    }

    /// The kustomization of a directory.
    pub(crate) fn kustomization(&self, directory: &Path) -> Option<&Kustomization> {
        self.kustomizations.get(directory).map(|it| &it.read)
    }

    /// Whether a file is no manifest, but a patch, a template or another part of what is built.
    pub(crate) fn is_input(&self, file: &Path) -> bool {
        let file = normal(file);
        let lists = |overlay: &Overlay, directory: &Path| {
            overlay.read.resources.iter().any(|path| normal(&directory.join(path)) == file)
        };
        let mut users = self.users.get(&file).into_iter().flatten();
        self.is_part(&file)
            && !users.any(|user| self.kustomizations.get(user).is_some_and(|it| lists(it, user)))
    }

    /// Whether a file is only a part of what is built, and no manifest of its own.
    pub(crate) fn is_part(&self, file: &Path) -> bool {
        if self.kustomizations.is_empty() && self.charts.is_empty() {
            return false;
        }
        let file = normal(file);
        let is_in = |directory: &Path| file.strip_prefix(directory).is_ok_and(is_part_of_chart);
        is_marker(&file)
            || self.users.contains_key(&file)
            || file
                .ancestors()
                .skip(1)
                .any(|directory| self.charts.contains_key(directory) && is_in(directory))
    }

    /// The files from which a top is built, with these files of values: those of its release, and those that the job gives.
    pub(crate) fn reach(
        &self,
        top: &Top,
        (of_release, given): (&[PathBuf], &[PathBuf]),
        (read, max_bytes): (ReadFile<'_>, usize),
    ) -> Reach {
        let mut reach = Reach::default();
        let mut search = PartSearch { layout: self, read, max_bytes, home: Home::of(&top.directory) };
        match top.tool {
            Tool::Kustomize => search.kustomization(&top.directory, &mut reach),
            Tool::Helm => search.chart(&top.directory, &mut reach),
        }
        for file in of_release {
            search.file(file, &mut reach);
        }
        search.home = Home::default();
        for file in given {
            search.file(file, &mut reach);
        }
        // helm would take it for several files.
        if let Some(list) = of_release.iter().chain(given).find(|file| is_list(&file.to_string_lossy())) {
            reach.refusal.get_or_insert_with(|| format!("helm takes the name {} for a list", shown(list)));
        }
        reach
    }
}

/// Looks for the files of one top, and for what speaks against building it.
struct PartSearch<'l> {
    layout: &'l Layout,
    read: ReadFile<'l>,
    max_bytes: usize,
    home: Home,
}

impl PartSearch<'_> {
    fn kustomization(&mut self, top: &Path, reach: &mut Reach) {
        let (mut todo, mut seen) = (vec![top.to_owned()], BTreeSet::new());
        while let Some(directory) = todo.pop() {
            if !seen.insert(directory.clone()) {
                continue;
            }
            if directory != top && directory.join(CHART_FILE).is_file() {
                self.chart(&directory, reach);
            }
            let known = self.layout.kustomizations.get(&directory);
            let markers = FILE_NAMES.iter().map(|name| directory.join(name));
            let Some(marker) = markers.into_iter().find(|marker| marker.is_file()) else { continue };
            let own;
            let found = match known {
                Some(overlay) => &overlay.read,
                None => {
                    own = (self.read)(&marker).map(parse).unwrap_or_default();
                    &own
                }
            };
            self.file(&marker, reach);
            reach.directories.push(directory.clone());
            reach.fault = reach.fault.take().or_else(|| found.fault.clone());
            reach.refusal = reach.refusal.take().or_else(|| self.refused(found, &directory));
            let resources = found.resources.iter().map(|path| normal(&directory.join(path)));
            reach.resources.extend(resources.filter(|path| path.is_file()));
            let own = found.paths().filter(|path| !is_remote(&directory, path));
            let own = own.map(|path| normal(&directory.join(path)));
            let more = known.into_iter().flat_map(|overlay| overlay.parts.iter().cloned());
            for part in own.chain(more).collect::<BTreeSet<_>>() {
                if part.is_dir() {
                    self.path(&part, reach);
                    todo.push(part);
                } else {
                    self.file(&part, reach);
                }
            }
        }
    }

    /// Why a kustomization is not built: what it would fetch or run.
    fn refused(&self, found: &Kustomization, directory: &Path) -> Option<String> {
        if let Some(remote) = found.paths().find(|path| is_remote(directory, path)) {
            return Some(format!("it builds on {}, and nothing is fetched", masked(remote)));
        }
        let has_list = !found.charts.is_empty() && found.paths().any(|path| is_list(path));
        if has_list || found.charts.iter().any(|chart| chart.has_flag) {
            return Some("helm would take a field of helmCharts for a flag or a list".to_owned());
        }
        for ChartOf { paths, repository, .. } in &found.charts {
            let is_there = paths.iter().any(|path| directory.join(path).join(CHART_FILE).is_file());
            if let Some(repository) = repository.as_ref().filter(|_| !is_there) {
                let (path, repository) = (paths.join(" or "), masked(repository));
                return Some(format!(
                    "its chart {path} is to be fetched from {repository}, and nothing is fetched"
                ));
            }
        }
        let texts = found.patches.iter().filter_map(|patch| match &patch.body {
            PatchBody::Text(text) => Some(text),
            PatchBody::File(_) => None,
        });
        let mut texts = texts.chain(found.plugins.iter().filter(|plugin| is_content(plugin)));
        if let Some(file) = texts.find(|text| directory.join(text).exists()) {
            return Some(format!("{} is a text of it and a file", masked(file)));
        }
        let plugin = |plugin: &String| {
            let name = if is_content(plugin) { "a text of it" } else { plugin };
            let path = directory.join(plugin);
            if !is_content(plugin) && path.is_dir() {
                return Some(format!("{name} is a directory of configurations, which is not looked into"));
            }
            let text = if is_content(plugin) { plugin.clone() } else { self.text(&path)? };
            let mut errors = Vec::new();
            let configurations = values(&Arc::new(Source::new("", text)), &mut errors);
            if !errors.is_empty() || configurations.iter().any(|it| unclear_key(it.value()).is_some()) {
                return Some(format!("{name} cannot be read"));
            }
            if configurations.iter().any(runs_a_program) {
                return Some(format!("{name} asks for a plugin or a function, and none is run"));
            }
            let mut files = configurations.iter().flat_map(|it| files_of(it.value()));
            let is_out = |file: &String| {
                let path = directory.join(file);
                is_remote(directory, file)
                    || leads_out(&path)
                    || self.home.is_left_by(&path)
                    || is_of_git(&path)
            };
            let file = files.find(is_out)?;
            Some(format!("{name} asks for {}, which is not in the repository", masked(&file)))
        };
        found.plugins.iter().find_map(plugin)
    }

    /// The text of an ordinary file.
    fn text(&self, file: &Path) -> Option<String> {
        let is_file = file.is_file();
        if is_file { Some((self.read)(file).ok()?.text().to_owned()) } else { None }
    }

    fn chart(&mut self, chart: &Path, reach: &mut Reach) {
        reach.directories.push(chart.to_owned());
        // The tool gets a copy without it.
        let own_git = chart.join(".git");
        let (mut todo, mut seen) = (vec![chart.to_owned()], BTreeSet::new());
        while let Some(directory) = todo.pop() {
            if !seen.insert(fs::canonicalize(&directory).unwrap_or_default()) {
                continue;
            }
            let parts = self.layout.charts.get(&directory).into_iter().flat_map(|chart| &chart.parts);
            todo.extend(parts.filter(|part| self.layout.charts.contains_key(*part)).cloned());
            let mut entries: Vec<_> = fs::read_dir(&directory).into_iter().flatten().flatten().collect();
            entries.sort_by_key(fs::DirEntry::file_name);
            for path in entries.iter().map(fs::DirEntry::path).filter(|path| *path != own_git) {
                if path.is_dir() && !leads_out(&path) && !is_of_git(&path) {
                    let real = self.home.real(&path);
                    if chart.starts_with(&real) {
                        let why = || format!("{} is a link to what is around it", shown(&path));
                        reach.refusal.get_or_insert_with(why);
                    } else {
                        todo.push(real);
                    }
                } else if reach.files.len() < MOST_FILES {
                    self.file(&path, reach);
                } else {
                    reach.refusal.get_or_insert_with(|| format!("it has more than {MOST_FILES} files"));
                }
            }
        }
    }

    /// Adds a file, if it is one that a tool may read.
    fn file(&self, path: &Path, reach: &mut Reach) {
        self.path(path, reach);
        if let Ok(metadata) = fs::metadata(path) {
            let shown = shown(path);
            if !metadata.is_file() && !metadata.is_dir() {
                reach.refusal.get_or_insert_with(|| format!("{shown} is not an ordinary file"));
            } else if metadata.len() > self.max_bytes as u64 {
                let most = self.max_bytes;
                let why = || format!("{shown} has more than {most} bytes; see --max-file-size");
                reach.refusal.get_or_insert_with(why);
            }
        }
        reach.files.insert(path.to_owned());
    }

    /// Refuses what lies outside of the repository.
    fn path(&self, path: &Path, reach: &mut Reach) {
        let why = if leads_out(path) {
            "is a link that leads out of the repository"
        } else if self.home.is_left_by(path) || is_of_git(path) {
            "is not in the repository"
        } else {
            return;
        };
        reach.refusal.get_or_insert_with(|| format!("{} {why}", shown(path)));
    }
}

/// Whether a path is git's own, where a job may keep a token.
fn is_of_git(path: &Path) -> bool {
    let root = root_of(path).unwrap_or_else(|| Path::new(""));
    path.strip_prefix(root).unwrap_or(path).iter().any(|part| part == ".git")
}

/// The names of the manifests in a directory.
fn manifests_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_manifest(path) && !is_marker(path));
    paths.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect()
}

/// Whether a configuration asks kustomize for anything but its own transformers.
fn runs_a_program(configuration: &Document) -> bool {
    let annotations = configuration.value().pointer("/metadata/annotations");
    let functions = ["config.kubernetes.io/function", "config.k8s.io/function"];
    let has_function = annotations.is_some_and(|it| functions.iter().any(|name| it.get(name).is_some()));
    let is_chart = configuration.kind().starts_with("HelmChart");
    has_function || is_chart || !["", "builtin"].contains(&configuration.api_version())
}

/// The files that a configuration of kustomize's own transformers names.
fn files_of(configuration: &Value) -> Vec<String> {
    let lists = ["files", "envs", "paths"].into_iter().flat_map(|name| texts(configuration, name));
    let single = ["path", "env"].into_iter().filter_map(|name| text(configuration, name));
    let replacements = items(configuration, "replacements").filter_map(|it| text(it, "path"));
    let path = |file: String| file.split_once('=').map_or_else(|| file.clone(), |(_, path)| path.to_owned());
    lists.chain(single).chain(replacements).map(path).collect()
}

/// Whether helm takes the name of a file for a list.
fn is_list(file: &str) -> bool {
    file.contains([',', '"', '\n', '\r'])
}

/// A path as the user would write it.
pub(crate) fn shown(path: &Path) -> String {
    let here = normal(Path::new("."));
    let is_near = path.starts_with(root_of(&here).unwrap_or(&here));
    let from_here = path_from(&here, path).filter(|_| is_near);
    from_here.unwrap_or_else(|| path.to_owned()).to_string_lossy().into_owned()
}

/// The path of a directory from the root of its repository, else as the user would write it; by this name a unit is known.
pub(crate) fn name_of(directory: &Path) -> String {
    let home = root_around(directory);
    let below = directory.strip_prefix(&home).map(|it| it.to_string_lossy().into_owned());
    match below {
        Ok(below) if below.is_empty() => ".".to_owned(),
        Ok(below) => below,
        Err(_) => shown(directory),
    }
}

/// Whether a path is that of a file that makes its directory a chart or a kustomization.
pub fn is_marker(path: &Path) -> bool {
    is_kustomization(path) || path.file_name().is_some_and(|name| name == CHART_FILE)
}

/// Whether helm does not install a file of a chart unchanged; `relative` is its path in the chart.
fn is_part_of_chart(relative: &Path) -> bool {
    let mut parts = relative.components().filter_map(|part| part.as_os_str().to_str());
    let (Some(first), rest) = (parts.next(), parts.next()) else { return false };
    let stem = |name: &str| name.rsplit_once('.').map_or_else(String::new, |(stem, _)| stem.to_owned());
    match rest {
        None => first == CHART_FILE || is_values(&stem(first)),
        Some(second) => {
            [TEMPLATES, FILES, SUBCHARTS].contains(&first) || first == "ci" && is_values(&stem(second))
        }
    }
}

/// `values`, `values-prod`, `values.schema`, `prod-values`.
fn is_values(stem: &str) -> bool {
    stem.starts_with("values") || stem.ends_with("values")
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
            ("charts/a/b.yaml", true),
            ("ci/kind-values.yaml", true),
            ("crds/a.yaml", false),
            ("files/dashboard.json", true),
            ("agent.yaml", false),
        ] {
            assert_eq!(is_part_of_chart(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn knows_what_runs_a_program() {
        for (text, expected) in [
            ("apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: a}\n", false),
            ("apiVersion: h.example/v1\nkind: A\nmetadata: {name: a}\n", true),
            (
                "apiVersion: builtin\nkind: A\nmetadata: {name: a, annotations: {config.kubernetes.io/function: x}}\n",
                true,
            ),
        ] {
            let read = values(&Arc::new(Source::new("", text)), &mut Vec::new());
            assert_eq!(read.iter().any(runs_a_program), expected, "{text}");
        }
    }
}

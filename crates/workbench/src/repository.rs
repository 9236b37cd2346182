//! The files in directories that are not manifests, but from which helm or kustomize makes manifests: templates and
//! values of charts, and patches of kustomizations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::paths::{normal, root_of, without_dots};

use crate::kustomization::{self, Kustomization, is_kustomization};
use crate::texts::source;
use memgate_manifest::document::values;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;

const CHART_FILE: &str = "Chart.yaml";
const TEMPLATES: &str = "templates";
/// The directory of files that templates put into objects.
const FILES: &str = "files";
/// The directory of the charts that a chart depends on.
const SUBCHARTS: &str = "charts";

/// The program that renders a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// A chart.
    Helm,
    /// A kustomization.
    Kustomize,
}

/// The charts and kustomizations among the inputs, by their absolute paths.
#[derive(Debug, Default)]
pub struct Repository {
    charts: BTreeMap<PathBuf, Chart>,
    kustomizations: BTreeMap<PathBuf, Built>,
    /// The overlays, and the kustomizations on which they build.
    reached: BTreeSet<PathBuf>,
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
    /// Whether another kustomization of the inputs refers to it.
    is_used: bool,
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
    absolute: PathBuf,
}

/// Whether a path is that of a file that makes its directory a chart or a kustomization.
pub fn is_marker(path: &Path) -> bool {
    is_kustomization(path) || path.file_name().is_some_and(|name| name == CHART_FILE)
}

impl Repository {
    /// Adds a file that makes its directory a chart or a kustomization. Its errors go to `errors`.
    pub fn add(&mut self, file: &Path, max_bytes: usize, errors: &mut Vec<Error>) {
        let shown = directory_of(file);
        let directory = normal(&shown);
        let source = match source(&file.to_string_lossy(), File::open(file), max_bytes) {
            Ok(source) => source,
            Err(error) => {
                errors.push(error);
                Source::new("", "")
            }
        };
        if is_kustomization(file) {
            let Kustomization { is_component, resources, inputs, generates } =
                kustomization::parse(source, errors);
            let absolute =
                |paths: Vec<String>| paths.into_iter().map(|path| normal(&directory.join(path))).collect();
            let (resources, inputs) = (absolute(resources), absolute(inputs));
            let built = Built { shown, is_component, resources, inputs, generates, is_used: false };
            self.kustomizations.insert(directory, built);
        } else {
            // helm reports errors of a chart.
            let documents = values(&Arc::new(source), &mut Vec::new());
            let kind = documents.first().and_then(|document| document.value().get("type")?.as_str());
            let is_library = kind == Some("library");
            self.charts.insert(directory, Chart { shown, is_library });
        }
    }

    /// Adds the chart if a walk starts within its templates.
    pub fn add_chart_around(&mut self, root: &Path, max_bytes: usize, errors: &mut Vec<Error>) {
        for ancestor in root.ancestors().filter(|path| path.file_name().is_some_and(|name| name == TEMPLATES))
        {
            let chart = directory_of(ancestor).join(CHART_FILE);
            if chart.is_file() {
                self.add(&chart, max_bytes, errors);
            }
        }
    }

    /// Finds out which kustomizations are parts of others, once all are added.
    pub fn link(&mut self) {
        let used: BTreeSet<PathBuf> = self
            .kustomizations
            .values()
            .flat_map(|built| built.resources.iter().chain(&built.inputs).cloned())
            .collect();
        let mut todo: Vec<PathBuf> = Vec::new();
        for (directory, built) in &mut self.kustomizations {
            built.is_used = used.contains(directory);
            if !built.is_used && !built.is_component {
                todo.push(directory.clone());
            }
        }
        while let Some(next) = todo.pop() {
            if let Some(built) = self.kustomizations.get(&next).filter(|_| self.reached.insert(next.clone()))
            {
                todo.extend(built.resources.iter().chain(&built.inputs).cloned());
            }
        }
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
        Some(Unit { tool: Tool::Helm, directory, is_whole, generates: true, absolute: whole.to_owned() })
    }

    fn kustomization_of(&self, file: &Path, rendered: bool) -> Option<Unit> {
        let takes = |(directory, built): &(&PathBuf, &Built)| {
            (is_kustomization(file) && file.parent() == Some(directory))
                || built.inputs.contains(file)
                || rendered && built.resources.contains(file) && self.reached.contains(*directory)
        };
        let (directory, built) = self.kustomizations.iter().find(takes)?;
        Some(Unit {
            tool: Tool::Kustomize,
            directory: built.shown.clone(),
            is_whole: !built.is_used && !built.is_component,
            generates: built.generates,
            absolute: directory.clone(),
        })
    }

    /// Whether a unit is rendered when all whole ones are.
    pub fn is_rendered(&self, unit: &Unit) -> bool {
        match unit.tool {
            Tool::Helm => true,
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
    let (depth, common) = here.ancestors().enumerate().find(|(_, above)| found.starts_with(above))?;
    let up = std::iter::repeat_n("..", depth).collect::<PathBuf>();
    Some(up.join(found.strip_prefix(common).ok()?).join(PROJECT_FILE))
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

//! Builds kustomizations and charts with the user's own programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::build::layout::Tool;
use crate::build::releases::{Inline, Layer, Release, VALUES};
use crate::build::texts;
use crate::build::tools::{Program, Tools};
use crate::build::unit::Unit;
use crate::paths::normal;
use memgate_manifest::document::parse_parts;
use memgate_manifest::source::Source;
use memgate_primitives::causes::in_words;

/// The annotations by which kustomize says where an object comes from, and what has changed it.
const ORIGIN: &str = "config.kubernetes.io/origin";
const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";
/// How long a build may take, and one that only says where objects come from.
const TIME: Duration = Duration::from_mins(1);
const TIME_OF_ORIGINS: Duration = Duration::from_secs(10);

/// How to build, as the job says.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    /// Arguments for kustomize.
    pub kustomize_args: Vec<String>,
    /// Arguments for helm.
    pub helm_args: Vec<String>,
    /// Files of values, each with the directory of the chart for which it is given, if one is named.
    pub values: Vec<(Option<PathBuf>, PathBuf)>,
    /// The namespace of releases, when the user chose one.
    pub namespace: Option<String>,
    /// Where programs are looked for; `None` for `PATH`.
    pub path: Option<OsString>,
}

/// The flags that a job may give to kustomize, and whether each has a value.
const OF_KUSTOMIZE: [(&str, bool); 4] = [
    ("--enable-helm", false),
    ("--load-restrictor", true),
    ("--helm-kube-version", true),
    ("--helm-api-versions", true),
];
/// The same for helm.
const OF_HELM: [(&str, bool); 9] = [
    ("--kube-version", true),
    ("--api-versions", true),
    ("--set", true),
    ("--set-string", true),
    ("--set-json", true),
    ("--set-literal", true),
    ("--set-file", true),
    ("--values", true),
    ("-f", true),
];

/// The words of arguments that a job gives to a tool.
///
/// # Errors
/// When one is none that a job may give.
pub fn arguments(tool: Tool, given: &str) -> Result<Vec<String>, String> {
    let known: &[(&str, bool)] = match tool {
        Tool::Kustomize => &OF_KUSTOMIZE,
        Tool::Helm => &OF_HELM,
    };
    let words = shlex::split(given).ok_or("a quote has no end")?;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let name = word.split('=').next().unwrap_or_default();
        let Some((_, has_value)) = known.iter().find(|(known, _)| *known == name) else {
            let all: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(format!("{word} is not one of {}", all.join(", ")));
        };
        if *has_value && name == word && rest.next().is_none() {
            return Err(format!("{word} has no value"));
        }
    }
    Ok(words)
}

/// Where an object comes from, as kustomize says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// Its file, or the kustomization with its generator.
    pub(crate) file: Option<PathBuf>,
    /// The kustomizations that changed it, in their order.
    pub(crate) changed_in: Vec<PathBuf>,
}

/// Builds a unit.
///
/// # Errors
/// In words: why it was not built.
pub(crate) fn build(
    unit: &Unit,
    (builder, tools, program): (&Builder, &Tools, &Program),
    max_bytes: usize,
) -> Result<Source, String> {
    let work = tools.work().map_err(|error| in_words(&error))?;
    let arguments = match unit.tool {
        Some(Tool::Helm) => of_helm(unit, builder, &work).map_err(|error| in_words(&error))?,
        _ => of_kustomize(&unit.directory, &builder.kustomize_args),
    };
    let bytes = tools.run(program, &arguments, (max_bytes, TIME));
    let bytes = bytes.map_err(|why| readable(&why, work.path()))?;
    let source = texts::source(&unit.source_name(), Ok::<_, io::Error>(bytes.as_slice()), max_bytes);
    source.map_err(|error| format!("what it prints cannot be read: {error}"))
}

fn of_kustomize(directory: &Path, more: &[String]) -> Vec<OsString> {
    std::iter::once(directory.into()).chain(more.iter().map(OsString::from)).collect()
}

/// The kind, namespace and name of an object.
pub(crate) fn id_of(object: &Value) -> [String; 3] {
    ["/kind", "/metadata/namespace", "/metadata/name"]
        .map(|field| object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Where the objects of a kustomization come from, as kustomize says of one of our own that builds on it. That can take a
/// hundred times as long as the build itself, so it is asked only when a place is wanted; nothing if it takes too long.
pub(crate) fn origins(
    unit: &Unit,
    (tools, more): (&Tools, &[String]),
    max_bytes: usize,
) -> BTreeMap<[String; 3], Made> {
    let build = || {
        let work = tools.work().ok()?;
        let real = fs::canonicalize(work.path()).ok()?;
        let own = json!({
            "resources": [relative(&real, &fs::canonicalize(&unit.directory).ok()?)],
            "buildMetadata": ["originAnnotations", "transformerAnnotations"],
        });
        fs::write(work.path().join("kustomization.yaml"), own.to_string()).ok()?;
        let program =
            tools.program(Tool::Kustomize).ok().filter(|_| !tools.is_slow.load(Ordering::Relaxed))?;
        let started = Instant::now();
        let bytes = tools.run(program, &of_kustomize(&real, more), (max_bytes, TIME_OF_ORIGINS)).ok();
        tools.is_slow.fetch_or(started.elapsed() >= TIME_OF_ORIGINS, Ordering::Relaxed);
        let bytes = bytes?;
        let source = Arc::new(Source::new("", String::from_utf8(bytes).ok()?));
        let documents = parse_parts(&source).flat_map(|parsed| parsed.documents);
        Some(documents.map(|it| (id_of(it.value()), Made::of(it.value(), unit, &real))).collect())
    };
    build().unwrap_or_default()
}

impl Made {
    /// What the annotations say. Any patch may have written them, so only files of the unit count.
    fn of(object: &Value, unit: &Unit, work: &Path) -> Self {
        let annotation = |name: &str| object.pointer("/metadata/annotations")?.get(name)?.as_str();
        let path = |line: &str, field: &str| {
            let path = line.trim_start_matches([' ', '-']).strip_prefix(field)?.trim_matches(['\'', '"']);
            Some(normal(&work.join(path))).filter(|path| unit.files.contains(path))
        };
        let mut made = Self::default();
        for line in annotation(ORIGIN).unwrap_or_default().lines() {
            made.file = path(line, "path: ").or_else(|| path(line, "configuredIn: ")).or(made.file);
        }
        let changed = annotation(TRANSFORMATIONS).unwrap_or_default().lines();
        made.changed_in.extend(changed.filter_map(|line| path(line, "configuredIn: ")));
        made.changed_in.dedup();
        made
    }
}

/// A path as one from another directory; both have no links.
fn relative(from: &Path, to: &Path) -> String {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(common)).collect();
    path.to_string_lossy().into_owned()
}

fn of_helm(unit: &Unit, builder: &Builder, work: &TempDir) -> io::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = Vec::new();
    let release = unit.release.as_deref();
    arguments.extend(release.and_then(|release| release.name.as_ref()).map(OsString::from));
    arguments.push(without_git(&unit.directory, work.path())?.into());
    let mut files = builder.values_of(&unit.directory);
    files.extend(release.into_iter().flat_map(Release::files).map(|file| normal(file)));
    for file in files {
        arguments.extend([VALUES.into(), file.into()]);
    }
    let namespace = release.and_then(|release| release.namespace.as_ref()).or(builder.namespace.as_ref());
    arguments.extend(namespace.map(|namespace| format!("--namespace={namespace}").into()));
    let layers = release.into_iter().flat_map(|release| &release.layers);
    for (number, layer) in layers.enumerate() {
        let Layer::Inline(Inline { flag, text, .. }) = layer else { continue };
        arguments.push(OsString::from(flag));
        if *flag == VALUES {
            let file = work.path().join(format!("{number}.yaml"));
            fs::File::create(&file)?.write_all(text.as_bytes())?;
            arguments.push(file.into());
        } else {
            arguments.push(text.into());
        }
    }
    arguments.extend(builder.helm_args.iter().map(OsString::from));
    Ok(arguments)
}

/// A chart without git's own files, which its templates could read: a job may keep a token there.
fn without_git(chart: &Path, work: &Path) -> io::Result<PathBuf> {
    let copy = work.join("chart");
    if !cfg!(unix) || !chart.join(".git").exists() {
        return Ok(chart.to_owned());
    }
    fs::create_dir(&copy)?;
    for entry in fs::read_dir(chart)? {
        let entry = entry?;
        #[cfg(unix)]
        if entry.file_name() != ".git" {
            std::os::unix::fs::symlink(entry.path(), copy.join(entry.file_name()))?;
        }
    }
    Ok(copy)
}

impl Builder {
    /// The files of values that the job gives for a chart: with its directory, or from below it.
    pub(crate) fn values_of(&self, chart: &Path) -> Vec<PathBuf> {
        let is_of = |(given, file): &&(Option<PathBuf>, PathBuf)| match given {
            Some(given) => normal(given) == chart,
            None => normal(file).starts_with(chart),
        };
        self.values.iter().filter(is_of).map(|(_, file)| normal(file)).collect()
    }
}

/// What a tool says, without the clock and the process of kubectl's log, and with paths from the working directory.
fn readable(why: &str, work: &Path) -> String {
    let why = why.split_once("\"command failed\" err=").map_or(why, |(_, error)| error);
    let text = serde_json::from_str::<String>(why);
    let why = text.as_deref().unwrap_or_else(|_| why.trim_start_matches("<; ").trim_end_matches("; >"));
    let why = why.split_once("; Error: ").map_or(why, |(_, error)| error).trim_start_matches("Error: ");
    let why = why.replace("; Use --debug flag to render out invalid YAML", "");
    let here = format!("{}/", normal(Path::new(".")).display());
    let real = fs::canonicalize(".").map(|real| format!("{}/", real.display())).unwrap_or_default();
    let work = format!("{}/", work.display());
    [here, real, work]
        .iter()
        .filter(|path| path.len() > 1)
        .fold(why, |why, path| why.replace(path.as_str(), ""))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn believes_annotations_only_about_files_of_the_unit() {
        let files = ["/r/base/m.yaml", "/r/o/kustomization.yaml"].map(PathBuf::from);
        let unit = Unit { files: Arc::new(BTreeSet::from(files)), ..Unit::default() };
        let of = |origin: &str| {
            let changed = "- configuredIn: ../r/o/kustomization.yaml\n  configuredBy:\n    kind: NamespaceTransformer\n\
                           - configuredIn: ../r/o/kustomization.yaml\n- configuredIn: /etc/kustomization.yaml\n";
            let annotations = json!({ORIGIN: origin, TRANSFORMATIONS: changed});
            Made::of(&json!({"metadata": {"annotations": annotations}}), &unit, Path::new("/w"))
        };
        let [base, overlay] = ["/r/base/m.yaml", "/r/o/kustomization.yaml"].map(PathBuf::from);
        assert_eq!(of("path: ../r/base/m.yaml\n").file, Some(base));
        assert_eq!(of("configuredIn: ../r/o/kustomization.yaml\n").file, Some(overlay.clone()));
        assert_eq!(of("path: /etc/passwd\n"), Made { file: None, changed_in: vec![overlay] });
    }

    #[test]
    fn takes_only_arguments_that_a_job_may_give() {
        let words = arguments(Tool::Kustomize, "--enable-helm --load-restrictor LoadRestrictionsNone");
        assert_eq!(words.map(|words| words.len()), Ok(3));
        assert_eq!(arguments(Tool::Helm, "--set 'a=b c'").map(|words| words.len()), Ok(2));
        for (tool, given) in [
            (Tool::Kustomize, "--enable-exec"),
            (Tool::Kustomize, "--enable-alpha-plugins"),
            (Tool::Kustomize, "/etc"),
            (Tool::Helm, "--post-renderer=sh"),
            (Tool::Helm, "--dependency-update"),
            (Tool::Helm, "--set"),
            (Tool::Helm, "'"),
        ] {
            assert!(arguments(tool, given).is_err(), "{given}");
        }
    }

    #[test]
    fn finds_the_way_from_one_directory_to_another() {
        assert_eq!(relative(Path::new("/tmp/a/b"), Path::new("/tmp/c")), "../../c");
        assert_eq!(relative(Path::new("/a"), Path::new("/a/b")), "b");
    }
}

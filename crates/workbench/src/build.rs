//! Builds kustomizations and charts with the user's own programs.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kustomization::Kustomization;
use crate::layout::Tool;
use crate::paths::{leads_out, normal};
use crate::program::Stop;
use crate::releases::{Inline, Layer, Release, VALUES};
use crate::texts;
use crate::tools::{Program, Tools};
use crate::unit::Unit;
use memgate_manifest::source::Source;
use memgate_primitives::causes::in_words;

/// The annotations by which kustomize says where an object comes from, and what has changed it.
const ORIGIN: &str = "config.kubernetes.io/origin:";
const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations:";

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
    /// Ends the programs when it is set.
    pub stop: Stop,
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

/// What a unit becomes.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) text: Source,
    /// Of what kustomize printed, where each object comes from.
    pub(crate) made: Vec<Made>,
}

/// Builds a unit.
///
/// # Errors
/// In words: why it was not built.
pub(crate) fn build(
    unit: &Unit,
    kustomization: Option<&Kustomization>,
    (builder, tools, program): (&Builder, &Tools, &Program),
    max_bytes: usize,
) -> Result<Output, String> {
    let work = tools.work().map_err(|error| in_words(&error))?;
    let arguments = match unit.tool {
        Some(Tool::Helm) => of_helm(unit, builder, &work),
        _ => of_kustomize(unit, kustomization, builder, work.path()),
    };
    let arguments = arguments.map_err(|error| in_words(&error))?;
    let bytes = tools.run(program, &arguments, max_bytes).map_err(|why| readable(&why, unit, work.path()))?;
    let source = texts::source(&unit.source_name(), Ok::<_, io::Error>(bytes.as_slice()), max_bytes);
    let source = source.map_err(|error| format!("what it prints cannot be read: {error}"))?;
    if unit.tool == Some(Tool::Helm) {
        return Ok(Output { text: source, made: Vec::new() });
    }
    let (text, made) = without_origins(source.text(), work.path());
    Ok(Output { text: Source::new(source.name(), text), made })
}

/// The arguments for a kustomization of our own that builds on the unit, and asks for the origins of objects. What only the
/// outermost kustomization may say it says too.
fn of_kustomize(
    unit: &Unit,
    kustomization: Option<&Kustomization>,
    builder: &Builder,
    work: &Path,
) -> io::Result<Vec<OsString>> {
    let work = fs::canonicalize(work)?;
    let mut own = json!({
        "resources": [relative(&work, &fs::canonicalize(&unit.directory)?)],
        "buildMetadata": ["originAnnotations", "transformerAnnotations"],
    });
    if let Some(Kustomization { metadata, openapi, .. }) = kustomization {
        let more = metadata.iter().filter(|it| *it == "managedByLabel").map(|it| Value::from(it.as_str()));
        if let Some(all) = own.get_mut("buildMetadata").and_then(Value::as_array_mut) {
            all.extend(more);
        }
        if let (Some(mut openapi), Some(own)) = (openapi.clone(), own.as_object_mut()) {
            if let Some(path) = openapi.get_mut("path") {
                fs::copy(unit.directory.join(path.as_str().unwrap_or_default()), work.join("openapi"))?;
                *path = "openapi".into();
            }
            own.insert("openapi".to_owned(), openapi);
        }
    }
    fs::write(work.join("kustomization.yaml"), own.to_string())?;
    Ok(std::iter::once(work.into()).chain(builder.kustomize_args.iter().map(OsString::from)).collect())
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
    arguments.push(unit.directory.clone().into());
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

impl Builder {
    /// The files of values that the job gives for a chart: with its directory, or from below it.
    pub(crate) fn values_of(&self, chart: &Path) -> Vec<PathBuf> {
        let is_of = |(given, file): &&(Option<PathBuf>, PathBuf)| match given {
            Some(given) => normal(given) == chart,
            None => normal(file).starts_with(chart),
        };
        self.values.iter().filter(is_of).map(|(_, file)| normal(file)).collect()
    }

    /// Why a chart is not built with the files of values that are given for it.
    pub(crate) fn refusal(&self, chart: &Path, release: Option<&Release>) -> Option<String> {
        let own = self.values_of(chart);
        let of_release = release.into_iter().flat_map(Release::files).map(|file| normal(file));
        let link = own.into_iter().chain(of_release).find(|file| leads_out(file))?;
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        Some(format!("its values file {name} is a link that leads out of the repository"))
    }
}

/// What a tool says, without the clock and the process of kubectl's log, with paths from the working directory, and without
/// the kustomization of our own.
fn readable(why: &str, unit: &Unit, work: &Path) -> String {
    let why = why.split_once("\"command failed\" err=").map_or(why, |(_, error)| error);
    let text = serde_json::from_str::<String>(why);
    let why = text.as_deref().unwrap_or_else(|_| why.trim_start_matches("<; ").trim_end_matches("; >"));
    let why = why.trim_start_matches("Error: ");
    let own = ["recursed accumulation of path", "couldn't make target for path"];
    let own = own.map(|words| format!("{words} '{}': ", unit.directory.display()));
    let why = own.iter().find_map(|own| Some(why.split_once(own.as_str())?.1)).unwrap_or(why);
    let why = why.replace("; Use --debug flag to render out invalid YAML", "");
    let here = format!("{}/", normal(Path::new(".")).display());
    let real = fs::canonicalize(".").map(|real| format!("{}/", real.display())).unwrap_or_default();
    let work = format!("{}/", work.display());
    [here, real, work]
        .iter()
        .filter(|path| path.len() > 1)
        .fold(why, |why, path| why.replace(path.as_str(), ""))
}

/// What kustomize printed without the annotations that we asked for, and what they say of each document. It prints each
/// object in one form: its own keys begin a line, and what is in `metadata.annotations` is indented by four.
fn without_origins(text: &str, work: &Path) -> (String, Vec<Made>) {
    let (mut kept, mut all) = (String::with_capacity(text.len()), vec![Made::default()]);
    let (mut is_metadata, mut in_annotations, mut open) = (false, false, None);
    // The line `  annotations:`, which waits for an annotation of the user.
    let mut waiting = None;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        match line.len() - line.trim_start().len() {
            _ if content.is_empty() => {}
            0 => {
                (is_metadata, in_annotations, waiting) = (content == "metadata:", false, None);
                all.extend((content == "---").then(Made::default));
            }
            2 if is_metadata => {
                in_annotations = content == "annotations:";
                waiting = Some(line).filter(|_| in_annotations);
                if in_annotations {
                    continue;
                }
            }
            4 => open = [ORIGIN, TRANSFORMATIONS].into_iter().find(|key| content.starts_with(key)),
            _ => {}
        }
        if let Some(key) = open.filter(|_| in_annotations) {
            if let Some(made) = all.last_mut() {
                note_origin(made, key, content.trim_start_matches("- "), work);
            }
            continue;
        }
        kept.extend(waiting.take());
        kept.push_str(line);
    }
    (kept, all)
}

/// Notes a line of an annotation.
fn note_origin(made: &mut Made, key: &str, line: &str, work: &Path) {
    let path = |field: &str| Some(normal(&work.join(line.strip_prefix(field)?.trim_matches(['\'', '"']))));
    if key == ORIGIN {
        made.file = path("path: ").or_else(|| path("configuredIn: ")).or_else(|| made.file.take());
    } else if let Some(file) = path("configuredIn: ")
        && made.changed_in.last() != Some(&file)
    {
        made.changed_in.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_its_own_annotations_out() {
        let text = "\
apiVersion: v1
data:
  a: |
    metadata:
      annotations:
        config.kubernetes.io/origin: |
          path: x.yaml
kind: ConfigMap
metadata:
  annotations:
    alpha.config.kubernetes.io/transformations: |
      - configuredIn: ../r/o/kustomization.yaml
        configuredBy:
          kind: NamespaceTransformer
      - configuredIn: ../r/o/kustomization.yaml
    config.kubernetes.io/origin: |
      path: ../r/base/m.yaml
  name: a
---
kind: B
metadata:
  annotations:
    config.kubernetes.io/origin: |
      configuredIn: ../r/kustomization.yaml
    z: mine
  name: b
---
kind: C
metadata:
  annotations:
    note: |
      config.kubernetes.io/origin: mine
  name: c
";
        let (kept, made) = without_origins(text, Path::new("/w"));
        assert!(!kept.contains("transformations") && kept.contains("        config.kubernetes.io/origin: |"));
        assert!(kept.contains("metadata:\n  name: a\n---\n"), "{kept}");
        assert!(kept.contains("  annotations:\n    z: mine\n  name: b"), "{kept}");
        assert!(kept.contains("      config.kubernetes.io/origin: mine"), "{kept}");
        let path = |it: &str| PathBuf::from(it);
        assert_eq!(made[0].file, Some(path("/r/base/m.yaml")));
        assert_eq!(made[0].changed_in, [path("/r/o/kustomization.yaml")]);
        assert_eq!((made.len(), &made[1].file), (3, &Some(path("/r/kustomization.yaml"))));
        assert_eq!(made[2], Made::default());
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

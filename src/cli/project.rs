//! `.memgate.yaml`: the choices of a repository, so that each check of it is the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::keys;
use crate::cli::settings::SettingsFile;
use crate::cli::terminal::Terminal;
use crate::offline::exclude::Exclude;
use crate::offline::repository::normal;
use crate::report::plain;
use memgate_core::family::message::and_more;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

/// The name of the file at the root of a repository.
pub const FILE_NAME: &str = ".memgate.yaml";

/// The most patterns of Namespaces: more than an organisation has teams.
const MAX_PATTERNS: usize = 1_000;

/// The most patterns and paths in notes about the file.
const MAX_IN_NOTE: usize = 5;

/// `--project`: where the choices of the repository are.
#[derive(Debug, clap::Args)]
pub struct ProjectArgs {
    /// Read FILE instead of .memgate.yaml; none: no file
    ///
    /// By default .memgate.yaml is read from the root of the repository, the nearest directory with .git, else from
    /// the working directory. Its keys are paths, exclude, families, failOn, strict, namespace, namespaces (labels
    /// of Namespaces that are not among the inputs, by glob), and settings with the keys of --config. Flags win
    /// over it.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    project: Option<PathBuf>,
}

/// The choices of a repository.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Project {
    /// The paths that are read when none is typed, from the working directory.
    pub paths: Vec<String>,
    /// Globs of files to leave out, relative to `directory`.
    pub exclude: Vec<String>,
    /// The directory of the file.
    #[serde(skip)]
    pub directory: PathBuf,
    families: Option<Vec<String>>,
    /// The default of `--fail-on`.
    pub fail_on: Option<FailOnSeverity>,
    /// The default of `--strict`.
    pub strict: Option<bool>,
    /// The default of `--namespace`.
    pub namespace: Option<String>,
    /// Labels of Namespaces that are not among the inputs, by globs of their names.
    namespaces: Map<String, Value>,
    /// What `--config` would hold.
    pub settings: SettingsFile,
}

/// The least severity for which the exit code is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailOnSeverity {
    /// Denials.
    Deny,
    /// Warnings too.
    Warn,
}

impl ProjectArgs {
    /// Reads the file and writes a note that it is in use. Without a file there are no choices.
    ///
    /// # Errors
    /// When the file cannot be read, or holds an unknown key or value.
    pub fn read(&self, terminal: Terminal) -> anyhow::Result<Project> {
        let file = match &self.project {
            Some(none) if none.as_os_str() == "none" => None,
            Some(file) => Some(file.clone()),
            None => find(Path::new(".")),
        };
        let Some(file) = file else { return Ok(Project::default()) };
        // Errors show lines of the file, and the author of a change could make it a link to any other.
        let is_file = || std::fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file());
        anyhow::ensure!(
            self.project.is_some() || is_file(),
            "{}: this is a link, or not a file; give it with --project, or --project none to read no such file",
            plain(&file.to_string_lossy()),
        );
        let project = read(&file)?;
        let mut note = format!("note: choices are from {}", file.to_string_lossy());
        if !project.namespaces.is_empty() {
            let patterns: Vec<String> = project.namespaces.keys().cloned().collect();
            note += "; so are labels of Namespaces: ";
            note += &and_more(&patterns, MAX_IN_NOTE);
        }
        terminal.note(&plain(&note));
        Ok(project)
    }
}

impl Project {
    /// The globs of files to leave out, relative to `root`.
    ///
    /// # Errors
    /// When a glob is malformed.
    pub fn exclude(&self, root: &Path) -> anyhow::Result<Exclude> {
        let (mut exclude, directory) = (Exclude::default(), normal(root));
        for glob in &self.exclude {
            exclude.add(glob, Some(&directory)).context("exclude")?;
        }
        Ok(exclude)
    }

    /// What its paths leave out, in words.
    #[must_use]
    pub fn left_out_by_paths(&self) -> Option<String> {
        let paths = and_more(&self.paths, MAX_IN_NOTE);
        (!self.paths.is_empty()).then(|| format!("all files but those in {paths} (paths)"))
    }

    /// The directory below which its paths must lead; `None` if it names none.
    #[must_use]
    pub fn within(&self, root: &Path) -> Option<PathBuf> {
        // A directory that cannot be resolved has nothing below it.
        (!self.paths.is_empty()).then(|| std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()))
    }

    /// The labels of Namespaces that are not among the inputs.
    #[must_use]
    pub fn unknown_namespaces(&self) -> Vec<(Glob, BTreeMap<String, String>)> {
        let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let entry = |(pattern, labels): (&String, &Value)| {
            let labels = labels.as_object().into_iter().flatten().filter_map(label).collect();
            (Glob::new(pattern), labels)
        };
        self.namespaces.iter().map(entry).collect()
    }
}

/// The file at the root of the repository around a directory, as a path from there.
fn find(directory: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(directory).ok()?;
    let depth = absolute.ancestors().position(|ancestor| ancestor.join(".git").exists()).unwrap_or(0);
    let file = std::iter::repeat_n("..", depth).collect::<PathBuf>().join(FILE_NAME);
    std::fs::symlink_metadata(directory.join(&file)).is_ok().then_some(file)
}

/// Reads the choices of a file.
pub(super) fn read(file: &Path) -> anyhow::Result<Project> {
    let document = keys::read(file, keys::PROJECT)?;
    let value = document.as_ref().map(|document| document.value().clone());
    let project = value.map(serde_json::from_value::<Project>).transpose();
    let mut project =
        project.with_context(|| format!("failed to read {}", file.display()))?.unwrap_or_default();
    if let Some((fault, document)) = namespaces_fault(&project.namespaces).zip(document) {
        return Err(fault.at(&document).into());
    }
    project.settings.families = project.families.take().or(project.settings.families);
    let directory = file.parent().unwrap_or_else(|| Path::new(""));
    for path in &mut project.paths {
        *path = directory.join(&*path).to_string_lossy().into_owned();
        // Standard input is not a file of the repository.
        if path == "-" {
            "./-".clone_into(path);
        }
    }
    project.directory = if directory.as_os_str().is_empty() { ".".into() } else { directory.to_owned() };
    Ok(project)
}

/// The first pattern that cannot fit the name of a Namespace. Each is compared with the Namespace of each object, so
/// there may not be too many.
fn namespaces_fault(namespaces: &Map<String, Value>) -> Option<keys::Fault> {
    let at = Pointer::new("/namespaces");
    if namespaces.len() > MAX_PATTERNS {
        let message = format!("there are {} namespaces; at most {MAX_PATTERNS} are read", namespaces.len());
        return Some(keys::Fault::new(at, message));
    }
    let fits_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '*' | '?');
    let wrong = namespaces.keys().find(|name| name.is_empty() || !name.chars().all(fits_a_name))?;
    let message = format!("{} fits no name; use a-z, 0-9 and \"-\", and \"*\" and \"?\"", quoted(wrong));
    let mut fault = keys::Fault::new(at.key(wrong), message);
    fault.at_key = true;
    Some(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let root = tempfile::tempdir().expect("temporary directory");
        let file = root.path().join(FILE_NAME);
        std::fs::write(&file, text).expect("file");
        let error = read(&file).expect_err("is wrong");
        format!("{}", error.root_cause()).replace(&format!("{}/", root.path().display()), "")
    }

    #[test]
    fn says_at_its_place_what_is_wrong() {
        let many: Vec<String> = (0..1001).map(|index| format!("  n{index}: {{}}\n")).collect();
        let many = format!("namespaces:\n{}", many.concat());
        for (text, expected) in [
            (
                "exclud: []\n",
                ".memgate.yaml:1:1: unknown key \"exclud\"; keys here are paths, exclude, families, failOn, strict, \
                 namespace, namespaces, settings; did you mean \"exclude\"?",
            ),
            ("paths: deploy\n", ".memgate.yaml:1:8: paths: write a list"),
            ("a: [\n", ".memgate.yaml:1:4: unclosed bracket"),
            ("paths: [a]\nexclude:\n  - 1\n", ".memgate.yaml:3:5: exclude[0]: write a text"),
            ("failOn: warning\n", ".memgate.yaml:1:9: failOn: write one of deny, warn"),
            ("strict: yes please\n", ".memgate.yaml:1:9: strict: write true or false"),
            ("families: [arkonsi]\n", ".memgate.yaml:1:12: families[0]: write one of arkonis, "),
            (
                "settings:\n  orloj: {jobNamespace: [a]}\n",
                ".memgate.yaml:2:11: unknown key \"jobNamespace\"; ",
            ),
            ("namespaces: [a]\n", ".memgate.yaml:1:1: namespaces: write a map"),
            ("namespaces: {a: prod}\n", ".memgate.yaml:1:17: namespaces.a: write a map"),
            ("namespaces: {a: {env: true}}\n", ".memgate.yaml:1:23: namespaces.a.env: write a text"),
            ("namespaces: {Pay-*: {env: prod}}\n", ".memgate.yaml:1:14: \"Pay-*\" fits no name; use a-z"),
            ("namespaces:\n  pay-*: {}\n  \"\": {env: a}\n", ".memgate.yaml:3:3: \"\" fits no name; use a-z"),
            ("namespaces:\n  a: {}\n  a/b~c: {}\n", ".memgate.yaml:3:3: \"a/b~c\" fits no name; use a-z"),
            (&many, ".memgate.yaml:1:1: there are 1001 namespaces; at most 1000 are read"),
            ("render: true\n", ".memgate.yaml:1:1: render: a file cannot switch this on"),
            ("- a\n", ".memgate.yaml:1:1: write a map with keys out of paths"),
            ("{}\n---\n{}\n", ".memgate.yaml:3:1: there is a second document"),
        ] {
            let got = error(text);
            assert!(got.starts_with(expected), "{text:?}\n{got}");
        }
    }

    #[test]
    fn finds_the_file_at_the_root() {
        let root = tempfile::tempdir().expect("temporary directory");
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("directories");
        std::fs::write(root.path().join(FILE_NAME), "strict: true").expect("file");
        assert_eq!(find(root.path()), Some(PathBuf::from(FILE_NAME)));
        assert_eq!(find(&inner), None);
        std::fs::create_dir(root.path().join(".git")).expect("directory");
        assert_eq!(find(&inner), Some(Path::new("../..").join(FILE_NAME)));
    }
}

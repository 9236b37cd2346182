//! `.memgate.yaml`: the choices of a repository, so that each check of it is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::keys;
use crate::cli::settings::SettingsFile;
use crate::cli::terminal::Terminal;
use memgate_manifest::document::{Document, values};
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::finding::Severity;
use memgate_platforms::message::and_more;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::build::exclude::Exclude;
use memgate_workbench::build::rules::{self, Rule};
use memgate_workbench::files::base::{Branch, FileThere};
use memgate_workbench::paths::{normal, project_file_for, without_dots};
use memgate_workbench::report::plain;

/// The most patterns and paths in notes about the file.
const MAX_IN_NOTE: usize = 5;

/// `--project`: where the choices of the repository are.
#[derive(Debug, Clone, clap::Args)]
pub struct ProjectArgs {
    /// Read FILE instead of .memgate.yaml; none: no file
    ///
    /// By default the nearest .memgate.yaml is read, from the directory of PATH up to the root of its repository, which
    /// has .git. Without a repository, and for PATHs with different files, it is that of the working directory. Its
    /// keys are paths, rules (severities of findings), exclude, families, failOn,
    /// strict, namespace, namespaces (labels of Namespaces that are not among the inputs, by glob), and settings with
    /// those keys of --settings that are not for serve alone. Flags win over it.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    project: Option<PathBuf>,
}

/// The choices of a repository.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Project {
    /// The paths that are read when none is typed, from the working directory.
    pub paths: Vec<String>,
    #[serde(rename = "rules")]
    written_rules: Vec<WrittenRule>,
    /// The severities of findings.
    #[serde(skip)]
    pub rules: Arc<[Rule]>,
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
    /// What `--settings` would hold.
    pub settings: SettingsFile,
    /// What a branch changes of it, which does not count yet.
    #[serde(skip)]
    pub later: Vec<String>,
    /// Why the file of a branch cannot be read.
    #[serde(skip)]
    pub broken: Option<Error>,
}

/// A rule as it is written.
#[derive(Debug, Deserialize)]
struct WrittenRule {
    codes: Vec<String>,
    paths: Option<Vec<String>>,
    /// A word, or false for `off` without quotes.
    severity: Value,
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
    /// Reads a relative path from this directory, whatever the working directory is.
    pub fn read_from(&mut self, directory: &Path) {
        if let Some(file) = self.project.as_mut().filter(|file| file.as_os_str() != "none") {
            *file = directory.join(&*file);
        }
    }

    /// Reads the file and writes a note that it is in use. Without a file there are no choices.
    ///
    /// # Errors
    /// When the file cannot be read, or holds an unknown key or value.
    pub fn read(&self, paths: &[String], terminal: Terminal) -> anyhow::Result<Project> {
        let file = match &self.project {
            Some(none) if none.as_os_str() == "none" => None,
            Some(file) => Some(file.clone()),
            None => project_file_for(paths),
        };
        let Some(file) = file else { return Ok(Project::default()) };
        let project = if self.project.is_some() { read(&file)? } else { read_found(&file)? };
        project.note_use(&file.to_string_lossy(), terminal);
        Ok(project)
    }

    /// The same for a check of a branch: a file in the repository counts as it is in the commit with which the branch is
    /// compared, wherever the branch has another one.
    ///
    /// # Errors
    /// Those of [`ProjectArgs::read`].
    pub fn read_at(&self, paths: &[String], branch: &Branch, terminal: Terminal) -> anyhow::Result<Project> {
        let file = match &self.project {
            Some(file) if file.as_os_str() == "none" => return Ok(Project::default()),
            Some(file) => match branch.relative(&file.to_string_lossy()) {
                Some(relative) => Some(relative),
                None => return self.read(paths, terminal),
            },
            None => branch.project_file_for(paths),
        };
        let here = self.project.clone().or_else(|| project_file_for(paths));
        let here = here.and_then(|file| branch.relative(&file.to_string_lossy()));
        let new = here.filter(|here| file.as_ref() != Some(here));
        let new = new.filter(|here| matches!(branch.file(here), Ok(FileThere::Missing)));
        let mut later: Vec<String> = new.iter().map(|it| new_file(&branch.shown(it))).collect();
        let Some(relative) = file else {
            let broken = new.and_then(|new| why_unreadable(&branch.shown(&new)));
            return Ok(Project { later, broken, ..Project::default() });
        };
        let (shown, name) = (branch.shown(&relative), format!("{}:{relative}", branch.reference));
        let text = match branch.file(&relative)? {
            FileThere::Text(text) => text,
            FileThere::Unreadable => anyhow::bail!(
                "{}: this is a link, or not a text; give a file outside of the repository with --project, or --project none",
                plain(&name)
            ),
            FileThere::Missing => {
                later.push(new_file(&shown));
                return Ok(Project { later, broken: why_unreadable(&shown), ..Project::default() });
            }
        };
        let document = keys::parse(&Arc::new(Source::new(&name, text)), keys::PROJECT)?;
        later.extend(changed_keys(document.as_ref(), &shown));
        let project = Project { later, broken: why_unreadable(&shown), ..of_document(&shown, document)? };
        project.note_use(&format!("{} at {}", shown.to_string_lossy(), branch.reference), terminal);
        Ok(project)
    }
}

/// Why the file of a branch cannot be read; `None` if it can, or the branch has none.
fn why_unreadable(file: &Path) -> Option<Error> {
    std::fs::symlink_metadata(file).ok()?;
    let why = read_found(file).err()?;
    Some(why.downcast().unwrap_or_else(|why| Error::of_input(file.to_string_lossy(), format!("{why:#}"))))
}

fn new_file(file: &Path) -> String {
    format!("{} (new)", file.to_string_lossy())
}

/// The keys of the file that a branch changes, in words.
fn changed_keys(before: Option<&Document>, file: &Path) -> Option<String> {
    let shown = file.to_string_lossy();
    let Ok(metadata) = std::fs::symlink_metadata(file) else { return Some(format!("{shown} (removed)")) };
    let source = keys::source(file).ok().filter(|_| metadata.is_file());
    let mut errors = Vec::new();
    let documents = source.map(|source| values(&source, &mut errors));
    let Some(documents) = documents.filter(|documents| errors.is_empty() && documents.len() < 2) else {
        return Some(format!("{shown} (cannot be read)"));
    };
    let keys = |document: Option<&Document>| {
        document.and_then(|document| document.value().as_object()).cloned().unwrap_or_default()
    };
    let (before, now) = (keys(before), keys(documents.first()));
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed: Vec<&str> =
        all.into_iter().filter(|key| before.get(*key) != now.get(*key)).map(String::as_str).collect();
    (!changed.is_empty()).then(|| format!("{shown} ({})", changed.join(", ")))
}

impl Project {
    /// Writes a note that it is in use.
    fn note_use(&self, file: &str, terminal: Terminal) {
        let mut note = format!("note: choices are from {file}");
        if !self.namespaces.is_empty() {
            let patterns: Vec<String> = self.namespaces.keys().cloned().collect();
            note += "; so are labels of Namespaces: ";
            note += &and_more(&patterns, MAX_IN_NOTE);
        }
        terminal.note(&plain(&note));
    }

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

    /// What its paths and its globs leave out, in words.
    pub fn left_out_by(&self, paths: &[String]) -> impl Iterator<Item = String> {
        let named = |some: &[String]| (!some.is_empty()).then(|| and_more(some, MAX_IN_NOTE));
        let others = named(paths).map(|paths| format!("all files but those in {paths} (paths)"));
        others.into_iter().chain(named(&self.exclude).map(|globs| format!("{globs} (exclude)")))
    }

    /// The directory below which its paths must lead; `None` without any.
    pub fn within(&self, paths: &[String], root: &Path) -> Option<PathBuf> {
        // A directory that cannot be resolved has nothing below it.
        (!paths.is_empty()).then(|| std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()))
    }

    /// The labels of Namespaces that are not among the inputs.
    pub fn unknown_namespaces(&self) -> Vec<(Glob, BTreeMap<String, String>)> {
        let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let entry = |(pattern, labels): (&String, &Value)| {
            let labels = labels.as_object().into_iter().flatten().filter_map(label).collect();
            (Glob::new(pattern), labels)
        };
        self.namespaces.iter().map(entry).collect()
    }
}

/// Reads the choices of a file that was found.
fn read_found(file: &Path) -> anyhow::Result<Project> {
    // Errors show lines of the file, and the author of a change could make it a link to any other.
    if std::fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file()) {
        return read(file);
    }
    let what =
        "this is a link, or not a file; give it with --project, or --project none to read no such file";
    Err(Error::of_input(file.to_string_lossy(), what).into())
}

/// Reads the choices of a file.
pub(super) fn read(file: &Path) -> anyhow::Result<Project> {
    of_document(file, keys::read(file, keys::PROJECT)?)
}

/// The choices of the document of a file, whose paths are relative to it.
fn of_document(file: &Path, document: Option<Document>) -> anyhow::Result<Project> {
    let value = document.as_ref().map(|document| document.value().clone());
    let project = value.map(serde_json::from_value::<Project>).transpose();
    let unreadable = |why| Error::of_input(file.to_string_lossy(), format!("failed to read it: {why}"));
    let mut project = project.map_err(unreadable)?.unwrap_or_default();
    let directory = file.parent().unwrap_or_else(|| Path::new(""));
    if let Some(document) = document {
        for (number, glob) in project.exclude.iter().enumerate() {
            if let Err(why) = Exclude::default().add(glob, None) {
                let (at, message) = (Pointer::new("/exclude").index(number), format!("exclude: {why}"));
                return Err(keys::Fault::new(at, message).at(&document).into());
            }
        }
        project.rules = rules(&project.written_rules, &document)?;
    }
    project.settings.families = project.families.take().or(project.settings.families);
    for path in &mut project.paths {
        let written = without_dots(&directory.join(&*path)).to_string_lossy().into_owned();
        *path = if written.is_empty() { ".".to_owned() } else { written };
        // Standard input is not a file of the repository.
        if path == "-" {
            "./-".clone_into(path);
        }
    }
    project.directory = if directory.as_os_str().is_empty() { ".".into() } else { directory.to_owned() };
    Ok(project)
}

/// Reads the rules. Each code must be one of memgate, and have one rule for the same files.
fn rules(written: &[WrittenRule], document: &Document) -> anyhow::Result<Arc<[Rule]>> {
    let (mut rules, mut seen) = (Vec::new(), BTreeMap::new());
    for (index, WrittenRule { codes, paths, severity }) in written.iter().enumerate() {
        let at = Pointer::new("/rules").index(index);
        let fault = |pointer: Pointer, what: String| {
            let message = format!("{}: {what}", pointer.field());
            anyhow::Error::from(keys::Fault::new(pointer, message).at(document))
        };
        for (number, path) in paths.iter().flatten().enumerate() {
            if let Some(what) = rules::fault_of_path(path) {
                return Err(fault(at.key("paths").index(number), what));
            }
        }
        let start = |path: &String| path.trim_start_matches("./").trim_end_matches('/').to_owned();
        let mut files: Vec<String> = paths.iter().flatten().map(start).collect();
        files.sort();
        for (number, code) in codes.iter().enumerate() {
            let here = at.key("codes").index(number);
            let what = rules::fault_of_code(code);
            let first = what.is_none().then(|| seen.insert((code, files.clone()), here.clone())).flatten();
            let twice = first.map(|first| {
                let place = document.locate(&first).caret;
                let (line, column) = (place.line, place.column);
                format!(
                    "{} has a rule for the same files at {line}:{column}; remove one of the two",
                    quoted_text(code)
                )
            });
            if let Some(what) = what.or(twice) {
                return Err(fault(here, what));
            }
        }
        let mut severities = [Severity::Deny, Severity::Warn, Severity::Note].into_iter();
        let severity = severities.find(|it| severity == it.name());
        rules.push(Rule::new(codes, paths.as_deref(), severity).context("rules")?);
    }
    Ok(rules.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let root = tempfile::tempdir().expect("temporary directory");
        let file = root.path().join(memgate_workbench::paths::PROJECT_FILE);
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
                ".memgate.yaml:1:1: unknown key \"…\"; keys here are paths, rules, exclude, families, failOn, \
                 strict, namespace, namespaces, settings; did you mean \"exclude\"?",
            ),
            ("paths: deploy\n", ".memgate.yaml:1:8: paths: write a list"),
            ("a: [\n", ".memgate.yaml:1:4: unclosed bracket"),
            ("paths: [a]\nexclude:\n  - 1\n", ".memgate.yaml:3:5: exclude[0]: write a text"),
            ("failOn: warning\n", ".memgate.yaml:1:9: failOn: write one of deny, warn"),
            ("strict: yes please\n", ".memgate.yaml:1:9: strict: write true or false"),
            ("families: [arkonsi]\n", ".memgate.yaml:1:12: families[0]: write one of arkonis, "),
            ("settings:\n  orloj: {jobNamespace: [a]}\n", ".memgate.yaml:2:11: unknown key \"…\"; "),
            ("namespaces: [a]\n", ".memgate.yaml:1:1: namespaces: write a map"),
            ("namespaces: {a: prod}\n", ".memgate.yaml:1:17: namespaces.a: write a map"),
            ("namespaces: {a: {env: true}}\n", ".memgate.yaml:1:23: namespaces.a.env: write a text"),
            ("namespaces: {Pay-*: {env: prod}}\n", ".memgate.yaml:1:14: \"…\" fits no name; use a-z"),
            ("namespaces:\n  pay-*: {}\n  \"\": {env: a}\n", ".memgate.yaml:3:3: \"\" fits no name; use a-z"),
            ("namespaces:\n  a: {}\n  a/b~c: {}\n", ".memgate.yaml:3:3: \"…\" fits no name; use a-z"),
            (&many, ".memgate.yaml:1:1: namespaces: there are 1001 entries; at most 1000 are read"),
            ("rules: [{codes: [ark/x]}]\n", ".memgate.yaml:1:9: rules[0]: the key \"severity\" is missing"),
            (
                "rules: [{codes: [ark/x], severity: of}]\n",
                ".memgate.yaml:1:36: rules[0].severity: write one of deny, warn, note, off; did you mean \"off\"?",
            ),
            (
                "rules: [{codes: [arkonis/redis-requird], severity: off}]\n",
                ".memgate.yaml:1:18: rules[0].codes[0]: no code fits \"…\"; did you mean \
                 \"arkonis/redis-required\"?",
            ),
            (
                "rules: [{codes: [redis-required], severity: \"off\"}]\n",
                ".memgate.yaml:1:18: rules[0].codes[0]: no code fits \"…\"; did you mean \
                 \"arkonis/redis-required\"?",
            ),
            (
                "rules: [{codes: [\"arkonsi/*\"], severity: deny}]\n",
                ".memgate.yaml:1:18: rules[0].codes[0]: no code fits \"…\"",
            ),
            (
                "rules: [{codes: [\"ark/[\"], severity: deny}]\n",
                ".memgate.yaml:1:18: rules[0].codes[0]: \"…\": unclosed character class",
            ),
            (
                "rules: [{codes: [ark/*], severity: deny, paths: [\"[\"]}]\n",
                ".memgate.yaml:1:50: rules[0].paths[0]: \"[\": unclosed character class",
            ),
            (
                "rules:\n- {codes: [ark/*], paths: [a, b], severity: deny}\n- {codes: [ark/*], severity: deny}\n\
                 - {codes: [orka/*, ark/*], paths: [b, a], severity: note}\n",
                ".memgate.yaml:4:20: rules[2].codes[1]: \"…\" has a rule for the same files at 2:12; remove one of the two",
            ),
            ("- a\n", ".memgate.yaml:1:1: write a map with keys out of paths"),
            ("{}\n---\n{}\n", ".memgate.yaml:3:1: there is a second document"),
        ] {
            let got = error(text);
            assert!(got.starts_with(expected), "{text:?}\n{got}");
        }
    }
}

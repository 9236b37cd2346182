//! `.memgate.yaml`: the choices of a repository, so that each check of it is the same.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::cli::keys;
use crate::cli::settings::SettingsFile;
use crate::cli::terminal::Terminal;
use crate::report::plain;

/// The name of the file at the root of a repository.
pub const FILE_NAME: &str = ".memgate.yaml";

/// `--project`: where the choices of the repository are.
#[derive(Debug, clap::Args)]
pub struct ProjectArgs {
    /// Read FILE instead of .memgate.yaml; none: no file
    ///
    /// By default .memgate.yaml is read from the root of the repository, the nearest directory with .git, else from
    /// the working directory. Its keys are paths, exclude, families, failOn, strict, namespace, and settings with
    /// the keys of --config. Flags win over it.
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
        terminal.note(&format!("note: choices are from {}", plain(&file.to_string_lossy())));
        Ok(project)
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
    let value = keys::read(file, keys::PROJECT)?.map(|document| document.value().clone());
    let project = value.map(serde_json::from_value::<Project>).transpose();
    let mut project =
        project.with_context(|| format!("failed to read {}", file.display()))?.unwrap_or_default();
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
        for (text, expected) in [
            (
                "exclud: []\n",
                ".memgate.yaml:1:1: unknown key \"exclud\"; keys here are paths, exclude, families, failOn, strict, \
                 namespace, settings; did you mean \"exclude\"?",
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

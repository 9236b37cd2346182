//! `.memgate.yaml`: what a repository says about its own check, so that everybody runs the same one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::cli::keys::{self, Expected};
use crate::cli::settings::File;
use crate::cli::terminal::Terminal;
use crate::model::finding::Severity;
use crate::report::plain;

/// The name of the file at the root of a repository.
pub const FILE_NAME: &str = ".memgate.yaml";

/// Which file it is.
#[derive(Debug, clap::Args)]
pub struct ProjectArgs {
    /// The file of the repository's own choices, or none [default: .memgate.yaml at its root]
    ///
    /// The root is the nearest directory with .git, else the working directory. The keys are paths, exclude,
    /// families, failOn, strict, namespace, and settings with the keys of --config; flags win over it.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    project: Option<PathBuf>,
}

/// What the file says.
#[derive(Debug, Default)]
pub struct Project {
    /// What is read when the command line names nothing, from the working directory.
    pub paths: Vec<String>,
    /// Globs for what is left out.
    pub exclude: Vec<String>,
    /// The directory to which they are relative.
    pub directory: PathBuf,
    /// The least severity for which a check fails.
    pub fail_on: Option<Severity>,
    /// Whether to fail when something was passed over.
    pub strict: Option<bool>,
    /// The namespace of objects that name none.
    pub namespace: Option<String>,
    /// What `--config` would take.
    pub settings: File,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ProjectFile {
    paths: Vec<String>,
    exclude: Vec<String>,
    families: Option<Vec<String>>,
    fail_on: Option<String>,
    strict: Option<bool>,
    namespace: Option<String>,
    settings: File,
}

fn expected() -> Expected {
    use Expected::{Flag, Keys, Refused, Text, Texts, Word};
    const RUNS: &str = "a file cannot switch this on, since whoever proposes a change would run programs with it; \
        give --render on the command line";
    Keys(vec![
        ("paths", Texts),
        ("exclude", Texts),
        ("families", keys::families()),
        ("failOn", Word(vec!["deny", "warn"])),
        ("strict", Flag),
        ("namespace", Text),
        ("settings", keys::settings()),
        ("render", Refused(RUNS)),
        ("values", Refused(RUNS)),
    ])
}

impl ProjectArgs {
    /// What the file says, with a note that it is in use; nothing when there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what does not belong there.
    pub fn read(&self, terminal: Terminal) -> anyhow::Result<Project> {
        let file = match &self.project {
            Some(none) if none.as_os_str() == "none" => None,
            Some(file) => Some(file.clone()),
            None => find(Path::new(".")),
        };
        let Some(file) = file else { return Ok(Project::default()) };
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
    directory.join(&file).exists().then_some(file)
}

fn read(file: &Path) -> anyhow::Result<Project> {
    let directory = file.parent().unwrap_or_else(|| Path::new(""));
    let here = directory.as_os_str().is_empty();
    let document = keys::read(file, &expected())?;
    let value = document.map(|document| document.value().clone());
    let read = value.map(serde_json::from_value::<ProjectFile>).transpose();
    let read = read.with_context(|| format!("failed to read {}", file.display()))?.unwrap_or_default();
    let mut settings = read.settings;
    settings.families = read.families.or(settings.families);
    let from_here = |path: String| directory.join(path).to_string_lossy().into_owned();
    Ok(Project {
        paths: read.paths.into_iter().map(from_here).collect(),
        exclude: read.exclude,
        directory: if here { PathBuf::from(".") } else { directory.to_owned() },
        fail_on: read.fail_on.map(|word| if word == "warn" { Severity::Warn } else { Severity::Deny }),
        strict: read.strict,
        namespace: read.namespace,
        settings,
    })
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

//! Renders charts and overlays with the user's own helm and kustomize.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::program::{Failure, Limits, Stop, output};
use crate::repository::{Tool, Unit};
use crate::texts::source;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_primitives::causes::in_words;
use memgate_primitives::credential::masked;

/// How long one chart or overlay may take: those that fetch something remote take some seconds.
const TIME: Duration = Duration::from_mins(1);

/// How to render.
#[derive(Debug, Clone, Default)]
pub struct Rendering {
    /// Files of values for helm.
    pub values: Vec<PathBuf>,
    /// The namespace of a release, when the user chose one.
    pub namespace: Option<String>,
    /// Ends the programs when it is set.
    pub stop: Stop,
}

/// A chart or kustomization that was not rendered.
#[derive(Debug, PartialEq, Eq)]
pub struct Unrendered {
    /// The chart or kustomization.
    pub unit: Unit,
    /// The files, as the walk found them.
    pub files: Vec<String>,
}

/// The shortest command that prints the manifests of a unit.
pub fn command(unit: &Unit) -> String {
    let directory = quoted(&unit.directory.to_string_lossy());
    match unit.tool {
        Tool::Helm => format!("helm template {directory}"),
        Tool::Kustomize => format!("kustomize build {directory}"),
    }
}

/// Renders a unit. The name of the source is the command: `<helm template chart>`.
///
/// # Errors
/// When the program does not exist, fails, takes too long or writes too much.
pub fn render(unit: &Unit, rendering: &Rendering, max_bytes: usize) -> Result<Source, Error> {
    let limits = Limits { time: TIME, bytes: max_bytes, stop: rendering.stop.clone() };
    let directory = argument(&unit.directory);
    let (shown, result) = match unit.tool {
        Tool::Helm => run("helm", &rendering.helm_arguments(directory), &limits),
        Tool::Kustomize => match run("kustomize", &["build".into(), directory.clone()], &limits) {
            (_, Err(Failure::Missing)) => run("kubectl", &["kustomize".into(), directory], &limits),
            other => other,
        },
    };
    let fail = |message: String| Error::of_input(shown.as_str(), message);
    let bytes = result.map_err(|failure| fail(message(failure, unit.tool, max_bytes)))?;
    source(&format!("<{}>", command(unit)), Ok::<_, io::Error>(bytes.as_slice()), max_bytes)
}

impl Rendering {
    fn helm_arguments(&self, directory: OsString) -> Vec<OsString> {
        let mut arguments = vec!["template".into(), directory];
        for values in &self.values {
            arguments.extend(["--values".into(), argument(values)]);
        }
        if let Some(namespace) = &self.namespace {
            arguments.push(format!("--namespace={namespace}").into());
        }
        arguments
    }
}

/// A path as an argument that cannot be taken for a flag.
fn argument(path: &Path) -> OsString {
    let is_flag = path.as_os_str().as_encoded_bytes().starts_with(b"-");
    if is_flag { Path::new(".").join(path).into() } else { path.into() }
}

fn run(program: &str, arguments: &[OsString], limits: &Limits) -> (String, Result<Vec<u8>, Failure>) {
    let shown = arguments.iter().map(|argument| quoted(&argument.to_string_lossy()));
    let command = [program.to_owned()].into_iter().chain(shown).collect::<Vec<_>>().join(" ");
    (command, output(program, arguments, limits))
}

fn message(failure: Failure, tool: Tool, max_bytes: usize) -> String {
    match failure {
        Failure::Missing => match tool {
            Tool::Helm => "there is no helm on PATH; install it, or leave out --render",
            Tool::Kustomize => {
                "there is no kustomize and no kubectl on PATH; install one, or leave out --render"
            }
        }
        .to_owned(),
        Failure::Start(error) => format!("it cannot be run: {}", in_words(&error)),
        Failure::TooLong => format!("it did not end within {} s", TIME.as_secs()),
        Failure::Stopped => "interrupted".to_owned(),
        Failure::TooMuch => format!("it wrote more than {max_bytes} bytes; see --max-file-size"),
        Failure::Failed(why) if why.is_empty() => "it failed and did not say why".to_owned(),
        Failure::Failed(why) => masked(&why).into_owned(),
    }
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_words_that_a_shell_would_split() {
        for (word, expected) in
            [("a/b-c.yaml", "a/b-c.yaml"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$(x)", "'$(x)'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn shows_no_credential_that_a_program_repeats() {
        let why = "Error: cannot use redis://app:hunter2@redis.example:6379".to_owned();
        let message = message(Failure::Failed(why), Tool::Helm, 1);
        assert!(message.contains("redis.example") && !message.contains("hunter2"), "{message}");
    }

    #[test]
    fn passes_no_path_as_a_flag() {
        let rendering =
            Rendering { values: vec!["-x".into()], namespace: Some("a".to_owned()), ..Rendering::default() };
        let arguments = rendering.helm_arguments(argument(Path::new("--post-renderer")));
        assert_eq!(
            arguments,
            ["template", "./--post-renderer", "--values", "./-x", "--namespace=a"].map(OsString::from)
        );
    }
}

//! Renders charts and overlays with the user's own helm and kustomize.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::action::line_that_printed;
use crate::by_itself::on_path;
use crate::kustomization::{is_remote, missing_in};
use crate::paths::leads_out;
use crate::program::{Failure, Limits, Stop, output};
use crate::releases::{Inline, Layer, Release, VALUES};
use crate::repository::{Tool, Unit, VALUES_FILE, normal, without_dots};
use crate::texts;
use memgate_manifest::document::values;
use memgate_manifest::error::{Error, SyntaxError};
use memgate_manifest::source::{Source, Span};
use memgate_primitives::causes::in_words;
use memgate_primitives::credential::masked;

/// How long one chart or overlay may take: those that fetch something remote take some seconds.
const TIME: Duration = Duration::from_mins(1);

/// Why a directory behind a link out of the repository is not rendered: outputs quote what programs print.
const LINKED: &str =
    "a link that leads out of the repository leads here, so this is not rendered; name the directory itself";

/// What is in the path of each template.
const TEMPLATES: &str = "/templates/";

/// How to render.
#[derive(Debug, Clone, Default)]
pub struct Rendering {
    /// Files of values for helm.
    pub values: Vec<PathBuf>,
    /// The namespace of a release, when the user chose one.
    pub namespace: Option<String>,
    /// Whether memgate renders without being asked to: only what needs nothing but files here.
    pub by_itself: bool,
    /// Ends the programs when it is set.
    pub stop: Stop,
}

/// A chart or kustomization that was not rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrendered {
    /// The chart or kustomization.
    pub unit: Unit,
    /// The files, as the walk found them.
    pub files: Vec<String>,
    /// Why, if others were.
    pub why: Option<String>,
    /// Whether kustomize failed for it, or for all overlays on it; an error says why.
    pub is_failed: bool,
    /// The namespaces in which it makes objects; `None` for any.
    pub namespaces: Option<BTreeSet<String>>,
}

/// Why a unit was not rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// An error with a place.
    #[error(transparent)]
    Placed(Box<Error>),
    /// helm or kustomize failed.
    #[error("{command}: {why}")]
    Failed {
        /// The command.
        command: String,
        /// What it says, which may be the same for several charts or overlays.
        why: String,
    },
}

/// The shortest command that prints the manifests of a unit.
pub fn command(unit: &Unit) -> String {
    let directory = quoted(&unit.directory.to_string_lossy());
    match unit.tool {
        Tool::Helm => format!("helm template {directory}"),
        Tool::Kustomize => format!("kustomize build {directory}"),
    }
}

/// The name of what is printed for a unit, of a chart with the values of a release: the command, as `<helm template chart>`.
pub(crate) fn name(unit: &Unit, release: Option<&Release>) -> String {
    let place = release.map(|release| format!(" ({})", release.place)).unwrap_or_default();
    format!("<{}{place}>", command(unit))
}

/// Renders a unit, a chart with the values of a release. One from which something leads out of the repository is not rendered.
///
/// # Errors
/// When the program does not exist, fails, takes too long or writes too much.
pub(crate) fn render(
    (unit, way_out): (&Unit, Option<String>),
    release: Option<&Release>,
    rendering: &Rendering,
    max_bytes: usize,
) -> Result<Source, RenderError> {
    let limits = Limits { time: TIME, bytes: max_bytes, stop: rendering.stop.clone() };
    let directory = argument(&unit.directory);
    let placed = |error| RenderError::Placed(Box::new(error));
    if leads_out(&unit.directory) {
        return Err(placed(error_in(unit, LINKED.to_owned())));
    }
    if let Some(values) = rendering.values.iter().find(|it| unit.tool == Tool::Helm && leads_out(it)) {
        return Err(placed(Error::of_input(values.to_string_lossy(), texts::LINKED)));
    }
    if let Some(way_out) = way_out {
        return Err(placed(error_in(unit, format!("{way_out}, so this is not rendered"))));
    }
    let inline = release.map(inline_values).transpose();
    let inline = inline.map_err(|error| placed(error_in(unit, in_words(&error))))?;
    let (hidden, files) = inline.unwrap_or_default();
    let mut tried = (command(unit), Err(Failure::Missing));
    for (program, word) in unit.tool.programs() {
        let Some(path) = rendering.program(program) else { continue };
        let mut arguments = vec![word.into()];
        arguments.extend(release.and_then(|release| release.name.as_ref()).map(OsString::from));
        arguments.push(directory.clone());
        if unit.tool == Tool::Helm {
            arguments.extend(rendering.helm_flags(release));
        }
        let shown = shown(program, &arguments);
        arguments.extend(hidden.iter().cloned());
        tried = (shown, output(&path, &arguments, &limits));
        if !matches!(tried.1, Err(Failure::Missing)) {
            break;
        }
    }
    drop(files);
    let (shown, result) = tried;
    let bytes = result.map_err(|failure| {
        let why = message(failure, unit.tool, max_bytes);
        let why = if unit.tool == Tool::Kustomize { of_kustomize(&why) } else { why };
        RenderError::Failed { command: shown, why }
    })?;
    let source = texts::source(&name(unit, release), Ok::<_, io::Error>(bytes.as_slice()), max_bytes);
    source.map_err(|error| placed(unreadable(unit, &error, max_bytes)))
}

/// An error in the file that makes the directory a chart or a kustomization.
fn error_in(unit: &Unit, message: String) -> Error {
    Error::of_input(unit.marker().to_string_lossy(), message)
}

/// What kustomize says, without the clock and the process of kubectl's log, and with paths from the working directory.
fn of_kustomize(why: &str) -> String {
    let why = why.split_once("\"command failed\" err=").map_or(why, |(_, error)| error);
    let text = serde_json::from_str::<String>(why);
    let why = text.as_deref().unwrap_or_else(|_| why.trim_start_matches("<; ").trim_end_matches("; >"));
    let here = format!("{}/", normal(Path::new(".")).display());
    why.trim_start_matches("Error: ").replace(&here, "")
}

/// What a program says of several charts or overlays, in words.
fn same_for(units: &[Unit], command: &str, why: &str) -> String {
    let others = units.iter().skip(1).map(|it| quoted(&it.directory.to_string_lossy()));
    let others: Vec<_> = others.collect();
    let others =
        if others.is_empty() { String::new() } else { format!("; the same for {}", others.join(", ")) };
    format!("{command}: {why}{others}")
}

/// The error of overlays for which kustomize says the same: at the line of the first of these kustomizations that names a file
/// that does not exist, else in the first overlay.
pub(crate) fn error_of_kustomize(
    units: &[Unit],
    (command, why): (&str, &str),
    (kustomizations, max_bytes): (&[&Path], usize),
) -> Option<Error> {
    let message = same_for(units, command, why);
    let of_missing = |file: &&Path| {
        let documents = values(&Arc::new(texts::file(file, max_bytes).ok()?), &mut Vec::new());
        let (at, _) = missing_in(&documents, file.parent()?).next()?;
        let document = documents.iter().find(|it| it.value().pointer(at.as_str()).is_some())?;
        let error = SyntaxError::new(document.source(), document.locate(&at).caret, message.as_str());
        Some(Error::Syntax(Box::new(error)))
    };
    let placed = kustomizations.iter().find_map(of_missing);
    placed.or_else(|| Some(error_in(units.first()?, message)))
}

/// The error of charts for which helm says the same: in the file of values or of the first chart, and at the line in it, that helm
/// names.
pub(crate) fn error_of_helm(
    units: &[Unit],
    (command, why): (&str, &str),
    (rendering, max_bytes): (&Rendering, usize),
) -> Option<Error> {
    let message = same_for(units, command, why);
    let message = message.replacen("; Use --debug flag to render out invalid YAML", "", 1);
    let line = number_behind(why, " line ");
    let is_named = |file: &&PathBuf| why.contains(&format!(" {}:", file.display()));
    if let Some(file) = rendering.values.iter().find(is_named) {
        let at_line = || Some((line?, texts::file(file, max_bytes).ok()?));
        let placed = at_line().map(|(line, source)| error_at_line(source, (line, 0), &message));
        return Some(placed.unwrap_or_else(|| Error::of_input(file.to_string_lossy(), message)));
    }
    let unit = units.first()?;
    Some(named_by_helm(unit, (&message, line), max_bytes).unwrap_or_else(|| error_in(unit, message)))
}

/// The number of a line, from 0, in a text behind these words.
fn number_behind(text: &str, words: &str) -> Option<usize> {
    let digits = text.split_once(words)?.1.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse::<usize>().ok()?.checked_sub(1)
}

fn error_at_line(source: Source, (line, column): (usize, usize), message: &str) -> Error {
    let source = Arc::new(source);
    let mut lines = source.text().split_inclusive('\n');
    let start: usize = lines.by_ref().take(line).map(str::len).sum();
    let at = start + column.min(lines.next().map_or(0, |line| line.trim_end().len()));
    Error::Syntax(Box::new(SyntaxError::new(&source, source.span(at, at), message)))
}

/// An error of helm at the file of the chart, and the line in it, that its message names. Where it names none behind the file,
/// `line` is that of the values, or of what a template printed.
fn named_by_helm(unit: &Unit, (message, line): (&str, Option<usize>), max_bytes: usize) -> Option<Error> {
    let word = |from: usize| {
        let start = message.get(..from)?.rfind([' ', '(', '"']).map_or(0, |at| at + 1);
        message.get(start..)?.split([' ', ')', '"', ';']).next()
    };
    let word = message.find(TEMPLATES).or_else(|| message.find(VALUES_FILE)).and_then(word)?;
    let mut parts = word.split(':');
    let path = parts.next()?;
    // helm begins the path of a template with the name of the chart.
    let path = unit.directory.join(path.split_once('/').map_or(path, |(_, path)| path));
    let source = texts::file(&without_dots(&path), max_bytes).ok()?;
    let mut number = || parts.next()?.parse::<usize>().ok()?.checked_sub(1);
    let (own, column) = (number(), number().unwrap_or(0));
    let is_template = !path.ends_with(VALUES_FILE);
    let printed = || line.map(|line| if is_template { line_that_printed(source.text(), line) } else { line });
    let line = own.or_else(printed).unwrap_or(0);
    Some(error_at_line(source, (line, column), message))
}

/// An error in what was printed for a unit: in the template that printed it, at the line that says the same, else in the file
/// that makes the directory a chart or a kustomization.
pub(crate) fn unreadable(unit: &Unit, error: &Error, max_bytes: usize) -> Error {
    let (command, text) = (command(unit), error.to_string());
    let at = error.syntax_error().map_or_else(String::new, |it| format!(" at line {}", it.span.line));
    let message = text.split_once(">:").map_or(&*text, |(_, message)| message);
    let message = message.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':').trim_start();
    let message = format!("what {command} prints cannot be read{at}: {message}");
    let in_template = error.syntax_error().and_then(|error| {
        let SyntaxError { source_text: printed, span, .. } = error;
        let path = unit.template_at(printed, span.start)?;
        let template = Arc::new(texts::file(&path, max_bytes).ok()?);
        let span = same_place(&template, printed, span.start);
        Some(Error::Syntax(Box::new(SyntaxError::new(&template, span, message.as_str()))))
    });
    in_template.unwrap_or_else(|| error_in(unit, message))
}

/// The place in a template of a byte of what it printed: in the only line that is the same, else the beginning.
fn same_place(template: &Source, printed: &Source, at: usize) -> Span {
    let (before, behind) = printed.text().split_at_checked(at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let end = at + behind.find('\n').unwrap_or(behind.len());
    let line = printed.text().get(start..end).unwrap_or_default().trim_end();
    let mut next = 0;
    let mut same = template.text().split_inclusive('\n').filter_map(|other| {
        next += other.len();
        (other.trim_end() == line).then_some(next - other.len())
    });
    let place = match (same.next(), same.next()) {
        (Some(only), None) => only + (at - start),
        _ => 0,
    };
    template.span(place, place)
}

impl Rendering {
    /// The path of a program, to be looked for on `PATH` if the user asked for it.
    fn program(&self, name: &str) -> Option<PathBuf> {
        if self.by_itself { on_path(name) } else { Some(name.into()) }
    }

    /// The program that renders.
    pub(crate) fn program_of(&self, tool: Tool) -> Option<&'static str> {
        tool.programs().iter().map(|(name, _)| *name).find(|name| self.program(name).is_some())
    }

    fn helm_flags(&self, release: Option<&Release>) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let of_release = release.into_iter().flat_map(|release| &release.layers);
        let files =
            of_release.filter_map(|layer| if let Layer::File(file) = layer { Some(file) } else { None });
        for values in self.values.iter().chain(files) {
            arguments.extend([VALUES.into(), argument(values)]);
        }
        if let Some(namespace) = release.and_then(|it| it.namespace.as_ref()).or(self.namespace.as_ref()) {
            arguments.push(format!("--namespace={namespace}").into());
        }
        arguments
    }
}

/// The flags for the values that a release has itself, which win over those of files, and the files that hold them.
fn inline_values(release: &Release) -> io::Result<(Vec<OsString>, Vec<NamedTempFile>)> {
    let (mut flags, mut files) = (Vec::new(), Vec::new());
    for layer in &release.layers {
        let Layer::Inline(Inline { flag, text, .. }) = layer else { continue };
        flags.push(OsString::from(flag));
        if *flag == VALUES {
            let mut file = NamedTempFile::new()?;
            file.write_all(text.as_bytes())?;
            flags.push(file.path().into());
            files.push(file);
        } else {
            flags.push(text.into());
        }
    }
    Ok((flags, files))
}

/// A path as an argument that cannot be taken for a flag or an address.
fn argument(path: &Path) -> OsString {
    let is_other =
        path.to_str().is_none_or(|it| it.starts_with('-') || it.contains([':', '@']) || is_remote(it));
    if is_other && path.is_relative() { Path::new(".").join(path).into() } else { path.into() }
}

/// A command as a user would type it.
fn shown(program: &str, arguments: &[OsString]) -> String {
    let arguments = arguments.iter().map(|argument| quoted(&argument.to_string_lossy()));
    [program.to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
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
pub fn quoted(word: &str) -> String {
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
    fn errors_of_kustomize_are_the_same_in_each_run() {
        for (why, expected) in [
            (r#"E1127 18:40:04.2 28 run.go:72] "command failed" err="no \"a\"""#, r#"no "a""#),
            (r#"E1127 18:40:04.2 28 run.go:72] "command failed" err=<; a; b; >"#, "a; b"),
            ("Error: accumulating resources", "accumulating resources"),
        ] {
            assert_eq!(of_kustomize(why), expected);
        }
        let path = normal(Path::new("a/b"));
        assert_eq!(of_kustomize(&format!("lstat {}", path.display())), "lstat a/b");
    }

    #[test]
    fn shows_no_credential_that_a_program_repeats() {
        let why = "Error: cannot use redis://app:hunter2@redis.example:6379".to_owned();
        let message = message(Failure::Failed(why), Tool::Helm, 1);
        assert!(message.contains("redis.example") && !message.contains("hunter2"), "{message}");
    }

    #[test]
    fn passes_no_path_as_a_flag_or_an_address() {
        let rendering =
            Rendering { values: vec!["-x".into()], namespace: Some("a".to_owned()), ..Rendering::default() };
        for (path, expected) in [
            ("--post-renderer", "./--post-renderer"),
            ("https:/h.example/c", "./https:/h.example/c"),
            ("github.com/o/r", "./github.com/o/r"),
            ("a/b.yaml", "a/b.yaml"),
            ("/a:b", "/a:b"),
        ] {
            assert_eq!(argument(Path::new(path)), expected);
        }
        assert_eq!(rendering.helm_flags(None), ["--values", "./-x", "--namespace=a"].map(OsString::from));
    }
}

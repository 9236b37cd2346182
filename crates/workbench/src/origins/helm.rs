//! Finds the text from which a value of an object comes that helm printed: the line of the template, or the key of the
//! values where that line prints nothing but a value.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::action::{is_printed_as, only_expression, paths};
use crate::origins::RenderedObject;
use crate::origins::files::Files;
use crate::origins::spot::Spot;
use crate::origins::template::{Found, member};
use crate::releases::{Inline, Layer};
use crate::repository::{CHART_FILE, SUBCHARTS, VALUES_FILE, without_dots};
use memgate_primitives::pointer::Pointer;

/// The values that a chart shares with those in it.
const GLOBAL: &str = "global";

/// The spot of a field of an object, or of its nearest parent that exists; `None` if that cannot be told. A key that the
/// template has by itself stands there.
pub(crate) fn spot(
    object: RenderedObject<'_>,
    pointer: &Pointer,
    at_key: bool,
    files: &mut Files,
) -> Option<Spot> {
    let charts = Charts::of(object, files)?;
    let text = files.get(&charts.template)?;
    let template = files.template(&text);
    let document = template.document_of(object.value)?;
    let tokens: Vec<String> = pointer.tokens().map(Cow::into_owned).collect();
    let found = template.find(document, &tokens, object.value)?;
    let is_in_values = !at_key || found.depth < tokens.len();
    let in_values = || charts.of_values(&found, &tokens, object.value, files);
    is_in_values.then(in_values).flatten().or_else(|| {
        let bytes = found.entry.bytes.clone();
        let source = Arc::clone(&text.source);
        Some(Spot::Text { span: source.span(bytes.start, bytes.end), source })
    })
}

/// The template of an object, and the charts in which it is.
struct Charts<'o> {
    object: RenderedObject<'o>,
    template: PathBuf,
    /// From the outermost on: the directory, and the name by which the values of the one around it call it.
    inner: Vec<(PathBuf, String)>,
}

impl<'o> Charts<'o> {
    /// helm calls a chart in another one by its alias.
    fn of(object: RenderedObject<'o>, files: &mut Files) -> Option<Self> {
        let mut directory = without_dots(&object.unit.directory);
        let relative = Path::new(object.file?);
        let relative = relative.strip_prefix(&directory).ok().or_else(|| {
            let mut parts = relative.components();
            parts.next()?;
            Some(parts.as_path())
        })?;
        // A text of an object may look like the name of its file.
        let is_below = relative.components().all(|part| matches!(part, Component::Normal(_)));
        let (mut inner, mut parts) = (Vec::new(), is_below.then_some(relative)?.iter());
        let mut rest = parts.as_path();
        while parts.next().is_some_and(|part| part == SUBCHARTS) {
            let name = parts.next()?.to_str()?.to_owned();
            let named = directory.join(SUBCHARTS).join(&name);
            directory = if named.is_dir() {
                named
            } else {
                directory.join(SUBCHARTS).join(name_of_alias(&directory, &name, files)?)
            };
            inner.push((directory.clone(), name));
            rest = parts.as_path();
        }
        Some(Self { object, template: directory.join(rest), inner })
    }

    /// The key of the values that an entry prints, if the value is the printed one.
    fn of_values(
        &self,
        found: &Found<'_>,
        tokens: &[String],
        object: &Value,
        files: &mut Files,
    ) -> Option<Spot> {
        let expression = only_expression(&found.entry.value)?;
        let (mut printed, mut existing) = (object, 0_usize);
        for token in tokens {
            let Some(next) = member(printed, token) else { break };
            (printed, existing) = (next, existing + 1);
        }
        let (inner, known) = (tokens.get(found.depth..)?, existing.checked_sub(found.depth)?);
        paths(expression, &found.entry.dot).into_iter().find_map(|path| {
            let path: Vec<&str> = path.iter().chain(inner).map(String::as_str).collect();
            self.value(&path, path.len() - inner.len() + known, (printed, expression), files)
        })
    }

    /// The spot of a path of the values in the last file that sets it, if it is the printed value. The last part of the path
    /// may be missing.
    fn value(
        &self,
        path: &[&str],
        known: usize,
        (printed, expression): (&Value, &str),
        files: &mut Files,
    ) -> Option<Spot> {
        let is_global = path.first() == Some(&GLOBAL);
        let directory = |number: usize| match number.checked_sub(1) {
            None => Some(self.object.unit.directory.as_path()),
            Some(number) => self.inner.get(number).map(|(directory, _)| directory.as_path()),
        };
        let layers = || self.object.release.into_iter().flat_map(|release| release.layers.iter().rev());
        let inline =
            layers().filter_map(|it| if let Layer::Inline(it) = it { Some(Given::Inline(it)) } else { None });
        let files_of_release =
            layers().filter_map(|it| if let Layer::File(it) = it { Some(it) } else { None });
        let files_given = files_of_release.chain(files.rendering.values.iter().rev()).cloned();
        let own =
            (0..=self.inner.len()).filter_map(|level| Some((directory(level)?.join(VALUES_FILE), level)));
        let of_files =
            files_given.map(|file| (file, 0)).chain(own).map(|(file, level)| Given::File(file, level));
        for given in inline.chain(of_files).collect::<Vec<_>>() {
            let (level, text) = match &given {
                Given::Inline(_) => (0, None),
                Given::File(file, level) => (*level, files.get(file)),
            };
            let names = self.inner.iter().skip(level).map(|(_, name)| name.as_str()).filter(|_| !is_global);
            let prefix: Vec<&str> = names.collect();
            let (values, document, at, is_whole) =
                match (&given, text.as_ref().and_then(|it| it.values.first())) {
                    (Given::Inline(it), _) => {
                        (&it.value, Arc::clone(&it.document), it.at.clone(), it.is_whole)
                    }
                    (_, Some(document)) => {
                        (document.value(), document.shared_place(), Pointer::root(), false)
                    }
                    _ => continue,
                };
            let mut known_path = prefix.iter().chain(path.get(..known)?);
            let Some(value) = known_path.try_fold(values, |value, token| member(value, token)) else {
                continue;
            };
            let inner = prefix.iter().chain(path).filter(|_| !is_whole);
            let pointer = inner.fold(at, |pointer, token| pointer.key(token));
            let is_it = is_printed_as(value, printed, expression);
            return is_it.then_some(Spot::Field { document, pointer, key: None });
        }
        None
    }
}

/// Where values are.
enum Given<'o> {
    /// In the object that installs the chart.
    Inline(&'o Inline),
    /// In a file, of the chart at this level.
    File(PathBuf, usize),
}

/// The name of the chart that a chart calls by an alias.
fn name_of_alias(directory: &Path, alias: &str, files: &mut Files) -> Option<String> {
    let chart = files.get(&directory.join(CHART_FILE))?;
    let dependencies = chart.values.first()?.value().get("dependencies")?.as_array()?;
    let called = |it: &&Value| it.get("alias").and_then(Value::as_str) == Some(alias);
    Some(dependencies.iter().find(called)?.get("name")?.as_str()?.to_owned())
}

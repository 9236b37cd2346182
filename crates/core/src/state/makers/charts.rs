//! What releases of a platform's chart set: those of Flux and Argo CD, and charts of k3s. Values that are not in the object
//! are not known.

use std::sync::Arc;

use memgate_manifest::document::values;
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::source::Source;
use memgate_model::kind::{CHART_RELEASES, SETTING_AT};
use memgate_model::object::{DEFAULT_NAMESPACE, Object, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::group_and_kind;
use super::installers::given as text_at;

/// A setting that may have any value.
const UNKNOWN: &str = "?";

/// Where an object of a kind, or a source of an Application, names its chart, and has its values; then the fields with values
/// that are elsewhere.
type ReleaseForm = (&'static str, &'static [&'static str], &'static [&'static str]);

fn form(kind: &str) -> ReleaseForm {
    const FROM: &[&str] = &["/spec/chart/spec/valuesFiles", "/spec/valuesFrom", "/spec/postRenderers"];
    let values = &["/helm/valuesObject", "/helm/values"];
    match kind {
        "HelmRelease" => ("/spec/chart/spec/chart", &["/spec/values"], FROM),
        "Application" => ("/chart", values, &["/helm/valueFiles", "/helm/fileParameters"]),
        "HelmChart" => ("/spec/chart", &["/spec/valuesContent"], &["/spec/valuesSecrets"]),
        _ => ("/metadata/name", &["/spec/valuesContent"], &["/spec/valuesSecrets"]),
    }
}

/// An object that may install a chart; `None` for one of another kind.
pub fn release(settings: &Settings, value: &Value) -> Option<Reference> {
    let (group, name) = group_and_kind(value);
    let kind = CHART_RELEASES.iter().find(|kind| kind.is(group, name))?;
    let own = |field: &str| text_at(value, &format!("/metadata/{field}"));
    let namespace = own("namespace").or(settings.namespace.as_deref()).unwrap_or(DEFAULT_NAMESPACE);
    Some(Reference { kind, namespace: namespace.to_owned(), name: own("name")?.to_owned() })
}

/// Notes what an object sets of a platform that it installs.
pub fn add(snapshot: &mut Snapshot, value: &Value) {
    let Some(Reference { kind, namespace, name }) = release(&snapshot.settings, value) else { return };
    let settings = snapshot.settings.families.iter().flat_map(|family| family.validation.chart_settings);
    let found = settings.filter_map(|setting| Some((setting.1, set(value, kind.kind, *setting)?)));
    for (path, (set, at)) in found.collect::<Vec<_>>() {
        let data = json!({path: set, SETTING_AT: at});
        let object = json!({"metadata": {"namespace": namespace, "name": name}, "data": data});
        if let Ok(Some(object)) = Object::read(kind, &object) {
            snapshot.kind_mut(kind).insert(object);
        }
    }
}

/// What an object sets for a value of a chart, empty for its default, and where; `None` for another chart.
fn set(object: &Value, kind: &str, (chart, path): (&str, &str)) -> Option<(String, String)> {
    let (name, values, elsewhere) = form(kind);
    // A chart that lies in a repository may have other defaults.
    let has_chart = |(it, _): &(&Value, String)| {
        let source = text_at(it, "/spec/chart/spec/sourceRef/kind");
        let own = it.pointer(name).and_then(Value::as_str).and_then(|own| own.rsplit('/').next());
        own == Some(chart) && source.is_none_or(|source| source == "HelmRepository")
    };
    let sources = object.pointer("/spec/sources").and_then(Value::as_array).into_iter().flatten().enumerate();
    let sources = sources.map(|(number, source)| (source, format!("/spec/sources/{number}")));
    let source = object.pointer("/spec/source").map(|source| (source, "/spec/source".to_owned()));
    let (of, at) = [(object, String::new())].into_iter().chain(sources).chain(source).find(has_chart)?;
    let given = |field: &str| of.pointer(field).filter(|it| !it.is_null() && **it != json!([]));
    // A parameter has the path as its name.
    let is_single = of.to_string().contains(&format!("\"{path}\""));
    let place = format!("{at}{name}");
    if is_single || elsewhere.iter().any(|field| given(field).is_some()) {
        return Some((UNKNOWN.to_owned(), place));
    }
    let (set, place) = match values.iter().find_map(|field| Some((field, given(field)?))) {
        None => (String::new(), place),
        // A line of a text may also hold a credential, and is not the place.
        Some((_, Value::String(text))) => (value_at(&parsed(text), path), place),
        Some((field, values)) => (value_at(values, path), format!("{at}{field}/{}", path.replace('.', "/"))),
    };
    (kind != "HelmChartConfig" || !set.is_empty()).then_some((set, place))
}

/// The values in a text; a text where they cannot be read.
fn parsed(text: &str) -> Value {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("values", text)), &mut errors);
    let first = || documents.first().map_or(Value::Null, |it| it.value().clone());
    errors.first().map_or_else(first, |_| UNKNOWN.into())
}

/// What values have at a path, empty for nothing.
fn value_at(values: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(values, |here, key| match here {
        Value::Object(fields) => Some(fields.get(key).unwrap_or(&Value::Null)),
        Value::Null => Some(here),
        _ => None,
    });
    match found {
        Some(Value::Null) => String::new(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::String(text)) if !is_filled_in_later(text) => text.clone(),
        _ => UNKNOWN.to_owned(),
    }
}

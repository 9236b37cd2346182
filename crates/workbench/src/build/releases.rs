//! How objects among the inputs install charts that are inputs too: HelmReleases of Flux and Applications of Argo CD, with
//! the values that they give.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::build::assignments::common;
use crate::build::layout::{name_of, shown};
use crate::paths::{normal, root_around};
use memgate_manifest::document::embedded::Embedded;
use memgate_manifest::document::{Document, parse_parts, values};
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_primitives::name::{is_dns_label, is_dns_subdomain};
use memgate_primitives::plain_text::{quoted_text, shown_name};
use memgate_primitives::pointer::Pointer;

const FLUX: &str = "helm.toolkit.fluxcd.io";
const ARGO_CD: &str = "argoproj.io";
/// The field of a HelmRelease that names objects with values.
const VALUES_FROM: &str = "valuesFrom";
/// The longest name of a release that helm takes.
const MAX_NAME: usize = 53;
/// The kinds of Flux with charts that are not files of a repository.
const OF_CHARTS: &str = "HelmRepository";

/// How an object installs a chart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Release {
    /// Where it is, in words.
    pub(crate) place: String,
    /// Its name, if it can be one.
    pub(crate) name: Option<String>,
    /// The namespace of objects without one.
    pub(crate) namespace: Option<String>,
    /// Its values, of which the last one counts.
    pub(crate) layers: Vec<Layer>,
    /// Why its chart is not rendered, if there is a reason.
    pub(crate) refusal: Option<String>,
}

impl Release {
    /// Its values that are no files.
    pub(crate) fn inline(&self) -> impl Iterator<Item = &Inline> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Inline(inline) => Some(inline),
            Layer::File(_) => None,
        })
    }

    /// Its files of values.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::File(file) => Some(file),
            Layer::Inline(_) => None,
        })
    }
}

/// Values of a release.
#[derive(Debug, Clone)]
pub(crate) enum Layer {
    /// Those of a file.
    File(PathBuf),
    /// Those that the object itself has.
    Inline(Inline),
}

/// Values in an object.
#[derive(Debug, Clone)]
pub(crate) struct Inline {
    /// The flag of helm for them.
    pub(crate) flag: &'static str,
    /// The text for it: that of a file for `--values`, else `NAME=VALUE`.
    pub(crate) text: String,
    /// The values.
    pub(crate) value: Value,
    /// Where they are.
    pub(crate) document: Arc<DocumentPlace>,
    /// The field there.
    pub(crate) at: Pointer,
    /// Of values in a text of the object, the field with the text.
    pub(crate) outer: Option<Pointer>,
    /// Whether single values have no places of their own.
    pub(crate) is_whole: bool,
}

/// The releases in some texts.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    /// With the absolute directories of the charts.
    pub(crate) all: Vec<(PathBuf, Release)>,
    /// The ConfigMaps from which they may read values, by namespace and name, each with its file.
    config_maps: BTreeMap<(String, String), Vec<(PathBuf, Document)>>,
}

impl Releases {
    /// Those in these texts, each with the file that counts as its place.
    pub(crate) fn of(texts: &[(Arc<Source>, PathBuf)]) -> Self {
        let mut releases = Self::default();
        let reads = |text: &str| text.contains(FLUX) && text.contains(VALUES_FROM);
        if texts.iter().any(|(source, _)| reads(source.text())) {
            let may_be_one = texts.iter().filter(|(source, _)| source.text().contains("ConfigMap"));
            for (source, file) in may_be_one {
                let documents = parse_parts(source).flat_map(|parsed| parsed.documents);
                for it in documents.filter(|it| it.group().is_empty() && it.kind() == "ConfigMap") {
                    releases.config_maps.entry(own_name(&it)).or_default().push((normal(file), it));
                }
            }
        }
        let may_have = |text: &str| [FLUX, ARGO_CD].iter().any(|group| text.contains(group));
        for (source, file) in texts.iter().filter(|(source, _)| may_have(source.text())) {
            let root = root_around(file);
            for document in parse_parts(source).flat_map(|parsed| parsed.documents) {
                match (document.group(), document.kind()) {
                    (FLUX, "HelmRelease") => releases.add_of_flux(&document, (file, &root)),
                    (ARGO_CD, "Application") => releases.add_of_argo_cd(&document, &root),
                    _ => {}
                }
            }
        }
        releases
    }

    fn add(
        &mut self,
        chart: PathBuf,
        at: (&Document, &Pointer),
        (name, namespace): (String, Option<&str>),
        (layers, refusal): (Vec<Layer>, Option<String>),
    ) {
        let place = place_of(at);
        let name = Some(name).filter(|name| name.len() <= MAX_NAME && is_dns_subdomain(name));
        let namespace = namespace.filter(|it| is_dns_label(it)).map(str::to_owned);
        self.all.push((chart, Release { place, name, namespace, layers, refusal }));
    }

    fn add_of_flux(&mut self, document: &Document, (own_file, root): (&Path, &Path)) {
        let spec = Pointer::new("/spec");
        let chart = spec.key("chart").key("spec");
        let source = text(document, &chart.key("sourceRef").key("kind"));
        let Some(path) = text(document, &chart.key("chart")).filter(|_| source != Some(OF_CHARTS)) else {
            return;
        };
        let files = list(document, &chart.key("valuesFiles")).filter_map(Value::as_str);
        let mut layers: Vec<Layer> = files.map(|file| file_in(root, file)).collect();
        let mut refusal = refusal_of(&layers, root);
        for entry in list(document, &spec.key(VALUES_FROM)) {
            match self.values_from((document, own_file), entry) {
                Ok(layer) => layers.extend(layer),
                Err(why) => refusal = Some(why),
            }
        }
        let values = document.value().pointer("/spec/values").filter(|it| it.is_object());
        layers.extend(values.map(|it| object(document, spec.key("values"), it)));
        let target = text(document, &spec.key("targetNamespace"));
        let made =
            target.map_or_else(|| document.name().to_owned(), |it| format!("{it}-{}", document.name()));
        let name = text(document, &spec.key("releaseName")).map_or(made, str::to_owned);
        let namespace = target.or_else(|| document.namespace());
        let renders_more = list(document, &spec.key("postRenderers")).next().is_some();
        let renders_more =
            renders_more.then(|| "its release has postRenderers, which are not run".to_owned());
        let refusal = renders_more.or(refusal);
        self.add(at_root(root, path), (document, &spec), (name, namespace), (layers, refusal));
    }

    /// The values that a release reads from the nearest ConfigMap among the inputs; why they are not known. Of those of a
    /// Secret nothing is.
    fn values_from(
        &self,
        (release, file): (&Document, &Path),
        entry: &Value,
    ) -> Result<Option<Layer>, String> {
        let field = |name| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let Some(name) = field("name").filter(|_| field("kind") == Some("ConfigMap")) else {
            return Ok(None);
        };
        let (namespace, _) = own_name(release);
        let all = self.config_maps.get(&(namespace, name.to_owned())).into_iter().flatten();
        let is_own = |it: &Document| it.source().name() == release.source().name();
        let near = |(of, it): &(PathBuf, Document)| (is_own(it), common(of, &normal(file)));
        let most = all.clone().map(near).max();
        let mut nearest = all.filter(|it| Some(near(it)) == most).map(|(_, it)| it);
        let config_map = match (nearest.next(), nearest.next()) {
            (Some(only), None) => only,
            (None, _) if entry.get("optional") == Some(&true.into()) => return Ok(None),
            (found, _) => {
                let what =
                    if found.is_none() { "is not among the inputs" } else { "is there more than once" };
                return Err(format!("its values come from ConfigMap {}, which {what}", shown_name(name)));
            }
        };
        let at = Pointer::new("/data").key(field("valuesKey").unwrap_or("values.yaml"));
        let Some(given) = text(config_map, &at) else { return Ok(None) };
        let Some(path) = field("targetPath") else {
            return Ok(Some(embedded(config_map, at, given.to_owned())));
        };
        let given = (path, given);
        let inline = at_path(config_map, at.clone(), given, false);
        // The values of the release itself win, as they would not over `--set`, which alone knows lists and escapes.
        let is_plain = !path.contains(['[', '\\', '{']);
        let text = inline.value.to_string();
        Ok(Some(Layer::Inline(if is_plain { Inline { flag: VALUES, text, ..inline } } else { inline })))
    }

    /// Adds the charts of an Application.
    fn add_of_argo_cd(&mut self, document: &Document, root: &Path) {
        let value = document.value();
        let (text, list) = (|at: &Pointer| text(document, at), |at: &Pointer| list(document, at));
        let spec = Pointer::new("/spec");
        let several = list(&spec.key("sources")).enumerate();
        let several = several.map(|(number, _)| spec.key("sources").index(number));
        let namespace = text(&spec.key("destination").key("namespace"));
        for source in several.chain([spec.key("source")]).collect::<Vec<_>>() {
            let (Some(path), helm) = (text(&source.key("path")), source.key("helm")) else {
                continue;
            };
            let chart = at_root(root, path);
            let files = list(&helm.key("valueFiles")).filter_map(Value::as_str);
            let skips = value.pointer(helm.key("ignoreMissingValueFiles").as_str()) == Some(&true.into());
            let mut elsewhere = None;
            let file = |file: &str| {
                // Another source of the Application, which may be this repository.
                let of_source = file.strip_prefix('$').and_then(|it| it.split_once('/'));
                let directory = if of_source.is_some() || file.starts_with('/') { root } else { &chart };
                let layer = file_in(directory, of_source.map_or(file, |(_, file)| file));
                let is_there = matches!(&layer, Layer::File(file) if file.is_file());
                if of_source.is_some() && !is_there {
                    elsewhere =
                        Some(format!("its values file {} is not in the repository", quoted_text(file)));
                }
                Some(layer).filter(|_| is_there || !skips)
            };
            let mut layers: Vec<Layer> = files.filter_map(file).collect();
            let others = list(&helm.key("fileParameters")).next();
            let others = others.map(|_| "its fileParameters are not read".to_owned());
            let refusal = refusal_of(&layers, root).or(elsewhere).or(others);
            let (own, values) = (helm.key("valuesObject"), helm.key("values"));
            let of_object = value.pointer(own.as_str()).filter(|it| it.is_object());
            let of_object = of_object.map(|it| object(document, own, it));
            let of_text = || Some(embedded(document, values.clone(), text(&values)?.to_owned()));
            layers.extend(of_object.or_else(of_text));
            let parameters = helm.key("parameters");
            let all = list(&parameters).enumerate();
            layers.extend(all.filter_map(|(number, it)| parameter(document, &parameters.index(number), it)));
            let name = text(&helm.key("releaseName")).unwrap_or_else(|| document.name()).to_owned();
            self.add(chart, (document, &source), (name, namespace), (layers, refusal));
        }
    }
}

/// The object that installs a chart, and its place, in words. Of several charts that it installs it says which one.
fn place_of((document, field): (&Document, &Pointer)) -> String {
    let namespace = document.namespace().map(|it| format!("{}/", shown_name(it))).unwrap_or_default();
    let file = document.source().name();
    let built = file.strip_prefix('<').and_then(|file| file.strip_suffix('>'));
    let file = built.map_or_else(|| name_of(&normal(Path::new(file))), str::to_owned);
    let of_several = field.tokens().nth(2).map(|_| format!(", {}", field.field())).unwrap_or_default();
    let (kind, name) = (document.kind(), shown_name(document.name()));
    format!("{kind} {namespace}{name}, {file}{of_several}")
}

/// The namespace and the name of an object.
fn own_name(document: &Document) -> (String, String) {
    (document.namespace().unwrap_or_default().to_owned(), document.name().to_owned())
}

fn text<'d>(document: &'d Document, at: &Pointer) -> Option<&'d str> {
    document.value().pointer(at.as_str())?.as_str().filter(|text| !text.is_empty())
}

fn list<'d>(document: &'d Document, at: &Pointer) -> impl Iterator<Item = &'d Value> + use<'d> {
    document.value().pointer(at.as_str()).and_then(Value::as_array).into_iter().flatten()
}

fn at_root(root: &Path, path: &str) -> PathBuf {
    normal(&root.join(path.trim_start_matches('/')))
}

/// A file of values, as a path from here that helm takes for no address.
fn file_in(directory: &Path, file: &str) -> Layer {
    Layer::File(shown(&at_root(directory, file)).into())
}

/// Why a chart is not built with these values.
fn refusal_of(layers: &[Layer], root: &Path) -> Option<String> {
    let is_out = |layer: &&Layer| matches!(layer, Layer::File(file) if !normal(file).starts_with(root));
    layers.iter().find(is_out).map(|_| "a file of its values is not in the repository".to_owned())
}

/// The values in a field that is a map.
fn object(document: &Document, at: Pointer, value: &Value) -> Layer {
    let (text, value, document) = (value.to_string(), value.clone(), document.shared_place());
    Layer::Inline(Inline { flag: VALUES, text, value, document, at, outer: None, is_whole: false })
}

fn embedded(document: &Document, at: Pointer, text: String) -> Layer {
    let source = Arc::new(Source::new("", text.as_str()));
    let value = values(&source, &mut Vec::new()).first().map_or(Value::Null, |it| it.value().clone());
    let read = Embedded::read(document, &at, &mut Vec::new()).filter(|it| it.is_placed);
    let placed = read.and_then(|it| it.documents.into_iter().next()).filter(|it| *it.value() == value);
    let (document, at, outer) = match placed {
        Some(placed) => (placed.shared_place(), Pointer::root(), Some(at)),
        None => (document.shared_place(), at, None),
    };
    let is_whole = outer.is_none();
    Layer::Inline(Inline { flag: VALUES, text, value, document, at, outer, is_whole })
}

/// The value that a parameter gives.
fn parameter(document: &Document, at: &Pointer, parameter: &Value) -> Option<Layer> {
    let field = |name| parameter.get(name).and_then(Value::as_str);
    let is_text = parameter.get("forceString") == Some(&Value::Bool(true));
    let given = (field("name")?, field("value").unwrap_or_default());
    Some(Layer::Inline(at_path(document, at.key("value"), given, is_text)))
}

/// A value in a field, for this path among the values.
fn at_path(document: &Document, at: Pointer, (name, given): (&str, &str), is_text: bool) -> Inline {
    let read =
        || values(&Arc::new(Source::new("", given)), &mut Vec::new()).first().map(|it| it.value().clone());
    let scalar = if is_text { None } else { read() };
    let mut value = scalar.unwrap_or_else(|| given.into());
    for key in name.rsplit('.') {
        value = Value::Object(Map::from_iter([(key.to_owned(), value)]));
    }
    let flag = if is_text { "--set-string" } else { "--set" };
    // Behind a comma that is not in a list, helm would read another value.
    let is_list = given.starts_with('{') && given.ends_with('}');
    let text = format!("{name}={}", if is_list { given.to_owned() } else { given.replace(',', "\\,") });
    let document = document.shared_place();
    Inline { flag, text, value, document, at, outer: None, is_whole: true }
}

/// The flag with a file of values.
pub(crate) const VALUES: &str = "--values";

//! Objects that install others: Applications of Argo CD, Kustomizations and releases of Flux, charts of k3s.

use std::collections::{BTreeMap, BTreeSet};

use memgate_manifest::later::is_filled_in_later;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::settings::Settings;
use serde_json::Value;

use super::texts;

/// The values of an `ApplicationSet`'s template, by the names of its parameters.
type Parameters = BTreeMap<String, String>;

/// The most sets of parameters of an `ApplicationSet`. Of more, none is known.
const MOST_PARAMETERS: usize = 256;

/// Something that an object installs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Installation {
    /// The path of the files from the root of a repository, in which `*` stands for any text; `None` if they are elsewhere, or
    /// the object does not say it.
    pub path: Option<String>,
    /// The namespace of the objects; `None` if they may be in any.
    pub namespace: Option<String>,
}

/// What an object installs; `None` for one that does not install others.
pub fn installations(settings: &Settings, value: &Value) -> Option<BTreeSet<Installation>> {
    let spec = value.get("spec").unwrap_or(&Value::Null);
    let own = || {
        let own = texts(value, "metadata/namespace").pop().or(settings.namespace.as_deref());
        Some(own.unwrap_or(DEFAULT_NAMESPACE))
    };
    let target = texts(spec, "targetNamespace").pop();
    let one = |path: Option<&str>, namespace: Option<&str>| {
        let none = Parameters::new();
        let path = path.and_then(|path| expanded(path, &none));
        let namespace = namespace.and_then(|namespace| expanded(namespace, &none));
        BTreeSet::from([Installation { path, namespace: namespace.filter(|it| !it.contains('*')) }])
    };
    Some(match super::super::group_and_kind(value) {
        ("argoproj.io", "Application") => of_application(spec, &Parameters::new()).collect(),
        ("argoproj.io", "ApplicationSet") => of_application_set(spec),
        ("helm.cattle.io", "HelmChart") => one(None, target.or_else(own)),
        ("helm.toolkit.fluxcd.io", "HelmRelease") => {
            let chart = spec.pointer("/chart/spec").unwrap_or(&Value::Null);
            let is_in_git = texts(chart, "sourceRef/kind") == ["GitRepository"];
            one(texts(chart, "chart").pop().filter(|_| is_in_git), target.or_else(own))
        }
        ("kustomize.config.k8s.io", "Kustomization") => one(None, texts(value, "namespace").pop()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") => {
            let path = texts(spec, "path").pop().unwrap_or(".");
            // The root of an artifact is not that of the repository.
            let is_root = path.chars().all(|it| ['.', '/'].contains(&it));
            let is_artifact = texts(spec, "sourceRef/kind").first().is_some_and(|it| *it != "GitRepository");
            one(Some(path).filter(|_| !(is_root && is_artifact)), target)
        }
        _ => return None,
    })
}

/// What the `spec` of an Application installs, one of each source with files of its own.
fn of_application<'v>(
    spec: &'v Value,
    parameters: &'v Parameters,
) -> impl Iterator<Item = Installation> + use<'v> {
    let namespace = texts(spec, "destination/namespace").pop().and_then(|it| expanded(it, parameters));
    let namespace = namespace.filter(|it| !it.contains('*'));
    let several = spec.get("sources").and_then(Value::as_array).filter(|sources| !sources.is_empty());
    let sources =
        several.map_or_else(|| spec.get("source").map(std::slice::from_ref), |it| Some(it.as_slice()));
    let sources = sources.unwrap_or(std::slice::from_ref(&Value::Null)).iter();
    // Others only give values for it.
    let installs = |source: &&Value| {
        source.get("ref").is_none() || ["path", "chart"].iter().any(|it| source.get(it).is_some())
    };
    sources.filter(installs).map(move |source| {
        let is_chart = !texts(source, "chart").is_empty();
        let path = texts(source, "path").pop().filter(|_| !is_chart);
        let path = path.and_then(|path| expanded(path, parameters));
        Installation { path, namespace: namespace.clone() }
    })
}

fn of_application_set(spec: &Value) -> BTreeSet<Installation> {
    let template = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    let all = parameters(spec).unwrap_or_else(|| vec![Parameters::new()]);
    let mut all: BTreeSet<_> = all.iter().flat_map(|it| of_application(template, it)).collect();
    let own_template = |generator: &Value| {
        generator.as_object().is_some_and(|kinds| kinds.values().any(|it| it.get("template").is_some()))
    };
    let mut generators = spec.get("generators").and_then(Value::as_array).into_iter().flatten();
    if spec.get("templatePatch").is_some() || generators.any(own_template) {
        // It may change any field.
        all = BTreeSet::from([Installation { path: None, namespace: None }]);
    }
    all
}

/// The parameters of each Application that the generators make, as far as their fields say them; `None` for too many.
fn parameters(spec: &Value) -> Option<Vec<Parameters>> {
    let mut all = Vec::new();
    for generator in spec.get("generators").and_then(Value::as_array).into_iter().flatten() {
        let mut of_one = vec![Parameters::new()];
        if let Some(elements) = generator.pointer("/list/elements").and_then(Value::as_array) {
            of_one = elements.iter().map(of_element).collect();
        } else if let Some(git) = generator.get("git") {
            of_one = of_git(git);
        } else if let Some(factors) = generator.pointer("/matrix/generators").and_then(Value::as_array) {
            for factor in factors {
                let factor = parameters(&serde_json::json!({ "generators": [factor] }))?;
                if of_one.len() * factor.len() > MOST_PARAMETERS {
                    return None;
                }
                let with = |one: &Parameters| {
                    let product = factor.iter().map(|it| one.iter().chain(it));
                    product.map(|it| it.map(|(key, value)| (key.clone(), value.clone())).collect()).collect()
                };
                of_one = of_one.iter().flat_map(|one| -> Vec<Parameters> { with(one) }).collect();
            }
        } else if let Some(merged) = generator.pointer("/merge/generators").and_then(Value::as_array) {
            of_one = merge(merged, &texts(generator, "merge/mergeKeys/*"))?;
        }
        let values = generator.as_object().into_iter().flat_map(|kinds| kinds.values());
        for (key, value) in values.filter_map(|it| it.get("values")?.as_object()).flatten() {
            if let Some(value) = value.as_str().filter(|it| !it.contains("{{")) {
                for one in &mut of_one {
                    one.insert(format!("values.{key}"), value.to_owned());
                }
            }
        }
        all.extend(of_one);
    }
    (all.len() <= MOST_PARAMETERS).then_some(all)
}

/// The parameters of the first generator, with those of each other one that has the same values of the keys.
fn merge(generators: &[Value], keys: &[&str]) -> Option<Vec<Parameters>> {
    let of_one = |generator: &Value| parameters(&serde_json::json!({ "generators": [generator] }));
    let by_key = |one: &Parameters| keys.iter().map(|key| one.get(*key).cloned()).collect::<Option<Vec<_>>>();
    let mut all = generators.first().map_or_else(|| Some(Vec::new()), of_one)?;
    for generator in generators.iter().skip(1) {
        let others: Option<BTreeMap<_, _>> =
            of_one(generator)?.into_iter().map(|other| Some((by_key(&other)?, other))).collect();
        let Some(others) = others else { return Some(vec![Parameters::new()]) };
        for one in &mut all {
            let other = by_key(one).and_then(|key| others.get(&key));
            one.extend(other.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    Some(all)
}

/// The parameters of an element of a list: its texts, and those in its fields.
fn of_element(element: &Value) -> Parameters {
    let text = |key: String, value: &Value| Some((key, value.as_str()?.to_owned()));
    let fields = element.as_object().into_iter().flatten();
    let below = |(key, value): (&String, &Value)| -> Parameters {
        let fields = value.as_object().into_iter().flatten();
        fields.filter_map(|(below, value)| text(format!("{key}.{below}"), value)).collect()
    };
    let own = fields.clone().filter_map(|(key, value)| text(key.clone(), value));
    own.chain(fields.flat_map(below)).collect()
}

/// The parameters of directories and files of a repository: their paths.
fn of_git(git: &Value) -> Vec<Parameters> {
    let places = |field| git.get(field).and_then(Value::as_array).into_iter().flatten();
    let path = |place| texts(place, "path").pop();
    let directories = places("directories").filter(|it| it.get("exclude") != Some(&Value::Bool(true)));
    let files = places("files").filter_map(path);
    let files = files.map(|file| file.rsplit_once('/').map_or(".", |(directory, _)| directory));
    directories.filter_map(path).chain(files).map(of_path).collect()
}

/// The parameters of a directory: its path, and the parts of it.
fn of_path(path: &str) -> Parameters {
    let base = path.rsplit('/').next().unwrap_or_default();
    let own =
        [("path", path), ("path.path", path), ("path.basename", base), ("path.basenameNormalized", base)];
    let own = own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let part = |(number, part): (usize, &str)| {
        [format!("path[{number}]"), format!("index .path.segments {number}")]
            .map(|key| (key, part.to_owned()))
    };
    own.chain(path.split('/').enumerate().take(MOST_PARAMETERS).flat_map(part)).collect()
}

/// A text with the values of its parameters, and `*` for those that are not known; `None` if it then says nothing.
fn expanded(text: &str, parameters: &Parameters) -> Option<String> {
    let (mut expanded, mut rest, mut is_known) = (String::new(), text, true);
    while let Some((before, (inside, after))) =
        rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        let name = inside.trim_matches(|it: char| it == '-' || it.is_whitespace()).trim_start_matches('.');
        expanded.push_str(before);
        let value = parameters.get(name);
        is_known &= value.is_some();
        expanded.push_str(value.map_or("*", String::as_str));
        rest = after;
    }
    expanded.push_str(rest);
    let says_nothing = !is_known && expanded.chars().all(|it| "*./".contains(it));
    (!says_nothing && !is_filled_in_later(&expanded)).then_some(expanded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What an object installs: path and namespace, `?` for what is not known.
    fn installed(value: &Value) -> Vec<String> {
        let shown = |it: &Option<String>| it.clone().unwrap_or_else(|| "?".to_owned());
        let all = installations(&memgate_platforms::default_settings(), value).into_iter().flatten();
        all.map(|it| format!("{} in {}", shown(&it.path), shown(&it.namespace))).collect()
    }

    fn flux(kind: &str, spec: &Value) -> Vec<String> {
        let group = if kind == "HelmRelease" { "helm" } else { "kustomize" };
        installed(&json!({"apiVersion": format!("{group}.toolkit.fluxcd.io/v1"), "kind": kind,
            "metadata": {"namespace": "own"}, "spec": spec}))
    }

    #[test]
    fn knows_what_flux_installs() {
        for (spec, expected) in [
            (json!({"path": "./apps", "targetNamespace": "a"}), "./apps in a"),
            (json!({"path": "./apps"}), "./apps in ?"),
            (json!({"path": "./apps/${env}", "targetNamespace": "${ns}"}), "? in ?"),
            (json!({}), ". in ?"),
            (json!({"path": "./", "sourceRef": {"kind": "OCIRepository"}}), "? in ?"),
            (json!({"path": "./a", "sourceRef": {"kind": "OCIRepository"}}), "./a in ?"),
        ] {
            assert_eq!(flux("Kustomization", &spec), [expected], "{spec}");
        }
        let git = json!({"kind": "GitRepository"});
        for (spec, expected) in [
            (json!({"chart": {"spec": {"chart": "./c", "sourceRef": git}}}), "./c in own"),
            (json!({"chart": {"spec": {"chart": "c"}}, "targetNamespace": "a"}), "? in a"),
            (json!({"chartRef": {"kind": "OCIRepository", "name": "c"}}), "? in own"),
        ] {
            assert_eq!(flux("HelmRelease", &spec), [expected], "{spec}");
        }
        let chart =
            json!({"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "spec": {"targetNamespace": "a"}});
        assert_eq!(installed(&chart), ["? in a"]);
        assert!(installations(&memgate_platforms::default_settings(), &json!({"kind": "Pod"})).is_none());
    }

    #[test]
    fn knows_what_argo_cd_installs() {
        let to = json!({"namespace": "a"});
        for (spec, expected) in [
            (json!({"source": {"path": "apps"}, "destination": to}), vec!["apps in a"]),
            (json!({"source": {"path": "apps"}}), vec!["apps in ?"]),
            (json!({"source": {"chart": "c", "path": "apps"}, "destination": to}), vec!["? in a"]),
            (
                json!({"sources": [{"chart": "c"}, {"path": "p"}, {"ref": "v"}], "destination": to}),
                vec!["? in a", "p in a"],
            ),
            (json!({"sources": [{"ref": "v", "path": "p"}], "destination": to}), vec!["p in a"]),
            (json!({}), vec!["? in ?"]),
        ] {
            let application =
                json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": spec});
            assert_eq!(installed(&application), expected, "{spec}");
        }
    }

    #[test]
    fn knows_what_application_sets_install() {
        let list = json!({"list": {"elements": [{"dir": "x", "ns": "a"}, {"dir": "y"}]}});
        let git =
            json!({"git": {"directories": [{"path": "apps/*"}, {"path": "apps/old", "exclude": true}]}});
        let files = json!({"git": {"files": [{"path": "envs/**/config.json"}]}});
        let matrix = json!({"matrix": {"generators": [git, list]}});
        let clusters = json!({"clusters": {}});
        let any = json!({"git": {"directories": [{"path": "*"}]}});
        let own = json!({"git": {"directories": [{"path": "far/a"}]}});
        let nested = json!({"list": {"elements": [{"dir": "x", "env": {"ns": "a"}}]}});
        let valued = json!({"clusters": {"values": {"ns": "a", "other": "{{name}}"}}});
        let more = json!({"list": {"elements": [{"dir": "x", "ns": "b"}, {"dir": "z", "ns": "c"}]}});
        let merged = json!({"merge": {"generators": [list, more], "mergeKeys": ["dir"]}});
        let unmerged = json!({"merge": {"generators": [list, clusters], "mergeKeys": ["dir"]}});
        let overridden = json!({"list": {"elements": [{"dir": "x"}], "template": {"spec": {}}}});
        for (generator, path, namespace, expected) in [
            (&list, "apps/{{dir}}", "{{ .ns }}", vec!["apps/x in a", "apps/y in ?"]),
            (&git, "{{path}}", "{{path.basename}}", vec!["apps/* in ?"]),
            (&any, "{{path}}", "{{path.basename}}", vec!["* in ?"]),
            (&own, "{{path}}", "{{path.basename}}", vec!["far/a in a"]),
            (&own, "{{.path.path}}", "{{index .path.segments 0}}-{{ path[1] }}", vec!["far/a in far-a"]),
            (&nested, "{{.dir}}", "{{.env.ns}}", vec!["x in a"]),
            (&valued, "apps/{{name}}", "{{values.ns}}", vec!["apps/* in a"]),
            (&merged, "{{dir}}", "{{ns}}", vec!["x in b", "y in ?"]),
            (&unmerged, "{{dir}}", "{{ns}}", vec!["? in ?"]),
            (&overridden, "{{dir}}", "{{ns}}", vec!["? in ?"]),
            (&git, "{{ .path.path }}/prod", "a", vec!["apps/*/prod in a"]),
            (&files, "{{path}}", "a", vec!["envs/** in a"]),
            (&matrix, "{{path}}/{{dir}}", "{{ns}}", vec!["apps/*/x in a", "apps/*/y in ?"]),
            (&clusters, "apps/{{name}}", "a", vec!["apps/* in a"]),
            (&clusters, "{{path}}", "a", vec!["? in a"]),
            (&clusters, "apps", "team-{{name}}", vec!["apps in ?"]),
        ] {
            let template =
                json!({"spec": {"source": {"path": path}, "destination": {"namespace": namespace}}});
            let spec = json!({"generators": [generator], "template": template});
            let mut set =
                json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": spec});
            assert_eq!(installed(&set), expected, "{path} {namespace}");
            set["spec"]["templatePatch"] = "spec: {}".into();
            assert_eq!(installed(&set), ["? in ?"]);
        }
    }

    #[test]
    fn very_many_parameters_are_not_known() {
        let elements: Vec<_> = (0..10_000).map(|it| json!({"dir": format!("d{it}")})).collect();
        let list = json!({"list": {"elements": elements}});
        for generators in [json!([list]), json!([{"matrix": {"generators": [list, list]}}])] {
            let template = json!({"spec": {"source": {"path": "apps/{{dir}}"}}});
            let spec = json!({"generators": generators, "template": template});
            let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": spec});
            assert_eq!(installed(&set), ["apps/* in ?"]);
        }
    }
}

//! Objects that install others: Applications of Argo CD, Kustomizations and releases of Flux, charts of k3s.

use std::collections::BTreeSet;

use memgate_manifest::later::is_filled_in_later;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::settings::Settings;
use serde_json::Value;

use super::super::text;

/// The most elements of a list that are filled in. Of more, none is known.
const MOST_ELEMENTS: usize = 1000;

/// The text at a pointer, if there is one.
pub(super) fn given<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    Some(text(value, pointer)).filter(|text| !text.is_empty())
}

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
    let default = settings.namespace.as_deref().or(Some(DEFAULT_NAMESPACE));
    let own = || given(value, "/metadata/namespace").or(default);
    let target = given(spec, "/targetNamespace");
    let one = |path: Option<&str>, namespace: Option<&str>| BTreeSet::from([installation(path, namespace)]);
    Some(match super::super::group_and_kind(value) {
        ("argoproj.io", "Application") => of_application(spec).collect(),
        ("argoproj.io", "ApplicationSet") => match applications(value) {
            Some(all) => all.iter().filter_map(|it| it.get("spec")).flat_map(of_application).collect(),
            None => of_application(spec.pointer("/template/spec").unwrap_or(&Value::Null)).collect(),
        },
        ("helm.cattle.io", "HelmChart") => one(None, target.or_else(own)),
        ("helm.toolkit.fluxcd.io", "HelmRelease") => {
            let chart = spec.pointer("/chart/spec").unwrap_or(&Value::Null);
            let is_in_git = text(chart, "/sourceRef/kind") == "GitRepository";
            one(given(chart, "/chart").filter(|_| is_in_git), target.or_else(own))
        }
        ("kustomize.config.k8s.io", "Kustomization") => one(None, given(value, "/namespace")),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") => {
            let path = given(spec, "/path").unwrap_or(".");
            // The root of an artifact is not that of the repository.
            let is_root = path.chars().all(|it| ['.', '/'].contains(&it));
            let is_artifact = given(spec, "/sourceRef/kind").is_some_and(|it| it != "GitRepository");
            one(Some(path).filter(|_| !(is_root && is_artifact)), target)
        }
        _ => return None,
    })
}

/// An installation of files at a path. What a generator or a later step fills in is any text.
fn installation(path: Option<&str>, namespace: Option<&str>) -> Installation {
    let path = path.and_then(expanded);
    let namespace = namespace.and_then(expanded).filter(|it| !it.contains('*'));
    Installation { path, namespace }
}

/// What the `spec` of an Application installs, one of each source with files of its own.
fn of_application(spec: &Value) -> impl Iterator<Item = Installation> + use<'_> {
    let namespace = given(spec, "/destination/namespace");
    let several = spec.get("sources").and_then(Value::as_array).filter(|sources| !sources.is_empty());
    let sources =
        several.map_or_else(|| spec.get("source").map(std::slice::from_ref), |it| Some(it.as_slice()));
    let sources = sources.unwrap_or(std::slice::from_ref(&Value::Null)).iter();
    // Others only give values for it.
    let installs = |source: &&Value| {
        source.get("ref").is_none() || ["path", "chart"].iter().any(|it| source.get(it).is_some())
    };
    sources.filter(installs).map(move |source| {
        let is_chart = given(source, "/chart").is_some();
        installation(given(source, "/path").filter(|_| !is_chart), namespace)
    })
}

/// The Applications of an `ApplicationSet` all of whose generators are lists: its template with the values of each element.
/// `None` where that is not all that there is to say of them.
pub fn applications(set: &Value) -> Option<Vec<Value>> {
    let (spec, mut all) = (set.get("spec")?, Vec::new());
    let template = spec.get("template").filter(|_| spec.get("templatePatch").is_none())?;
    for generator in spec.get("generators")?.as_array()? {
        let elements = generator.pointer("/list/elements")?.as_array()?;
        if generator.pointer("/list/template").is_some() || all.len() + elements.len() > MOST_ELEMENTS {
            return None;
        }
        all.extend(elements.iter().map(|element| filled_in(template, element)));
    }
    Some(all)
}

/// A template with the values of an element in place of `{{name}}` and `{{ .name }}`.
fn filled_in(template: &Value, element: &Value) -> Value {
    match template {
        Value::String(text) => {
            let (mut filled, mut rest) = (String::new(), text.as_str());
            while let Some((before, (inside, after))) = next_action(rest) {
                let path = inside.trim().trim_start_matches('.').replace('.', "/");
                let value = element.pointer(&format!("/{path}"));
                filled.push_str(before);
                match value {
                    Some(Value::String(value)) => filled.push_str(value),
                    Some(value) => filled.push_str(&value.to_string()),
                    None => filled.extend(["{{", inside, "}}"]),
                }
                rest = after;
            }
            (filled + rest).into()
        }
        Value::Array(items) => items.iter().map(|item| filled_in(item, element)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled_in(value, element))).collect()
        }
        other => other.clone(),
    }
}

/// The text before the next `{{ … }}`, what is in it, and the text behind.
fn next_action(text: &str) -> Option<(&str, (&str, &str))> {
    let (before, rest) = text.split_once("{{")?;
    Some((before, rest.split_once("}}")?))
}

/// A text with `*` for what a template fills in; `None` if it then says nothing.
fn expanded(text: &str) -> Option<String> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, (_, after))) = next_action(rest) {
        expanded.push_str(before);
        expanded.push('*');
        rest = after;
    }
    expanded.push_str(rest);
    let says_nothing = rest.len() < text.len() && expanded.chars().all(|it| "*./".contains(it));
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
        let nested = json!({"list": {"elements": [{"dir": "x", "env": {"ns": "a"}}]}});
        let git = json!({"git": {"directories": [{"path": "apps/*"}]}});
        let overridden = json!({"list": {"elements": [{"dir": "x"}], "template": {"spec": {}}}});
        for (generator, path, namespace, expected) in [
            (&list, "apps/{{dir}}", "{{ .ns }}", vec!["apps/x in a", "apps/y in ?"]),
            (&nested, "{{.dir}}", "{{.env.ns}}", vec!["x in a"]),
            (&git, "{{path}}", "a", vec!["? in a"]),
            (&git, "apps/{{name}}", "a", vec!["apps/* in a"]),
            (&git, "apps", "team-{{name}}", vec!["apps in ?"]),
            (&overridden, "apps/{{dir}}", "a", vec!["apps/* in a"]),
        ] {
            let template =
                json!({"spec": {"source": {"path": path}, "destination": {"namespace": namespace}}});
            let spec = json!({"generators": [generator], "template": template});
            let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": spec});
            assert_eq!(installed(&set), expected, "{path} {namespace}");
        }
    }

    #[test]
    fn very_many_elements_are_not_known() {
        let elements: Vec<_> = (0..10_000).map(|it| json!({"dir": format!("d{it}")})).collect();
        let template = json!({"spec": {"source": {"path": "apps/{{dir}}"}}});
        let spec = json!({"generators": [{"list": {"elements": elements}}], "template": template});
        let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": spec});
        assert_eq!(installed(&set), ["apps/* in ?"]);
    }
}

//! Objects that install others: Applications of Argo CD, Kustomizations and releases of Flux, charts of k3s.

use std::collections::BTreeSet;

use memgate_manifest::later::is_filled_in_later;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::settings::Settings;
use serde_json::Value;

use super::super::text;

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
        ("argoproj.io", "ApplicationSet") => {
            of_application(spec.pointer("/template/spec").unwrap_or(&Value::Null)).collect()
        }
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

/// A text with `*` for what a template fills in; `None` if it then says nothing.
fn expanded(text: &str) -> Option<String> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, action)) = rest.split_once("{{")
        && let Some((_, after)) = action.split_once("}}")
    {
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
        let git = json!({"git": {"directories": [{"path": "apps/*"}]}});
        for (generator, path, namespace, expected) in [
            (&list, "apps/{{dir}}", "{{ .ns }}", "apps/* in ?"),
            (&git, "{{path}}", "a", "? in a"),
            (&git, "apps/{{name}}", "a", "apps/* in a"),
            (&git, "apps", "team-{{name}}", "apps in ?"),
        ] {
            let template =
                json!({"spec": {"source": {"path": path}, "destination": {"namespace": namespace}}});
            let spec = json!({"generators": [generator], "template": template});
            let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": spec});
            assert_eq!(installed(&set), [expected], "{path} {namespace}");
        }
    }
}

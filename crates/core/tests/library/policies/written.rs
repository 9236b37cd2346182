//! What memgate writes into pods can be read by rules: each value, and each reference to a Secret, is on a path of the views,
//! and a rule about that path refuses the pod. `tests/policies/written.yaml` has the path of each variable.

use std::collections::BTreeSet;

use memgate_model::memory_view::{MemoryView, Role, ViewPath, ViewValue};
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::request;
use serde_json::{Value, json};

use super::super::cases::cases;
use super::super::views::view;
use super::{admitted, data, denies, denying, of_policies};

/// The case of an object that an apiserver refuses.
const WRONG_TYPE: &str = "orloj-takes-a-memory-of-the-wrong-type-for-in-memory";

/// The path of the names of Secrets.
const SECRETS: &str = "secrets[].name";

/// A variable that memgate adds to a pod.
#[derive(Debug)]
struct Written {
    name: String,
    /// The literal; of a reference the name of the Secret.
    value: String,
    is_secret: bool,
}

/// The variables of all containers of a pod, each with the container.
fn variables(pod: &Value) -> Vec<(String, &Value)> {
    let lists = ["initContainers", "containers"].into_iter();
    let containers = lists.flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    containers
        .flat_map(|container| {
            let env = container["env"].as_array().into_iter().flatten();
            env.map(|entry| (format!("{} {}", container["name"], entry), entry))
        })
        .collect()
}

/// What memgate adds to the pod of a case, with the pod after that.
fn written(case: &Case) -> Option<(Value, Vec<Written>)> {
    let before = case.object.as_ref().filter(|object| object["kind"] == "Pod")?;
    let admitted = admitted(case)?;
    let after: Value = serde_json::from_str(admitted.object.as_deref()?).ok()?;
    let known: BTreeSet<String> = variables(before).into_iter().map(|(whole, _)| whole).collect();
    let new = variables(&after).into_iter().filter(|(whole, _)| !known.contains(whole));
    let written = new.filter_map(|(_, entry)| {
        let secret = entry.pointer("/valueFrom/secretKeyRef/name").and_then(Value::as_str);
        let value = secret.or_else(|| entry["value"].as_str())?;
        Some(Written {
            name: entry["name"].as_str()?.to_owned(),
            value: value.replace("$$", "$"),
            is_secret: secret.is_some(),
        })
    });
    let written = written.collect();
    Some((after, written))
}

/// The views that have to do with a case: of its pod and of its state.
fn views(case: &Case, pod: &Value) -> Vec<MemoryView> {
    let Ok(snapshot) = request::state(case) else { return Vec::new() };
    let mut all = Vec::new();
    for family in memgate_platforms::ALL {
        for object in case.state.iter().chain([pod]) {
            let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
            let group = api_version.and_then(|it| it.rsplit_once('/')).map_or("", |(group, _)| group);
            let is_viewed =
                family.views.kinds.iter().any(|(known, _)| known.is(group, kind.unwrap_or_default()));
            if is_viewed || object["kind"] == "Pod" {
                let namespace = object["metadata"]["namespace"].as_str();
                let namespace = namespace.or(case.namespace.as_deref()).unwrap_or("default");
                all.extend(view(family, object, namespace, &snapshot).0);
            }
        }
    }
    all
}

/// The values of views at a path that a variable is made of.
fn made_of(views: &[MemoryView], path: &ViewPath, written: &Written) -> Vec<(Role, Value)> {
    let mut found = Vec::new();
    for view in views {
        let own = path.own.contains(&view.role).then_some(view);
        let used = view.sources.iter().map(|source| &source.view);
        for read in own.into_iter().chain(used.filter(|_| path.by_sources.contains(&view.role))) {
            for part in path.parts(read) {
                let value = match part.value {
                    Some(ViewValue::Text(text)) => Value::from(text.into_owned()),
                    Some(ViewValue::Integer(number)) => Value::from(number),
                    _ => continue,
                };
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let is_made_of = match path.path {
                    "endpoint.host" | "embedding.endpoint.host" | "operations[]" => {
                        written.value.to_lowercase().contains(&text)
                    }
                    _ => written.value == text,
                };
                if is_made_of {
                    found.push((view.role, value));
                }
            }
        }
    }
    found
}

/// Whether a rule that forbids this value refuses the pod, or the object that has it.
fn is_refused(case: &Case, path: &str, (role, value): &(Role, Value)) -> bool {
    let fields = json!([{"path": path, "notIn": [value]}]);
    let forbids = json!({"id": "it", "roles": [role.name()], "onUnknown": "deny", "fields": fields});
    let mut state: Vec<Value> =
        case.state.iter().filter(|object| object["kind"] != "MemoryPolicy").cloned().collect();
    state.push(denying(&json!([forbids])));
    let of_state = case.state.iter().filter(|_| *role != Role::Pod);
    let mut objects = of_state.chain(case.object.iter().filter(|_| *role == Role::Pod));
    objects.any(|object| {
        let case = Case { object: Some(object.clone()), state: state.clone(), ..case.clone() };
        admitted(&case).is_some_and(|it| of_policies(it.decision.findings).iter().any(denies))
    })
}

/// Whether a SkillPack sets the variable for its own image, which rules read.
fn is_of_pack(case: &Case, written: &Written) -> bool {
    let packs = case.state.iter().filter(|object| object["kind"] == "SkillPack");
    let mut variables =
        packs.flat_map(|pack| pack["spec"]["sidecar"]["env"].as_array().into_iter().flatten());
    variables.any(|variable| variable["name"] == written.name)
}

/// What keeps rules from reading a variable at its path, if anything does.
fn fault(case: &Case, views: &[MemoryView], path: &ViewPath, written: &Written) -> Option<&'static str> {
    let is_unknown = |view: &MemoryView| view.why_unknown(path.path).is_some();
    let mut sources = views.iter().flat_map(|view| &view.sources);
    match made_of(views, path, written).first() {
        Some(source) => (!is_refused(case, path.path, source)).then_some("is not refused by a rule on"),
        None if sources.any(|source| is_unknown(&source.view)) => {
            let any = (Role::Pod, json!("x"));
            (!is_refused(case, path.path, &any)).then_some("passes, and is unknown at")
        }
        None => Some("is not at"),
    }
}

#[test]
fn rules_read_what_memgate_writes_into_pods() {
    let rows = data("written");
    let others: Vec<&String> = rows["others"].as_object().expect("rows").keys().collect();
    let is_other = |name: &str| {
        others.iter().any(|other| *other == name || other.ends_with('_') && name.starts_with(other.as_str()))
    };
    let is_constant = |it: &Written| {
        let always = rows["always"][&it.name].as_array().into_iter().flatten();
        always.into_iter().any(|value| *value == it.value)
    };
    let own = memgate_platforms::ALL.into_iter().filter_map(|family| family.views.own_namespace_path);
    let all = ViewPath::all(own);
    let (mut wrong, mut read) = (Vec::new(), BTreeSet::new());
    for (file, case) in cases().expect("the case files") {
        let Some((pod, written)) = written(&case) else { continue };
        if written.is_empty() {
            continue;
        }
        let views = views(&case, &pod);
        for it in written {
            let path = if it.is_secret { Some(SECRETS) } else { rows["paths"][&it.name].as_str() };
            let Some(path) = path.filter(|_| !is_other(&it.name)) else {
                if !is_constant(&it) && !is_other(&it.name) && !is_of_pack(&case, &it) {
                    wrong.push(format!("{file} {}: {it:?} has no row", case.name));
                }
                continue;
            };
            if is_constant(&it) {
                continue;
            }
            let known = all.iter().find(|known| known.path == path).expect("a path");
            match fault(&case, &views, known, &it) {
                Some(fault) if case.name != WRONG_TYPE => {
                    wrong.push(format!("{file} {}: {it:?} {fault} {path}", case.name));
                }
                _ => {
                    read.insert(it.name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} {}", wrong.len(), wrong.join("\n"));
    for name in rows["paths"].as_object().expect("rows").keys() {
        assert!(read.contains(name), "no case has {name}");
    }
}

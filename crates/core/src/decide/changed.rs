//! A pod as it would be stored: the one that was sent with the edits of a decision. Nothing of it is read again but the
//! lists that they change. Its metadata is that of the pod that was sent.

use std::collections::BTreeMap;

use memgate_model::edit::{Edit, Op};
use memgate_model::pod::{Container, EnvVarView, Pod, PodSpec};
use memgate_model::view;
use memgate_primitives::pointer::{Pointer, list_index};
use serde_json::value::{RawValue, to_raw_value};

use crate::patch::apply::apply;

/// Calls `judge` with the pod after these edits.
pub(super) fn with_edits<T>(sent: &Pod<'_>, edits: &[Edit], judge: impl FnOnce(&Pod<'_>) -> T) -> T {
    if edits.is_empty() {
        return judge(sent);
    }
    let (variables, texts): (Vec<_>, Vec<_>);
    let mut pod = sent.clone();
    let Some(spec) = pod.spec.as_mut() else { return judge(sent) };
    let mut parts: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        parts.entry(part(edit.pointer.as_str())).or_default().push(edit);
    }
    texts =
        parts.iter().filter_map(|(at, edits)| Some((*at, edited(*unread(spec, at)?, at, edits)?))).collect();
    for (at, text) in &texts {
        if let Some(part) = unread(spec, at) {
            *part = Some(text);
        }
    }
    // Values of edits can always be written as JSON.
    let of_variables = edits.iter().filter(|edit| variable(edit).is_some());
    variables = of_variables.filter_map(|edit| Some((edit, to_raw_value(&edit.value).ok()?))).collect();
    for block in variables.chunk_by(|(one, _), (next, _)| follows(one, next)) {
        change_variables(spec, block);
    }
    judge(&pod)
}

/// The list of a pod that holds the place of an edit.
fn part(pointer: &str) -> &str {
    let tokens = if pointer.starts_with("/spec/containers/") { 4 } else { 2 };
    let end = pointer.match_indices('/').nth(tokens).map(|(end, _)| end);
    end.and_then(|end| pointer.get(..end)).unwrap_or(pointer)
}

/// A part of the spec that is unread.
fn unread<'s, 'p>(spec: &'s mut PodSpec<'p>, part: &str) -> Option<&'s mut Option<&'p RawValue>> {
    match part.strip_prefix("/spec/")? {
        "initContainers" => Some(&mut spec.init_containers),
        "volumes" => Some(&mut spec.volumes),
        "imagePullSecrets" => Some(&mut spec.image_pull_secrets),
        "securityContext" => Some(&mut spec.security_context),
        other => {
            let index = other.strip_prefix("containers/")?.strip_suffix("/volumeMounts")?;
            Some(&mut container(spec, index)?.volume_mounts)
        }
    }
}

fn container<'s, 'p>(spec: &'s mut PodSpec<'p>, index: &str) -> Option<&'s mut Container<'p>> {
    spec.containers.as_mut()?.get_mut(list_index(index)?)
}

/// The text of an unread part after the edits in it.
fn edited(sent: Option<&RawValue>, part: &str, edits: &[&Edit]) -> Option<Box<RawValue>> {
    let whole = edits.iter().rposition(|edit| edit.pointer.as_str() == part);
    let (until, rest) = edits.split_at(whole.map_or(0, |at| at + 1));
    let new = until.last().map(|edit| to_raw_value(&edit.value)).transpose().ok()?;
    let below = |edit: &&Edit| {
        let pointer = edit.pointer.as_str().get(part.len()..).map(Pointer::new)?;
        Some(Edit { pointer, ..(*edit).clone() })
    };
    let rest: Vec<Edit> = rest.iter().filter_map(below).collect();
    let text = apply(new.as_deref().or(sent)?.get(), &rest).ok()?;
    RawValue::from_string(text).ok()
}

/// The container and the place in its variables that an edit changes.
fn variable(edit: &Edit) -> Option<(&str, &str)> {
    let (index, rest) = edit.pointer.as_str().strip_prefix("/spec/containers/")?.split_once('/')?;
    let place = rest.strip_prefix("env")?;
    (place.is_empty() || place.starts_with('/')).then_some((index, place))
}

/// Whether an edit inserts a variable behind the one that the edit before it inserts.
fn follows(one: &Edit, next: &Edit) -> bool {
    let index = |edit| {
        let (container, place) = variable(edit)?;
        Some((container, list_index(place.strip_prefix('/')?)?))
    };
    let both = index(one).zip(index(next)).filter(|_| [one.op, next.op] == [Op::Add; 2]);
    both.is_some_and(|((of, at), (of_next, next))| of == of_next && at + 1 == next)
}

/// Makes edits of one container: one, or several that insert variables behind each other.
fn change_variables<'p>(spec: &mut PodSpec<'p>, block: &'p [(&Edit, Box<RawValue>)]) -> Option<()> {
    let (edit, value) = block.first()?;
    let (index, place) = variable(edit)?;
    let container = container(spec, index)?;
    let Some(place) = place.strip_prefix('/') else {
        container.env = view::read(value.get()).ok();
        return Some(());
    };
    let env = container.env.as_mut()?;
    let (at, field) = place.split_once('/').unwrap_or((place, ""));
    let at = list_index(at).filter(|at| *at <= env.len())?;
    let read = |(_, value): &'p (_, Box<RawValue>)| view::read::<EnvVarView<'_>>(value.get()).ok();
    match (field, edit.op) {
        ("", Op::Add) => drop(env.splice(at..at, block.iter().filter_map(read))),
        ("value", _) => env.get_mut(at)?.value = view::read(value.get()).ok(),
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use memgate_model::edit::{EnvSource, EnvVar, KeyRef, Value};
    use serde_json::json;

    use super::*;

    fn edit(op: Op, pointer: &str, value: Value) -> Edit {
        Edit { op, pointer: Pointer::new(pointer), value, origins: Vec::new() }
    }

    #[test]
    fn it_is_what_the_patch_makes_of_the_text() {
        let text = r#"{"metadata": {"name": "a"}, "spec": {
            "containers": [
                {"name": "one", "env": [{"name": "A", "value": "x"}, {"name": "B"}]},
                {"name": "two", "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}
            ],
            "initContainers": [{"name": "first", "env": []}, {"name": "second"}, {"name": "third"}],
            "volumes": []
        }}"#;
        let variable = |name: &'static str, source| EnvVar { name: name.into(), source };
        let text_of = |name| variable(name, EnvSource::Value("\"1\"".to_owned()));
        let key = || KeyRef { name: "s".to_owned(), key: "k".into(), optional: Some(true) };
        let named = |name: &str| Value::Tree(json!({"name": name}));
        let edits = [
            edit(Op::Replace, "/spec/containers/0/env/0/value", Value::Text("new".to_owned())),
            edit(Op::Add, "/spec/containers/0/env/0", Value::Env(text_of("C"))),
            edit(Op::Add, "/spec/containers/0/env/1", Value::Env(variable("D", EnvSource::Secret(key())))),
            edit(Op::Add, "/spec/containers/0/env/4", Value::Env(text_of("E"))),
            edit(
                Op::Add,
                "/spec/containers/1/env",
                Value::EnvList(vec![text_of("F"), variable("G", EnvSource::ConfigMap(key()))]),
            ),
            edit(Op::Add, "/spec/containers/1/volumeMounts/1", named("more")),
            edit(Op::Add, "/spec/containers/0/volumeMounts", Value::Tree(json!([{"name": "all"}]))),
            edit(Op::Add, "/spec/initContainers/1/restartPolicy", Value::Text("Always".to_owned())),
            edit(Op::Add, "/spec/initContainers/0/env/0", Value::Env(text_of("H"))),
            edit(Op::Remove, "/spec/initContainers/2", Value::Nothing),
            edit(Op::Add, "/spec/initContainers/0", named("server")),
            edit(Op::Add, "/spec/volumes/0", named("data")),
            edit(Op::Add, "/spec/imagePullSecrets", Value::Tree(json!([{"name": "pull"}]))),
            edit(Op::Add, "/spec/imagePullSecrets/1", named("another")),
            edit(Op::Add, "/spec/securityContext", Value::Tree(json!({"runAsUser": 1}))),
            edit(Op::Add, "/spec/securityContext/fsGroup", Value::Integer(2)),
            edit(Op::Add, "/metadata/annotations", Value::Text("not read".to_owned())),
        ];
        let pod = Pod::parse(text).expect("a pod");
        for count in 0..edits.len() {
            let edits = &edits[..count];
            let expected = apply(text, edits).expect("they apply");
            let expected = Pod::parse(&expected).expect("a pod");
            with_edits(&pod, edits, |changed| {
                assert_eq!(format!("{:?}", changed.spec), format!("{:?}", expected.spec), "{count} edits");
            });
        }
    }
}

//! The volumes that the volumeClaimTemplates of a StatefulSet add to its pods, and the mapping from places in
//! such a pod back to the StatefulSet.
//!
//! The controller replaces a volume by the claim of the same name, and adds the other claims. Here the added
//! claims come after the template's own volumes, so that these keep their indexes.
//! Source: kubernetes/kubernetes, pkg/controller/statefulset, updateStorage.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::edit::{self, Edit, Op};
use crate::pod::{self, NamedView};
use crate::view::{Text, view};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::{Path, Pointer, list_index};

/// The volumes of a pod that come from claim templates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimVolumes {
    /// The index of the claim template of each such volume, by the index of the volume.
    claim_templates: BTreeMap<usize, usize>,
    /// How many of them come after the volumes of the pod template.
    appended: usize,
    /// How many volumes the pod template has; `None` if it has no list.
    in_template: Option<usize>,
}

view! {
    /// The fields of a claim template that are read.
    in VOLUMES ClaimTemplate {
        /// Its metadata.
        metadata: NamedView<'a> = "metadata",
    }

    /// The fields of a volume that are read.
    in VOLUMES NamedVolume {
        /// Its name.
        name: Text<'a> = "name",
    }
}

/// Adds the claims of a StatefulSet of this name to a pod made from its template, as the controller does for
/// the first replica. A pod whose `volumes` is not a list stays unchanged: an apiserver refuses it.
pub fn add_to_pod(pod: &mut Value, stateful_set: &str, claim_templates: &Value) -> ClaimVolumes {
    let raw = |value: &Value| to_raw_value(value).ok();
    let volumes = pod.pointer("/spec/volumes").filter(|volumes| !volumes.is_null()).and_then(raw);
    let (Some(templates), Some(Value::Object(spec))) = (raw(claim_templates), pod.get_mut("spec")) else {
        return ClaimVolumes::default();
    };
    let (edits, found) = edits_to_pod(volumes.as_deref(), stateful_set, &templates);
    for Edit { pointer, value, .. } in edits {
        let edit::Value::Tree(value) = value else { continue };
        let index = pointer.tokens().last().and_then(|token| list_index(&token));
        match (spec.get_mut("volumes"), index) {
            (Some(Value::Array(volumes)), Some(index)) => match volumes.get_mut(index) {
                Some(own) => *own = value,
                None => volumes.push(value),
            },
            _ => _ = spec.insert("volumes".to_owned(), value),
        }
    }
    found
}

/// The edits that add the claims to a pod whose spec holds these volumes, as in [`add_to_pod`]. There are no
/// edits if there are more volumes or claims than memgate reads.
pub fn edits_to_pod(
    volumes: Option<&RawValue>,
    stateful_set: &str,
    claim_templates: &RawValue,
) -> (Vec<Edit>, ClaimVolumes) {
    let budget = Budget::default();
    let read = || {
        let templates: Vec<ClaimTemplate<'_>> = pod::read_list(Some(claim_templates), Path::Root, &budget)?;
        let volumes: Option<Vec<NamedVolume<'_>>> = match volumes {
            Some(volumes) => Some(pod::read_list(Some(volumes), Path::Root, &budget)?),
            None => None,
        };
        Some((templates, volumes)).filter(|_| !budget.has_ended())
    };
    let Some((templates, volumes)) = read() else { return Default::default() };
    let claims: BTreeMap<&str, usize> = templates
        .iter()
        .enumerate()
        .filter_map(|(index, template)| Some((template.metadata.as_ref()?.name.as_deref()?, index)))
        .collect();
    if claims.is_empty() {
        return Default::default();
    }
    let names = volumes.iter().flatten().map(|volume| volume.name.as_deref().unwrap_or_default());
    let (found, names) = place(volumes.as_ref().map(Vec::len), names, claims);
    let list = Pointer::new("/spec/volumes");
    let edit =
        |op, pointer, value| Edit { op, pointer, value: edit::Value::Tree(value), origins: Vec::new() };
    let Some(len) = found.in_template else {
        let all = names.into_iter().map(|(_, name)| claim_volume(name, stateful_set)).collect();
        return (vec![edit(Op::Add, list, Value::Array(all))], found);
    };
    let edits = names.into_iter().map(|(index, name)| {
        let op = if index < len { Op::Replace } else { Op::Add };
        edit(op, list.index(index), claim_volume(name, stateful_set))
    });
    (edits.collect(), found)
}

/// Assigns each claim to a volume index: first the claims that replace a volume of the same name, then the
/// added ones.
fn place<'n>(
    in_template: Option<usize>,
    volumes: impl Iterator<Item = &'n str>,
    mut claims: BTreeMap<&'n str, usize>,
) -> (ClaimVolumes, Vec<(usize, &'n str)>) {
    let mut found = ClaimVolumes { in_template, ..ClaimVolumes::default() };
    let mut names = Vec::new();
    for (index, name) in volumes.enumerate() {
        if let Some((name, template)) = claims.remove_entry(name) {
            names.push((index, name));
            found.claim_templates.insert(index, template);
        }
    }
    let mut others: Vec<_> = claims.into_iter().collect();
    others.sort_by_key(|(_, template)| *template);
    found.appended = others.len();
    for (index, (name, template)) in (in_template.unwrap_or_default()..).zip(others) {
        names.push((index, name));
        found.claim_templates.insert(index, template);
    }
    (found, names)
}

fn claim_volume(name: &str, stateful_set: &str) -> Value {
    json!({"name": name, "persistentVolumeClaim": {"claimName": format!("{name}-{stateful_set}-0")}})
}

impl ClaimVolumes {
    /// Maps a pointer into the pod to a pointer into the workload, whose pod template is at `template`.
    pub fn in_workload(&self, template: &Pointer, place: &Pointer) -> Pointer {
        let below = place.as_str().strip_prefix("/spec/volumes/");
        let index = below.and_then(|below| list_index(below.split('/').next()?));
        match index.and_then(|index| self.claim_templates.get(&index)) {
            Some(claim) => Pointer::new("/spec/volumeClaimTemplates").index(*claim),
            None => template.join(place),
        }
    }

    /// Maps edits of the pod to edits of its workload. Added volumes come after those of the template.
    pub fn edits_in_workload(&self, template: &Pointer, edits: &[Edit]) -> Vec<Edit> {
        let list = Pointer::new("/spec/volumes");
        let mut has_list = self.in_template.is_some() || self.appended == 0;
        let edits = edits.iter().map(|edit| {
            let index = edit.pointer.parent().filter(|parent| *parent == list).and_then(|_| {
                let index = list_index(&edit.pointer.tokens().last()?)?;
                (edit.op == Op::Add).then(|| index.saturating_sub(self.appended))
            });
            let Some(index) = index else {
                return Edit { pointer: template.join(&edit.pointer), ..edit.clone() };
            };
            if has_list {
                return Edit { pointer: template.join(&list.index(index)), ..edit.clone() };
            }
            has_list = true;
            let value = serde_json::to_value(&edit.value).unwrap_or_default();
            let value = edit::Value::Tree(Value::Array(vec![value]));
            Edit { pointer: template.join(&list), value, ..edit.clone() }
        });
        edits.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(names: &[&str]) -> Value {
        let template = |name| json!({"metadata": {"name": name}});
        names.iter().copied().map(template).collect()
    }

    fn volume(name: &str) -> Edit {
        Edit {
            op: Op::Add,
            pointer: Pointer::new("/spec/volumes").index(0),
            value: edit::Value::Tree(json!({ "name": name })),
            origins: Vec::new(),
        }
    }

    #[test]
    fn claims_win_over_volumes_and_shift_none() {
        let volumes = json!([{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
        let mut pod = json!({"spec": {"volumes": volumes}});
        let found = add_to_pod(&mut pod, "web", &claims(&["log", "data"]));
        let expected = json!([
            {"name": "tmp", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
            {"name": "log", "persistentVolumeClaim": {"claimName": "log-web-0"}},
        ]);
        assert_eq!(pod["spec"]["volumes"], expected);
        let template = Pointer::new("/spec/template");
        for (place, expected) in [
            ("/spec/volumes/0/emptyDir", "/spec/template/spec/volumes/0/emptyDir"),
            ("/spec/volumes/1/emptyDir", "/spec/volumeClaimTemplates/1"),
            ("/spec/volumes/2", "/spec/volumeClaimTemplates/0"),
            ("/spec/containers/1", "/spec/template/spec/containers/1"),
            ("/spec/volumes", "/spec/template/spec/volumes"),
        ] {
            assert_eq!(found.in_workload(&template, &Pointer::new(place)).as_str(), expected);
        }
        let added = Edit { pointer: Pointer::new("/spec/volumes/3"), ..volume("new") };
        let edits = found.edits_in_workload(&template, &[added]);
        assert_eq!(edits[0].pointer.as_str(), "/spec/template/spec/volumes/2");
    }

    #[test]
    fn makes_the_list_that_the_template_lacks() {
        for spec in [json!({}), json!({"volumes": null})] {
            let mut pod = json!({ "spec": spec });
            let found = add_to_pod(&mut pod, "web", &claims(&["data"]));
            let edits = ["/spec/volumes/1", "/spec/volumes/2"]
                .map(|place| Edit { pointer: Pointer::new(place), ..volume("new") });
            let edits = found.edits_in_workload(&Pointer::new("/spec/template"), &edits);
            assert_eq!(edits[0].pointer.as_str(), "/spec/template/spec/volumes");
            assert_eq!(edits[0].value, edit::Value::Tree(json!([{"name": "new"}])));
            assert_eq!(edits[1].pointer.as_str(), "/spec/template/spec/volumes/1");
        }
    }

    #[test]
    fn leaves_pods_without_claims_and_odd_ones_alone() {
        for (pod, templates) in [
            (json!({"spec": {"volumes": {}}}), claims(&["data"])),
            (json!({"spec": {"volumes": [1]}}), json!(null)),
            (json!({"spec": {}}), json!([{}, 1, {"metadata": {"name": 2}}])),
            (json!({"spec": []}), claims(&["data"])),
        ] {
            let mut changed = pod.clone();
            let found = add_to_pod(&mut changed, "web", &templates);
            assert_eq!((changed, found), (pod, ClaimVolumes::default()));
        }
    }
}

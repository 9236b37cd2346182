//! The volumes that the volumeClaimTemplates of a StatefulSet add to its pods, and the mapping from places in
//! such a pod back to the StatefulSet.
//!
//! The controller replaces a volume by the claim of the same name, and adds the other claims. Here the added
//! claims come after the template's own volumes, so that these keep their indexes.
//! Source: kubernetes/kubernetes, pkg/controller/statefulset, updateStorage.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::edit::{self, Edit, Op};
use memgate_primitives::pointer::{Pointer, list_index};

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

/// Adds the claims of a StatefulSet of this name to a pod made from its template, as the controller does for
/// the first replica. A pod whose `volumes` is not a list stays unchanged: an apiserver refuses it.
pub fn add_to_pod(pod: &mut Value, stateful_set: &str, claim_templates: &Value) -> ClaimVolumes {
    let name = |named: &Value| named.get("name").and_then(Value::as_str).map(str::to_owned);
    let templates = claim_templates.as_array().into_iter().flatten().enumerate();
    let claims: Vec<(usize, String)> =
        templates.filter_map(|(number, template)| Some((number, name(template.get("metadata")?)?))).collect();
    let Some(Value::Object(spec)) = pod.get_mut("spec").filter(|_| !claims.is_empty()) else {
        return ClaimVolumes::default();
    };
    let volumes = spec.entry("volumes").or_insert(Value::Null);
    let in_template = volumes.as_array().map(Vec::len);
    if volumes.is_null() {
        *volumes = json!([]);
    }
    let Value::Array(volumes) = volumes else { return ClaimVolumes::default() };
    let mut found = ClaimVolumes { in_template, ..ClaimVolumes::default() };
    // Of volumes of one name the first one counts.
    let mut places: BTreeMap<String, usize> =
        volumes.iter().enumerate().rev().filter_map(|(index, volume)| Some((name(volume)?, index))).collect();
    for (number, own) in claims {
        let claim = format!("{own}-{stateful_set}-0");
        let claim = json!({"name": own, "persistentVolumeClaim": {"claimName": claim}});
        let index = *places.entry(own).or_insert(volumes.len());
        match volumes.get_mut(index) {
            Some(volume) => *volume = claim,
            None => volumes.push(claim),
        }
        found.claim_templates.insert(index, number);
    }
    found.appended = volumes.len() - in_template.unwrap_or_default();
    found
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

//! The tables of the components about policies: what they add to the base and to each family. They change selectors of
//! entries that families bring, which an entry's name finds in a merge.

#![expect(clippy::indexing_slicing, reason = "a test reads JSON by indexing, where a missing key is null")]

use memgate_install::component::Component;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use crate::generate::{added, components, hold};
use crate::objects::{Objects, base, base_with, printed};

/// Both webhook configurations, as objects and as files.
const CONFIGURATIONS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutating.yaml"),
    ("ValidatingWebhookConfiguration", "validating.yaml"),
];

/// Where the kind stands among [`Objects`].
fn configuration<'o>(objects: &'o Objects, kind: &str) -> &'o Value {
    &objects[&format!("{kind}  memgate")]
}

fn entries(objects: &Objects, kind: &str) -> Vec<Value> {
    configuration(objects, kind)["webhooks"].as_array().cloned().expect("entries")
}

fn write(component: &str, file: &str, about: &str, documents: &[Value]) {
    let mut text = format!("# {about}. Printed by `just generate`; change nothing here.\n");
    for document in documents {
        if documents.len() > 1 {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(document).expect("can be written"));
    }
    hold(&components().join(component).join(file), &text);
}

#[test]
fn what_policies_need_is_up_to_date() {
    let (base, mut with) = (base(), base_with(BTreeSet::from([Component::Policies])));
    let folder = "policies/common";
    for (object, file) in [
        ("ClusterRole  memgate", "cluster-role.yaml"),
        ("ValidatingWebhookConfiguration  memgate", "validating.yaml"),
    ] {
        let mut additions = Vec::new();
        added(&base[object], &with.remove(object).expect("it is there"), "", &mut additions);
        write(folder, file, "What policies add to the base", &[json!(additions)]);
    }
    // The kustomization takes a flag away.
    with.remove("Deployment memgate-system memgate");
    with.retain(|name, object| base.get(name) != Some(object));
    let (definitions, others): (Vec<Value>, Vec<Value>) =
        with.into_values().partition(|object| object["kind"] == "CustomResourceDefinition");
    // Their files, audit.yaml and roles.yaml, are written by hand, and `memgate manifests` reads them.
    let names: BTreeSet<_> = others.iter().map(|object| object["metadata"]["name"].as_str()).collect();
    let expected = ["memgate-audit", "memgate-exemptions-edit", "memgate-policies-view"];
    assert_eq!(names, expected.into_iter().map(Some).collect());
    write(folder, "crds.yaml", "What deploy/crds/policy.yaml has", &definitions);
}

#[test]
fn what_policies_change_of_families_is_up_to_date() {
    for family in memgate_platforms::ALL.map(|family| family.name) {
        let component = format!("family-{family}");
        let without = printed(&["--component", &component, "--no-policies"]);
        let mut with = printed(&["--component", &component]);
        let kind = "MutatingWebhookConfiguration";
        let folder = format!("policies/{family}");
        // A family that fails open has an entry of its own for them.
        let known = entries(&without, kind).len();
        let own = with.get_mut(&format!("{kind}  memgate")).and_then(|it| it["webhooks"].as_array_mut());
        let own = own.expect("entries").split_off(known);
        let rules = |objects: &Objects| entries(objects, kind)[1]["rules"].clone();
        let mut additions = Vec::new();
        added(&rules(&without), &rules(&with), "/webhooks/1/rules", &mut additions);
        additions
            .extend(own.into_iter().map(|entry| json!({"op": "add", "path": "/webhooks/-", "value": entry})));
        if !additions.is_empty() {
            let about = format!("The kinds of {family} that only policies have defaults for");
            write(&folder, "defaults.yaml", &about, &[json!(additions)]);
        }
        if let Some(changed) = merge(kind, &without, &with) {
            let about = format!("The pods of {family} that policies judge");
            write(&folder, "pods.yaml", &about, &[changed]);
        }
    }
}

#[test]
fn strict_entries_are_up_to_date() {
    for family in memgate_platforms::ALL.map(|family| family.name) {
        let component = format!("family-{family}");
        let ordinary = printed(&["--component", &component]);
        let strict = printed(&["--component", &component, "--component", "policy-strict"]);
        let folder = format!("policy-strict/{family}");
        for (kind, file) in CONFIGURATIONS {
            let Some(merge) = merge(kind, &ordinary, &strict) else { continue };
            write(
                &folder,
                file,
                &format!("Entries of {family}, each for strict namespaces and for others"),
                &[merge],
            );
        }
    }
}

/// What to merge into a configuration so that its entries get their selectors, with the entries that are new where they
/// belong. `None` when nothing differs.
fn merge(kind: &str, before: &Objects, after: &Objects) -> Option<Value> {
    let known = entries(before, kind);
    let of_all = entries(&base_with(BTreeSet::from([Component::Policies])), kind);
    let mut changed = Vec::new();
    for entry in entries(after, kind) {
        let Some(old) = known.iter().find(|old| old["name"] == entry["name"]) else {
            changed.push(entry);
            continue;
        };
        let mut patch = Map::from_iter([("name".to_owned(), entry["name"].clone())]);
        for selector in
            ["namespaceSelector", "objectSelector"].into_iter().filter(|key| old[key] != entry[key])
        {
            patch.insert(selector.to_owned(), entry[selector].clone());
        }
        // Those of other families come between them otherwise.
        let is_own = of_all.iter().all(|other| other["name"] != entry["name"]);
        if is_own || patch.len() > 1 {
            changed.push(Value::Object(patch));
        }
    }
    if changed.is_empty() {
        return None;
    }
    // A merge moves its entries to the front. Those of the base stay there, where other patches look for them.
    let entries: Vec<Value> =
        entries(&base(), kind).iter().map(|entry| json!({"name": entry["name"]})).chain(changed).collect();
    let before = configuration(before, kind);
    let metadata = json!({"name": before["metadata"]["name"]});
    Some(json!({
        "apiVersion": before["apiVersion"], "kind": kind, "metadata": metadata, "webhooks": entries,
    }))
}

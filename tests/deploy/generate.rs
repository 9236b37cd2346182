//! The tables among the files: the additions of each family to the base. The renderer
//! prints them, for both kustomize and people to read; `BLESS=1 cargo test --test deploy` writes them
//! again.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

use crate::objects::{base, printed};

/// Which object of the base a file of a family changes.
const CHANGED: [(&str, &str); 4] = [
    ("ClusterRole  memgate", "cluster-role.yaml"),
    ("Deployment memgate-system memgate", "deployment.yaml"),
    ("MutatingWebhookConfiguration  memgate", "mutating.yaml"),
    ("ValidatingWebhookConfiguration  memgate", "validating.yaml"),
];

/// The families, as components.
pub(crate) fn families() -> [String; memgate_platforms::ALL.len()] {
    memgate_platforms::ALL.map(|family| format!("family-{}", family.name))
}

#[test]
fn families_are_up_to_date() {
    let base = base();
    for family in families() {
        let mut with = printed(&["--component", &family, "--no-policies"]);
        for (object, file) in CHANGED {
            let with = with.remove(object).expect("the object is there");
            let mut additions = Vec::new();
            added(&base[object], &with, "", &mut additions);
            if additions.is_empty() {
                continue;
            }
            let head = format!(
                "# What {family} adds to the base. Printed by `just generate`; change nothing here.\n"
            );
            let text = head + &serde_saphyr::to_string(&additions).expect("can be written");
            hold(&components().join(&family).join(file), &text);
        }
        with.retain(|name, object| base.get(name) != Some(object));
        assert!(with.is_empty(), "{family} changes {:?}, which no file is for", with.keys());
    }
}

/// Components that are nothing but objects that the renderer knows.
const PRINTED: [(&str, &str, &str); 2] = [
    ("alerts", "prometheus-rule.yaml", "What deploy/monitoring/alerts.yaml has"),
    ("dashboards", "dashboard.yaml", "What deploy/monitoring/dashboard.json has"),
];

#[test]
fn whole_objects_are_up_to_date() {
    let known = printed(&[]);
    for (component, file, about) in PRINTED {
        let mut text = format!("# {about}. Printed by `just generate`; change nothing here.\n");
        for (name, object) in printed(&["--component", component]) {
            if !known.contains_key(&name) {
                text.push_str("---\n");
                text.push_str(&serde_saphyr::to_string(&object).expect("can be written"));
            }
        }
        hold(&components().join(component).join(file), &text);
    }
}

/// `deploy/kustomize`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kustomize")
}

/// Where the components are.
pub(crate) fn components() -> PathBuf {
    folder().join("components")
}

/// The additions that lead from one value to another, as RFC 6902. Anything but an addition fails:
/// families come in any number and take nothing away.
pub(crate) fn added(base: &Value, with: &Value, path: &str, additions: &mut Vec<Value>) {
    match (base, with) {
        (Value::Object(base), Value::Object(with)) => {
            assert!(base.keys().eq(with.keys()), "{path} has other keys");
            for (key, value) in with {
                added(&base[key], value, &format!("{path}/{}", key.replace('/', "~1")), additions);
            }
        }
        (Value::Array(base), Value::Array(with)) => {
            assert!(base.len() <= with.len(), "{path} got shorter");
            for (index, (base, with)) in base.iter().zip(with).enumerate() {
                added(base, with, &format!("{path}/{index}"), additions);
            }
            let more = with.iter().skip(base.len());
            additions
                .extend(more.map(|item| json!({"op": "add", "path": format!("{path}/-"), "value": item})));
        }
        _ => assert_eq!(base, with, "{path} changed"),
    }
}

/// Compares a file with what it should hold, or writes it.
pub(crate) fn hold(path: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }
    let known = fs::read_to_string(path).unwrap_or_default();
    assert!(known == text, "{} is not what the renderer prints; run `just generate`", path.display());
}

//! Reviews that claim another namespace than the case does, and which objects are then of another one.

use std::collections::BTreeSet;

use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

/// A namespace without objects of a case.
const UNUSED: &str = "unused";
/// The namespace of objects that name none.
const DEFAULT: &str = "default";
/// Kinds whose objects are in no namespace.
const OF_NO_NAMESPACE: [&str; 4] =
    ["ArkConfig", "CustomResourceDefinition", "MemoryPolicy", "ValidatingAdmissionPolicy"];

/// The reviews that claim one namespace.
pub(crate) struct Claim {
    pub(crate) namespace: String,
    pub(crate) reviews: Vec<Value>,
}

/// The reviews of a case, for each namespace that a caller could claim: with the object's own namespace as it was,
/// with the claimed one, and with no namespace but the object's. The honest review is the one whose request has the
/// case's own namespace; there the object says another one, too.
pub(crate) fn claims(case: &Case) -> Vec<Claim> {
    let honest = request::review(case);
    let own = honest["request"]["namespace"].as_str().unwrap_or_default();
    let mut namespaces: BTreeSet<&str> = case.state.iter().filter_map(namespace).collect();
    namespaces.extend([own, UNUSED]);
    namespaces.remove("");
    let reviews = |claimed: &str| {
        let asked = |request: &str, object: Option<&str>| {
            let mut review = honest.clone();
            review["request"]["namespace"] = json!(request);
            for place in ["object", "oldObject"] {
                let metadata =
                    review["request"][place].get_mut("metadata").filter(|metadata| metadata.is_object());
                if let (Some(metadata), Some(object)) = (metadata, object) {
                    metadata["namespace"] = json!(object);
                }
            }
            review
        };
        let elsewhere = if claimed == own { UNUSED } else { own };
        vec![
            asked(claimed, None),
            asked(claimed, Some(claimed)),
            asked(claimed, Some(elsewhere)),
            asked("", Some(claimed)),
        ]
    };
    let claim =
        |claimed: &&str| Claim { namespace: (*claimed).to_owned(), reviews: distinct(reviews(claimed)) };
    namespaces.iter().map(claim).collect()
}

fn distinct(reviews: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for review in reviews {
        if !kept.contains(&review) {
            kept.push(review);
        }
    }
    kept
}

/// The namespace of an object, or the name of a Namespace; `None` for cluster-wide objects.
fn namespace(object: &Value) -> Option<&str> {
    match object["kind"].as_str()? {
        "Namespace" => object["metadata"]["name"].as_str(),
        kind if OF_NO_NAMESPACE.contains(&kind) => None,
        _ => {
            Some(object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or(DEFAULT))
        }
    }
}

/// Puts an object into the namespace that it is in without saying so.
pub(crate) fn place(object: &mut Value) {
    if let Some(namespace) = namespace(object).map(str::to_owned)
        && object["kind"] != "Namespace"
    {
        object["metadata"]["namespace"] = json!(namespace);
    }
}

/// Whether an object is of another namespace than the one that is claimed.
pub(crate) fn is_foreign(object: &Value, claimed: &str) -> bool {
    namespace(object).is_some_and(|namespace| namespace != claimed)
}

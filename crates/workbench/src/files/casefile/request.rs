//! The AdmissionReview of a case, as an apiserver would send it, and the state it meets.

use memgate_core::state::{self, AddError, text};
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::request::Operation;
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::Case;

/// The uid of every review: a case has but one.
pub const UID: &str = "00000000-0000-4000-8000-000000000000";
/// The user who makes the request.
const USER: &str = "memgate-test";

/// The state of this case.
///
/// # Errors
/// When a number in an object is beyond what a double can hold, or a definition cannot be used.
pub fn state(case: &Case) -> Result<Snapshot, AddError> {
    state_over(&state::empty(memgate_platforms::default_settings()), case)
}

/// The same over an existing snapshot; an object of the case replaces the one of its name.
///
/// # Errors
/// Those of [`state()`].
pub fn state_over(base: &Snapshot, case: &Case) -> Result<Snapshot, AddError> {
    let mut snapshot = base.clone();
    for object in &case.state {
        state::add(&mut snapshot, object)?;
    }
    Ok(snapshot)
}

/// The review of this case.
pub fn review(case: &Case) -> Value {
    let (object, old_object) = match case.operation {
        Operation::Create | Operation::Connect => (case.object.as_ref(), None),
        Operation::Update => (case.object.as_ref(), case.old_object.as_ref()),
        Operation::Delete => (None, case.old_object.as_ref()),
    };
    let named = case.object.as_ref().or(case.old_object.as_ref());
    let subject = object.or(old_object).or(named).unwrap_or(&Value::Null);
    let api_version = text(subject, "/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = text(subject, "/kind");
    let kinds = json!({"group": group, "version": version, "kind": kind});
    let resource = json!({"group": group, "version": version, "resource": plural(group, kind)});
    let user = case.user.as_ref();
    let request = json!({
        "uid": UID,
        "kind": kinds,
        "resource": resource,
        "subResource": Some(&case.subresource).filter(|subresource| !subresource.is_empty()),
        "requestKind": kinds,
        "requestResource": resource,
        "name": text(subject, "/metadata/name"),
        "namespace": namespace(case, subject, kind),
        "operation": case.operation.name(),
        "userInfo": {
            "username": user.map_or(USER, |user| &user.name),
            "groups": user.map(|user| &user.groups),
        },
        "object": object,
        "oldObject": old_object,
        "dryRun": case.dry_run,
    });
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

fn namespace<'c>(case: &'c Case, subject: &'c Value, kind: &str) -> &'c str {
    match (&case.namespace, text(subject, "/metadata/namespace")) {
        (Some(namespace), _) => namespace,
        (None, "") if kind == "Namespace" => "",
        (None, "") => DEFAULT_NAMESPACE,
        (None, namespace) => namespace,
    }
}

/// The plural name of a kind: the known one, else the usual one.
fn plural(group: &str, kind: &str) -> String {
    match memgate_platforms::validated(&memgate_platforms::ALL, group, kind) {
        Some((_, kind)) => kind.plural.to_owned(),
        None => format!("{}s", kind.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::casefile::read::read;

    #[test]
    fn sends_what_an_apiserver_sends() {
        let value = json!({
            "name": "a", "operation": "DELETE", "dryRun": true, "expect": {"allowed": true},
            "oldObject": {"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": "n"}}
        });
        let cases = read(&value).expect("is good");
        let review = review(&cases[0]);
        let request = &review["request"];
        assert_eq!(request["resource"], json!({"group": "x.dev", "version": "v1", "resource": "things"}));
        assert_eq!((&request["name"], &request["namespace"]), (&json!("one"), &json!("n")));
        assert_eq!((&request["object"], &request["dryRun"]), (&Value::Null, &json!(true)));
        assert_eq!(request["oldObject"]["kind"], "Thing");
    }
}

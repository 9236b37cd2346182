//! Checks the schema and the metadata of pods and workloads in files, which no apiserver has checked.
//!
//! Not a part of [`decide`](crate::decide::decide): a review comes from an apiserver, and memgate does not question
//! what that accepts.

use memgate_model::finding::Finding;
use memgate_model::request::Request;
use memgate_platforms::common::SCHEMA;
use memgate_primitives::budget::Budget;
use memgate_primitives::members::Members;
use memgate_schema::crd::CrdVersion;
use memgate_schema::violation::{Rule, SchemaViolation};
use memgate_schema::{NewObject, Status, Violations, builtin_version};

use super::reported::MAX_REPORTED;
pub use super::schema::unserved_version;
use super::{later, over_limit, schema};

/// The findings of an apiserver about a new pod or workload, before it calls any webhook; none about other kinds.
pub fn findings(request: &Request<'_>) -> Vec<Finding> {
    let new = NewObject { name: &request.name, namespaced: true, name_is_label: false };
    find(request, Some(new))
}

/// The same about the pod of a template: its controller sets name, namespace and owner, so those of the template
/// are not checked.
pub fn findings_of_template(request: &Request<'_>) -> Vec<Finding> {
    find(request, None)
}

fn find(request: &Request<'_>, new: Option<NewObject<'_>>) -> Vec<Finding> {
    let Some(version) = builtin_version(&request.group, &request.kind) else { return Vec::new() };
    let text = request.object.unwrap_or_default();
    let budget = Budget::new(request.cancelled, text.len());
    let mut findings: Vec<Finding> =
        unserved_version(&request.group, &request.version, &version.name).into_iter().collect();
    let (of_form, over) = budget.apart(text.len(), || of_form(request, version, new, &budget));
    findings.extend(of_form);
    findings.extend(over.map(|over| over_limit::of_schema(&over)));
    findings
}

/// The findings that are reported, at most one for each place.
fn of_form(
    request: &Request<'_>,
    version: &CrdVersion,
    new: Option<NewObject<'_>>,
    budget: &Budget<'_>,
) -> Vec<Finding> {
    let text = request.object.unwrap_or_default();
    let Some(object) = memgate_schema::document(text, Some(version), Status::Dropped, budget) else {
        return Vec::new();
    };
    let mut violations = Violations::new(budget);
    memgate_schema::check_metadata(&object, new, None, &mut violations);
    memgate_schema::check(version, &object, None, &mut violations);
    let mut seen = Members::default();
    let is_known = |it: &&SchemaViolation<'_>| !later::violates(request, it);
    let first = violations.iter().filter(is_known).filter(|violation| seen.insert(&violation.pointer));
    let counted = first.filter(|violation| new.is_some() || counts_in_template(violation));
    counted.take(MAX_REPORTED).map(|violation| schema::finding(&SCHEMA, violation)).collect()
}

/// Whether a violation in the metadata of a template counts: only fields that are copied to the pods are checked,
/// and values that cannot be decoded. Source: Kubernetes, `ValidatePodTemplateSpec`.
fn counts_in_template(violation: &SchemaViolation<'_>) -> bool {
    const CHECKED: [&str; 2] = ["labels", "annotations"];
    let mut tokens = violation.pointer.tokens();
    let in_metadata = tokens.next().is_some_and(|token| token == "metadata");
    !in_metadata
        || matches!(violation.rule, Rule::Type { .. })
        || tokens.next().is_some_and(|field| CHECKED.iter().any(|checked| field == *checked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::request::Occasion;
    use memgate_model::request::Operation;

    fn request<'r>(group: &'r str, kind: &'r str, object: &'r str) -> Request<'r> {
        Request {
            operation: Operation::Create,
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            subresource: "".into(),
            namespace: "team-a".into(),
            name: "".into(),
            object: Some(object),
            old_object: None,
            occasion: Occasion::default(),
            cancelled: None,
        }
    }

    fn messages(request: &Request<'_>) -> Vec<String> {
        findings(request).into_iter().map(|finding| finding.message().into_owned()).collect()
    }

    #[test]
    fn refuses_what_an_apiserver_cannot_read() {
        let named = r#""metadata":{"name":"a"}"#;
        for (group, kind, object, expected) in [
            ("", "Pod", r#"{"spec":{}}"#.to_owned(), "metadata.name: Required value"),
            ("", "Pod", format!(r#"{{{named},"spec":{{"containers":{{}}}}}}"#), "spec.containers: "),
            ("", "Pod", format!(r#"{{{named},"spec":{{"containers":[null]}}}}"#), "spec.containers[0]: "),
            (
                "",
                "Pod",
                r#"{"metadata":{"name":"A_b"},"spec":{}}"#.to_owned(),
                "metadata.name: Invalid value",
            ),
            ("", "Pod", r#"{"metadata":[],"spec":{}}"#.to_owned(), "metadata: "),
            ("apps", "Deployment", format!(r#"{{{named},"spec":[]}}"#), "spec: "),
            ("apps", "Deployment", format!("{{{named}}}"), "spec: Required value"),
            ("apps", "Deployment", format!(r#"{{{named},"spec":{{}}}}"#), "spec.template: Required value"),
            ("batch", "CronJob", format!(r#"{{{named},"spec":{{}}}}"#), "spec.jobTemplate: Required value"),
        ] {
            let messages = messages(&request(group, kind, &object));
            assert!(messages.iter().any(|message| message.starts_with(expected)), "{object}: {messages:?}");
        }
    }

    #[test]
    fn leaves_what_an_apiserver_reads() {
        let pod = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":null}]}],"new":1}}"#;
        assert_eq!(messages(&request("", "Pod", pod)), <[&str; 0]>::default());
        assert!(findings(&request("", "Service", "{}")).is_empty());
    }

    #[test]
    fn leaves_the_names_in_a_template() {
        let said = |metadata: &str| {
            let pod = format!(r#"{{"metadata":{metadata},"spec":{{}}}}"#);
            findings_of_template(&request("", "Pod", &pod)).len()
        };
        let odd = r#"{"name":"my_app","namespace":"B_c","generateName":"Q_","ownerReferences":[{}]}"#;
        assert_eq!((said(odd), said("{}"), said("null")), (0, 0, 0));
        assert_eq!(said(r#"{"name":1,"labels":{"a b":"c"}}"#), 2);
    }

    #[test]
    fn says_where_there_is_too_much_to_look_at() {
        let many = vec!["5"; 10_001].join(",");
        let pod = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"containers":[{{"args":[{many}]}}]}}}}"#);
        let mut request = request("", "Pod", &pod);
        request.version = "v1beta9".into();
        let codes: Vec<_> = findings(&request).iter().map(|finding| finding.code.name).collect();
        assert_eq!(codes, ["memgate/version-unknown", "memgate/over-limit"]);
    }

    #[test]
    fn warns_of_a_version_that_is_gone() {
        let object = r#"{"metadata":{"name":"a"},"spec":{"template":{}}}"#;
        let mut request = request("apps", "Deployment", object);
        request.version = "v1beta2".into();
        assert_eq!(messages(&request), ["apiVersion \"apps/v1beta2\" is not served; use \"apps/v1\""]);
    }
}

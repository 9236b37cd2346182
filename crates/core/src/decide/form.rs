//! The form and the metadata of pods and workloads in files, which no apiserver has checked.
//!
//! Not a part of [`decide`](crate::decide::decide): a review comes from an apiserver, and what that takes memgate
//! leaves alone, however odd it is.

use crate::crd::{self, Breaches, BuiltinKind, NewObject, Status, Told};
use crate::decide::limits::{self, MAX_FINDINGS_TOLD};
use crate::decide::schema;
use crate::family::common::{SCHEMA, VERSION_UNKNOWN};
use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::request::Request;
use crate::model::violation::{BrokenRule, Violation};
use crate::model::work::Work;

/// What an apiserver would say about a new pod or workload before it asks anybody; nothing about other kinds.
#[must_use]
pub fn findings(request: &Request<'_>) -> Vec<Finding> {
    let new = NewObject { name: &request.name, namespaced: true, name_is_label: false };
    find(request, Some(new))
}

/// The same about the pod that a template stands for: its controller gives it a name, a namespace and an owner, and
/// nobody looks at those of the template.
#[must_use]
pub fn findings_of_template(request: &Request<'_>) -> Vec<Finding> {
    find(request, None)
}

fn find(request: &Request<'_>, new: Option<NewObject<'_>>) -> Vec<Finding> {
    let Some(kind) = BuiltinKind::find(&request.group, &request.kind) else { return Vec::new() };
    let work = Work::new(request.cancelled);
    let version = kind.version();
    let mut findings: Vec<Finding> = unserved(request, &version.name).into_iter().collect();
    let object = request.object.and_then(|text| crd::document(text, Some(version), Status::Dropped, &work));
    let Some(object) = object else {
        findings.extend(limits::of_schema(&work));
        return findings;
    };
    if crd::is_right(&object, Some(version), new) {
        return findings;
    }
    let mut found = Breaches::new(&object, &work);
    crd::check_metadata(&object, new, None, &mut found);
    crd::check(version, &object, None, &mut found);
    let mut told = Told::default();
    let first = found.iter().filter(|breach| told.is_first(breach)).map(|breach| found.violation(breach));
    let counted = first.filter(|violation| new.is_some() || counts_in_template(violation));
    let shown = counted.take(MAX_FINDINGS_TOLD);
    findings.extend(shown.map(|violation| schema::finding(&SCHEMA, message, &violation)));
    findings.extend(limits::of_schema(&work));
    findings
}

/// Whether a violation in the metadata of a template matters: only what is copied to the pods is looked at, and what
/// cannot be decoded. Source: Kubernetes, `ValidatePodTemplateSpec`.
fn counts_in_template(violation: &Violation) -> bool {
    const CHECKED: [&str; 4] = ["labels", "annotations", "creationTimestamp", "deletionTimestamp"];
    let mut tokens = violation.pointer.tokens();
    let in_metadata = tokens.next().is_some_and(|token| token == "metadata");
    !in_metadata
        || matches!(violation.rule, BrokenRule::Type { .. })
        || tokens.next().is_some_and(|field| CHECKED.iter().any(|checked| field == *checked))
}

/// As the apiserver says it, but for types, of which the API's own words say little.
fn message(violation: &Violation) -> String {
    match &violation.rule {
        BrokenRule::Type { expected, got } => {
            format!("{}: must be of type {expected}, not {got}", violation.pointer.field())
        }
        _ => violation.message(),
    }
}

/// What is said of a version that is not the one that is served.
pub(super) fn unserved(request: &Request<'_>, served: &str) -> Option<Finding> {
    unserved_version(&request.group, &request.version, served)
}

/// The same of an object about which nothing is asked.
#[must_use]
pub fn unserved_version(group: &str, version: &str, served: &str) -> Option<Finding> {
    let name = |version: &str| match group {
        "" => quoted(version),
        group => quoted(&format!("{group}/{version}")),
    };
    let message = || format!("apiVersion {} is not served; use {}", name(version), name(served));
    (version != served).then(|| Finding::warn(&VERSION_UNKNOWN, Pointer::new("/apiVersion"), message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::Occasion;
    use crate::model::request::Operation;

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
        findings(request).into_iter().map(|finding| finding.message).collect()
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
        assert_eq!(said(r#"{"name":1,"labels":{"a b":"c"},"creationTimestamp":"now"}"#), 3);
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

//! The form and the metadata of pods and workloads in files, which no apiserver has checked.
//!
//! Not a part of [`decide`](crate::decide::decide): a review comes from an apiserver, and what that takes memgate
//! leaves alone, however odd it is.

use crate::crd::{self, Breaches, BuiltinKind, NewObject, Status, Told};
use crate::decide::limits::MAX_FINDINGS_TOLD;
use crate::decide::schema;
use crate::family::common::{SCHEMA, VERSION_UNKNOWN};
use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::request::Request;
use crate::model::violation::Violation;
use crate::model::work::Work;

/// What an apiserver would say about a new pod or workload before it asks anybody; nothing about other kinds, nor
/// about what is too large to be read.
#[must_use]
pub fn findings(request: &Request<'_>) -> Vec<Finding> {
    let Some(kind) = BuiltinKind::find(&request.group, &request.kind) else { return Vec::new() };
    let work = Work::new(request.cancelled);
    let version = kind.version();
    let object = request.object.and_then(|text| crd::document(text, Some(version), Status::Dropped, &work));
    let Some(object) = object else { return Vec::new() };
    let new = NewObject { name: &request.name, namespaced: true, name_is_label: false };
    let mut findings: Vec<Finding> = unserved(request, &version.name).into_iter().collect();
    if crd::is_right(&object, Some(version), Some(new)) {
        return findings;
    }
    let mut found = Breaches::new(&object, &work);
    crd::check_metadata(&object, Some(new), None, &mut found);
    crd::check(version, &object, None, &mut found);
    if work.has_ended() {
        return Vec::new();
    }
    let mut told = Told::default();
    let first = found.iter().filter(|breach| told.is_first(breach)).take(MAX_FINDINGS_TOLD);
    let violations = first.map(|breach| found.violation(breach));
    findings.extend(violations.map(|violation| schema::finding(&SCHEMA, Violation::message, &violation)));
    findings
}

fn unserved(request: &Request<'_>, served: &str) -> Option<Finding> {
    let name = |version: &str| match &*request.group {
        "" => quoted(version),
        group => quoted(&format!("{group}/{version}")),
    };
    let message = || format!("apiVersion {} is not served; use {}", name(&request.version), name(served));
    (request.version != served)
        .then(|| Finding::warn(&VERSION_UNKNOWN, Pointer::new("/apiVersion"), message()))
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn warns_of_a_version_that_is_gone() {
        let object = r#"{"metadata":{"name":"a"},"spec":{"template":{}}}"#;
        let mut request = request("apps", "Deployment", object);
        request.version = "v1beta2".into();
        assert_eq!(messages(&request), ["apiVersion \"apps/v1beta2\" is not served; use \"apps/v1\""]);
    }
}

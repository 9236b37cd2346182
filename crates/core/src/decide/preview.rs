//! What will be said of the pods of a workload, told to whoever writes the workload: warnings about a
//! pod reach the controller that makes it, and nobody else.
//!
//! Nothing is changed and nothing refused. The findings are those of the pod that the template stands
//! for, at their place in the workload.

use crate::model::change::is_metadata_only_update;
use crate::model::decision::Decision;
use crate::model::finding::{Finding, Phase, Severity};
use crate::model::pointer::Pointer;
use crate::model::reason::Reason;
use crate::model::request::{Operation, Request};
use crate::model::snapshot::Snapshot;
use crate::model::workload::Workload;

use super::{decide_new_pod, first_of};

pub(super) fn decide(workload: &Workload, request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if !writes || !request.subresource.is_empty() || is_metadata_only_update(request) {
        return Decision::pass(Reason::NotJudged);
    }
    let Some(Ok(parts)) = request.object.map(|object| workload.read(object)) else {
        return Decision::pass(Reason::Malformed);
    };
    if parts.deleting {
        return Decision::pass(Reason::Deleting);
    }
    let Some(template) = parts.template else { return Decision::pass(Reason::Malformed) };
    let namespace = first_of([&*request.namespace, parts.namespace.as_deref().unwrap_or_default()]);
    let pod = decide_new_pod(template.get(), namespace, snapshot);
    let at = Pointer::new(workload.template);
    Decision {
        findings: pod.findings.into_iter().map(|finding| told(finding, &at)).collect(),
        unknown: pod.unknown,
        phase: Phase::Validate,
        ..Decision::pass(reason(pod.reason))
    }
}

/// A finding about a pod as one about the template at `at`.
fn told(finding: Finding, at: &Pointer) -> Finding {
    let pointer = at.join(&finding.pointer);
    // Some messages begin with their place.
    let message = match finding.message.strip_prefix(&finding.pointer.field()) {
        Some(rest) if rest.starts_with(':') => format!("{}{rest}", pointer.field()),
        _ => finding.message,
    };
    let message = match finding.severity {
        Severity::Warn => message,
        Severity::Deny => format!("its pods will be refused: {message}"),
    };
    let related = finding.related.map(|(other, label)| (at.join(&other), label));
    Finding { severity: Severity::Warn, pointer, message, related, on_rewrite: false, ..finding }
}

/// What made nobody look at the pods stays the reason.
const fn reason(of_pod: Reason) -> Reason {
    match of_pod {
        Reason::NotOurs
        | Reason::NotJudged
        | Reason::OptedOut
        | Reason::MirrorPod
        | Reason::Deleting
        | Reason::Malformed => of_pod,
        // Not a word about a part of the workload that memgate has no business with.
        Reason::Unreadable => Reason::Malformed,
        Reason::NotRecognised
        | Reason::NoMemory
        | Reason::ReferenceMissing
        | Reason::ReferenceInvalid
        | Reason::ReferenceUnknown
        | Reason::NoContainer
        | Reason::Conflict
        | Reason::Complete
        | Reason::Injected
        | Reason::Defaulted
        | Reason::Previewed
        | Reason::Valid
        | Reason::Invalid => Reason::Previewed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::{Cause, Code};

    static CODE: Code = Code { name: "family/code", cause: Cause::Invalid, page: "" };

    #[test]
    fn moves_a_finding_into_the_workload() {
        let at = Pointer::new("/spec/template");
        let pointer = Pointer::new("/spec/hostNetwork");
        let other = Pointer::new("/spec/dnsPolicy");
        let finding = Finding::warn(&CODE, pointer.clone(), "spec.hostNetwork: is odd");
        let moved = told(finding.related(other, "this"), &at);
        assert_eq!(moved.pointer.as_str(), "/spec/template/spec/hostNetwork");
        assert_eq!(moved.message, "spec.template.spec.hostNetwork: is odd");
        assert_eq!(moved.related, Some((Pointer::new("/spec/template/spec/dnsPolicy"), "this")));
        let denial = told(Finding::deny(&CODE, pointer, "spec.hostNetworks are odd"), &at);
        assert_eq!(denial.severity, Severity::Warn);
        assert_eq!(denial.message, "its pods will be refused: spec.hostNetworks are odd");
    }
}

//! Warns the author of a workload about its future pods. Warnings about a pod only reach the controller that
//! creates it.
//!
//! A preview changes nothing and refuses nothing. Its findings are those of a pod made from the template,
//! with pointers into the workload.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::patch::apply::apply;
use memgate_model::change::keeps_meaning;
use memgate_model::claim_volumes::{self, ClaimVolumes};
use memgate_model::decision::{Decision, NotShown};
use memgate_model::finding::{Finding, Severity};
use memgate_model::pod;
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::view::view;
use memgate_model::workload::Workload;
use memgate_primitives::pointer::Pointer;

use super::first_non_empty;
use super::pod::decide_new;

view! {
    /// The fields of a pod template that its claims need.
    PodTemplate {
        /// The spec of its pods.
        spec: PodTemplateSpec<'a> = "spec",
    }

    /// The spec of a pod template.
    PodTemplateSpec {
        /// The volumes, unread.
        volumes: &'a RawValue = "volumes",
    }
}

pub(super) fn decide(workload: &Workload, request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if !writes || !request.subresource.is_empty() || keeps_meaning(&[], request) {
        return Decision::pass(Reason::NotJudged);
    }
    let Some(Ok(parts)) = request.object.map(|object| workload.read(object)) else {
        return Decision::pass(Reason::Malformed);
    };
    let Some(template) = parts.template else { return Decision::pass(Reason::Malformed) };
    let namespace = first_non_empty([&*request.namespace, parts.namespace.as_deref().unwrap_or_default()]);
    let (pod, claims) = pod_of_template(template, &parts.name, parts.claim_templates);
    let occasion = Occasion { workload: Some(&parts.name), ..request.occasion };
    let request = &Request { occasion, ..request.clone() };
    let pod = decide_new(&pod, namespace, request, snapshot);
    let template_pointer = Pointer::new(workload.template());
    Decision {
        findings: pod
            .findings
            .into_iter()
            .map(|finding| in_workload(finding, &template_pointer, &claims))
            .collect(),
        // In a preview all findings warn.
        not_shown: NotShown { denials: 0, warnings: pod.not_shown.denials + pod.not_shown.warnings },
        unknown: pod.unknown,
        policies: pod.policies,
        exemptions: pod.exemptions,
        fired: pod.fired,
        ..Decision::pass(preview_reason(pod.reason))
    }
}

/// The pod that is made from a template, with its claims.
fn pod_of_template<'t>(
    template: &'t RawValue,
    stateful_set: &str,
    claim_templates: Option<&RawValue>,
) -> (Cow<'t, str>, ClaimVolumes) {
    let unchanged = || (Cow::Borrowed(template.get()), ClaimVolumes::default());
    let spec = pod::read::<PodTemplate<'_>>(Some(template)).and_then(|template| template.spec);
    let Some((claims, spec)) = claim_templates.zip(spec) else { return unchanged() };
    let (edits, claims) = claim_volumes::edits_to_pod(spec.volumes, stateful_set, claims);
    if edits.is_empty() {
        return unchanged();
    }
    apply(template.get(), &edits).map_or_else(|_| unchanged(), |pod| (Cow::Owned(pod), claims))
}

/// Moves a finding about a pod to its workload, whose template is at `template_pointer`.
fn in_workload(finding: Finding, template_pointer: &Pointer, claims: &ClaimVolumes) -> Finding {
    let pointer = claims.in_workload(template_pointer, &finding.pointer);
    let message = finding.message_at(&pointer);
    let message = match finding.severity {
        Severity::Note | Severity::Warn => message,
        Severity::Deny => format!("its pods will be refused: {message}"),
    };
    let related =
        finding.related.clone().map(|(other, label)| (claims.in_workload(template_pointer, &other), label));
    let severity = finding.severity.min(Severity::Warn);
    let finding = finding.with_message(message);
    Finding { severity, pointer, related, on_rewrite: false, ..finding }
}

/// A pod that was not examined passes its reason on to the workload.
const fn preview_reason(pod_reason: Reason) -> Reason {
    match pod_reason {
        Reason::NotOurs
        | Reason::NotJudged
        | Reason::OptedOut
        | Reason::MirrorPod
        | Reason::Deleting
        | Reason::OverLimit
        | Reason::Cancelled
        | Reason::Malformed => pod_reason,
        // Checking the form of a template is up to the apiserver.
        Reason::Unreadable => Reason::Malformed,
        _ => Reason::Previewed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::finding::{Cause, Code};
    use memgate_model::page::Page;

    static CODE: Code = Code { name: "family/code", cause: Cause::Invalid, page: Page(|| "") };

    #[test]
    fn moves_a_finding_into_the_workload() {
        let template_pointer = Pointer::new("/spec/template");
        let pointer = Pointer::new("/spec/hostNetwork");
        let other = Pointer::new("/spec/dnsPolicy");
        let finding = Finding::warn(&CODE, pointer.clone(), "spec.hostNetwork: is odd");
        let claims = ClaimVolumes::default();
        let moved = in_workload(finding.related(other, "this"), &template_pointer, &claims);
        assert_eq!(moved.pointer.as_str(), "/spec/template/spec/hostNetwork");
        assert_eq!(moved.message(), "spec.template.spec.hostNetwork: is odd");
        assert_eq!(moved.related, Some((Pointer::new("/spec/template/spec/dnsPolicy"), "this")));
        let denial = Finding::deny(&CODE, pointer, "spec.hostNetworks are odd");
        let denial = in_workload(denial, &template_pointer, &claims);
        assert_eq!(denial.severity, Severity::Warn);
        let expected = "spec.template.spec.hostNetwork: its pods will be refused: spec.hostNetworks are odd";
        assert_eq!(denial.message(), expected);
    }
}

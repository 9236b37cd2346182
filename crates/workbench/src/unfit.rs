//! Pods that cannot run as meant although they have their memory, by the judge of pods that decides about new ones too.

use memgate_core::decide::decide;
use memgate_model::decision::Decision;
use memgate_model::edit::Edit;
use memgate_model::finding::Finding;
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_platforms::common::{PUT_BACK, TAKEN_OUT, is_of_pod_judge, keeps_pod_from_starting};
use serde_json::Value;

/// What keeps a pod from running as meant.
pub fn causes(decision: &Decision) -> impl Iterator<Item = &Finding> {
    decision.findings.iter().filter(|finding| is_of_pod_judge(finding.code))
}

/// What a cause means for its pod, which may have its memory.
pub fn sentence(cause: &Finding, has_memory: bool) -> String {
    let memory = if has_memory { "it has its memory, but " } else { "" };
    let verdict = if keeps_pod_from_starting(cause) { "it cannot start" } else { "it does not run as meant" };
    format!("{memory}{verdict}: {} ({})", of_existing(&cause.message()), cause.code_name())
}

/// A message about what the webhook does to a new pod, for a pod that exists: that is not changed.
fn of_existing(message: &str) -> String {
    [(PUT_BACK, "another webhook dropped it; recreate the pod"), (TAKEN_OUT, "recreate the pod")]
        .iter()
        .fold(message.to_owned(), |message, (of_new, of_existing)| message.replace(of_new, of_existing))
}

/// The same for each cause of a pod that memgate marked, or to which it would add nothing.
pub(crate) fn sentences(pod: &Value, namespace: &str, is_marked: bool, snapshot: &Snapshot) -> Vec<String> {
    let text = pod.to_string();
    let decision = decide(&Request::to_create_pod(namespace, "", &text), snapshot);
    let lacks_memory = decision.edits.iter().any(Edit::gives_memory);
    if lacks_memory && !is_marked {
        return Vec::new();
    }
    let has_memory = !lacks_memory && (is_marked || decision.reason == Reason::Complete);
    causes(&decision).map(|cause| sentence(cause, has_memory)).collect()
}

//! Agent pods that run without the memory that they would get today, and why.

use serde_json::Value;

use crate::cluster_state::{AgentPod, Agents, Fetched, Installation};
use crate::doctor::check::Check;
use crate::replay::{Replayed, marker};
use crate::webhook_entry::{WebhookEntry, entries};
use memgate_model::kind::SECRET;
use memgate_model::object::Reference;
use memgate_model::reason::Reason;
use memgate_platforms::inject::{INJECTED_ANNOTATION, marker};
use memgate_primitives::review_path::Phase;
use memgate_workbench::report::counted;

const ID: &str = "missed-pods";

/// A check for each pod without its memory, up to `max_listed`, or one for all.
pub fn checks(
    found: &Installation,
    agents: &Agents,
    replayed: &[Replayed<'_>],
    max_listed: usize,
) -> Vec<Check> {
    let mut checks: Vec<Check> =
        agents.incomplete.iter().map(|gap| Check::unknown(ID, "Pods", gap.clone())).collect();
    let mut wrong = replayed.iter().filter_map(|replayed| check(found, replayed));
    checks.extend(wrong.by_ref().take(max_listed));
    let more = wrong.count();
    if more > 0 {
        checks.push(Check::warn(
            ID,
            "Pods",
            format!("{more} more agent pods run without their memory; --show has more of them listed"),
        ));
    }
    if checks.is_empty() {
        let out = replayed.iter().filter(|replayed| replayed.decision.reason == Reason::OptedOut).count();
        let opted_out = if out > 0 { format!("; {out} opted out") } else { String::new() };
        let message = format!("{}, none without its memory{opted_out}", counted(replayed.len(), "agent pod"));
        checks.push(Check::ok(ID, "Pods", message));
    }
    checks
}

/// Why a pod has no memory, in one sentence, and what to do.
pub fn why(found: &Installation, replayed: &Replayed<'_>) -> (String, Option<String>) {
    if let Some(Check { message, help, .. }) = check(found, replayed) {
        return (message, help);
    }
    let decision = &replayed.decision;
    let message = match decision.reason {
        Reason::NotOurs => "it does not have the labels or annotations of an agent pod of any platform",
        Reason::OptedOut => "it opted out, by its label memgate.dev/inject or that of its namespace",
        Reason::MirrorPod => "it is a mirror pod, which the kubelet makes from a file on its node",
        Reason::NoMemory => "its agent refers to no memory",
        Reason::Complete => "it had everything that memgate would add when it was created",
        _ => match decision.findings.first() {
            Some(finding) => return (finding.message().into_owned(), None),
            None => decision.reason.name(),
        },
    };
    (message.to_owned(), None)
}

/// A check of a pod without its memory.
fn check(found: &Installation, replayed: &Replayed<'_>) -> Option<Check> {
    if replayed.lacks_memory { Some(created_without(found, replayed)) } else { unusable(replayed) }
}

/// A pod that would get its memory today.
fn created_without(found: &Installation, replayed: &Replayed<'_>) -> Check {
    let pod = replayed.pod;
    let memories = memories(&replayed.with_memory);
    let families: Vec<&str> = replayed.decision.families.iter().map(|share| share.family.name).collect();
    let message = format!(
        "it runs without the memory {} of its agent (platform {}): {}",
        memories.join(", "),
        families.join(", "),
        likely_reason(found, pod)
    );
    Check::warn(ID, pod.title(), message).help("delete it, so that its controller makes a new one")
}

/// A pod whose memory cannot be used, or could not be looked up.
fn unusable(replayed: &Replayed<'_>) -> Option<Check> {
    let pod = replayed.pod;
    match replayed.decision.reason {
        Reason::ReferenceMissing | Reason::ReferenceInvalid => {
            let finding = replayed.decision.findings.first()?;
            let message = format!("it runs without its memory: {}", finding.message());
            let check = Check::warn(ID, pod.title(), message);
            Some(check.help(format!("memgate explain {}", finding.code_name())))
        }
        Reason::ReferenceUnknown => {
            let reference = replayed.decision.unknown.iter().find(|reference| *reference.kind != SECRET)?;
            let Reference { kind, namespace, name } = reference;
            let kind = kind.kind;
            let message =
                format!("whether it lacks its memory is not known: {kind} {namespace}/{name} was not read");
            Some(Check::unknown(ID, pod.title(), message))
        }
        _ => None,
    }
}

/// The likely reason why a pod was created without its memory.
fn likely_reason(found: &Installation, pod: &AgentPod) -> String {
    if pod.annotation(INJECTED_ANNOTATION).is_some() {
        return "its memory has changed since it was created".to_owned();
    }
    if let Fetched::Unknown(why) = &found.mutating {
        return format!("why is not known ({why})");
    }
    let Some(own) = found.own(Phase::Mutate) else {
        return "memgate is not registered for such pods".to_owned();
    };
    let registered = own.metadata.creation_timestamp.as_ref();
    let (Some(created), Some(registered)) = (pod.created(), registered) else {
        return "why is not known".to_owned();
    };
    if created < registered.0.as_second() {
        return "it was created before memgate was registered".to_owned();
    }
    let Some(labels) = found.labels(pod.namespace()) else {
        return "why is not known: the labels of its namespace were not read".to_owned();
    };
    let calls = |entry: &WebhookEntry| entry.is_called_for_new_pods() && entry.selects_namespace(&labels);
    if !entries(own).iter().any(calls) {
        return "the webhook configuration leaves out its namespace".to_owned();
    }
    "its memory was created after it, or memgate did not answer when it was created and its webhook entry lets pods \
     pass"
        .to_owned()
}

/// The memory resources that the marker names, of all families.
fn memories(pod: &Value) -> Vec<String> {
    let of_family = |added: &Value| match added.get("memory") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    marker::objects(&marker(pod)).iter().flat_map(of_family).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::check::CheckStatus;
    use crate::doctor::inferred::tests::installed;
    use crate::replay::replay;

    use memgate_core::state;
    use memgate_install::objects::WebhookConfiguration;
    use memgate_model::snapshot::Snapshot;

    fn pod(created: &str, more: &Value) -> AgentPod {
        let mut json = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "scout-0", "namespace": "team-a", "creationTimestamp": created,
                "labels": {"arkonis.dev/deployment": "scout"},
            },
            "spec": {"nodeName": "n1", "containers": [{"name": "agent", "image": "agent"}]},
            "status": {"phase": "Running"},
        });
        for (pointer, value) in more.as_object().into_iter().flatten() {
            *json.pointer_mut(pointer).expect("a field") = value.clone();
        }
        AgentPod { json }
    }

    fn snapshot(memory: bool) -> Snapshot {
        let mut snapshot = state::empty(memgate_platforms::default_settings());
        let mut objects = vec![json!({
            "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent",
            "metadata": {"name": "scout", "namespace": "team-a"},
            "spec": {"model": "m", "systemPrompt": "Scout.", "memoryRef": {"name": "notes"}},
        })];
        if memory {
            objects.push(json!({
                "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
                "metadata": {"name": "notes", "namespace": "team-a"}, "spec": {"backend": "in-context"},
            }));
        }
        for object in objects {
            state::add(&mut snapshot, &object).expect("an object");
        }
        snapshot
    }

    /// memgate's configuration, at the beginning of 2030.
    fn registered() -> WebhookConfiguration {
        let mut config = installed(&memgate_platforms::ALL).mutating;
        config.metadata.creation_timestamp =
            serde_json::from_value(json!("2030-01-01T00:00:00Z")).expect("a time");
        config
    }

    fn checks_of(agents: &Agents) -> Vec<(CheckStatus, String)> {
        let found = Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![registered()]),
            ..Installation::default()
        };
        let checks = checks(&found, agents, &replay(&agents.pods, &agents.snapshot), 20);
        checks.into_iter().map(|check| (check.status, check.message)).collect()
    }

    fn one(pod: AgentPod, memory: bool) -> (CheckStatus, String) {
        let agents = Agents { pods: vec![pod], snapshot: snapshot(memory), ..Agents::default() };
        match checks_of(&agents).as_slice() {
            [one] => one.clone(),
            other => panic!("{other:#?}"),
        }
    }

    const LATER: &str = "2030-02-01T00:00:00Z";

    #[test]
    fn a_pod_with_its_memory_is_good() {
        let agents =
            Agents { pods: vec![pod(LATER, &json!({}))], snapshot: snapshot(true), ..Agents::default() };
        let json = replay(&agents.pods, &agents.snapshot).remove(0).with_memory;
        let mut older = json.clone();
        older["metadata"]["annotations"][INJECTED_ANNOTATION] =
            marker(&json).to_string().replace(env!("CARGO_PKG_VERSION"), "0.0.1").into();
        for json in [json, older] {
            let (status, text) = one(AgentPod { json }, true);
            assert!(status == CheckStatus::Ok && text == "1 agent pod, none without its memory", "{text}");
        }
    }

    #[test]
    fn says_why_a_pod_may_have_missed_its_memory() {
        let (status, text) = one(pod("2029-12-31T00:00:00Z", &json!({})), true);
        assert_eq!(status, CheckStatus::Warn);
        let expected = "it runs without the memory ArkMemory/notes of its agent (platform arkonis): ";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("created before memgate was registered"), "{text}");
        let (_, text) = one(pod(LATER, &json!({})), true);
        assert!(text.ends_with("its webhook entry lets pods pass"), "{text}");
    }

    #[test]
    fn names_no_cause_that_was_not_read() {
        let agents =
            Agents { pods: vec![pod(LATER, &json!({}))], snapshot: snapshot(true), ..Agents::default() };
        let replayed = replay(&agents.pods, &agents.snapshot);
        for (found, expected) in [
            (Installation::default(), "memgate is not registered for such pods"),
            (
                Installation { mutating: Fetched::Unknown("too many".to_owned()), ..Installation::default() },
                "why is not known (too many)",
            ),
            (
                Installation {
                    name: "memgate".to_owned(),
                    mutating: Fetched::Found(vec![registered()]),
                    namespaces: Fetched::Unknown("too many".to_owned()),
                    ..Installation::default()
                },
                "why is not known: the labels of its namespace were not read",
            ),
        ] {
            let (text, _) = why(&found, &replayed[0]);
            assert!(text.ends_with(expected), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_the_memory() {
        let (status, text) = one(pod(LATER, &json!({})), false);
        assert!(status == CheckStatus::Warn && text.starts_with("it runs without its memory: "), "{text}");
    }

    #[test]
    fn passes_over_what_has_ended_or_wants_none() {
        for more in [
            json!({"/status/phase": "Succeeded"}),
            json!({"/metadata/labels": {"arkonis.dev/deployment": "scout", "memgate.dev/inject": "disabled"}}),
            json!({"/metadata": {
                "name": "scout-0", "namespace": "team-a", "creationTimestamp": LATER,
                "labels": {"arkonis.dev/deployment": "scout"}, "deletionTimestamp": LATER,
            }}),
        ] {
            let (status, text) = one(pod(LATER, &more), true);
            assert_eq!(status, CheckStatus::Ok, "{text}");
        }
    }

    #[test]
    fn reports_a_few_of_many() {
        let pods = (0..25).map(|_| pod(LATER, &json!({}))).collect();
        let agents = Agents { pods, snapshot: snapshot(true), ..Agents::default() };
        let checks = checks_of(&agents);
        assert_eq!(checks.len(), 21);
        assert_eq!(
            checks[20].1,
            "5 more agent pods run without their memory; --show has more of them listed"
        );
    }
}

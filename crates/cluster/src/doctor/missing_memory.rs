//! Agent pods that run without the memory that they would get today.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::Check;
use crate::cluster_state::Agents;
use crate::replay::{Owner, Replayed, marker};
use memgate_model::kind::SECRET;
use memgate_model::object::Reference;
use memgate_model::reason::Reason;
use memgate_platforms::inject::marker;

const ID: &str = "missed-pods";

/// Why pods are without their memory.
#[derive(Debug)]
enum Cause {
    /// They would get these memory resources, of these platforms.
    CreatedWithout(String, String),
    /// The memory cannot be used: what is wrong, and the code of the finding.
    Unusable(String, String),
    /// Whether the memory can be used is not known, for this reason.
    Unknown(String),
}

/// A check for each owner of pods without their memory, up to `max_listed`, and one for the others.
pub fn checks(agents: &Agents, replayed: &[Replayed<'_>], max_listed: usize) -> Vec<Check> {
    let mut checks: Vec<Check> =
        agents.incomplete.iter().map(|gap| Check::unknown(ID, "Pods", gap.clone())).collect();
    // The pods of each owner, and the cause of the first one.
    let mut owners: BTreeMap<Owner, (usize, Cause)> = BTreeMap::new();
    for (pod, cause) in replayed.iter().filter_map(|replayed| Some((replayed.pod, cause(replayed)?))) {
        owners.entry(pod.owner()).or_insert((0, cause)).0 += 1;
    }
    checks.extend(owners.iter().take(max_listed).map(|(owner, (pods, cause))| check(owner, *pods, cause)));
    let more: usize = owners.values().skip(max_listed).map(|(pods, _)| pods).sum();
    if more > 0 {
        let message =
            format!("{more} more agent pods run without their memory; --show has more of them listed");
        checks.push(Check::warn(ID, "Pods", message));
    }
    if checks.is_empty() {
        let out = replayed.iter().filter(|replayed| replayed.decision.reason == Reason::OptedOut).count();
        let opted_out = if out > 0 { format!("; {out} opted out") } else { String::new() };
        let message = format!("agent pods: {}, none without its memory{opted_out}", replayed.len());
        checks.push(Check::ok(ID, "Pods", message));
    }
    checks
}

fn check(owner: &Owner, pods: usize, cause: &Cause) -> Check {
    let (subject, whose) = match pods {
        1 => ("it runs".to_owned(), "its"),
        pods => (format!("{pods} pods run"), "their"),
    };
    let (title, renewal) = (owner.title(), owner.renewal());
    match cause {
        Cause::CreatedWithout(memories, families) => {
            let message =
                format!("{subject} without the memory {memories} of {whose} agent (platform {families})");
            Check::warn(ID, title, message).help(renewal)
        }
        Cause::Unusable(why, code) => {
            let help = format!("memgate explain {code}; then {renewal}");
            Check::warn(ID, title, format!("{subject} without {whose} memory: {why}")).help(help)
        }
        Cause::Unknown(why) => Check::unknown(ID, title, why.clone()),
    }
}

/// Why a pod is without its memory, or may be; none if it is not.
fn cause(replayed: &Replayed<'_>) -> Option<Cause> {
    let decision = &replayed.decision;
    if replayed.lacks_memory {
        let families: Vec<_> = decision.families.iter().map(|share| share.family.name).collect();
        return Some(Cause::CreatedWithout(memories(&replayed.with_memory).join(", "), families.join(", ")));
    }
    match decision.reason {
        Reason::ReferenceUnknown => {
            let reference = decision.unknown.iter().find(|reference| *reference.kind != SECRET)?;
            let Reference { kind, namespace, name } = reference;
            let kind = kind.kind;
            Some(Cause::Unknown(format!(
                "whether it lacks its memory is not known: {kind} {namespace}/{name} was not read"
            )))
        }
        Reason::ReferenceMissing | Reason::ReferenceInvalid => {
            let finding = decision.findings.first()?;
            Some(Cause::Unusable(finding.message().into_owned(), finding.code_name().to_owned()))
        }
        _ => None,
    }
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
    use crate::check::CheckStatus;
    use crate::cluster_state::AgentPod;
    use crate::replay::replay;

    use memgate_core::state;
    use memgate_model::snapshot::Snapshot;
    use memgate_platforms::inject::INJECTED_ANNOTATION;

    const CREATED: &str = "2030-02-01T00:00:00Z";

    fn pod(more: &Value) -> AgentPod {
        let mut json = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "scout-0", "namespace": "team-a", "creationTimestamp": CREATED,
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

    fn checks_of(agents: &Agents) -> Vec<(CheckStatus, String)> {
        let checks = checks(agents, &replay(&agents.pods, &agents.snapshot), 20);
        checks.into_iter().map(|check| (check.status, check.message)).collect()
    }

    fn one(pod: AgentPod, memory: bool) -> (CheckStatus, String) {
        let agents = Agents { pods: vec![pod], snapshot: snapshot(memory), ..Agents::default() };
        match checks_of(&agents).as_slice() {
            [one] => one.clone(),
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn a_pod_with_its_memory_is_good() {
        let agents = Agents { pods: vec![pod(&json!({}))], snapshot: snapshot(true), ..Agents::default() };
        let json = replay(&agents.pods, &agents.snapshot).remove(0).with_memory;
        let mut older = json.clone();
        older["metadata"]["annotations"][INJECTED_ANNOTATION] =
            marker(&json).to_string().replace(env!("CARGO_PKG_VERSION"), "0.0.1").into();
        for json in [json, older] {
            let (status, text) = one(AgentPod { json }, true);
            assert!(status == CheckStatus::Ok && text == "agent pods: 1, none without its memory", "{text}");
        }
    }

    #[test]
    fn says_which_memory_a_pod_would_get() {
        let (status, text) = one(pod(&json!({})), true);
        let expected = "it runs without the memory ArkMemory/notes of its agent (platform arkonis)";
        assert_eq!((status, &*text), (CheckStatus::Warn, expected));
    }

    #[test]
    fn says_what_is_wrong_with_the_memory() {
        let (status, text) = one(pod(&json!({})), false);
        assert!(status == CheckStatus::Warn && text.starts_with("it runs without its memory: "), "{text}");
    }

    #[test]
    fn passes_over_what_has_ended_or_wants_none() {
        for more in [
            json!({"/status/phase": "Succeeded"}),
            json!({"/metadata/labels": {"arkonis.dev/deployment": "scout", "memgate.dev/inject": "disabled"}}),
            json!({"/metadata": {
                "name": "scout-0", "namespace": "team-a", "creationTimestamp": CREATED,
                "labels": {"arkonis.dev/deployment": "scout"}, "deletionTimestamp": CREATED,
            }}),
        ] {
            let (status, text) = one(pod(&more), true);
            assert_eq!(status, CheckStatus::Ok, "{text}");
        }
    }

    #[test]
    fn reports_a_few_of_many() {
        let named = |index| pod(&json!({"/metadata/name": format!("scout-{index}")}));
        let pods = (0..25).map(named).collect();
        let agents = Agents { pods, snapshot: snapshot(true), ..Agents::default() };
        let checks = checks_of(&agents);
        assert_eq!(checks.len(), 21);
        assert_eq!(
            checks[20].1,
            "5 more agent pods run without their memory; --show has more of them listed"
        );
    }

    #[test]
    fn a_pod_without_an_owner_has_no_command_of_its_own() {
        let owner = pod(&json!({})).owner();
        assert_eq!(owner.restart(), None);
        assert_eq!(
            owner.renewal(),
            "make the Pod anew from its manifest: kubectl -n team-a replace --force -f FILE"
        );
    }

    #[test]
    fn an_owner_has_one_line_with_the_way_to_new_pods() {
        for (owner, title, renewal) in [
            (
                Some(["ReplicaSet", "scout-7d9f4b6c5"]),
                "Deployment team-a/scout",
                "kubectl -n team-a rollout restart deployment/scout",
            ),
            (
                Some(["ReplicaSet", "scout-backend"]),
                "ReplicaSet team-a/scout-backend",
                "delete its pods in team-a, so that the ReplicaSet makes new ones",
            ),
            (
                Some(["StatefulSet", "scout"]),
                "StatefulSet team-a/scout",
                "kubectl -n team-a rollout restart statefulset/scout",
            ),
            (
                Some(["Job", "scout"]),
                "Job team-a/scout",
                "make the Job anew from its manifest: kubectl -n team-a replace --force -f FILE",
            ),
        ] {
            let of_owner = |index| {
                let mut pod = pod(&json!({"/metadata/name": format!("scout-{index}")}));
                let owner = owner.map(|[kind, name]| json!({"kind": kind, "name": name, "controller": true}));
                pod.json["metadata"]["ownerReferences"] = owner.into_iter().collect();
                pod
            };
            let pods: Vec<AgentPod> = (0..2).map(of_owner).collect();
            let agents = Agents { pods, snapshot: snapshot(true), ..Agents::default() };
            let checks = checks(&agents, &replay(&agents.pods, &agents.snapshot), 20);
            let [check] = checks.as_slice() else { panic!("{checks:#?}") };
            assert_eq!((check.subject.as_str(), check.help.as_deref()), (title, Some(renewal)));
            assert!(
                check.message.starts_with("2 pods run without the memory ArkMemory/notes of their agent")
            );
        }
    }
}

//! Agent pods that run without the memory that they would get today, and why.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster_state::{AgentPod, Agents, Created, Fetched, Installation};
use crate::doctor::check::{Check, counted};
use crate::replay::{Owner, Replayed, marker};
use crate::webhook_entry::{WebhookEntry, entries};
use memgate_model::kind::SECRET;
use memgate_model::object::Reference;
use memgate_model::reason::Reason;
use memgate_platforms::inject::{INJECTED_ANNOTATION, marker};
use memgate_primitives::review_path::Phase;

const ID: &str = "missed-pods";

/// Why a pod is without a memory that is older: its entry lets pods pass.
const DID_NOT_ANSWER: &str = "memgate did not answer";

/// Why pods are without their memory.
#[derive(Debug)]
enum Cause {
    /// They would get these memory resources today.
    CreatedWithout {
        /// The memory resources.
        memories: Vec<String>,
        /// The platforms.
        families: Vec<&'static str>,
        /// The likely reason.
        likely: Likely,
    },
    /// The memory cannot be used: what is wrong, and the code of the finding.
    Unusable(String, String),
    /// Whether the memory can be used is not known, for this reason.
    Unknown(String),
}

/// The likely reason why pods were created without their memory.
#[derive(Debug)]
enum Likely {
    /// memgate is paused there.
    Paused,
    /// Another one.
    Other(String),
}

impl Likely {
    fn words(&self) -> &str {
        match self {
            Self::Paused => "memgate is paused here",
            Self::Other(reason) => reason,
        }
    }
}

/// The pods of one owner without their memory, and the cause of the first one.
#[derive(Debug)]
struct Owned {
    cause: Cause,
    /// How many pods.
    pods: usize,
}

/// The owners of pods without their memory.
fn owners(found: &Installation, created: &Created, replayed: &[Replayed<'_>]) -> BTreeMap<Owner, Owned> {
    let mut owners: BTreeMap<Owner, Owned> = BTreeMap::new();
    for replayed in replayed {
        let owner = replayed.pod.owner();
        if let Some(owned) = owners.get_mut(&owner) {
            owned.pods += usize::from(lacks(replayed));
        } else if let Some(cause) = cause(found, created, replayed) {
            owners.insert(owner, Owned { cause, pods: 1 });
        }
    }
    owners
}

impl Owned {
    fn message(&self) -> String {
        let (subject, whose) = match self.pods {
            1 => ("it runs".to_owned(), "its"),
            pods => (format!("{pods} pods run"), "their"),
        };
        match &self.cause {
            Cause::CreatedWithout { memories, families, likely } => {
                let reason = likely.words();
                let (memories, families) = (memories.join(", "), families.join(", "));
                format!(
                    "{subject} without the memory {memories} of {whose} agent (platform {families}): {reason}"
                )
            }
            Cause::Unusable(why, _) => format!("{subject} without {whose} memory: {why}"),
            Cause::Unknown(why) => why.clone(),
        }
    }

    /// How its pods get their memory.
    fn help(&self, owner: &Owner) -> String {
        match &self.cause {
            Cause::Unusable(_, code) => format!("memgate explain {code}; then {}", owner.renewal()),
            Cause::CreatedWithout { likely: Likely::Paused, .. } => {
                format!("when the pause has ended: {}", owner.renewal())
            }
            Cause::CreatedWithout { .. } | Cause::Unknown(_) => owner.renewal(),
        }
    }

    fn check(&self, owner: &Owner) -> Check {
        let (title, message) = (owner.title(), self.message());
        match self.cause {
            Cause::Unknown(_) => Check::unknown(ID, title, message),
            _ => Check::warn(ID, title, message).help(self.help(owner)),
        }
    }
}

/// A check for each owner of pods without their memory, up to `max_listed`, and one for the others.
pub fn checks(
    found: &Installation,
    agents: &Agents,
    replayed: &[Replayed<'_>],
    max_listed: usize,
) -> Vec<Check> {
    let mut checks: Vec<Check> =
        agents.incomplete.iter().map(|gap| Check::unknown(ID, "Pods", gap.clone())).collect();
    let owners = owners(found, &agents.created, replayed);
    checks.extend(owners.iter().take(max_listed).map(|(owner, owned)| owned.check(owner)));
    let more: usize = owners.values().skip(max_listed).map(|owned| owned.pods).sum();
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

/// Whether a pod is without its memory, or may be.
fn lacks(replayed: &Replayed<'_>) -> bool {
    let reasons = [Reason::ReferenceMissing, Reason::ReferenceInvalid, Reason::ReferenceUnknown];
    replayed.lacks_memory || reasons.contains(&replayed.decision.reason)
}

/// Why a pod is without its memory; none if it is not.
fn cause(found: &Installation, created: &Created, replayed: &Replayed<'_>) -> Option<Cause> {
    if !lacks(replayed) {
        return None;
    }
    if replayed.lacks_memory {
        let families: Vec<_> = replayed.decision.families.iter().map(|share| share.family.name).collect();
        let memories = memories(&replayed.with_memory);
        let likely = likely_reason(found, created, replayed.pod, (&memories, &families));
        return Some(Cause::CreatedWithout { memories, families, likely });
    }
    if replayed.decision.reason == Reason::ReferenceUnknown {
        let reference = replayed.decision.unknown.iter().find(|reference| *reference.kind != SECRET)?;
        let Reference { kind, namespace, name } = reference;
        let kind = kind.kind;
        return Some(Cause::Unknown(format!(
            "whether it lacks its memory is not known: {kind} {namespace}/{name} was not read"
        )));
    }
    let finding = replayed.decision.findings.first()?;
    Some(Cause::Unusable(finding.message().into_owned(), finding.code_name().to_owned()))
}

/// When the newest of these memory resources was created, as far as that is known.
fn newest(created: &Created, pod: &AgentPod, memories: &[String]) -> Option<i64> {
    let time = |memory: &String| {
        let (kind, name) = memory.split_once('/')?;
        let (namespace, name) = name.split_once('/').unwrap_or_else(|| (pod.namespace(), name));
        created.get(&[kind, namespace, name].map(str::to_owned)).copied()
    };
    memories.iter().filter_map(time).max()
}

/// The likely reason why a pod was created without this memory, of these platforms.
fn likely_reason(
    found: &Installation,
    all_created: &Created,
    pod: &AgentPod,
    (memories, families): (&[String], &[&str]),
) -> Likely {
    let other = |reason: &str| Likely::Other(reason.to_owned());
    if pod.annotation(INJECTED_ANNOTATION).is_some() {
        return other("its memory has changed since it was created");
    }
    if let Fetched::Unknown(why) = &found.mutating {
        return other(&format!("why is not known ({why})"));
    }
    let Some(own) = found.own(Phase::Mutate) else {
        return other("memgate is not registered for such pods");
    };
    let registered = own.metadata.creation_timestamp.as_ref();
    let (Some(created), Some(registered)) = (pod.created(), registered) else {
        return other("why is not known");
    };
    if created < registered.0.as_second() {
        return other("it was created before memgate was registered");
    }
    let Some(labels) = found.labels(pod.namespace()) else {
        return other("why is not known: the labels of its namespace were not read");
    };
    let calls = |entry: &WebhookEntry| entry.is_called_for_new_pods() && entry.selects_namespace(&labels);
    if !entries(own).iter().any(calls) {
        return other("the webhook configuration leaves out its namespace");
    }
    let newest = newest(all_created, pod, memories);
    if newest.is_some_and(|memory| memory > created) {
        return other("its memory was created after it");
    }
    let is_paused =
        |family: &&str| found.pauses.items().iter().any(|pause| pause.lifts(family, pod.namespace()));
    if families.iter().all(is_paused) {
        return Likely::Paused;
    }
    other(match newest {
        Some(_) => DID_NOT_ANSWER,
        None => "its memory was created after it, or memgate did not answer when it was created",
    })
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
    use crate::pauses::Pause;
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

    fn registered_installation() -> Installation {
        Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![registered()]),
            ..Installation::default()
        }
    }

    fn checks_of(agents: &Agents) -> Vec<(CheckStatus, String)> {
        let found = registered_installation();
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

    const BEFORE: &str = "2030-01-31T00:00:00Z";
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
        for (memory, expected) in [
            (Some(-1), "(platform arkonis): memgate did not answer"),
            (Some(0), "(platform arkonis): memgate did not answer"),
            (Some(1), ": its memory was created after it"),
            (None, ": its memory was created after it, or memgate did not answer when it was created"),
        ] {
            let pod = pod(LATER, &json!({}));
            let key = ["ArkMemory", "team-a", "notes"].map(str::to_owned);
            let created = memory.map(|later| (key, pod.created().expect("a time") + later));
            let created = created.into_iter().collect();
            let agents = Agents { pods: vec![pod], snapshot: snapshot(true), created, ..Agents::default() };
            let checks = checks_of(&agents);
            assert!(checks.len() == 1 && checks[0].1.ends_with(expected), "{checks:?}");
        }
    }

    #[test]
    fn a_pause_is_the_cause_of_what_came_after_the_memory() {
        let paused = "memgate is paused here";
        for (names, memory, expected) in [
            (vec!["team-a"], -1, paused),
            (vec!["*"], -1, paused),
            (vec!["team-b", "team-a.arkonis"], -1, paused),
            (vec!["team-b", "team"], -1, DID_NOT_ANSWER),
            (vec!["team-a.ark"], -1, DID_NOT_ANSWER),
            (vec!["team-a"], 1, "its memory was created after it"),
        ] {
            let pods = [pod(LATER, &json!({}))];
            let key = ["ArkMemory", "team-a", "notes"].map(str::to_owned);
            let created = [(key, pods[0].created().expect("a time") + memory)].into();
            let pause = |name: &&str| Pause { name: (*name).to_owned(), reason: String::new() };
            let pauses = Fetched::Found(names.iter().map(pause).collect());
            let found = Installation { pauses, ..registered_installation() };
            let snapshot = snapshot(true);
            let owners = owners(&found, &created, &replay(&pods, &snapshot));
            let [(owner, those)] = owners.iter().collect::<Vec<_>>()[..] else { panic!("{owners:?}") };
            let message = those.message();
            assert!(message.ends_with(&format!("(platform arkonis): {expected}")), "{names:?}: {message}");
            let waits = those.help(owner).starts_with("when the pause has ended: ");
            assert_eq!(waits, expected == paused);
        }
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
            let checks = checks(&found, &agents, &replayed, 1);
            assert!(checks[0].message.ends_with(expected), "{checks:?}");
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
        let named = |index| pod(LATER, &json!({"/metadata/name": format!("scout-{index}")}));
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
        let owner = pod(LATER, &json!({})).owner();
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
                let mut pod = pod(LATER, &json!({"/metadata/name": format!("scout-{index}")}));
                let owner = owner.map(|[kind, name]| json!({"kind": kind, "name": name, "controller": true}));
                pod.json["metadata"]["ownerReferences"] = owner.into_iter().collect();
                pod
            };
            let pods: Vec<AgentPod> = (0..2).map(of_owner).collect();
            let agents = Agents { pods, snapshot: snapshot(true), ..Agents::default() };
            let found = registered_installation();
            let checks = checks(&found, &agents, &replay(&agents.pods, &agents.snapshot), 20);
            let [check] = checks.as_slice() else { panic!("{checks:#?}") };
            assert_eq!((check.subject.as_str(), check.help.as_deref()), (title, Some(renewal)));
            assert!(
                check.message.starts_with("2 pods run without the memory ArkMemory/notes of their agent")
            );
        }
    }
}

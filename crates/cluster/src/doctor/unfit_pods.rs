//! Agent pods that have their memory and cannot run as meant: what another webhook did after the last call, or a mesh that
//! came later.

use std::collections::{BTreeMap, BTreeSet};

use crate::doctor::check::Check;
use crate::replay::{Owner, Replayed};
use memgate_model::decision::Decision;
use memgate_model::finding::Finding;
use memgate_platforms::common::{PUT_BACK, TAKEN_OUT, is_of_pod_judge, keeps_pod_from_starting};
use memgate_platforms::inject::INJECTED_ANNOTATION;
use memgate_workbench::report::counted;

const ID: &str = "unfit-pods";

/// The pods of one owner.
#[derive(Default)]
struct Owned<'r> {
    pods: usize,
    /// The worst cause so far, and whether its pod has its memory.
    worst: Option<(&'r Finding, bool)>,
    codes: BTreeSet<&'r str>,
}

/// A check for each owner of such pods, up to `max_listed`, and one for the others.
pub fn checks(replayed: &[Replayed<'_>], max_listed: usize) -> Vec<Check> {
    let mut owners: BTreeMap<Owner, Owned<'_>> = BTreeMap::new();
    // That a pod lacks its memory is reported already.
    for it in replayed.iter().filter(|it| !it.lacks_memory && causes(&it.decision).next().is_some()) {
        owners.entry(it.pod.owner()).or_default().add(it);
    }
    let more = owners.len().saturating_sub(max_listed);
    let listed = owners.into_iter().take(max_listed);
    let mut checks: Vec<Check> = listed.filter_map(|(owner, owned)| owned.check(&owner)).collect();
    if more > 0 {
        let message = format!(
            "{} more with pods that cannot run as meant; --show has more of them listed",
            counted(more, "workload")
        );
        checks.push(Check::warn(ID, "Pods", message));
    }
    checks
}

impl<'r> Owned<'r> {
    fn add(&mut self, replayed: &'r Replayed<'_>) {
        let has_memory = replayed.pod.annotation(INJECTED_ANNOTATION).is_some();
        self.pods += 1;
        for cause in causes(&replayed.decision) {
            self.codes.insert(cause.code_name());
            let is_worse = |(worst, _): (&Finding, bool)| {
                keeps_pod_from_starting(cause) && !keeps_pod_from_starting(worst)
            };
            if self.worst.is_none_or(is_worse) {
                self.worst = Some((cause, has_memory));
            }
        }
    }

    fn check(mut self, owner: &Owner) -> Option<Check> {
        let (cause, has_memory) = self.worst?;
        self.codes.remove(cause.code_name());
        let others: String = self.codes.iter().flat_map(|code| [", also ", code]).collect();
        let (sentence, pods) = (sentence(cause, has_memory), counted(self.pods, "pod"));
        let message = format!("{sentence} in {pods}{others}");
        Some(Check::warn(ID, owner.title(), message).help(format!("memgate explain {}", cause.code_name())))
    }
}

/// What keeps a pod from running as meant.
fn causes(decision: &Decision) -> impl Iterator<Item = &Finding> {
    decision.findings.iter().filter(|finding| is_of_pod_judge(finding.code))
}

/// What a cause means for its pod, which may have its memory.
fn sentence(cause: &Finding, has_memory: bool) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster_state::AgentPod;
    use crate::doctor::check::CheckStatus;
    use crate::replay::replay;
    use memgate_core::state;
    use memgate_model::snapshot::Snapshot;

    const CREDENTIAL: &str = "ARK_MEMORY_HEADER_AUTHORIZATION";

    /// A Memory of ark, an Agent of sympozium with its memory in a sidecar, and the claim of that.
    fn snapshot() -> Snapshot {
        let mut snapshot = state::empty(memgate_platforms::default_settings());
        for (version, kind, name, spec) in [
            (
                "ark.mckinsey.com/v1alpha1",
                "Memory",
                "notes",
                json!({"address": {"value": "https://broker.example.com"}}),
            ),
            (
                "sympozium.ai/v1alpha1",
                "Agent",
                "triage",
                json!({"agents": {"default": {"model": "gpt-4o"}}, "skills": [{"skillPackRef": "memory"}]}),
            ),
            (
                "sympozium.ai/v1alpha1",
                "SkillPack",
                "memory",
                json!({"skills": [{"name": "memory", "content": "Search."}], "sidecar": {"image": "server:1"}}),
            ),
            ("v1", "PersistentVolumeClaim", "triage-memory-db", json!({"accessModes": ["ReadWriteOnce"]})),
        ] {
            let metadata = json!({"name": name, "namespace": "team-a"});
            let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
            state::add(&mut snapshot, &object).expect("an object");
        }
        snapshot
    }

    /// A pod with its memory, as the apiserver has it; `change` is what another webhook did to it.
    fn injected(mut pod: Value, change: impl Fn(&mut Value)) -> AgentPod {
        pod["metadata"]["name"] = json!("p");
        pod["metadata"]["namespace"] = json!("team-a");
        let pods = [AgentPod { json: pod }];
        let mut json = replay(&pods, &snapshot()).remove(0).with_memory;
        change(&mut json);
        AgentPod { json }
    }

    /// A pod of sympozium of which another webhook dropped the restart policy of the sidecar.
    fn blocked(owner: &Value) -> AgentPod {
        let labels = json!({
            "sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage", "pod-template-hash": "5f7c",
        });
        let pod = json!({
            "metadata": {"labels": labels, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "agent", "image": "agent"}]},
        });
        injected(pod, |pod| {
            pod["spec"]["initContainers"][0].as_object_mut().expect("a sidecar").remove("restartPolicy");
        })
    }

    /// A pod of ark in which a sidecar holds a credential.
    fn shared() -> AgentPod {
        let secret = json!({"secretKeyRef": {"name": "s", "key": "k"}});
        let sidecar = json!({"name": "daprd", "env": [{"name": CREDENTIAL, "valueFrom": secret}]});
        let annotations = json!({"memgate.dev/ark-memory": "notes"});
        let pod = json!({
            "metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "agent"}, sidecar]},
        });
        injected(pod, |_| {})
    }

    fn told(pods: &[AgentPod], max_listed: usize) -> Vec<(CheckStatus, String)> {
        let snapshot = snapshot();
        let checks = checks(&replay(pods, &snapshot), max_listed);
        checks
            .into_iter()
            .map(|check| (check.status, format!("{}: {}", check.subject, check.message)))
            .collect()
    }

    #[test]
    fn counts_the_pods_of_an_owner() {
        let owner = |kind: &str, name: &str| json!({"kind": kind, "name": name, "controller": true});
        let of_deployment = owner("ReplicaSet", "scout-5f7c");
        let pods =
            [blocked(&of_deployment), shared(), blocked(&of_deployment), blocked(&owner("Job", "run"))];
        let blocked = ["it has its memory, but it cannot start: ", " (memgate/pod-part-lost) in "];
        let held =
            ["it has its memory, but it does not run as meant: ", " (memgate/pod-credential-shared) in "];
        let expected = [
            ("Deployment team-a/scout", blocked, "2 pods"),
            ("Job team-a/run", blocked, "1 pod"),
            ("Pod team-a/p", held, "1 pod"),
        ];
        let all = told(&pods, 20);
        assert_eq!(all.len(), expected.len(), "{all:?}");
        for ((status, text), (owner, [verdict, code], count)) in all.iter().zip(expected) {
            assert_eq!(*status, CheckStatus::Warn);
            assert!(text.starts_with(&format!("{owner}: {verdict}")), "{text}");
            assert!(text.ends_with(&format!("{code}{count}")), "{text}");
        }
        let few = told(&pods, 1);
        let more = "2 workloads more with pods that cannot run as meant; --show has more of them listed";
        assert_eq!((few.len(), few[1].1.as_str()), (2, format!("Pods: {more}").as_str()));
    }

    #[test]
    fn says_nothing_of_pods_that_run_as_meant_or_lack_their_memory() {
        let fit = injected(blocked(&json!({})).json, |_| {});
        let mut lacking = shared();
        lacking.json["spec"]["containers"][0].as_object_mut().expect("a container").remove("env");
        assert_eq!(told(&[fit, lacking], 20), []);
    }
}

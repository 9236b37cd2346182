//! Agent pods that run without the memory that they would get today.
//!
//! Each pod is turned back into the request that made it, and decided about anew: what would still
//! be added is what it missed.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::admission::admit;
use crate::cli::doctor::check::Check;
use crate::cli::doctor::evidence::{AgentPod, Agents, Installation};
use crate::cli::entry::entries;
use crate::family::inject::INJECTED_ANNOTATION;
use crate::model::decision::{Decision, Reason};
use crate::model::family::Family;
use crate::model::kind::SECRET;
use crate::model::request::{Operation, Request};
use crate::model::snapshot::{Reference, Snapshot};
use crate::report::counted;

const ID: &str = "missed-pods";

/// What the apiserver, the scheduler and the kubelet write into a pod once it is there.
const LATER: [&str; 6] =
    ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"];

/// A pod and what would become of it today.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The pod.
    pub pod: &'a AgentPod,
    /// What is decided about it.
    pub decision: Decision,
    /// Whether something would be added.
    pub missed: bool,
    /// The pod with its memory.
    pub complete: Value,
}

/// Decides about every pod that has not ended. One that cannot be read is passed over: it was
/// refused, or is no agent's.
#[must_use]
pub fn judge<'a>(pods: &'a [AgentPod], snapshot: &Snapshot) -> Vec<Judged<'a>> {
    pods.iter().filter(|pod| !pod.has_ended()).filter_map(|pod| judge_one(pod, snapshot)).collect()
}

fn judge_one<'a>(pod: &'a AgentPod, snapshot: &Snapshot) -> Option<Judged<'a>> {
    let text = pod.creation().to_string();
    let request = Request {
        operation: Operation::Create,
        group: "".into(),
        version: "v1".into(),
        kind: "Pod".into(),
        subresource: "".into(),
        namespace: pod.namespace().into(),
        name: pod.name().into(),
        object: Some(&text),
        old_object: None,
    };
    let admitted = admit(&request, snapshot).ok()?;
    let missed = !admitted.edits.is_empty() && admitted.allowed();
    let complete = serde_json::from_str(&admitted.object.unwrap_or(text)).unwrap_or_default();
    Some(Judged { pod, decision: admitted.decision, missed, complete })
}

/// The objects that decisions ask for and nobody has looked up yet. Nobody ever looks up a Secret.
#[must_use]
pub fn open(agents: &Agents) -> Vec<Reference> {
    let judged = [&agents.pods, &agents.imagined].map(|pods| judge(pods, &agents.snapshot));
    let decisions = judged.into_iter().flatten().map(|judged| judged.decision);
    let mut open: Vec<Reference> = decisions.flat_map(|decision| decision.unknown).collect();
    open.retain(|reference| *reference.kind != SECRET && !reference.name.is_empty());
    open.sort();
    open.dedup();
    open
}

/// Judges the pods; of those with something wrong, so many are told one by one.
#[must_use]
pub fn checks(found: &Installation, agents: &Agents, judged: &[Judged<'_>], show: usize) -> Vec<Check> {
    let mut checks: Vec<Check> =
        agents.gaps.iter().map(|gap| Check::unknown(ID, "Pods", gap.clone())).collect();
    let mut wrong = judged.iter().filter_map(|judged| {
        if judged.missed { Some(missed(found, agents, judged)) } else { without(judged) }
    });
    checks.extend(wrong.by_ref().take(show));
    let more = wrong.count();
    if more > 0 {
        checks.push(Check::warn(
            ID,
            "Pods",
            format!("{more} more agent pods run without their memory; --show has more of them listed"),
        ));
    }
    if checks.is_empty() {
        let out = judged.iter().filter(|judged| judged.decision.reason == Reason::OptedOut).count();
        let opted_out = if out > 0 { format!("; {out} opted out") } else { String::new() };
        let message = format!("{}, none without its memory{opted_out}", counted(judged.len(), "agent pod"));
        checks.push(Check::ok(ID, "Pods", message));
    }
    checks
}

fn missed(found: &Installation, agents: &Agents, judged: &Judged<'_>) -> Check {
    let pod = judged.pod;
    let memories = memories(&judged.complete);
    let family = pod.family.name;
    let message = format!(
        "it runs without the memory {} of its agent (family {family}): {}",
        memories.join(", "),
        why(found, agents, pod, &memories)
    );
    let (namespace, name) = (pod.namespace(), pod.name());
    Check::warn(ID, pod.title(), message).help(format!(
        "delete it, so that its controller makes a new one; \
         kubectl -n {namespace} get pod {name} -o yaml | memgate explain-pod tells what it has"
    ))
}

/// A pod whose memory cannot be used, or could not be looked up.
fn without(judged: &Judged<'_>) -> Option<Check> {
    let pod = judged.pod;
    match judged.decision.reason {
        Reason::ReferenceMissing | Reason::ReferenceInvalid => {
            let finding = judged.decision.findings.first()?;
            let message = format!("it runs without its memory: {}", finding.message);
            let check = Check::warn(ID, pod.title(), message);
            Some(check.help(format!("memgate explain {}", finding.code.name)))
        }
        Reason::ReferenceUnknown => {
            let reference = judged.decision.unknown.iter().find(|reference| *reference.kind != SECRET)?;
            let Reference { kind, namespace, name } = reference;
            let message = format!("{} {namespace}/{name}, which it needs, could not be read", kind.kind);
            Some(Check::unknown(ID, pod.title(), message))
        }
        _ => None,
    }
}

/// The likely reason.
fn why(found: &Installation, agents: &Agents, pod: &AgentPod, memories: &[String]) -> String {
    let Some(born) = pod.created() else { return "why is not known".to_owned() };
    let own = found.own_mutating();
    let registered = own.and_then(|config| config.metadata.creation_timestamp.as_ref());
    if registered.is_some_and(|time| born < time.0.as_second()) {
        return "it was created before memgate was registered".to_owned();
    }
    if pod.annotation(INJECTED_ANNOTATION).is_some() {
        return "its memory has changed since it was created".to_owned();
    }
    for memory in memories {
        let Some((kind, name)) = memory.split_once('/') else { continue };
        let key = (kind.to_owned(), pod.namespace().to_owned(), name.to_owned());
        if agents.created.get(&key).is_some_and(|made| born <= *made) {
            return format!("{memory} was created after it");
        }
    }
    let labels = found.labels(pod.namespace());
    let live = own.map(|config| entries(config.webhooks.as_ref())).unwrap_or_default();
    let asked = live.iter().any(|entry| entry.asks_about_new_pods() && entry.selects_namespace(&labels));
    if !asked {
        return "the webhook configuration leaves out its namespace".to_owned();
    }
    "memgate did not answer when it was created, and its webhook entry lets pods pass".to_owned()
}

/// What the marker says: the memory resources.
fn memories(pod: &Value) -> Vec<String> {
    let marker = marker(pod);
    match marker.get("memory") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The containers of a pod that memgate added, by the marker.
#[must_use]
pub fn added_containers(pod: &Value) -> Vec<&Value> {
    let marker = marker(pod);
    let names = marker.get("initContainers").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<&Value> = names.collect();
    let containers = pod.pointer("/spec/initContainers").and_then(Value::as_array).into_iter().flatten();
    containers.filter(|container| container.get("name").is_some_and(|name| names.contains(&name))).collect()
}

fn marker(pod: &Value) -> Value {
    let text = pod.pointer("/metadata/annotations").and_then(|all| all.get(INJECTED_ANNOTATION)?.as_str());
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl AgentPod {
    /// A pod of a list.
    #[must_use]
    pub const fn new(family: &'static Family, json: Value) -> Self {
        Self { family, json }
    }

    fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// What checks call it.
    #[must_use]
    pub fn title(&self) -> String {
        format!("Pod {}/{}", self.namespace(), self.name())
    }

    /// An annotation of it.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.json.pointer("/metadata/annotations")?.get(key)?.as_str()
    }

    fn has_ended(&self) -> bool {
        matches!(self.text("/status/phase"), "Succeeded" | "Failed")
    }

    /// When it was created, in seconds since 1970.
    fn created(&self) -> Option<i64> {
        Some(self.text("/metadata/creationTimestamp").parse::<Timestamp>().ok()?.as_second())
    }

    /// The pod as it was sent, as far as that can be told.
    fn creation(&self) -> Value {
        let mut pod = self.json.clone();
        if let Value::Object(fields) = &mut pod {
            fields.remove("status");
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.retain(|key, _| !LATER.contains(&key.as_str()));
            }
        }
        pod
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::doctor::check::Status;
    use crate::cli::doctor::evidence::{Listed, Seen};
    use crate::cli::doctor::expected::tests::installed;
    use crate::family;
    use crate::model::settings::Settings;
    use crate::state;

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
        AgentPod::new(&family::arkonis::FAMILY, json)
    }

    fn snapshot(memory: bool) -> Snapshot {
        let mut snapshot = state::empty(Settings::default());
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

    fn judged(agents: &Agents) -> Vec<(Status, String)> {
        let mut config = installed(&family::ALL).mutating;
        config.metadata.creation_timestamp =
            serde_json::from_value(json!("2030-01-01T00:00:00Z")).expect("a time");
        let found = Installation {
            name: "memgate".to_owned(),
            mutating: Seen::Found(Listed { items: vec![config], cut: false }),
            ..Installation::default()
        };
        let checks = checks(&found, agents, &judge(&agents.pods, &agents.snapshot), 20);
        checks.into_iter().map(|check| (check.status, check.message)).collect()
    }

    fn one(pod: AgentPod, memory: bool) -> (Status, String) {
        let agents = Agents { pods: vec![pod], snapshot: snapshot(memory), ..Agents::default() };
        match judged(&agents).as_slice() {
            [one] => one.clone(),
            other => panic!("{other:#?}"),
        }
    }

    const LATER: &str = "2030-02-01T00:00:00Z";

    #[test]
    fn a_pod_with_its_memory_is_good() {
        let agents =
            Agents { pods: vec![pod(LATER, &json!({}))], snapshot: snapshot(true), ..Agents::default() };
        let json = judge(&agents.pods, &agents.snapshot).remove(0).complete;
        let (status, said) = one(AgentPod::new(&family::arkonis::FAMILY, json), true);
        assert!(status == Status::Ok && said == "1 agent pod, none without its memory", "{said}");
    }

    #[test]
    fn says_why_a_pod_may_have_missed_its_memory() {
        let (status, said) = one(pod("2029-12-31T00:00:00Z", &json!({})), true);
        assert_eq!(status, Status::Warn);
        let expected = "it runs without the memory ArkMemory/notes of its agent (family arkonis): ";
        assert!(said.starts_with(expected), "{said}");
        assert!(said.ends_with("created before memgate was registered"), "{said}");
        let (_, said) = one(pod(LATER, &json!({})), true);
        assert!(said.ends_with("its webhook entry lets pods pass"), "{said}");

        let key = ("ArkMemory".to_owned(), "team-a".to_owned(), "notes".to_owned());
        let agents = Agents {
            pods: vec![pod(LATER, &json!({}))],
            snapshot: snapshot(true),
            created: [(key, i64::MAX)].into(),
            ..Agents::default()
        };
        assert!(judged(&agents)[0].1.ends_with("ArkMemory/notes was created after it"));
    }

    #[test]
    fn says_what_is_wrong_with_the_memory() {
        let (status, said) = one(pod(LATER, &json!({})), false);
        assert!(status == Status::Warn && said.starts_with("it runs without its memory: "), "{said}");
    }

    #[test]
    fn passes_over_what_has_ended_or_wants_none() {
        for more in [
            json!({"/status/phase": "Succeeded"}),
            json!({"/metadata/labels": {"arkonis.dev/deployment": "scout", "memgate.dev/inject": "disabled"}}),
        ] {
            let (status, said) = one(pod(LATER, &more), true);
            assert_eq!(status, Status::Ok, "{said}");
        }
    }

    #[test]
    fn tells_a_few_of_many() {
        let pods = (0..25).map(|_| pod(LATER, &json!({}))).collect();
        let agents = Agents { pods, snapshot: snapshot(true), ..Agents::default() };
        let checks = judged(&agents);
        assert_eq!(checks.len(), 21);
        assert_eq!(
            checks[20].1,
            "5 more agent pods run without their memory; --show has more of them listed"
        );
    }
}

//! Reads the pods of agents, and the state that decisions about these pods use.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::ListParams;
use serde_json::{Value, json};

use crate::cluster_state::{AgentPod, Agents, Fetched};
use crate::listed_state::read_state;
use crate::probe::minimal_pod;
use crate::reader::{ClusterReader, truncated, with_kind};
use crate::replay::unknown_references;
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, KindEntry};
use memgate_core::state::empty;
use memgate_model::family::Family;
use memgate_model::kind::{NAMESPACE, POD, SECRET};
use memgate_model::object::{Object, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

/// How many rounds of lookups there are: an agent refers to a memory, which refers to other objects.
const MAX_LOOKUP_ROUNDS: usize = 3;

/// How many objects are looked up one by one, in all rounds.
const MAX_LOOKUPS: usize = 200;

/// Reads pods and state for the families of the settings.
pub async fn agents(reader: &ClusterReader, settings: Settings) -> Agents {
    let everywhere = BTreeSet::from([String::new()]);
    let (pods, mut incomplete) = agent_pods(reader, &settings.families, &everywhere).await;
    let mut snapshot = state(reader, settings, &mut incomplete).await;
    let stand_ins = stand_ins(&pods, &snapshot);
    look_up(reader, &mut snapshot, &mut incomplete, |state| unknown_references([&pods, &stand_ins], state))
        .await;
    Agents { pods, stand_ins, incomplete, snapshot }
}

/// The pods that the selectors of the families match in these namespaces, each once; the empty namespace stands for
/// all. The second list says what could not be read, or only in part.
pub(super) async fn agent_pods(
    reader: &ClusterReader,
    families: &[&'static Family],
    namespaces: &BTreeSet<String>,
) -> (Vec<AgentPod>, Vec<String>) {
    let (mut found, mut incomplete) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let selectors = families.iter().flat_map(|family| family.pods.selectors);
    for (selector, namespace) in
        selectors.flat_map(|selector| namespaces.iter().map(move |namespace| (selector, namespace)))
    {
        let params = ListParams { label_selector: selector.query(), ..ListParams::default() };
        let (pods, are_all) = match reader.list_to_limit("v1", namespace, POD.plural, params).await {
            Fetched::Found(pods) => pods,
            Fetched::Absent => continue,
            Fetched::Unknown(why) => {
                add_once(&mut incomplete, why);
                continue;
            }
        };
        if !are_all {
            add_once(&mut incomplete, truncated(&format!("pods of {}", selector.name)));
        }
        let of_sort = |pod: &Value| {
            let annotations = pod.pointer("/metadata/annotations");
            selector.annotation.is_none_or(|key| annotations.is_some_and(|all| all.get(key).is_some()))
        };
        let pods = pods.into_iter().filter(of_sort).map(|pod| AgentPod { json: with_kind(&POD, pod) });
        found.extend(pods.filter(|pod| seen.insert((pod.namespace().to_owned(), pod.name().to_owned()))));
    }
    (found, incomplete)
}

/// Adds a sentence unless the list has it.
fn add_once(sentences: &mut Vec<String>, sentence: String) {
    if !sentences.contains(&sentence) {
        sentences.push(sentence);
    }
}

/// Adds the pods that families know to a file, with all their fields: policies judge them.
pub async fn add_agent_pods(
    reader: &ClusterReader,
    families: &[&'static Family],
    file: &mut ClusterSnapshot,
) {
    let everywhere = BTreeSet::from([String::new()]);
    let namespaces = file.namespaces.clone().unwrap_or(everywhere);
    let (pods, incomplete) = agent_pods(reader, families, &namespaces).await;
    file.items.extend(pods.into_iter().map(|pod| pod.json));
    if let Some(why) = incomplete.into_iter().next() {
        file.add_entry(POD.api_version(), POD.kind, Fetched::Unknown(why));
    }
}

/// All objects of the kinds that the webhook watches for its decisions.
async fn state(reader: &ClusterReader, settings: Settings, incomplete: &mut Vec<String>) -> Snapshot {
    let watched = settings.families.iter().flat_map(|family| family.kinds.watched).copied();
    let kinds = watched.chain([&NAMESPACE]).collect();
    let mut file = ClusterSnapshot::new(String::new(), None);
    let read = read_state(reader, &kinds, false, &mut file).await;
    let mut snapshot = empty(settings);
    let put = file.put("the cluster", &mut snapshot);
    let reasons = file.kinds.iter().filter_map(KindEntry::unknown).map(str::to_owned);
    for why in reasons.chain(read.err()).chain(put.err().map(|error| error.to_string())) {
        add_once(incomplete, why);
    }
    snapshot
}

/// Pods as platforms would create them for agents in namespaces that have no agent pod. They meet Pod
/// Security "restricted" and request almost no resources, so that only memgate's additions can be refused.
fn stand_ins(pods: &[AgentPod], snapshot: &Snapshot) -> Vec<AgentPod> {
    let work = Budget::default();
    let mut reader = StateReader::new(snapshot, &work);
    let mut stand_ins = Vec::new();
    for &family in &snapshot.settings.families {
        let Some(labels) = family.pods.labels_for_agent.filter(|_| family.pods.adds_containers) else {
            continue;
        };
        for kind in family.kinds.watched {
            let agents = reader.everywhere(kind);
            stand_ins.extend(agents.filter_map(|agent| {
                let (namespace, name) = (&*agent.namespace, &*agent.name);
                let labels = labels(kind, namespace, name)?;
                let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
                Some(AgentPod { json: minimal_pod(&metadata, "agent") })
            }));
        }
    }
    let has_pod = |namespace: &str| pods.iter().any(|pod| pod.namespace() == namespace);
    stand_ins.retain(|pod| !has_pod(pod.namespace()));
    stand_ins
}

/// Looks up, one by one, the objects that decisions refer to and the snapshot does not hold. `unknown` returns these
/// references for a snapshot.
pub(super) async fn look_up(
    reader: &ClusterReader,
    snapshot: &mut Snapshot,
    incomplete: &mut Vec<String>,
    unknown: impl Fn(&Snapshot) -> Vec<Reference>,
) {
    let mut looked_up = BTreeSet::new();
    for _ in 0..MAX_LOOKUP_ROUNDS {
        let mut new = unknown(snapshot);
        new.retain(|it| *it.kind != SECRET && it.is_possible() && !looked_up.contains(it));
        let mut results = Vec::new();
        for reference in new {
            if looked_up.len() >= MAX_LOOKUPS {
                add_once(incomplete, truncated("objects that pods refer to"));
                break;
            }
            if !looked_up.insert(reference.clone()) {
                continue;
            }
            match reader.get_kind(reference.kind, &reference.namespace, &reference.name).await {
                Fetched::Found(object) => {
                    let object = Object::read(reference.kind, &object).ok().flatten();
                    results.extend(object.map(|object| (reference, Ok(Some(Arc::new(object))))));
                }
                Fetched::Absent => results.push((reference, Ok(None))),
                Fetched::Unknown(why) => add_once(incomplete, why),
            }
        }
        if results.is_empty() {
            return;
        }
        *snapshot = snapshot.overlaid(results);
    }
}

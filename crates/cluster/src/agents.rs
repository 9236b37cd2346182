//! Reads the pods of agents, and the state that decisions about these pods use.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt as _, future::join, stream};
use kube::api::ListParams;
use serde_json::Value;

use crate::cluster_state::{AgentPod, Agents, Fetched};
use crate::listed_state::read_state;
use crate::reader::{ClusterReader, path, truncated, with_kind};
use crate::replay::replay;
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, KindEntry};
use memgate_core::state::empty;
use memgate_model::family::Family;
use memgate_model::kind::{NAMESPACE, POD, SECRET};
use memgate_model::object::{Object, Reference};
use memgate_model::selector::PodSelector;
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;

/// How many rounds of lookups there are: an agent refers to a memory, which refers to other objects.
const MAX_LOOKUP_ROUNDS: usize = 3;

/// How many objects are looked up one by one, in all rounds.
const MAX_LOOKUPS: usize = 200;

/// How many lists or single objects are read at a time.
const MAX_CONCURRENT_LISTS: usize = 8;

/// Reads pods and state for the families of the settings.
pub async fn agents(reader: &ClusterReader, settings: Settings) -> Agents {
    let everywhere = BTreeSet::from([String::new()]);
    let families = settings.families.clone();
    let (read, state) = join(agent_pods(reader, &families, &everywhere), state(reader, settings)).await;
    let (pods, mut incomplete) = read;
    let (mut snapshot, reasons) = state;
    for why in reasons {
        add_once(&mut incomplete, why);
    }
    // After the first round only what was open then.
    let mut open: Vec<&AgentPod> = pods.iter().collect();
    let unknown = |state: &Snapshot| {
        let mut replayed = replay(open.iter().copied(), state);
        replayed.retain(|replayed| !replayed.decision.unknown.is_empty());
        open = replayed.iter().map(|replayed| replayed.pod).collect();
        replayed.into_iter().flat_map(|replayed| replayed.decision.unknown).collect()
    };
    look_up(reader, &mut snapshot, &mut incomplete, unknown).await;
    Agents { pods, incomplete, snapshot }
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
    let selectors = || families.iter().flat_map(|family| family.pods.selectors);
    // A sort without labels takes a list of all pods: without those of the other lists.
    let others: Vec<String> = selectors().filter_map(without).collect();
    let others = &(!others.is_empty()).then(|| others.join(","));
    let reads = selectors()
        .flat_map(|selector| namespaces.iter().map(move |namespace| (selector, namespace)))
        .map(|(selector, namespace)| async move {
            let label_selector = selector.query().or_else(|| others.clone());
            (selector, selected(reader, selector, label_selector, namespace).await)
        });
    let mut reads = stream::iter(reads).buffered(MAX_CONCURRENT_LISTS);
    while let Some((selector, read)) = reads.next().await {
        let (pods, are_all) = match read {
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
        let pods = pods.into_iter().map(|pod| AgentPod { json: with_kind(&POD, pod) });
        found.extend(pods.filter(|pod| seen.insert((pod.namespace().to_owned(), pod.name().to_owned()))));
    }
    (found, incomplete)
}

/// The pods of a sort in a namespace, up to the limit, and whether these are all. Other pods are dropped as they are
/// read, and of each pod what tools keep about its fields.
async fn selected(
    reader: &ClusterReader,
    selector: &PodSelector,
    label_selector: Option<String>,
    namespace: &str,
) -> Fetched<(Vec<Value>, bool)> {
    let params = ListParams { label_selector, ..ListParams::default() };
    let is_of_sort = |pod: &Value| {
        let annotations = pod.pointer("/metadata/annotations");
        selector.annotation.is_none_or(|key| annotations.is_some_and(|all| all.get(key).is_some()))
    };
    let mut found = Vec::new();
    let path = path("v1", namespace, POD.plural);
    let read = reader.pages(POD.plural, &path, params, |page: Vec<Value>| {
        found.extend(page.into_iter().filter(is_of_sort).map(|mut pod| {
            if let Some(Value::Object(metadata)) = pod.get_mut("metadata") {
                metadata.remove("managedFields");
            }
            pod
        }));
        found.len() < reader.max_objects
    });
    read.await.map(|is_whole| (found, is_whole))
}

/// Adds a sentence unless the list has it.
fn add_once(sentences: &mut Vec<String>, sentence: String) {
    if !sentences.contains(&sentence) {
        sentences.push(sentence);
    }
}

/// The label selector of the pods that a sort with one label leaves.
fn without(selector: &PodSelector) -> Option<String> {
    let [(key, values)] = selector.labels else { return None };
    let no_other_condition = selector.annotation.is_none();
    let left =
        || if values.is_empty() { format!("!{key}") } else { format!("{key} notin ({})", values.join(",")) };
    no_other_condition.then(left)
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

/// All objects of the kinds that the webhook watches for its decisions, and what could not be read.
async fn state(reader: &ClusterReader, settings: Settings) -> (Snapshot, Vec<String>) {
    let watched = settings.families.iter().flat_map(|family| family.kinds.watched).copied();
    let kinds = watched.chain([&NAMESPACE]).collect();
    let mut file = ClusterSnapshot::new(String::new(), None);
    let read = read_state(reader, &kinds, &mut file).await;
    let mut snapshot = empty(settings);
    let put = file.put(&mut snapshot);
    let reasons = file.kinds.iter().filter_map(KindEntry::unknown).map(str::to_owned);
    let reasons = reasons.chain(read.err()).chain(put.err().map(|error| error.to_string()));
    (snapshot, reasons.collect())
}

/// Looks up, one by one, the objects that decisions refer to and the snapshot does not hold. `unknown` returns these
/// references for a snapshot.
pub(super) async fn look_up(
    reader: &ClusterReader,
    snapshot: &mut Snapshot,
    incomplete: &mut Vec<String>,
    mut unknown: impl FnMut(&Snapshot) -> Vec<Reference>,
) {
    let mut looked_up = BTreeSet::new();
    for _ in 0..MAX_LOOKUP_ROUNDS {
        let mut new = unknown(snapshot);
        new.retain(|it| *it.kind != SECRET && it.is_possible() && !looked_up.contains(it));
        let new: BTreeSet<Reference> = new.into_iter().collect();
        if looked_up.len() + new.len() > MAX_LOOKUPS {
            add_once(incomplete, truncated("objects that pods refer to"));
        }
        let new: Vec<_> = new.into_iter().take(MAX_LOOKUPS.saturating_sub(looked_up.len())).collect();
        looked_up.extend(new.iter().cloned());
        let reads = stream::iter(new).map(|reference| async move {
            let Reference { kind, namespace, name } = &reference;
            (reader.get_kind(kind, namespace, name).await, reference)
        });
        let mut reads = reads.buffered(MAX_CONCURRENT_LISTS);
        let mut results = Vec::new();
        while let Some((read, reference)) = reads.next().await {
            match read {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, Response, StatusCode, Uri};
    use tokio::runtime::Runtime;

    use serde_json::json;

    use super::*;

    /// How many objects of a kind there are: memories and their agents and pods.
    #[derive(Clone, Copy)]
    struct Size {
        memories: usize,
        pods: usize,
    }

    /// One page of a list, as an apiserver answers it; none for another path.
    fn answer(size: Size, uri: &Uri) -> Option<Value> {
        let group = "arkonis.dev";
        let api = format!("{group}/v1alpha1");
        let number = |key: &str| {
            let pairs = uri.query().unwrap_or_default().split('&');
            pairs.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key)?.1.parse().ok()
        };
        let list = |count: usize, object: &dyn Fn(usize) -> Value| {
            let from: usize = number("continue").unwrap_or_default();
            let to = count.min(from + number("limit").unwrap_or(count));
            let next = if to < count { to.to_string() } else { String::new() };
            let items: Vec<Value> = (from..to).map(object).collect();
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": next}, "items": items})
        };
        let named = |name: String| json!({"name": name, "namespace": "team-a", "creationTimestamp": "2030-01-01T00:00:00Z"});
        let resource = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true, "singularName": "", "verbs": []});
        Some(match uri.path() {
            "/apis" => json!({"groups": [{
                "name": group, "versions": [{"groupVersion": api, "version": "v1alpha1"}],
            }]}),
            "/apis/arkonis.dev/v1alpha1" => json!({"groupVersion": api, "resources": [
                resource("arkmemories", "ArkMemory"), resource("arkagents", "ArkAgent"),
            ]}),
            "/apis/arkonis.dev/v1alpha1/arkmemories" => list(
                size.memories,
                &|index| json!({"metadata": named(format!("m-{index}")), "spec": {"backend": "in-context"}}),
            ),
            "/apis/arkonis.dev/v1alpha1/arkagents" => list(size.pods, &|index| {
                let spec =
                    json!({"model": "m", "systemPrompt": "S.", "memoryRef": {"name": format!("m-{index}")}});
                json!({"metadata": named(format!("a-{index}")), "spec": spec})
            }),
            "/api/v1/pods" if !uri.query().unwrap_or_default().contains("arkonis.dev%2Fdeployment") => {
                list(0, &|_| Value::Null)
            }
            "/api/v1/pods" => list(size.pods, &|index| {
                let mut metadata = named(format!("p-{index}"));
                metadata["labels"] = json!({"arkonis.dev/deployment": format!("a-{index}")});
                metadata["managedFields"] = json!([{"manager": "kubectl"}]);
                json!({"metadata": metadata, "spec": {"containers": [{"name": "agent", "image": "agent"}]}})
            }),
            "/api/v1/namespaces" => list(1, &|_| json!({"metadata": {"name": "team-a"}})),
            _ => return None,
        })
    }

    /// What is read of such a cluster, and how many requests it took.
    fn read(size: Size) -> (Agents, usize) {
        let paths = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&paths);
        let service = Router::new().fallback(move |request: Request<Body>| {
            seen.lock().expect("a lock").push(request.uri().to_string());
            let answer = answer(size, request.uri());
            let status = if answer.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
            let body = answer.unwrap_or_else(|| json!({"kind": "Status", "status": "Failure", "code": 404}));
            let response = Response::builder().status(status).header("content-type", "application/json");
            std::future::ready(response.body(Body::from(body.to_string())).expect("a response"))
        });
        let settings = Settings {
            families: vec![&memgate_platforms::arkonis::FAMILY],
            ..memgate_platforms::default_settings()
        };
        let agents = Runtime::new().expect("a runtime").block_on(async {
            let client = kube::Client::new(service, "default");
            let reader = ClusterReader { client, max_objects: 20_000 };
            agents(&reader, settings).await
        });
        let paths = paths.lock().expect("a lock");
        (agents, paths.len())
    }

    /// One request for 500 objects of a list, and none for an object.
    #[test]
    fn more_objects_take_more_pages_and_no_other_requests() {
        let (few, at_least) = read(Size { memories: 1, pods: 1 });
        assert!(few.incomplete.is_empty() && at_least < 20, "{at_least} requests, {:?}", few.incomplete);
        let (many, requests) = read(Size { memories: 8_000, pods: 2_000 });
        assert!(many.incomplete.is_empty(), "{:?}", many.incomplete);
        assert_eq!(requests, at_least + (8_000 / 500 - 1) + 2 * (2_000 / 500 - 1));
        assert_eq!(many.pods.len(), 2_000);
        assert!(many.pods.iter().all(|pod| pod.json.pointer("/metadata/managedFields").is_none()));
        let lacking = replay(&many.pods, &many.snapshot);
        assert!(lacking.len() == 2_000 && lacking.iter().all(|replayed| replayed.lacks_memory));
    }

    #[test]
    fn a_list_of_all_pods_leaves_out_those_of_other_lists() {
        let sorts: Vec<_> = memgate_platforms::ALL.iter().flat_map(|family| family.pods.selectors).collect();
        let single = sorts.iter().filter(|sort| sort.labels.len() == 1 && sort.annotation.is_none());
        let left: Vec<String> = sorts.iter().filter_map(|sort| without(sort)).collect();
        assert_eq!(left.len(), single.count());
        assert!(left.contains(&"!arkonis.dev/deployment".to_owned()), "{left:?}");
    }
}

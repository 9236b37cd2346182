//! Reads the agents: their pods, and what decisions about them look at.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::cli::doctor::evidence::{AgentPod, Agents, Installation, Listed, Seen};
use crate::cli::doctor::missed;
use crate::cli::doctor::read::Reader;
use crate::family;
use crate::family::sympozium::api::{AGENT, AGENT_OLD, AGENT_RUN_COMPONENT, COMPONENT_LABEL, INSTANCE_LABEL};
use crate::model::kind::{Kind, NAMESPACE};
use crate::model::schema::Schema;
use crate::model::selector::PodSelector;
use crate::model::settings::Settings;
use crate::model::snapshot::{Coverage, KindState, Object, Snapshot, StateReader};

/// How often it is looked up what decisions ask for: an agent leads to a memory, and that further.
const ROUNDS: usize = 3;

/// The most single lookups.
const LOOKUPS: usize = 200;

/// core/v1 Pod; all of it is read.
static POD: Kind =
    Kind { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true, schema: Schema::Any };

/// Reads all of it, for the families of the settings.
pub(super) async fn agents(reader: &Reader, found: &Installation, settings: Settings) -> Agents {
    let mut agents = Agents::default();
    pods(reader, &settings, &mut agents).await;
    state(reader, found, settings, &mut agents).await;
    agents.imagined = imagined(&agents);
    look_up(reader, &mut agents).await;
    let every = ListParams::default;
    let quotas =
        reader.list::<ResourceQuota>(Api::all(reader.client.clone()), "resourcequotas", every()).await;
    let ranges = reader.list::<LimitRange>(Api::all(reader.client.clone()), "limitranges", every()).await;
    agents.quotas = items(quotas, "resourcequotas", &mut agents.gaps);
    agents.ranges = items(ranges, "limitranges", &mut agents.gaps);
    agents
}

fn items<T>(listed: Seen<Listed<T>>, what: &str, gaps: &mut Vec<String>) -> Seen<Vec<T>> {
    match listed {
        Seen::Found(listed) => {
            if listed.cut {
                gaps.push(cut(what));
            }
            Seen::Found(listed.items)
        }
        Seen::Absent => Seen::Absent,
        Seen::Unknown(why) => Seen::Unknown(why),
    }
}

fn cut(what: &str) -> String {
    format!("there are too many {what} to look at all of them; --limit raises the number")
}

/// The pods of each sort that a family knows.
async fn pods(reader: &Reader, settings: &Settings, agents: &mut Agents) {
    let mut seen = BTreeSet::new();
    for family in settings.families.clone() {
        for selector in family.pod_selectors {
            let params = ListParams { label_selector: labels(selector), ..ListParams::default() };
            let what = format!("pods of {}", selector.name);
            let pods = match reader.list_kind(&POD, params).await {
                Seen::Found(pods) => pods,
                Seen::Absent => continue,
                Seen::Unknown(why) => {
                    note(&mut agents.gaps, why);
                    continue;
                }
            };
            if pods.cut {
                note(&mut agents.gaps, cut(&what));
            }
            let of_sort = |pod: &Value| {
                let annotations = pod.pointer("/metadata/annotations");
                selector.annotation.is_none_or(|key| annotations.is_some_and(|all| all.get(key).is_some()))
            };
            let pods = pods.items.into_iter().filter(of_sort).map(|json| AgentPod::new(family, json));
            for pod in pods {
                if seen.insert((pod.namespace().to_owned(), pod.name().to_owned())) {
                    agents.pods.push(pod);
                }
            }
        }
    }
}

/// The same gap is told once.
fn note(gaps: &mut Vec<String>, gap: String) {
    if !gaps.contains(&gap) {
        gaps.push(gap);
    }
}

fn labels(selector: &PodSelector) -> Option<String> {
    let one = |(key, values): &(&str, &[&str])| {
        if values.is_empty() { (*key).to_owned() } else { format!("{key} in ({})", values.join(",")) }
    };
    let labels: Vec<String> = selector.labels.iter().map(one).collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

/// All objects of the kinds that decisions look up, as the webhook watches them.
async fn state(reader: &Reader, found: &Installation, settings: Settings, agents: &mut Agents) {
    let mut snapshot = Snapshot::default();
    for kind in settings.families.iter().flat_map(|family| family.fetched) {
        snapshot.set(kind, KindState::new(Coverage::Watched));
    }
    let watched: Vec<&'static Kind> =
        settings.families.iter().flat_map(|family| family.watched).copied().collect();
    for kind in watched {
        if *kind == NAMESPACE || snapshot.kind(kind).is_some() {
            continue;
        }
        let listed = if is_served(found, kind) {
            reader.list_kind(kind, ListParams::default()).await
        } else {
            Seen::Absent
        };
        match listed {
            Seen::Found(listed) => {
                if listed.cut {
                    note(&mut agents.gaps, cut(kind.plural));
                }
                agents.created.extend(listed.items.iter().filter_map(|object| created(kind, object)));
                snapshot.set(kind, known(kind, &listed.items));
            }
            Seen::Absent => snapshot.set(kind, KindState::new(Coverage::Complete)),
            Seen::Unknown(why) => note(&mut agents.gaps, why),
        }
    }
    let namespaces = found.namespaces.found().map(|listed| listed.items.as_slice()).unwrap_or_default();
    let namespaces: Vec<Value> = namespaces.iter().filter_map(labelled).collect();
    snapshot.set(&NAMESPACE, known(&NAMESPACE, &namespaces));
    snapshot.settings = settings;
    agents.snapshot = snapshot;
}

fn labelled(namespace: &Namespace) -> Option<Value> {
    serde_json::to_value(namespace).ok()
}

fn is_served(found: &Installation, kind: &Kind) -> bool {
    let Some(served) = found.served.found() else { return true };
    let version = served.get(&(kind.group.to_owned(), kind.version.to_owned()));
    kind.group.is_empty() || version.is_some_and(|plurals| plurals.contains(kind.plural))
}

fn known(kind: &'static Kind, objects: &[Value]) -> KindState {
    let mut state = KindState::new(Coverage::Watched);
    for object in objects.iter().filter_map(|object| Object::read(kind, object).ok().flatten()) {
        state.insert(object);
    }
    state
}

fn created(kind: &Kind, object: &Value) -> Option<((String, String, String), i64)> {
    let text = |field: &str| object.get("metadata")?.get(field)?.as_str();
    let time = text("creationTimestamp")?.parse::<Timestamp>().ok()?;
    let namespace = text("namespace").unwrap_or_default().to_owned();
    Some(((kind.kind.to_owned(), namespace, text("name")?.to_owned()), time.as_second()))
}

/// The pods that sympozium would make for agents that have none: where a quota refuses them, there
/// are none to look at. The other families' pods get no containers.
fn imagined(agents: &Agents) -> Vec<AgentPod> {
    if !agents.snapshot.settings.families.contains(&&family::sympozium::FAMILY) {
        return Vec::new();
    }
    let mut reader = StateReader::new(&agents.snapshot);
    let known: Vec<&Object> =
        [&AGENT, &AGENT_OLD].into_iter().flat_map(|kind| reader.everywhere(kind)).collect();
    let has_pod = |object: &&Object| agents.pods.iter().any(|pod| pod.namespace() == object.namespace);
    let pod = |object: &Object| {
        let labels = json!({COMPONENT_LABEL: AGENT_RUN_COMPONENT, INSTANCE_LABEL: object.name});
        let metadata = json!({"name": object.name, "namespace": object.namespace, "labels": labels});
        let containers = json!([{"name": "agent", "image": "agent"}]);
        let spec = json!({"containers": containers});
        let json = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        AgentPod::new(&family::sympozium::FAMILY, json)
    };
    known.into_iter().filter(|object| !has_pod(object)).map(pod).collect()
}

/// What the decisions ask for besides, one by one.
async fn look_up(reader: &Reader, agents: &mut Agents) {
    let mut asked = Vec::new();
    for _ in 0..ROUNDS {
        let open = missed::open(agents);
        let new: Vec<_> = open.into_iter().filter(|reference| !asked.contains(reference)).collect();
        if new.is_empty() {
            return;
        }
        let mut answers = Vec::new();
        for reference in new {
            if asked.len() >= LOOKUPS {
                note(&mut agents.gaps, cut("objects that pods refer to"));
                break;
            }
            match reader.get_kind(reference.kind, &reference.namespace, &reference.name).await {
                Seen::Found(object) => {
                    let object = Object::read(reference.kind, &object).ok().flatten();
                    answers.extend(object.map(|object| (reference.clone(), Some(object))));
                }
                Seen::Absent => answers.push((reference.clone(), None)),
                Seen::Unknown(why) => note(&mut agents.gaps, why),
            }
            asked.push(reference);
        }
        agents.snapshot = agents.snapshot.overlaid(answers);
    }
}

//! Whether messages outlive the process of a Memory's service. The Memory does not say it; the workload of the service
//! does.
//!
//! The way is from the address to a Service, from its selector to workloads, to the container of the platform's broker,
//! and to two of its variables. The first step that is not known ends it.

use super::prelude::*;
use crate::endpoint_view::is_external;
use crate::workloads::BROKER_VARIABLES;
use memgate_model::memory_view::{Remark, qualified};
use memgate_model::object::DEFAULT_NAMESPACE;

use super::service::{ServiceRef, clean_path};
use super::value::{EffectiveValue, ValueSource};

const PATH: &str = "durable";

/// The names of the platform's memory service, in images and as a container.
const BROKERS: [&str; 2] = ["ark-broker", "ark-cluster-memory"];

/// The volumes that end with their pod, or cannot be written.
const LOST: [&str; 6] = ["emptyDir", "ephemeral", "configMap", "secret", "projected", "downwardAPI"];

/// The volumes that outlive their pod.
const KEPT: [&str; 2] = ["persistentVolumeClaim", "nfs"];

/// How a workload keeps messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Durably,
    InMemory,
    InOwnFile,
}

/// Adds whether the memory at an address outlives its process, if the address is usable.
pub(crate) fn add(
    view: &mut MemoryView,
    address: EffectiveValue<'_>,
    place: &Pointer,
    state: &mut StateReader<'_>,
) {
    let (place, kept) = match address {
        EffectiveValue::Literal(literal) => {
            (place.key("value"), literal.text().and_then(|url| at_url(url, view, state)))
        }
        EffectiveValue::Source(source) => {
            (place.key("valueFrom").key(source.field), at_source(&source, view, state))
        }
        EffectiveValue::Nothing => (place.clone(), None),
    };
    view.at(PATH, place);
    if kept.is_some() {
        // What serves it says so, by way of its Service.
        view.set_origin(PATH, &SERVICE, "/spec");
    }
    set(view, kept);
}

/// Puts what serves a URL in the place of what serves the address of a Memory.
pub(crate) fn use_url(view: &mut MemoryView, url: Option<&str>, why: Why, state: &mut StateReader<'_>) {
    view.clear(&[PATH]);
    let kept = url.map_or_else(|| Some(Err(why)), |url| at_url(url, view, state));
    set(view, kept);
}

/// The verdict about a workload that was found.
struct Verdict<'s> {
    workload: &'s Object,
    /// That of the workload, or of the Service if files do not say it.
    namespace: String,
    kept: Kept,
}

fn set(view: &mut MemoryView, verdict: Option<Result<Verdict<'_>, Why>>) {
    match verdict {
        None => {}
        Some(Err(why)) => view.set_unknown(PATH, why),
        Some(Ok(Verdict { workload, namespace, kept })) => {
            view.set(PATH, Some(kept == Kept::Durably));
            let words = match kept {
                Kept::Durably => return,
                Kept::InMemory => "keeps messages in memory",
                Kept::InOwnFile => "keeps messages in a file of its own",
            };
            let object = Some((workload.kind.kind, namespace, workload.name.to_string()));
            view.set_remark(PATH, Remark { object, words });
        }
    }
}

/// What a source leads to; `None` for one that the platform cannot use.
fn at_source<'s>(
    source: &ValueSource<'_>,
    view: &MemoryView,
    state: &mut StateReader<'s>,
) -> Option<Result<Verdict<'s>, Why>> {
    let namespace = view.namespace.as_str();
    match source.field {
        "serviceRef" => {
            let reference = ServiceRef::read(source, namespace)?;
            let service = reference.look_up(state);
            Some(behind((reference.namespace, reference.name), service, namespace, state))
        }
        "secretKeyRef" => {
            let _named = (source.text("name")?, source.text("key")?);
            Some(Err(Why::EndpointInSecret))
        }
        "configMapKeyRef" => {
            let (name, key) = (source.text("name")?, source.text("key")?);
            let map = state.get_if_known(&CONFIG_MAP, namespace, name).found();
            match map.and_then(|map| map.tree().get("data")?.entry(key)) {
                Some(url) => at_url(url, view, state),
                None => Some(Err(Why::EndpointInConfigMap)),
            }
        }
        _ => source.tree.is_object().then_some(Err(Why::EndpointInQuery)),
    }
}

/// What a URL leads to; `None` for one that the platform cannot use.
fn at_url<'s>(url: &str, view: &MemoryView, state: &mut StateReader<'s>) -> Option<Result<Verdict<'s>, Why>> {
    let host = Endpoint::for_go(url)?.name();
    let domain = format!(".svc.{}", state.cluster_domain().trim_matches('.').to_lowercase());
    let of_service = host.strip_suffix(&domain).or_else(|| host.strip_suffix(".svc"));
    let Some((name, namespace)) = of_service.unwrap_or(&host).split_once('.') else {
        return Some(Err(Why::Serving));
    };
    if namespace.contains('.') {
        return Some(Err(Why::Serving));
    }
    let service = state.get_if_known(&SERVICE, namespace, name);
    // Without `svc`, it may be any host.
    if of_service.is_none() && service.found().is_none() {
        return Some(Err(Why::Serving));
    }
    Some(behind((namespace, name), service, &view.namespace, state))
}

/// What the workloads behind a Service say, for a reader in the namespace `home`.
fn behind<'s>(
    (namespace, name): (&str, &str),
    service: Lookup<'s>,
    home: &str,
    state: &mut StateReader<'s>,
) -> Result<Verdict<'s>, Why> {
    let shown = |name: &str| if namespace == home { qualified(namespace, name) } else { "…".to_owned() };
    let Lookup::Found(service) = service else { return Err(Why::Service(shown(name))) };
    let spec = service.tree().get("spec");
    let selector = spec.and_then(|spec| spec.get("selector")).filter(|it| it.entries().next().is_some());
    let Some(selector) = selector.filter(|_| !is_external(service)) else { return Err(Why::Serving) };
    let mut found: Option<Verdict<'s>> = None;
    let workloads = workloads(namespace, selector, state).ok_or_else(|| Why::Workload(shown(name)))?;
    for workload in workloads {
        let kept = kept(workload, namespace, state)
            .ok_or_else(|| Why::Backend(workload.kind.kind, shown(&workload.name)))?;
        match &found {
            Some(other) if (other.kept == Kept::Durably) != (kept == Kept::Durably) => {
                return Err(Why::Workload(shown(name)));
            }
            Some(_) => {}
            None => found = Some(Verdict { workload, namespace: namespace.to_owned(), kept }),
        }
    }
    found.ok_or_else(|| Why::Workload(shown(name)))
}

/// How many workloads of a kind are compared with a selector, and how many of its labels lead to them.
const MAX_COMPARED: usize = 64;
const MAX_TRIED: usize = 8;

/// By how many labels of its pods a workload is found.
const MAX_INDEXED: usize = 16;

/// Finds workloads by their namespace and each label of their pods. Those with more labels, and those that are not held,
/// are found by their namespace alone.
static BY_LABEL: Index = Index {
    place: 1,
    keys: |workload| {
        let home = home(workload);
        if is_controlled(workload) {
            Vec::new()
        } else if !workload.held || labels(workload).nth(MAX_INDEXED).is_some() {
            vec![home.into()]
        } else {
            labels(workload).map(|label| labelled(home, label).into()).collect()
        }
    },
};

fn labelled(home: &str, (key, value): (&str, &str)) -> String {
    format!("{home}/{key}={value}")
}

/// The namespace of a workload; empty for one of files that say none.
fn home(workload: &Object) -> &str {
    let is_unplaced = !workload.namespace_given && *workload.namespace == *DEFAULT_NAMESPACE;
    if is_unplaced { "" } else { &workload.namespace }
}

/// The labels of the pods of a workload.
fn labels(workload: &Object) -> impl Iterator<Item = (&str, &str)> {
    workload.tree().at(&["spec", "template", "metadata", "labels"]).into_iter().flat_map(Tree::entries)
}

/// The workloads whose pods a selector selects in a namespace, by kind and name; `None` if they are not known, or too many
/// to be compared. Of files, those without a namespace count too.
fn workloads<'s>(namespace: &str, selector: &Tree, state: &StateReader<'s>) -> Option<Vec<&'s Object>> {
    let work = state.budget();
    let wanted: ByKey<&str, &str> = selector.entries().collect();
    let count = selector.entries().count();
    let few = |kind: &Kind, key: &str| {
        let found = state.peek_indexed(kind, &BY_LABEL, key).take(MAX_COMPARED + 1);
        let found: Vec<_> = found.take_while(|_| work.step()).collect();
        (found.len() <= MAX_COMPARED).then_some(found)
    };
    let fits = |workload: &&'s Object| {
        let labels = labels(workload).take_while(|(key, _)| work.bytes(key.len()));
        labels.filter(|(key, value)| wanted.get(key).is_some_and(|it| it == value)).count() == count
    };
    let mut found = Vec::new();
    for (kind, _) in WORKLOADS {
        for home in [namespace, ""] {
            let unsorted = few(kind, home)?;
            if state.may_lack(kind, (&BY_LABEL, home)) {
                return None;
            }
            let mut labels = selector.entries().take(MAX_TRIED);
            let sorted = labels.find_map(|label| few(kind, &labelled(home, label)))?;
            found.extend(unsorted.into_iter().chain(sorted).filter(fits));
        }
    }
    found.sort_by(|one, other| (one.kind.kind, &one.name).cmp(&(other.kind.kind, &other.name)));
    Some(found)
}

/// Whether another workload controls a ReplicaSet.
fn is_controlled(workload: &Object) -> bool {
    let owners = workload.tree().list_at(&["metadata", "ownerReferences"]);
    workload.kind.kind == "ReplicaSet"
        && owners.iter().any(|owner| matches!(owner.get("controller"), Some(Tree::Boolean(true))))
}

/// How a workload in a namespace keeps messages, if that is known.
fn kept(workload: &Object, namespace: &str, state: &mut StateReader<'_>) -> Option<Kept> {
    let pod = workload.tree().at(&["spec", "template", "spec"])?;
    let container = broker(pod)?;
    let [backend, path] = BROKER_VARIABLES;
    match variable(container, backend, namespace, state).ok()?.as_deref() {
        Some("postgres") => return Some(Kept::Durably),
        None | Some("memory") => {}
        Some(_) => return None,
    }
    let Some(path) = variable(container, path, namespace, state).ok()? else {
        return Some(Kept::InMemory);
    };
    let path = path.starts_with('/').then(|| clean_path(&path))?;
    let mounts = container.list_at(&["volumeMounts"]);
    let holding = mounts.iter().filter_map(|mount| {
        let at = clean_path(mount.text_at(&["mountPath"])?);
        let is_below = path
            .strip_prefix(at.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || at == "/");
        is_below.then_some((at.len(), mount.text_at(&["name"])?))
    });
    let Some((_, volume)) = holding.max_by_key(|(length, _)| *length) else { return Some(Kept::InOwnFile) };
    let claims = workload.tree().list_at(&["spec", "volumeClaimTemplates"]);
    if claims.iter().any(|claim| claim.text_at(&["metadata", "name"]) == Some(volume)) {
        return Some(Kept::Durably);
    }
    let volumes = pod.list_at(&["volumes"]);
    let volume = volumes.iter().find(|it| it.text_at(&["name"]) == Some(volume))?;
    let is_any_of = |kinds: &[&str]| kinds.iter().any(|kind| volume.get(kind).is_some());
    let is_kept = is_any_of(&KEPT).then_some(Kept::Durably);
    is_kept.or_else(|| is_any_of(&LOST).then_some(Kept::InOwnFile))
}

/// The one container of the platform's memory service: by its image, else by its name.
fn broker(pod: &Tree) -> Option<&Tree> {
    let containers = pod.list_at(&["containers"]);
    let image = |container: &&Tree| {
        let image = container.text_at(&["image"]).unwrap_or_default();
        let repository = image.split('@').next().unwrap_or_default();
        let last = repository.rsplit('/').next().unwrap_or_default();
        BROKERS.contains(&last.split(':').next().unwrap_or_default())
    };
    let name = |container: &&Tree| container.text_at(&["name"]).is_some_and(|name| BROKERS.contains(&name));
    let by_image: Vec<&Tree> = containers.iter().filter(image).collect();
    let found = if by_image.is_empty() { containers.iter().filter(name).collect() } else { by_image };
    if let [one] = found.as_slice() { Some(one) } else { None }
}

/// A value is not known.
struct NotKnown;

/// The value of a variable as the kubelet makes it; `None` for one that is not set.
fn variable(
    container: &Tree,
    name: &str,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Result<Option<String>, NotKnown> {
    let work = state.budget();
    let list = |field| container.list_at(&[field]);
    let named = list("env").iter().rev().filter(|entry| entry.text_at(&["name"]) == Some(name));
    for entry in named {
        let Some(from) = entry.get("valueFrom") else {
            let text = entry.text_at(&["value"]).unwrap_or_default();
            return if text.contains("$(") { Err(NotKnown) } else { Ok(Some(text.to_owned())) };
        };
        let source = from.get("configMapKeyRef").ok_or(NotKnown)?;
        let key = source.text_at(&["key"]).ok_or(NotKnown)?;
        let value = in_config_map(source, key, namespace, state)?;
        if value.is_some() || !work.step() {
            return Ok(value);
        }
        if !is_optional(source) {
            return Err(NotKnown);
        }
    }
    for source in list("envFrom").iter().rev() {
        let Some(key) = name.strip_prefix(source.text_at(&["prefix"]).unwrap_or_default()) else { continue };
        let source = source.get("configMapRef").ok_or(NotKnown)?;
        let value = in_config_map(source, key, namespace, state)?;
        if value.is_some() || !work.step() {
            return Ok(value);
        }
    }
    Ok(None)
}

fn is_optional(source: &Tree) -> bool {
    matches!(source.get("optional"), Some(Tree::Boolean(true)))
}

/// The value at a key of the ConfigMap that a source names; `None` for a key that it lacks, or for an optional ConfigMap
/// that does not exist.
fn in_config_map(
    source: &Tree,
    key: &str,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Result<Option<String>, NotKnown> {
    let name = source.text_at(&["name"]).ok_or(NotKnown)?;
    match state.get_if_known(&CONFIG_MAP, namespace, name) {
        Lookup::Found(map) if map.has_data_key(key) => {
            Ok(map.tree().get("data").and_then(|data| data.entry(key)).map(str::to_owned))
        }
        Lookup::Found(_) => Ok(None),
        Lookup::Absent if is_optional(source) => Ok(None),
        Lookup::Absent | Lookup::Unknown(()) => Err(NotKnown),
    }
}

//! The pods of agents that are known, and how many of them lack their memory. No I/O here.

use std::collections::{BTreeMap, BTreeSet};

use kube::runtime::watcher::Event;
use serde::Deserialize;

use crate::metrics::PodCounts;
use crate::store::apply_event::RawObject;
use memgate_model::kind::SYSTEM_NAMESPACES;
use memgate_model::selector::PodSelector;
use memgate_model::settings::Settings;
use memgate_model::workload::deployment_of;
use memgate_platforms::inject::INJECTED_ANNOTATION;
use memgate_primitives::name::is_dns_subdomain;

use super::Sort;

/// Namespace and name.
type Key = (String, String);

/// A pod to answer for.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) key: Key,
    sort: usize,
    owner: String,
    /// Whether memgate has marked it.
    pub(super) is_injected: bool,
    /// The pod as JSON.
    pub(super) text: Box<str>,
}

impl Running {
    pub(super) fn answered(self, lacks_memory: Option<bool>) -> Answered {
        let Self { key, sort, owner, .. } = self;
        Answered { key, sort, owner, lacks_memory }
    }
}

/// The answer for a pod.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) key: Key,
    pub(super) sort: usize,
    pub(super) owner: String,
    /// `None` if it is not known.
    pub(super) lacks_memory: Option<bool>,
}

/// What is kept of a pod.
#[derive(Debug)]
struct Known {
    sort: usize,
    owner: String,
    lacks_memory: bool,
}

/// The pods of agents.
pub(super) struct Pods<'s> {
    sorts: &'s [Sort],
    known: BTreeMap<Key, Known>,
    /// For each sort whose list is not complete yet, the pods that it has brought.
    listed: BTreeMap<usize, BTreeSet<Key>>,
    /// By namespace and owner, how many lack their memory.
    lacking: PodCounts,
    has_changed: bool,
}

impl<'s> Pods<'s> {
    pub(super) fn new(sorts: &'s [Sort]) -> Self {
        let (known, listed, lacking) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { sorts, known, listed, lacking, has_changed: true }
    }

    /// Takes an event of the watch of a sort. A pod that is to be answered for goes to those that `wait`.
    pub(super) fn take(
        &mut self,
        sort: usize,
        event: Event<RawObject>,
        settings: &Settings,
        wait: &mut BTreeMap<Key, Running>,
    ) {
        let (raw, is_listed) = match event {
            Event::Init => {
                self.listed.insert(sort, BTreeSet::new());
                return;
            }
            Event::InitDone => {
                let listed = self.listed.remove(&sort).unwrap_or_default();
                let gone = self.known.iter().filter(|(key, it)| it.sort == sort && !listed.contains(key));
                for key in gone.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                    self.remove(&key);
                }
                return;
            }
            Event::Delete(raw) => {
                let ([namespace, name, _], _) = raw.into_parts();
                return self.remove_of(sort, &(namespace, name), wait);
            }
            Event::InitApply(raw) => (raw, true),
            Event::Apply(raw) => (raw, false),
        };
        match self.read(sort, raw, settings) {
            Ok(running) => {
                if is_listed {
                    self.listed.entry(sort).or_default().insert(running.key.clone());
                }
                wait.insert(running.key.clone(), running);
            }
            Err(key) => self.remove_of(sort, &key, wait),
        }
    }

    /// Reads a pod of another list, if it is known: one that the watch has not brought yet, or has removed, stays so.
    pub(super) fn take_known(&self, sort: usize, raw: RawObject, settings: &Settings) -> Option<Running> {
        self.read(sort, raw, settings).ok().filter(|pod| self.known.contains_key(&pod.key))
    }

    /// Reads a pod that runs and is of this sort first; otherwise returns its key.
    fn read(&self, sort: usize, raw: RawObject, settings: &Settings) -> Result<Running, Key> {
        let ([namespace, name, _], text) = raw.into_parts();
        let head: Head = serde_json::from_str(text.get()).unwrap_or_default();
        let metadata = head.metadata;
        let has_annotation =
            |key: &str| metadata.annotations.as_ref().is_some_and(|all| all.contains_key(key));
        let labels = metadata.labels.unwrap_or_default();
        let first = self.sorts.iter().position(|it| it.selector.selects(&labels, has_annotation));
        let phase = head.status.and_then(|status| status.phase);
        let has_ended = matches!(phase.as_deref(), Some("Succeeded" | "Failed"));
        let is_seen =
            !SYSTEM_NAMESPACES.contains(&namespace.as_str()) && settings.policies.own_namespace != namespace;
        if first != Some(sort) || has_ended || metadata.deletion_timestamp.is_some() || !is_seen {
            return Err((namespace, name));
        }
        let is_injected = has_annotation(INJECTED_ANNOTATION);
        let owners = metadata.owner_references.unwrap_or_default();
        let hash = labels.get("pod-template-hash").map(String::as_str);
        let owner = owner(&owners, hash).unwrap_or_else(|| format!("Pod/{name}"));
        Ok(Running { key: (namespace, name), sort, owner, is_injected, text: text.get().into() })
    }

    /// Keeps the answer for a pod; one that is not known leaves what was known before.
    pub(super) fn put(&mut self, answered: Answered) {
        let Answered { key, sort, owner, lacks_memory } = answered;
        let before = self.remove(&key).is_some_and(|it| it.lacks_memory);
        let lacks_memory = lacks_memory.unwrap_or(before);
        if lacks_memory {
            *self.lacking.entry((key.0.clone(), owner.clone())).or_default() += 1;
            self.has_changed = true;
        }
        self.known.insert(key, Known { sort, owner, lacks_memory });
    }

    fn remove(&mut self, key: &Key) -> Option<Known> {
        let known = self.known.remove(key)?;
        if known.lacks_memory {
            let place = (key.0.clone(), known.owner.clone());
            let left = self.lacking.remove(&place).unwrap_or_default().saturating_sub(1);
            if left > 0 {
                self.lacking.insert(place, left);
            }
            self.has_changed = true;
        }
        Some(known)
    }

    /// Removes a pod, unless another sort has it.
    fn remove_of(&mut self, sort: usize, key: &Key, wait: &mut BTreeMap<Key, Running>) {
        if wait.get(key).is_some_and(|it| it.sort == sort) {
            wait.remove(key);
        }
        if self.known.get(key).is_some_and(|it| it.sort == sort) {
            self.remove(key);
        }
    }

    /// The sorts of which a namespace has pods; the empty one stands for all.
    pub(super) fn sorts_in(&self, namespace: &str) -> Vec<(usize, &'static PodSelector)> {
        let from = (namespace.to_owned(), String::new());
        let here =
            self.known.range(from..).take_while(|((of, _), _)| namespace.is_empty() || of == namespace);
        let sorts: BTreeSet<usize> = here.map(|(_, it)| it.sort).collect();
        sorts.into_iter().filter_map(|sort| Some((sort, self.sorts.get(sort)?.selector))).collect()
    }

    /// Whether the counts have changed since they were asked for.
    pub(super) const fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// How many pods lack their memory, by namespace and owner.
    pub(super) const fn counts(&mut self) -> &PodCounts {
        self.has_changed = false;
        &self.lacking
    }
}

/// The controller as `KIND/NAME`, of a ReplicaSet its Deployment. `None` without one, or if its kind or name is none:
/// the user who makes a pod writes them.
fn owner(owners: &[Owner], hash: Option<&str>) -> Option<String> {
    let Owner { kind, name, .. } = owners.iter().find(|owner| owner.controller == Some(true))?;
    let is_kind = (1..=63).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_kind || !is_dns_subdomain(name) {
        return None;
    }
    let deployment = deployment_of(name, hash).filter(|_| kind == "ReplicaSet");
    Some(deployment.map_or_else(|| format!("{kind}/{name}"), |name| format!("Deployment/{name}")))
}

/// What tells whether a pod is one of an agent, and whose.
#[derive(Debug, Default, Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Owner {
    kind: String,
    name: String,
    #[serde(default)]
    controller: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Status {
    #[serde(default)]
    phase: Option<String>,
}

#[cfg(test)]
mod tests;

//! The views of an object as it would be stored, which the rules of policies read.
//!
//! A decision makes them for policies; this module makes them for `memgate view`, whether a policy matches the object
//! or not.

use memgate_model::family::{Family, Subject};
use memgate_model::memory_view::MemoryView;
use memgate_model::pod::Pod;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::view::MIRROR_POD;
use memgate_platforms::{container_view, references};
use memgate_policy::written::Written;
use memgate_primitives::budget::Budget;

use super::{namespace_of_pod, resolve_namespace, subject};

/// The views of the object of a request, one by each enabled family that knows it; `stored` is its JSON as it would be
/// stored. None of an object that cannot be read, or is larger than what is read.
pub fn views(request: &Request<'_>, stored: &str, snapshot: &Snapshot) -> Vec<MemoryView> {
    let budget = Budget::new(request.cancelled, stored.len());
    let mut views = if request.is_pod() {
        pod_views(request, stored, snapshot, &budget)
    } else {
        resource_view(request, stored, snapshot, &budget).into_iter().collect()
    };
    if let Some(later) = request.occasion.later {
        for view in &mut views {
            view.set_later(later);
        }
    }
    if budget.has_ended() { Vec::new() } else { views }
}

fn resource_view(
    request: &Request<'_>,
    stored: &str,
    snapshot: &Snapshot,
    budget: &Budget<'_>,
) -> Option<MemoryView> {
    let (family, kind) =
        memgate_platforms::validated(&snapshot.settings.families, &request.group, &request.kind)?;
    let object = Tree::parse_within(stored, &kind.schema, budget).ok()?;
    let (subject, mut state) = subject(kind, request, (&object, None), snapshot, budget);
    let mut view = of_object(family, &subject, true, &mut state)?;
    Written::new(stored).complete(&mut view);
    Some(view)
}

/// The view that a family has of an object; if it is wanted, with the number of agents that name its memory.
pub(super) fn of_object(
    family: &'static Family,
    subject: &Subject<'_>,
    counts_users: bool,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let mut view = (family.views.of_object)(subject, state)?;
    if counts_users {
        references::count_users(family, subject, &mut view, state);
    }
    Some(view)
}

fn pod_views(
    request: &Request<'_>,
    stored: &str,
    snapshot: &Snapshot,
    budget: &Budget<'_>,
) -> Vec<MemoryView> {
    let sent = request.object.unwrap_or_default();
    let Ok(pod) = Pod::parse_within(sent, budget) else { return Vec::new() };
    if pod.annotation(MIRROR_POD).is_some() {
        return Vec::new();
    }
    let namespace = namespace_of_pod(&pod, &request.namespace, snapshot);
    let (namespace, mut state) = resolve_namespace(namespace, snapshot, budget);
    let families = snapshot.settings.families.iter();
    let edited = if stored == sent { None } else { Pod::parse(stored).ok() };
    let pods = [&pod, edited.as_ref().unwrap_or(&pod)];
    let views = families.filter_map(|family| of_pod(family, pods, namespace, &mut state));
    let written = Written::new(stored);
    let named = views.map(|mut view| {
        written.complete(&mut view);
        view
    });
    named.collect()
}

/// The view that a family has of a pod, before its name and labels are added: of the pod as it was sent, with its
/// containers as it would be stored. The pods are those that were sent, and that would be stored.
pub(super) fn of_pod(
    family: &Family,
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let mut view = (family.views.of_pod)(pods, namespace, state)?;
    if family.pods.adds_containers {
        view.containers = container_view::containers(pods);
    }
    Some(view)
}

//! Which containers of a pod get the variables of its Memory: the agent's own. A mesh proxy or a secrets agent has no use
//! for a credential of the Memory, and would not start where its Secret is missing.

use std::cell::OnceCell;

use crate::ark::FAMILY;
use crate::ark::prelude::*;
use crate::common::POD_CREDENTIAL_SHARED;
use crate::inject::env::ExistingEnv;
use crate::inject::neighbours::{is_other_sidecar, mesh_of_proxy};
use crate::inject::own::init_containers;
use memgate_model::view::ISTIO_STATUS;
use memgate_primitives::budget::{Limit, MAX_ENTRIES};

use super::find;
use super::{HEADER_PREFIX, NAME};

/// Containers of a pod, each with its index.
pub(super) type Containers<'p> = Vec<(usize, &'p Container<'p>)>;

/// The containers that get the memory, and the known sidecars that get nothing.
pub(super) struct Chosen<'p> {
    pub(super) injected: Containers<'p>,
    sidecars: Containers<'p>,
    /// Whether the annotation names containers.
    is_named: bool,
}

/// Chooses the containers that the annotation names, else the agent's own. Without a container it says why.
pub(super) fn choose<'p>(pod: &'p Pod<'p>, injection: &mut Injection, state: &StateReader<'_>) -> Chosen<'p> {
    let (mut sidecars, mut own) = by_owner(pod, state);
    if own.is_empty() {
        // The user runs one of them as an agent.
        (own, sidecars) = (sidecars, own);
    }
    let named = find::names(pod.annotation(CONTAINERS_ANNOTATION).unwrap_or_default());
    if named.is_empty() {
        leave_out_newcomers(pod, &mut own);
        return Chosen { injected: own, sidecars, is_named: false };
    }
    let injected = named_ones(pod, named, injection, state.budget());
    let is_injected: Members<usize> = injected.iter().map(|(index, _)| *index).collect();
    sidecars.retain(|(index, _)| !is_injected.contains(index));
    Chosen { injected, sidecars, is_named: true }
}

/// The known sidecars of a pod, and its other containers.
fn by_owner<'p>(pod: &'p Pod<'p>, state: &StateReader<'_>) -> (Containers<'p>, Containers<'p>) {
    let work = state.budget();
    let inits = OnceCell::new();
    let has_init = |name: &str| {
        let names = || init_containers(pod, work).into_iter().filter_map(|init| Some(init.name?.to_string()));
        inits.get_or_init(|| names().collect::<Members<String>>()).contains(name)
    };
    let of_istio = marker::read(pod, ISTIO_STATUS);
    let of_istio = of_istio.as_ref().and_then(|status| status.get("containers")?.as_array());
    let of_istio: Members<&str> = of_istio.into_iter().flatten().filter_map(Json::as_str).collect();
    let globs = &state.settings().ark.sidecars;
    let is_sidecar = |name: &str| {
        is_other_sidecar(name)
            || of_istio.contains(name)
            || mesh_of_proxy(name, has_init).is_some()
            || globs.iter().any(|glob| glob.matches(name, work))
    };
    let all = pod.containers().iter().enumerate();
    all.partition(|(_, container)| container.name.as_deref().is_some_and(is_sidecar))
}

/// Leaves out what another webhook added after memgate: where memgate's annotation names containers of which one really
/// has its Memory, the others came later.
fn leave_out_newcomers(pod: &Pod<'_>, own: &mut Containers<'_>) {
    let known = marker::containers(pod, &FAMILY);
    let is_known = |container: &Container<'_>| known.contains(container.name.as_deref().unwrap_or_default());
    if own.iter().any(|(_, container)| is_known(container) && container.variable(NAME).is_some()) {
        own.retain(|(_, container)| is_known(container));
    }
}

/// The containers with these names.
fn named_ones<'p>(
    pod: &'p Pod<'p>,
    named: Vec<&str>,
    injection: &mut Injection,
    work: &Budget<'_>,
) -> Containers<'p> {
    if named.len() > MAX_ENTRIES {
        work.over_limit(|| annotation_pointer(CONTAINERS_ANNOTATION), Limit::Entries);
        return Vec::new();
    }
    let containers = pod.containers().iter().enumerate();
    let known: Members<&str> =
        containers.clone().filter_map(|(_, container)| container.name.as_deref()).collect();
    let at = annotation_pointer(CONTAINERS_ANNOTATION);
    let unknown: Vec<Finding> = named
        .iter()
        .filter(|name| !known.contains(*name))
        .map(|name| {
            let name = excerpt(name);
            Finding::warn_within(work, &POD_CONTAINER_UNKNOWN, at.clone(), move |_| {
                format!("container {} named in {CONTAINERS_ANNOTATION} does not exist", quoted(&name))
            })
        })
        .collect();
    if unknown.len() == named.len() {
        injection.reason = Reason::NoContainer;
        injection.unmet = unknown;
    } else {
        injection.warnings.extend(unknown);
    }
    let named: Members<&str> = named.into_iter().collect();
    let is_named = |container: &Container<'_>| container.name.as_deref().is_some_and(|it| named.contains(it));
    containers.filter(|(_, container)| is_named(container)).collect()
}

impl Chosen<'_> {
    /// Warns of each sidecar that holds a credential of this Memory, as a template has it to which all containers got one.
    pub(super) fn shared_credentials<'c>(
        &'c self,
        [home, name]: [&'c str; 2],
        work: &'c Budget<'_>,
    ) -> impl Iterator<Item = Finding> + use<'c> {
        let advice = if self.is_named { "remove it" } else { NAME_CONTAINERS };
        self.sidecars.iter().filter_map(move |(index, sidecar)| {
            let existing = ExistingEnv::read(sidecar, &[HEADER_PREFIX]);
            let mut held = existing.iter().filter(|(_, it)| it.reference().secret_key_ref.is_some());
            let variable = excerpt(held.next()?.0);
            let sidecar = excerpt(sidecar.name.as_deref().unwrap_or_default());
            let memory = excerpt(&format!("{home}/{name}"));
            let at = env::container(*index).key("env");
            Some(Finding::warn_within(work, &POD_CREDENTIAL_SHARED, at, move |at| {
                let (field, sidecar, memory) = (at.field(), quoted(&sidecar), quoted(&memory));
                format!("{field}: {sidecar} holds {variable} of Memory {memory}; {advice}")
            }))
        })
    }
}

/// What to do about a sidecar that holds a credential.
const NAME_CONTAINERS: &str = "name the agent's containers in memgate.dev/ark-containers";

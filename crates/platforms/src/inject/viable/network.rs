//! The order of init containers: which of them have a network.
//!
//! They run one after the other. A mesh redirects the connections of a pod to its proxy, from an init container on, or with
//! a CNI plugin from the start. A proxy that is an ordinary container starts after all of them, so until then no
//! connection succeeds. A native sidecar runs from its place in the list on.

use crate::prelude::*;

use super::{Surroundings, at, elements, json};
use crate::inject::neighbours::{MESHES, Mesh, mesh_of_proxy, mesh_of_redirector};

/// The label of a namespace with `enabled`, or with the revision that adds a proxy to its pods.
const ISTIO_NAMESPACE: [&str; 2] = ["istio-injection", "istio.io/rev"];

/// The label or annotation of a pod that says whether Istio adds its proxy.
const ISTIO_POD: &str = "sidecar.istio.io/inject";

/// The label of a namespace or a pod without a proxy of its own, where the value is `ambient`.
const ISTIO_MODE: &str = "istio.io/dataplane-mode";

/// Where init containers are inserted: before the existing one of this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// Of what others wait for: the memory server, and the wait for the private memory.
    pub(crate) front: usize,
    /// Of the wait for the shared memory.
    pub(crate) end: usize,
}

/// Which init containers of a pod have a network.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Network<'p> {
    /// All of them, as far as the pod shows.
    Open,
    /// Those behind the last native sidecar of a mesh, before this index.
    Behind(usize),
    /// Those before the one of this index, which redirects connections. With each mesh whose proxy is an ordinary container,
    /// and the index of the first that redirects to it, in the order of the indices.
    Before(usize, Vec<(usize, &'static Mesh)>),
    /// None of them: CNI plugins redirect to the proxies of these meshes. Each with its proxy, if that is in the pod.
    Nowhere(Vec<(&'static Mesh, Option<&'p str>)>),
}

/// Why an init container cannot reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutOff<'p> {
    /// The proxy starts after all init containers. With its name, if it is in the pod.
    Everywhere(Option<&'p str>),
    /// It stands behind the one of this index, which redirects its connections.
    Behind(usize),
}

impl<'p> Surroundings<'p> {
    /// Where init containers have a network. Without one, what needs none goes to the front.
    pub(crate) fn places(&self) -> Places {
        let all = self.parts.init_containers().len();
        match self.network() {
            Network::Open | Network::Nowhere(_) => Places { front: 0, end: all },
            Network::Behind(front) => Places { front: *front, end: all },
            Network::Before(end, _) => Places { front: 0, end: *end },
        }
    }

    /// Which init containers have a network.
    fn network(&self) -> &Network<'p> {
        self.network.get_or_init(|| self.find_network())
    }

    fn find_network(&self) -> Network<'p> {
        let inits = self.parts.init_containers();
        let proxies = Proxies::beside(inits);
        let is_mesh_sidecar = |it: &Container<'_>| it.is_native_sidecar() && proxies.mesh(it).is_some();
        if let Some(last) = inits.iter().rposition(is_mesh_sidecar) {
            return Network::Behind(last + 1);
        }
        if let Some(first) = inits.iter().position(redirects) {
            let has_proxy =
                |mesh: &&Mesh| self.pod.containers().iter().any(|it| proxies.mesh(it) == Some(*mesh));
            let meshes: Vec<&'static Mesh> = MESHES.iter().filter(has_proxy).collect();
            // An init container behind a later redirector of a mesh is behind its first one too.
            let first_to = |mesh: &'static Mesh| {
                let is_of_mesh = |it: &Container<'_>| {
                    redirects(it) && mesh_of_init(name(it)).is_none_or(|own| own == mesh)
                };
                Some((inits.iter().position(is_of_mesh)?, mesh))
            };
            let mut to_proxies: Vec<_> = meshes.into_iter().filter_map(first_to).collect();
            to_proxies.sort_by_key(|(index, _)| *index);
            return Network::Before(first, to_proxies);
        }
        let by_plugin: Vec<_> = MESHES.iter().filter_map(|mesh| self.by_plugin(mesh)).collect();
        if by_plugin.is_empty() { Network::Open } else { Network::Nowhere(by_plugin) }
    }

    /// A mesh to whose proxy a CNI plugin redirects the connections of the pod, with that proxy.
    fn by_plugin(&self, mesh: &'static Mesh) -> Option<(&'static Mesh, Option<&'p str>)> {
        let sign = mesh.cni.as_ref()?;
        let has = |init: &str| self.parts.init_containers().iter().any(|it| name(it) == init);
        let is_annotated = |(key, value)| self.pod.annotation(key) == Some(value);
        if !sign.init_container.is_none_or(has) || !sign.annotation.is_none_or(is_annotated) {
            return None;
        }
        let is_of = |name: &&str| mesh_of_proxy(name, |_| false) == Some(mesh);
        let proxy = self.pod.containers().iter().map(name).find(is_of);
        (proxy.is_some() || !sign.with_proxy).then_some((mesh, proxy))
    }

    /// Why an init container cannot reach a port of a server: the existing one of this index, or one that would be added.
    pub(crate) fn cut_off(&self, existing: Option<usize>, port: u16) -> Option<CutOff<'p>> {
        match self.network() {
            Network::Open | Network::Behind(_) => None,
            Network::Before(_, redirecting) => {
                let mut before =
                    redirecting.iter().take_while(|(index, _)| existing.is_some_and(|it| it > *index));
                let cuts_off = before.find(|(_, mesh)| !self.excludes_outbound(mesh, port));
                cuts_off.map(|(index, _)| CutOff::Behind(*index))
            }
            Network::Nowhere(meshes) => {
                let cuts_off = meshes.iter().find(|(mesh, _)| !self.excludes_outbound(mesh, port));
                cuts_off.map(|(_, proxy)| CutOff::Everywhere(*proxy))
            }
        }
    }

    fn excludes_outbound(&self, mesh: &Mesh, port: u16) -> bool {
        self.excludes(mesh, mesh.excluded_outbound, port)
    }

    fn excludes(&self, mesh: &Mesh, annotation: Option<&str>, port: u16) -> bool {
        let ports = annotation.and_then(|annotation| self.pod.annotation(annotation));
        ports.is_some_and(|ports| lists(ports, port, mesh.port_ranges))
    }

    /// Whether a proxy of the pod, or one that it will have, refuses HTTP requests of the kubelet to this port.
    pub(crate) fn refuses_http_probes(&self, port: u16) -> bool {
        let inits = self.parts.init_containers();
        let proxies = Proxies::beside(inits);
        let is_in_pod = |mesh: &Mesh| {
            let mut all = inits.iter().chain(self.pod.containers());
            all.any(|it| proxies.mesh(it) == Some(mesh))
        };
        let is_to_come = |mesh: &Mesh| mesh.name == "istio" && self.will_have_istio();
        MESHES.iter().filter(|mesh| mesh.refuses_http_probes).any(|mesh| {
            (is_in_pod(mesh) || is_to_come(mesh)) && !self.excludes(mesh, mesh.excluded_inbound, port)
        })
    }

    /// Whether Istio will add its proxy to the pod.
    fn will_have_istio(&self) -> bool {
        let of_namespace = |label| self.namespace.and_then(|namespace| namespace.label(label));
        let of_pod = [self.pod.label(ISTIO_POD), self.pod.annotation(ISTIO_POD)];
        let mode = self.pod.label(ISTIO_MODE).or_else(|| of_namespace(ISTIO_MODE));
        if of_pod.contains(&Some("false")) || mode == Some("ambient") {
            return false;
        }
        let [injection, revision] = ISTIO_NAMESPACE.map(of_namespace);
        self.pod.label(ISTIO_POD) == Some("true") || injection == Some("enabled") || revision.is_some()
    }
}

/// Knows proxies of meshes, by the redirectors of a pod.
struct Proxies(Vec<&'static str>);

impl Proxies {
    /// Those beside these init containers.
    fn beside(inits: &[Container<'_>]) -> Self {
        let all = MESHES.iter().flat_map(|mesh| mesh.redirectors).copied();
        Self(all.filter(|redirector| inits.iter().any(|it| name(it) == *redirector)).collect())
    }

    /// The mesh of a container that is a proxy.
    fn mesh(&self, container: &Container<'_>) -> Option<&'static Mesh> {
        mesh_of_proxy(name(container), |init| self.0.contains(&init))
    }
}

/// The name of a container; empty if it has none.
fn name<'c>(container: &'c Container<'_>) -> &'c str {
    container.name.as_deref().unwrap_or_default()
}

/// The mesh that adds an init container of this name.
fn mesh_of_init(name: &str) -> Option<&'static Mesh> {
    let is_sign = |mesh: &&Mesh| mesh.cni.as_ref().is_some_and(|sign| sign.init_container == Some(name));
    mesh_of_redirector(name).or_else(|| MESHES.iter().find(is_sign))
}

/// Whether an init container redirects the connections of the pod: one of a mesh, or one that may change the network.
fn redirects(container: &Container<'_>) -> bool {
    mesh_of_redirector(name(container)).is_some()
        || !container.is_native_sidecar() && may_change_network(container)
}

/// Whether a container gets a capability with which it can redirect connections.
fn may_change_network(container: &Container<'_>) -> bool {
    let context = json(container.security_context);
    elements(at(&context, "/capabilities/add")).iter().filter_map(Json::as_str).any(|it| {
        let upper = it.to_ascii_uppercase();
        ["NET_ADMIN", "ALL"].contains(&upper.strip_prefix("CAP_").unwrap_or(&upper))
    })
}

/// Whether a list of ports, separated by commas, has this one; with or without ranges such as `8000-9000`.
fn lists(ports: &str, port: u16, with_ranges: bool) -> bool {
    let number = |text: &str| text.trim().parse::<u16>().ok();
    ports.split(',').any(|entry| {
        let range = entry.split_once('-').filter(|_| with_ranges);
        let ends = range.map(|(first, last)| (number(first), number(last)));
        match ends {
            Some((first, last)) => {
                first.zip(last).is_some_and(|(first, last)| (first..=last).contains(&port))
            }
            None => number(entry) == Some(port),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::pod::Pod;
    use serde_json::json;

    #[test]
    fn reads_lists_and_ranges_of_ports() {
        for (ports, with_ranges, expected) in [
            ("8080", false, true),
            (" 25 , 8080 ", false, true),
            ("18080,80800,808", false, false),
            ("8000-9000", true, true),
            ("8080-8080", true, true),
            ("1, 8000 - 8080", true, true),
            ("8000-9000", false, false),
            ("9000-8000", true, false),
            ("8000-", true, false),
            ("-9000", true, false),
            ("8000-9000-10000", true, false),
            ("8000-99999", true, false),
            ("8080/tcp", true, false),
            ("0x1f90", true, false),
            ("", true, false),
            (",,", true, false),
            ("*", true, false),
        ] {
            assert_eq!(lists(ports, 8080, with_ranges), expected, "{ports:?} {with_ranges}");
        }
    }

    #[test]
    fn reads_every_annotation_of_the_table() {
        let of_mesh = |mesh: &'static Mesh| {
            let sign = mesh.cni.as_ref().and_then(|sign| sign.annotation).map(|(key, _)| key);
            [sign, mesh.excluded_outbound, mesh.excluded_inbound].into_iter().flatten()
        };
        for key in MESHES.iter().flat_map(of_mesh).chain([ISTIO_POD]) {
            let text = json!({"metadata": {"annotations": {key: "x"}}}).to_string();
            let pod = Pod::parse(&text).expect("a pod");
            assert_eq!(pod.annotation(key), Some("x"), "{key}");
        }
    }
}

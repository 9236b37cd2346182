//! Who else may be in a pod: service meshes, and sidecars that are never an agent. A plain table; docs/managed.md says
//! what memgate does beside each.

/// A service mesh, by what it leaves in a pod.
#[derive(Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Its name.
    pub name: &'static str,
    /// The init containers that redirect the pod's connections to its proxy. Any other init container that may change
    /// the network redirects too.
    pub redirectors: &'static [&'static str],
    /// Its proxies, ordinary containers or native sidecars. A `*` at the end stands for any text.
    pub proxies: &'static [&'static str],
    /// Whether the proxies' names count only beside a redirector, since others use them too.
    pub proxies_beside_redirector: bool,
    /// What shows that a CNI plugin redirects, where no init container does.
    pub cni: Option<CniSign>,
    /// The annotation with the ports whose connections from the pod are not redirected.
    pub excluded_outbound: Option<&'static str>,
    /// The annotation with the ports whose connections to the pod are not redirected.
    pub excluded_inbound: Option<&'static str>,
    /// Whether these annotations may name ranges of ports.
    pub port_ranges: bool,
    /// Whether its proxy refuses the kubelet's HTTP requests.
    pub refuses_http_probes: bool,
}

/// What shows that a CNI plugin redirects a pod's connections. All that is given has to be there.
#[derive(Debug, PartialEq, Eq)]
pub struct CniSign {
    /// An init container, which itself redirects nothing.
    pub init_container: Option<&'static str>,
    /// An annotation with its value.
    pub annotation: Option<(&'static str, &'static str)>,
    /// Whether a proxy has to be among the ordinary containers.
    pub with_proxy: bool,
}

/// All meshes that leave something in a pod. Ambient Istio and Cilium leave nothing.
pub static MESHES: [Mesh; 6] = [
    // With its variants ASM, OSSM and that of AKS.
    Mesh {
        redirectors: &["istio-init"],
        proxies: &["istio-proxy"],
        cni: Some(CniSign { init_container: Some("istio-validation"), annotation: None, with_proxy: false }),
        excluded_outbound: Some("traffic.sidecar.istio.io/excludeOutboundPorts"),
        excluded_inbound: Some("traffic.sidecar.istio.io/excludeInboundPorts"),
        refuses_http_probes: true,
        ..Mesh::named("istio")
    },
    Mesh {
        redirectors: &["linkerd-init"],
        proxies: &["linkerd-proxy", "linkerd-debug"],
        cni: Some(CniSign {
            init_container: Some("linkerd-network-validator"),
            annotation: None,
            with_proxy: false,
        }),
        excluded_outbound: Some("config.linkerd.io/skip-outbound-ports"),
        port_ranges: true,
        ..Mesh::named("linkerd")
    },
    // Its init container has one name in both forms, and redirects where it may change the network.
    Mesh {
        proxies: &["consul-dataplane", "consul-dataplane-*", "envoy-sidecar"],
        cni: Some(CniSign {
            init_container: Some("consul-connect-inject-init"),
            annotation: Some(("consul.hashicorp.com/transparent-proxy-status", "enabled")),
            with_proxy: true,
        }),
        excluded_outbound: Some("consul.hashicorp.com/transparent-proxy-exclude-outbound-ports"),
        refuses_http_probes: true,
        ..Mesh::named("consul")
    },
    Mesh {
        redirectors: &["kuma-init"],
        proxies: &["kuma-sidecar"],
        cni: Some(CniSign {
            init_container: None,
            annotation: Some(("kuma.io/sidecar-injected", "true")),
            with_proxy: true,
        }),
        excluded_outbound: Some("traffic.kuma.io/exclude-outbound-ports"),
        refuses_http_probes: true,
        ..Mesh::named("kuma")
    },
    Mesh {
        redirectors: &["osm-init"],
        proxies: &["envoy"],
        proxies_beside_redirector: true,
        ..Mesh::named("osm")
    },
    Mesh {
        redirectors: &["proxyinit"],
        proxies: &["envoy"],
        proxies_beside_redirector: true,
        ..Mesh::named("app-mesh")
    },
];

/// Sidecars that are never an agent, besides the proxies of meshes. A `*` at the end stands for any text.
pub const SIDECARS: [&str; 18] = [
    "vault-agent", "daprd", "azwi-proxy", "traffic-agent", "otc-container", "datadog-agent-injected",
    "jaeger-agent", "gke-gcsfuse-sidecar", "cloud-sql-proxy", "csql-*", "queue-proxy", "kube-rbac-proxy",
    "dynatrace-*", "fluent-bit", "filebeat-sidecar", "aws-otel-collector", "xray-daemon", "ts-sidecar",
];

impl Mesh {
    /// A mesh that leaves nothing in a pod.
    const fn named(name: &'static str) -> Self {
        Self {
            name,
            redirectors: &[],
            proxies: &[],
            proxies_beside_redirector: false,
            cni: None,
            excluded_outbound: None,
            excluded_inbound: None,
            port_ranges: false,
            refuses_http_probes: false,
        }
    }
}

/// The mesh whose init container of this name redirects connections.
pub fn mesh_of_redirector(name: &str) -> Option<&'static Mesh> {
    MESHES.iter().find(|mesh| mesh.redirectors.contains(&name))
}

/// The mesh with a proxy of this name. `has_init` says whether the pod has an init container of a name.
pub fn mesh_of_proxy(name: &str, has_init: impl Fn(&str) -> bool) -> Option<&'static Mesh> {
    let mut meshes = MESHES.iter().filter(|mesh| mesh.proxies.iter().any(|pattern| fits(pattern, name)));
    meshes.find(|mesh| !mesh.proxies_beside_redirector || mesh.redirectors.iter().any(|init| has_init(init)))
}

/// Whether a container of this name is never an agent, besides the proxies of meshes.
pub fn is_other_sidecar(name: &str) -> bool {
    SIDECARS.iter().any(|pattern| fits(pattern, name))
}

/// Whether a name is that of a table's entry.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that a table's entry stands for.
    fn example(pattern: &str) -> String {
        pattern.replace('*', "main")
    }

    #[test]
    fn knows_the_parts_of_every_mesh() {
        for mesh in &MESHES {
            for init in mesh.redirectors {
                assert_eq!(mesh_of_redirector(init), Some(mesh));
            }
            let inits = |name: &str| mesh.redirectors.contains(&name);
            for proxy in mesh.proxies {
                assert_eq!(mesh_of_proxy(&example(proxy), inits), Some(mesh), "{proxy}");
                let alone = mesh_of_proxy(&example(proxy), |_| false);
                assert_eq!(alone.is_none(), mesh.proxies_beside_redirector, "{proxy}");
                assert_eq!(mesh_of_proxy(&format!("my-{}", example(proxy)), |_| true), None);
            }
        }
    }

    #[test]
    fn knows_other_sidecars() {
        for pattern in SIDECARS {
            assert!(is_other_sidecar(&example(pattern)), "{pattern}");
            assert!(!is_other_sidecar(&format!("my-{}", example(pattern))), "{pattern}");
        }
        for agent in ["", "agent", "csql", "dynatrace", "daprd-agent", "vault", "Daprd", "fluent-bit-2"] {
            assert!(!is_other_sidecar(agent), "{agent}");
        }
    }
}

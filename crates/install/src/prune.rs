//! What `kubectl apply --prune` takes back: kinds of objects that components add, of one installation.
//!
//! Other kinds stay whatever their labels: the Secret with the CA, policies with their definitions and exemptions.

use crate::install_plan::InstallPlan;
use crate::metadata::INSTALLATION_LABEL;

/// A kind of object that components add or remove.
#[derive(Debug, Clone, Copy)]
pub struct AddedKind {
    /// The API version.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource.
    pub plural: &'static str,
    /// Whether the objects are in memgate's namespace.
    pub namespaced: bool,
    /// Whether every Kubernetes serves it.
    always: bool,
}

/// All of them, those first that every Kubernetes serves.
pub const ADDED: [AddedKind; 12] = [
    always("v1", "ConfigMap", "configmaps", true),
    always("v1", "Service", "services", true),
    always("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true),
    always("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    always(RBAC, "ClusterRole", "clusterroles", false),
    always(RBAC, "ClusterRoleBinding", "clusterrolebindings", false),
    always(RBAC, "Role", "roles", true),
    always(RBAC, "RoleBinding", "rolebindings", true),
    sometimes("cert-manager.io/v1", "Certificate", "certificates", true),
    sometimes("cert-manager.io/v1", "Issuer", "issuers", true),
    sometimes("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules", true),
    sometimes("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors", true),
];

const RBAC: &str = "rbac.authorization.k8s.io/v1";

const fn always(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> AddedKind {
    AddedKind { api_version, kind, plural, namespaced, always: true }
}

const fn sometimes(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> AddedKind {
    AddedKind { always: false, ..always(api_version, kind, plural, namespaced) }
}

impl AddedKind {
    /// As kubectl names it: group, version and kind.
    fn in_allowlist(self) -> String {
        let core = if self.api_version.contains('/') { "" } else { "core/" };
        format!("{core}{}/{}", self.api_version, self.kind)
    }

    /// As `kubectl api-resources -o name` prints it, of a kind with a group.
    fn resource(self) -> String {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        format!("{}.{group}", self.plural)
    }
}

/// The arguments with which `kubectl apply` takes back what an installation no longer has, in one line. kubectl fails on a
/// kind that the cluster does not serve, so of kinds that only some clusters have these are listed: the kinds of the
/// installation itself, and those among `served`, names as `kubectl api-resources -o name` prints them.
pub fn prune_list(plan: &InstallPlan, served: &str) -> String {
    let documents = crate::objects(plan).documents();
    let is_here = |kind: &AddedKind| {
        documents.iter().any(|(_, object)| {
            object.get("kind").is_some_and(|it| it == kind.kind)
                && object.get("apiVersion").is_some_and(|it| it == kind.api_version)
        })
    };
    let is_served = |resource: &str| served.split([' ', ',', '\n', '\r', '\t']).any(|name| name == resource);
    let kinds = ADDED.into_iter().filter(|kind| kind.always || is_served(&kind.resource()) || is_here(kind));
    let kinds = kinds.map(|kind| format!("--prune-allowlist={}", kind.in_allowlist()));
    let selector = format!("--prune -l {INSTALLATION_LABEL}={}", plan.name);
    [selector].into_iter().chain(kinds).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Component;
    use crate::install_plan::{PodSettings, WebhookEndpoint};
    use crate::metadata::COMPONENT_LABEL;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn plan(components: BTreeSet<Component>) -> InstallPlan {
        InstallPlan {
            name: "memgate".to_owned(),
            namespace: "memgate-system".to_owned(),
            image: "memgate".to_owned(),
            endpoint: WebhookEndpoint::Service,
            runbooks: None,
            ca: None,
            families: memgate_platforms::ALL.to_vec(),
            elsewhere: Vec::new(),
            components,
            flags: Vec::new(),
            pods: PodSettings::default(),
        }
    }

    fn kinds(components: &[Component]) -> BTreeSet<String> {
        let documents = crate::objects(&plan(components.iter().copied().collect())).documents();
        let text = |object: &Value, key: &str| object[key].as_str().expect("text").to_owned();
        let name = |object| match (text(object, "apiVersion"), text(object, "kind")) {
            (version, kind) if version.contains('/') => format!("{version}/{kind}"),
            (version, kind) => format!("core/{version}/{kind}"),
        };
        let added = documents
            .iter()
            .filter(|(_, object)| object.pointer("/metadata/labels/memgate.dev~1component").is_some());
        added.map(|(_, object)| name(object)).collect()
    }

    /// The definitions of policies stay, since policies go with them.
    #[test]
    fn names_each_kind_that_a_component_adds() {
        let known: BTreeSet<_> = ADDED.map(AddedKind::in_allowlist).into();
        for component in Component::all() {
            for kind in kinds(&[component]) {
                let stays = kind == "apiextensions.k8s.io/v1/CustomResourceDefinition";
                assert_ne!(known.contains(&kind), stays, "{}: {kind}", component.name());
            }
        }
    }

    #[test]
    fn each_object_has_its_installation_and_what_a_component_adds_the_component() {
        let label = |object: &Value, label: &str| object["metadata"]["labels"][label].clone();
        let key = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
        let documents = |components| {
            crate::objects(&InstallPlan { name: "blue".to_owned(), ..plan(components) }).documents()
        };
        let base: BTreeSet<_> = documents(BTreeSet::new()).iter().map(|(_, object)| key(object)).collect();
        for component in Component::all() {
            for (_, object) in documents(BTreeSet::from([component])) {
                let is_shared = key(&object).contains("\"memgate-skip");
                let installation = if is_shared { "memgate" } else { "blue" };
                assert_eq!(label(&object, INSTALLATION_LABEL), installation, "{}", key(&object));
                let is_added = !base.contains(&key(&object));
                let added_by = if is_added { json!(component.name()) } else { Value::Null };
                assert_eq!(label(&object, COMPONENT_LABEL), added_by, "{}", key(&object));
            }
        }
    }

    #[test]
    fn names_kinds_of_some_clusters_where_they_are_served() {
        let bare = prune_list(&plan(BTreeSet::new()), "");
        assert!(
            bare.starts_with("--prune -l memgate.dev/installation=memgate --prune-allowlist=core/v1/"),
            "{bare}"
        );
        assert!(!bare.contains("ServiceMonitor"), "{bare}");
        let served = prune_list(&plan(BTreeSet::new()), "pods\nservicemonitors.monitoring.coreos.com\n");
        assert!(served.contains("monitoring.coreos.com/v1/ServiceMonitor"), "{served}");
        let own = prune_list(&plan(BTreeSet::from([Component::CertManager])), "");
        assert!(own.contains("cert-manager.io/v1/Issuer") && !own.contains("ServiceMonitor"), "{own}");
    }
}

//! All installed objects; components change them before they are written.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};

use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::{in_namespace, of_installation};
use crate::{pause, rbac, self_guard, webhooks, workload};

/// A webhook configuration of either kind: the type of the mutating kind has every field of the other.
pub type WebhookConfiguration = MutatingWebhookConfiguration;

/// The installed objects.
#[derive(Debug)]
pub struct Objects {
    /// The namespace that memgate runs in.
    pub namespace: Namespace,
    /// The permissions of memgate's account in the whole cluster.
    pub cluster_role: ClusterRole,
    /// The Deployment without the arguments of its container. As JSON: the types of a pod are 0.4 MB of code.
    deployment: Value,
    /// The command line of memgate.
    pub(super) arguments: Vec<String>,
    /// The disruption budget of the replicas.
    pub disruption_budget: PodDisruptionBudget,
    /// The entries for mutating calls.
    pub mutating: WebhookConfiguration,
    /// The entries for validating calls.
    pub validating: WebhookConfiguration,
    /// The other objects, each with its part. Components add some, and change none.
    pub others: Vec<(InstallPart, Value)>,
}

impl Objects {
    /// The objects of every installation: without a family and without a component.
    pub fn base(plan: &InstallPlan) -> Self {
        let (deployment, arguments) = workload::deployment(plan);
        let account = rbac::account(plan).map(|object| (InstallPart::Rbac, object));
        // Only built-in certificates are written into the configurations.
        let guard = plan.has_own_certificates().then(|| self_guard::policy(plan)).into_iter().flatten();
        let guard = guard.map(|object| (InstallPart::Policies, object));
        let service = workload::service(plan).map(|object| (InstallPart::Workload, object));
        let pauses = pause::roles().map(|object| (InstallPart::Rbac, object));
        Self {
            namespace: workload::namespace(plan),
            cluster_role: rbac::cluster_role(plan),
            deployment,
            arguments,
            disruption_budget: workload::disruption_budget(plan),
            mutating: webhooks::mutating(plan),
            validating: webhooks::validating(plan),
            others: account.chain(guard).chain(service).chain(pauses).collect(),
        }
    }

    /// Adds the objects of a YAML text, in the namespace of the plan.
    pub(super) fn add(&mut self, part: InstallPart, plan: &InstallPlan, text: &str) {
        self.others.extend(in_namespace(plan, text).map(|object| (part, object)));
    }

    /// Adds the cluster-scoped objects of a YAML text, whose names begin with that of the installation.
    pub(super) fn add_of_cluster(&mut self, part: InstallPart, plan: &InstallPlan, text: &str) {
        self.others.extend(of_installation(plan, text).map(|object| (part, object)));
    }

    /// Sets a field of an object in the Deployment.
    pub(super) fn set(&mut self, parent: &str, field: &str, value: impl Into<Value>) {
        if let Some(Value::Object(parent)) = self.deployment.pointer_mut(parent) {
            parent.insert(field.to_owned(), value.into());
        }
    }

    /// The elements of a list in the Deployment, which the base has.
    pub(super) fn list(&mut self, pointer: &str) -> Option<&mut Vec<Value>> {
        self.deployment.pointer_mut(pointer)?.as_array_mut()
    }

    /// Adds a volume to the pods, which memgate mounts and only reads.
    pub(super) fn mount(&mut self, volume: &Value, path: &str) {
        let mount = json!({"name": volume.get("name"), "mountPath": path, "readOnly": true});
        for (list, added) in [(workload::VOLUMES, volume.clone()), (workload::MOUNTS, mount)] {
            if let Some(list) = self.list(list) {
                list.push(added);
            }
        }
    }

    /// All of them with their parts, in the order in which they are applied.
    pub fn documents(mut self) -> Vec<(InstallPart, Value)> {
        let arguments = std::mem::take(&mut self.arguments);
        self.set(workload::CONTAINER, "args", arguments);
        self.deployment.sort_all_objects();
        // The rights of memgate's account come before those of people.
        let mut documents = vec![(InstallPart::Rbac, json!(self.cluster_role))];
        documents.extend(self.others);
        let mut validating = json!(self.validating);
        if let Some(kind) = validating.get_mut("kind") {
            *kind = "ValidatingWebhookConfiguration".into();
        }
        documents.extend([
            (InstallPart::Namespace, json!(self.namespace)),
            (InstallPart::Workload, self.deployment),
            (InstallPart::Workload, json!(self.disruption_budget)),
            (InstallPart::Webhooks, json!(self.mutating)),
            (InstallPart::Webhooks, validating),
        ]);
        // Stable: within a part they stay in this order.
        documents.sort_by_key(|(part, _)| *part);
        documents
    }
}

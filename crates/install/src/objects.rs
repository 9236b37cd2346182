//! All installed objects; components change them before they are written.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::component::Component;
use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::{
    COMPONENT_LABEL, INSTALLATION_LABEL, NAME, RIGHTS_LABEL, in_namespace, installation_label, is_named,
    of_installation, string_map,
};
use crate::{pause, rbac, self_guard, webhooks, workload};

/// A webhook configuration of either kind: the type of the mutating kind has every field of the other.
pub type WebhookConfiguration = MutatingWebhookConfiguration;

/// The installed objects. An object that a component can remove is optional.
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
    pub disruption_budget: Option<PodDisruptionBudget>,
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
        let guard = self_guard::policy(plan).map(|object| (InstallPart::Policies, object));
        let service = workload::service(plan).map(|object| (InstallPart::Workload, object));
        let pauses = pause::roles().map(|object| (InstallPart::Rbac, object));
        Self {
            namespace: workload::namespace(plan),
            cluster_role: rbac::cluster_role(plan),
            deployment,
            arguments,
            disruption_budget: Some(workload::disruption_budget(plan)),
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

    /// Labels the other objects that have no label of an installation yet: a component has added them, or they are of the base.
    pub(super) fn label_new(&mut self, plan: &InstallPlan, component: Option<Component>) {
        let component = component.map(|component| component.name().into_owned());
        for (_, object) in &mut self.others {
            let Some(Value::Object(metadata)) = object.get_mut("metadata") else { continue };
            let labels = metadata.entry("labels").or_insert_with(|| json!({}));
            let Value::Object(labels) = labels else { continue };
            // All installations share the roles of pauses, so these are the same in each.
            let is_shared = labels.get(RIGHTS_LABEL).is_some_and(|rights| rights == "pause");
            let installation = installation_label(if is_shared { NAME } else { &plan.name });
            let is_known = labels.insert(INSTALLATION_LABEL.to_owned(), installation.into());
            if let (None, Some(component)) = (is_known, &component) {
                labels.insert(COMPONENT_LABEL.to_owned(), component.clone().into());
            }
        }
    }

    /// Labels the objects of every installation with its name.
    pub(super) fn label_all(&mut self, plan: &InstallPlan) {
        let label = (INSTALLATION_LABEL, installation_label(&plan.name));
        let budget = self.disruption_budget.as_mut().map(|budget| &mut budget.metadata);
        let typed = [
            &mut self.namespace.metadata,
            &mut self.cluster_role.metadata,
            &mut self.mutating.metadata,
            &mut self.validating.metadata,
        ];
        for metadata in typed.into_iter().chain(budget) {
            metadata.labels.get_or_insert_default().extend(string_map(&[label]));
        }
        self.set("/metadata/labels", label.0, label.1);
    }

    /// The permissions of memgate's account in its own namespace: of each role with a subject.
    pub fn rules_in_namespace(&self) -> Vec<PolicyRule> {
        let bindings = || self.others.iter().filter(|(_, object)| object.get("subjects").is_some());
        let is_bound = |role: &Role| {
            let name = role.metadata.name.as_deref().unwrap_or_default();
            bindings().any(|(_, binding)| is_named(binding, &["RoleBinding"], name))
        };
        let roles = self.others.iter().filter_map(|(_, object)| Role::deserialize(object).ok());
        roles.filter(is_bound).flat_map(|role| role.rules.unwrap_or_default()).collect()
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

    /// Removes a field of an object in the Deployment.
    pub(super) fn remove(&mut self, parent: &str, field: &str) {
        if let Some(Value::Object(parent)) = self.deployment.pointer_mut(parent) {
            parent.shift_remove(field);
        }
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
            (InstallPart::Webhooks, json!(self.mutating)),
            (InstallPart::Webhooks, validating),
        ]);
        documents.extend(self.disruption_budget.map(|budget| (InstallPart::Workload, json!(budget))));
        // Stable: within a part they stay in this order.
        documents.sort_by_key(|(part, _)| *part);
        documents
    }
}

//! All installed objects; components change them before they are written.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, Namespace, PodSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::templates::is_named;
use crate::deploy::{rbac, self_guard, templates, webhooks, workload};

/// A webhook configuration of either kind: the type of the mutating kind has every field of the other.
pub type WebhookConfiguration = MutatingWebhookConfiguration;

/// The installed objects. An object that a component can remove is optional.
#[derive(Debug)]
pub struct Objects {
    /// The namespace that memgate runs in.
    pub namespace: Namespace,
    /// The permissions of memgate's account in the whole cluster.
    pub cluster_role: ClusterRole,
    /// The Deployment without its container.
    pub deployment: Deployment,
    /// memgate itself, the one container of its pods.
    pub container: Container,
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
        let (deployment, container) = workload::deployment(plan);
        let account = rbac::account(plan).map(|object| (InstallPart::Rbac, object));
        let guard = self_guard::policy(plan).map(|object| (InstallPart::Policies, object));
        let service = workload::service(plan).map(|object| (InstallPart::Workload, object));
        Self {
            namespace: workload::namespace(plan),
            cluster_role: rbac::cluster_role(plan),
            deployment,
            container,
            disruption_budget: Some(workload::disruption_budget(plan)),
            mutating: webhooks::mutating(plan),
            validating: webhooks::validating(plan),
            others: account.chain(guard).chain(service).collect(),
        }
    }

    /// Adds policies that work without memgate, with their bindings.
    pub(super) fn add_policies(&mut self, policies: impl Iterator<Item = Value>) {
        self.others.extend(policies.map(|object| (InstallPart::Policies, object)));
    }

    /// Adds the objects of a YAML text, in the namespace of the plan.
    pub(super) fn add(&mut self, part: InstallPart, plan: &InstallPlan, text: &str) {
        self.others.extend(templates::in_namespace(plan, text).map(|object| (part, object)));
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

    /// The Deployment's specification.
    pub fn workload(&mut self) -> &mut DeploymentSpec {
        self.deployment.spec.get_or_insert_default()
    }

    /// The specification of its pods, the container aside.
    pub fn pod(&mut self) -> &mut PodSpec {
        self.workload().template.spec.get_or_insert_default()
    }

    /// The command line of memgate.
    pub fn arguments(&mut self) -> &mut Vec<String> {
        self.container.args.get_or_insert_default()
    }

    /// All of them with their parts, in the order in which they are applied.
    pub fn documents(mut self) -> Vec<(InstallPart, Value)> {
        let container = std::mem::take(&mut self.container);
        self.pod().containers.push(container);
        let mut documents = self.others;
        let mut validating = json!(self.validating);
        if let Some(kind) = validating.get_mut("kind") {
            *kind = "ValidatingWebhookConfiguration".into();
        }
        documents.extend([
            (InstallPart::Namespace, json!(self.namespace)),
            (InstallPart::Rbac, json!(self.cluster_role)),
            (InstallPart::Workload, json!(self.deployment)),
            (InstallPart::Webhooks, json!(self.mutating)),
            (InstallPart::Webhooks, validating),
        ]);
        documents.extend(self.disruption_budget.map(|budget| (InstallPart::Workload, json!(budget))));
        // Stable: within a part they stay in this order.
        documents.sort_by_key(|(part, _)| *part);
        documents
    }
}

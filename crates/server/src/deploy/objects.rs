//! All installed objects; components change them before they are written.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, Namespace, PodSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::Deserialize as _;
use serde_json::{Value, to_value};

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
    /// The policy that limits its changes of the webhook configurations, with the binding.
    pub self_guard: Option<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>,
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
    /// The policies with which the apiserver refuses objects without memgate.
    pub validating_policies: Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>,
    /// The policies with which it writes defaults without memgate.
    pub mutating_policies: Vec<(MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding)>,
    /// The other objects, each with its part. Components add some, and change none.
    pub others: Vec<(InstallPart, Value)>,
}

impl Objects {
    /// The objects of every installation: without a family and without a component.
    #[must_use]
    pub fn base(plan: &InstallPlan) -> Self {
        let (deployment, container) = workload::deployment(plan);
        let account = rbac::account(plan).map(|object| (InstallPart::Rbac, object));
        let service = workload::service(plan).map(|object| (InstallPart::Workload, object));
        Self {
            namespace: workload::namespace(plan),
            cluster_role: rbac::cluster_role(plan),
            self_guard: Some(self_guard::policy(plan)),
            deployment,
            container,
            disruption_budget: Some(workload::disruption_budget(plan)),
            mutating: webhooks::mutating(plan),
            validating: webhooks::validating(plan),
            validating_policies: Vec::new(),
            mutating_policies: Vec::new(),
            others: account.chain(service).collect(),
        }
    }

    /// Adds the objects of a YAML text, in the namespace of the plan.
    pub(super) fn add(&mut self, part: InstallPart, plan: &InstallPlan, text: &str) {
        self.others.extend(templates::in_namespace(plan, text).map(|object| (part, object)));
    }

    /// The permissions of memgate's account in its own namespace: of each role with a subject.
    #[must_use]
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
    ///
    /// # Errors
    /// When one of them has a value that JSON cannot express, which would be a bug of memgate's.
    pub fn documents(mut self) -> Result<Vec<(InstallPart, Value)>, serde_json::Error> {
        let container = std::mem::take(&mut self.container);
        self.pod().containers.push(container);
        let mut documents = self.others;
        let mut add = |part, object| documents.push((part, object));
        add(InstallPart::Namespace, to_value(self.namespace)?);
        add(InstallPart::Rbac, to_value(self.cluster_role)?);
        for (policy, binding) in self.self_guard.into_iter().chain(self.validating_policies) {
            add(InstallPart::Policies, to_value(policy)?);
            add(InstallPart::Policies, to_value(binding)?);
        }
        for (policy, binding) in self.mutating_policies {
            add(InstallPart::Policies, to_value(policy)?);
            add(InstallPart::Policies, to_value(binding)?);
        }
        add(InstallPart::Workload, to_value(self.deployment)?);
        if let Some(budget) = self.disruption_budget {
            add(InstallPart::Workload, to_value(budget)?);
        }
        add(InstallPart::Webhooks, to_value(self.mutating)?);
        let mut validating = to_value(self.validating)?;
        if let Some(kind) = validating.get_mut("kind") {
            *kind = "ValidatingWebhookConfiguration".into();
        }
        add(InstallPart::Webhooks, validating);
        // Stable: within a part they stay in this order.
        documents.sort_by_key(|(part, _)| *part);
        Ok(documents)
    }
}

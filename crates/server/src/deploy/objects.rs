//! Everything that is installed, as typed objects that components change before they are written.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, Namespace, PodSpec, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde_json::{Value, to_value};

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::{rbac, self_guard, webhooks, workload};

/// What is installed. What a component can take away is optional.
#[derive(Debug)]
pub struct Objects {
    /// The namespace that memgate runs in.
    pub namespace: Namespace,
    /// The account that memgate runs as.
    pub service_account: ServiceAccount,
    /// What it may do in the whole cluster.
    pub cluster_role: ClusterRole,
    /// Gives that role to it.
    pub cluster_role_binding: ClusterRoleBinding,
    /// What it may do in its own namespace, and what gives it that.
    pub role: Option<(Role, RoleBinding)>,
    /// What audits need there, and what gives it that.
    pub audit_role: Option<(Role, RoleBinding)>,
    /// The policy on what it may change of its own webhook configurations, and its binding.
    pub self_guard: Option<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>,
    /// What the apiserver calls.
    pub service: Service,
    /// What runs, without its container.
    pub deployment: Deployment,
    /// memgate itself, the one container of its pods.
    pub container: Container,
    /// How many replicas a node drain leaves running.
    pub disruption_budget: Option<PodDisruptionBudget>,
    /// Which requests memgate is asked to complete.
    pub mutating: MutatingWebhookConfiguration,
    /// Which requests memgate is asked to validate.
    pub validating: ValidatingWebhookConfiguration,
    /// The policies with which the apiserver refuses by itself.
    pub validating_policies: Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>,
    /// The policies with which it writes defaults by itself.
    pub mutating_policies: Vec<(MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding)>,
    /// What components add, each with its part.
    pub others: Vec<(InstallPart, Value)>,
}

impl Objects {
    /// What every installation has: no family, no component.
    #[must_use]
    pub fn base(plan: &InstallPlan) -> Self {
        Self {
            namespace: workload::namespace(plan),
            service_account: rbac::service_account(plan),
            cluster_role: rbac::cluster_role(plan),
            cluster_role_binding: rbac::cluster_role_binding(plan),
            role: Some((rbac::role(plan), rbac::role_binding(plan))),
            audit_role: None,
            self_guard: Some((self_guard::policy(plan), self_guard::binding(plan))),
            service: workload::service(plan),
            deployment: workload::deployment(plan),
            container: workload::container(plan),
            disruption_budget: Some(workload::disruption_budget(plan)),
            mutating: webhooks::mutating(plan),
            validating: webhooks::validating(plan),
            validating_policies: Vec::new(),
            mutating_policies: Vec::new(),
            others: Vec::new(),
        }
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
        let mut documents = vec![
            (InstallPart::Namespace, to_value(self.namespace)?),
            (InstallPart::Rbac, to_value(self.service_account)?),
            (InstallPart::Rbac, to_value(self.cluster_role)?),
            (InstallPart::Rbac, to_value(self.cluster_role_binding)?),
        ];
        for (role, binding) in self.role.into_iter().chain(self.audit_role) {
            documents.extend([(InstallPart::Rbac, to_value(role)?), (InstallPart::Rbac, to_value(binding)?)]);
        }
        if let Some((policy, binding)) = self.self_guard {
            documents.extend([
                (InstallPart::Policies, to_value(policy)?),
                (InstallPart::Policies, to_value(binding)?),
            ]);
        }
        for (policy, binding) in self.validating_policies {
            documents.extend([
                (InstallPart::Policies, to_value(policy)?),
                (InstallPart::Policies, to_value(binding)?),
            ]);
        }
        for (policy, binding) in self.mutating_policies {
            documents.extend([
                (InstallPart::Policies, to_value(policy)?),
                (InstallPart::Policies, to_value(binding)?),
            ]);
        }
        documents.push((InstallPart::Workload, to_value(self.service)?));
        documents.push((InstallPart::Workload, to_value(self.deployment)?));
        if let Some(budget) = self.disruption_budget {
            documents.push((InstallPart::Workload, to_value(budget)?));
        }
        documents.push((InstallPart::Webhooks, to_value(self.mutating)?));
        documents.push((InstallPart::Webhooks, to_value(self.validating)?));
        documents.extend(self.others);
        // Stable: within a part they stay in this order.
        documents.sort_by_key(|(part, _)| *part);
        Ok(documents)
    }
}

//! All installed objects; components change them before they are written.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};

use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::filled;
use crate::rows::ROWS;
use crate::{rbac, webhooks, workload};

/// A webhook configuration of either kind: the type of the mutating kind has every field of the other.
pub type WebhookConfiguration = MutatingWebhookConfiguration;

/// The installed objects.
#[derive(Debug)]
pub struct Objects {
    /// The permissions of memgate's account in the whole cluster.
    pub cluster_role: ClusterRole,
    /// The command line of memgate, which becomes a part of the Deployment at the end.
    pub(super) arguments: Vec<String>,
    /// The entries for mutating calls.
    pub mutating: WebhookConfiguration,
    /// The entries for validating calls.
    pub validating: WebhookConfiguration,
    /// The other objects, each with its part.
    pub others: Vec<(InstallPart, Value)>,
}

impl Objects {
    /// The objects of every installation: without a family and without a component.
    pub fn base(plan: &InstallPlan) -> Self {
        let rows = ROWS.iter().filter(|row| row.need.is_met(plan));
        let others = rows.flat_map(|row| filled(plan, row.text).map(|object| (row.part, object)));
        let mut objects = Self {
            cluster_role: rbac::cluster_role(plan),
            arguments: Vec::new(),
            mutating: webhooks::mutating(plan),
            validating: webhooks::validating(plan),
            others: others.collect(),
        };
        objects.set(workload::CONTAINER, "image", plan.image.clone());
        let arguments = objects.list(workload::ARGUMENTS).map(std::mem::take).unwrap_or_default();
        objects.arguments = arguments.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        // The account lacks the permissions for policies then.
        objects.arguments.extend((!plan.policies).then(|| "--no-policies".to_owned()));
        objects
    }

    /// A part of the first other object of a kind.
    pub(super) fn other(&mut self, kind: &str, pointer: &str) -> Option<&mut Value> {
        let is_it = |object: &Value| object.get("kind").is_some_and(|it| it == kind);
        let (_, object) = self.others.iter_mut().find(|(_, object)| is_it(object))?;
        object.pointer_mut(pointer)
    }

    /// Sets a field of an object in the Deployment.
    pub(super) fn set(&mut self, parent: &str, field: &str, value: impl Into<Value>) {
        if let Some(Value::Object(parent)) = self.other("Deployment", parent) {
            parent.insert(field.to_owned(), value.into());
        }
    }

    /// The elements of a list in the Deployment, which the base has.
    pub(super) fn list(&mut self, pointer: &str) -> Option<&mut Vec<Value>> {
        self.other("Deployment", pointer)?.as_array_mut()
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
        // The rights of memgate's account come before those of people.
        let mut documents = vec![(InstallPart::Rbac, json!(self.cluster_role))];
        documents.extend(self.others);
        let mut validating = json!(self.validating);
        if let Some(kind) = validating.get_mut("kind") {
            *kind = "ValidatingWebhookConfiguration".into();
        }
        documents
            .extend([(InstallPart::Webhooks, json!(self.mutating)), (InstallPart::Webhooks, validating)]);
        // Stable: within a part they stay in this order.
        documents.sort_by_key(|(part, _)| *part);
        documents
    }
}

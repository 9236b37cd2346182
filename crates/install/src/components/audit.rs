//! The audit of what is stored: a CronJob of the same image, with an account of its own that reads no Secret.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use serde_json::{Value, json};

use crate::component::Component;
use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::named;
use crate::objects::Objects;
use crate::rbac::{self, rule, rules};
use memgate_model::family::Family;
use memgate_model::kind::{NAMESPACE, POD, POLICY_GROUP, POLICY_KINDS};

/// The container of the CronJob.
const CONTAINER: &str = "/spec/jobTemplate/spec/template/spec/containers/0";
/// The flags of the server that an audit has, too.
const SHARED: [&str; 3] = ["--settings", "--family", "--ark-brokers"];

/// Gives the audit its rights, and the image and the settings of the Deployment.
pub(crate) fn complete(objects: &mut Objects, plan: &InstallPlan) {
    let (metadata, rules) = (named(format!("{}-audit", plan.name)), Some(rights(plan)));
    let role = ClusterRole { metadata, rules, aggregation_rule: None };
    objects.others.push((InstallPart::Rbac, json!(role)));
    let is_shared = |argument: &&String| SHARED.iter().any(|flag| argument.split('=').next() == Some(*flag));
    let shared: Vec<_> =
        objects.arguments.iter().filter(is_shared).map(|it| Value::from(it.as_str())).collect();
    if let Some(Value::Object(container)) = objects.other("CronJob", CONTAINER) {
        container.insert("image".to_owned(), plan.image.as_str().into());
        if let Some(Value::Array(arguments)) = container.get_mut("args") {
            arguments.extend(shared);
        }
    }
}

/// What an audit reads and writes.
fn rights(plan: &InstallPlan) -> Vec<PolicyRule> {
    let mut all: Vec<_> = plan.families.iter().flat_map(|family| of_family(family)).collect();
    let statuses = POLICY_KINDS.map(|kind| format!("{}/status", kind.plural));
    let reports = ["reports", "clusterreports"];
    all.extend(rules(POLICY_KINDS.into_iter().chain([&NAMESPACE]), &["get", "list"]));
    all.extend([
        rule(POLICY_GROUP, &statuses.each_ref().map(String::as_str), &["patch"]),
        rule("openreports.io", &reports, &["create", "delete", "list", "patch"]),
        rule(POD.group, &[POD.plural], &["list"]),
    ]);
    if plan.components.contains(&Component::ArkBrokers) {
        all.extend(rbac::workloads(&plan.families, &["get", "list"]));
    }
    all
}

/// Read access to the kinds that decisions look up, and to those that policies judge.
fn of_family(family: &Family) -> Vec<PolicyRule> {
    let is_watched = |kind: &&_| family.kinds.watched.contains(kind);
    let fetched = family.kinds.fetched.iter().copied().filter(|kind| !is_watched(kind));
    let mut all = rules(family.kinds.watched.iter().copied(), &["get", "list"]);
    all.extend(rules(fetched, &["get"]));
    all.extend(rules(family.audited().filter(|kind| !is_watched(kind)), &["list"]));
    all
}

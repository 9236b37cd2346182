//! Reviews of further requests, and failure policies that differ from the base.

use crate::components::policies::pods_names;
use crate::entry::{FAIL, condition};
use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::REGISTERED;
use crate::objects::Objects;
use crate::webhooks;

/// The role by which a replica registers, and the role that marks an installation as registered, with their bindings. The
/// binding of the mark has no subject until a replica is ready.
const REGISTER: &str = include_str!("../../../../deploy/kustomize/components/after-ready/register.yaml");

/// Refuses agent pods while memgate does not answer, except pods of platforms that can run without memory.
pub(super) fn fail_closed(objects: &mut Objects, plan: &InstallPlan) {
    let strict = plan.families.iter().filter(|family| family.pods.honour_required);
    let names: Vec<_> = strict.flat_map(|family| pods_names(family)).collect();
    let entries = objects.mutating.webhooks.iter_mut().flatten();
    for entry in entries.filter(|entry| names.contains(&entry.name)) {
        entry.failure_policy = Some(FAIL.to_owned());
    }
}

/// Makes the entries that fail closed match nothing until a replica has been ready and has given the marking role to an
/// account, for which the entries ask the authorizer.
pub(super) fn after_ready(objects: &mut Objects, plan: &InstallPlan) {
    objects.arguments().push("--register-after-ready".to_owned());
    objects.add(InstallPart::Rbac, plan, REGISTER);
    let namespace = &plan.namespace;
    let expression = format!(
        "[authorizer.serviceAccount('{namespace}', '{REGISTERED}').group('memgate.dev').resource('webhooks')\
         .namespace('{namespace}').check('register')].exists(answer, answer.allowed() || answer.errored())"
    );
    for configuration in [&mut objects.mutating, &mut objects.validating] {
        let labels = configuration.metadata.labels.get_or_insert_default();
        labels.insert("memgate.dev/register".to_owned(), "after-ready".to_owned());
        let entries = configuration.webhooks.iter_mut().flatten();
        for entry in entries.filter(|entry| entry.failure_policy.as_deref() == Some(FAIL)) {
            entry.match_conditions.get_or_insert_default().push(condition(("registered", &expression)));
        }
    }
}

/// Reviews workloads in namespaces with the label `memgate.dev/preview=enabled`.
pub(super) fn templates(objects: &mut Objects, plan: &InstallPlan) {
    objects.validating.webhooks.get_or_insert_default().push(webhooks::templates(plan));
}

/// Gives the configurations the names that the apiserver requires of configurations in a file.
pub(super) fn static_manifest(objects: &mut Objects, plan: &InstallPlan) {
    let name = format!("{}.static.k8s.io", plan.name);
    objects.mutating.metadata.name = Some(name.clone());
    objects.validating.metadata.name = Some(name);
}

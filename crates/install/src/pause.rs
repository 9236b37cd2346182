//! The off switch: conditions by which the apiserver does not ask memgate about the requests of a namespace, of a platform in
//! it, or of the whole cluster.
//!
//! Each entry asks the apiserver's authorizer whether the account [`PAUSED`] may [`SKIP`] memgate, so a pause also holds while
//! no replica runs, and the installed objects stay as they are. The right counts in memgate's own namespace alone, so the
//! owner of another namespace can neither give nor take it.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::MatchCondition;

use crate::entry::{condition, is_annotated, is_selected, literal};
use crate::install_plan::InstallPlan;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::selector::PodSelector;
use memgate_platforms::known;

/// The account, in memgate's namespace, whose rights are a pause. No pod uses it, and it need not exist.
pub const PAUSED: &str = "memgate-paused";
/// The API group of the resource whose names the account may skip. No apiserver serves it.
pub const GROUP: &str = "memgate.dev";
/// The resource. Its names are `NAMESPACE`, `NAMESPACE.PLATFORM` and [`ALL`].
pub const RESOURCE: &str = "webhooks";
/// The name for all requests.
pub const ALL: &str = "*";
/// The verb of a pause.
pub const SKIP: &str = "skip";
/// The verb that a pause does not have: an account with both has every right, and nothing is paused.
pub const NEVER: &str = "never";

/// The name of the first condition, with which those of the others begin. Each asks about one resource name: an expression
/// may make two checks. Source: `CallCost` in k8s.io/apiserver/pkg/cel/library.
const NOT_PAUSED: &str = "not-paused";

/// The conditions of an entry for kinds of one platform, or of all.
pub(super) fn resources_not_paused(plan: &InstallPlan, family: Option<&Family>) -> [MatchCondition; 3] {
    not_paused(
        &plan.namespace,
        &in_namespace(&family.map_or_else(|| of_group(plan), |one| literal(one.name))),
    )
}

/// The platform of a request about one of its kinds, in CEL.
fn of_group(plan: &InstallPlan) -> String {
    let mut groups: BTreeMap<&str, &str> = BTreeMap::new();
    for family in known(&plan.families) {
        let kinds: [&[&Kind]; 2] = [family.kinds.validated, family.kinds.memories];
        groups.extend(kinds.into_iter().flatten().map(|kind| (kind.group, family.name)));
    }
    let entries =
        groups.into_iter().map(|(group, family)| format!("{}: {}", literal(group), literal(family)));
    // The group of policies is not that of a platform.
    format!("{{{}}}[?request.kind.group].orValue('')", entries.collect::<Vec<_>>().join(", "))
}

/// The conditions of the entry for pods that match a selector of a platform.
pub(super) fn pods_not_paused(
    plan: &InstallPlan,
    family: &Family,
    pods: &PodSelector,
) -> [MatchCondition; 3] {
    let asked = resources_not_paused(plan, Some(family));
    // All pods of the cluster meet these conditions, and only those with the annotation have the entry.
    let Some(annotation) = pods.annotation else { return asked };
    asked.map(|MatchCondition { name, expression }| {
        let expression = format!("object == null || !({}) || {expression}", is_annotated(annotation));
        MatchCondition { name, expression }
    })
}

/// The conditions of the entry for pods that require their memory, of any platform. Of a pod of several platforms, or of none,
/// only the namespace counts.
pub(super) fn required_not_paused(plan: &InstallPlan) -> [MatchCondition; 3] {
    let with_pods = known(&plan.families).into_iter().filter(|family| !family.pods.selectors.is_empty());
    let selected = with_pods.map(|family| {
        let pods: Vec<String> = family.pods.selectors.iter().map(is_selected).collect();
        format!("{} ? {} : ''", pods.join(" || "), literal(family.name))
    });
    let selected = selected.collect::<Vec<_>>().join(", ");
    let names = format!("[object == null ? [] : [{selected}].filter(name, name != '')]");
    let only = in_namespace("names[0]");
    not_paused(&plan.namespace, &format!("{names}.map(names, names.size() == 1 ? {only} : '{ALL}')[0]"))
}

/// The resource name for a platform that this CEL names, in the namespace of the request; without one, that of all.
fn in_namespace(family: &str) -> String {
    format!("(has(request.namespace) ? request.namespace + '.' + {family} : '{ALL}')")
}

/// The conditions; `platform` is the resource name for a platform, in CEL.
fn not_paused(home: &str, platform: &str) -> [MatchCondition; 3] {
    let namespace = format!("has(request.namespace) ? request.namespace : '{ALL}'");
    [("", &*literal(ALL)), ("-namespace", &*namespace), ("-platform", platform)].map(|(end, name)| {
        let expression = format!(
            "[authorizer.serviceAccount('{home}', '{PAUSED}').group('{GROUP}').resource('{RESOURCE}').name({name})\
             .namespace('{home}')]\
             .all(webhook, !webhook.check('{SKIP}').allowed() || webhook.check('{NEVER}').allowed())"
        );
        condition((&format!("{NOT_PAUSED}{end}"), &expression))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_is_of_one_platform() {
        let mut groups = BTreeMap::new();
        for family in memgate_platforms::ALL {
            let kinds =
                family.kinds.validated.iter().chain(family.kinds.memories).chain(family.kinds.defaulted);
            for kind in kinds.chain(family.kinds.memories_if.into_iter().flat_map(|(kinds, _)| kinds)) {
                assert_eq!(*groups.entry(kind.group).or_insert(family.name), family.name, "{}", kind.group);
            }
        }
    }
}

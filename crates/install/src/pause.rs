//! Pauses: for a time memgate is not asked about the requests of a namespace, of a platform, or of the whole cluster.
//!
//! A pause is a binding that gives an account the right to `skip` memgate. Each entry has a condition that asks the
//! authorizer for it, so a pause also holds while no replica runs, and the installed objects stay as they are. Only who
//! may give the right can pause.

use std::collections::BTreeMap;

use crate::entry::{condition, is_annotated, is_selected, literal};
use crate::install_plan::InstallPlan;
use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::pause::{PAUSED, name};
use memgate_model::selector::PodSelector;
use memgate_platforms::known;

/// The name of the condition.
const NOT_PAUSED: &str = "not-paused";

/// The names of all bindings that can be pauses.
pub fn bindings() -> impl Iterator<Item = String> {
    families().map(|family| name(PAUSED, family))
}

/// All platforms together, and each of them.
pub fn families() -> impl Iterator<Item = Option<&'static str>> {
    [None].into_iter().chain(memgate_platforms::ALL.map(|family| Some(family.name)))
}

/// The condition of an entry for kinds, of one platform or of several.
pub(super) fn resources_not_paused(plan: &InstallPlan) -> MatchCondition {
    let mut groups: BTreeMap<&str, &str> = BTreeMap::new();
    for family in known(&plan.families) {
        let kinds: [&[&Kind]; 2] = [family.kinds.validated, family.kinds.memories];
        groups.extend(kinds.into_iter().flatten().map(|kind| (kind.group, family.name)));
    }
    let entries =
        groups.into_iter().map(|(group, family)| format!("{}: {}", literal(group), literal(family)));
    let entries = entries.collect::<Vec<_>>().join(", ");
    // Of no platform are policies and exemptions: only a pause of all platforms is about them.
    not_paused(&plan.namespace, &format!("{{{entries}}}[?request.kind.group].orValue('')"))
}

/// The condition of an entry for one platform.
fn family_not_paused(namespace: &str, family: &str) -> MatchCondition {
    not_paused(namespace, &literal(family))
}

/// The condition of the entry for pods that match a selector of a platform.
pub(super) fn pods_not_paused(plan: &InstallPlan, family: &Family, pods: &PodSelector) -> MatchCondition {
    let mut asked = family_not_paused(&plan.namespace, family.name);
    if let Some(annotation) = pods.annotation {
        // All pods of the cluster meet this condition, and only those with the annotation have the entry.
        let annotated = is_annotated(annotation).replace('\'', "\"");
        asked.expression = format!("object == null || !({annotated}) || {}", asked.expression);
    }
    asked
}

/// The condition of the entry for pods that require their memory, of any platform. A pod of several platforms, or of none,
/// is skipped only if all platforms are.
pub(super) fn required_not_paused(plan: &InstallPlan) -> MatchCondition {
    let with_pods = known(&plan.families).into_iter().filter(|family| !family.pods.selectors.is_empty());
    let selected = with_pods.map(|family| {
        let pods: Vec<String> = family.pods.selectors.iter().map(is_selected).collect();
        format!("{} ? {} : ''", pods.join(" || "), literal(family.name))
    });
    let selected = selected.collect::<Vec<_>>().join(", ");
    let names = format!("[object == null ? [] : [{selected}].filter(name, name != '')]");
    not_paused(&plan.namespace, &format!("{names}.map(names, names.size() == 1 ? names[0] : '')[0]"))
}

/// The condition for a platform that this CEL names; empty stands for all platforms. Without a namespace only a pause of
/// the whole cluster counts. An account with every right is not paused: nothing gives it the second verb alone.
fn not_paused(namespace: &str, family: &str) -> MatchCondition {
    let expression = format!(
        "[authorizer.serviceAccount('{namespace}', '{PAUSED}').group('memgate.dev').resource('webhooks').name({family})\
         .namespace(has(request.namespace) ? request.namespace : '')]\
         .all(webhook, !webhook.check('skip').allowed() || webhook.check('never').allowed())"
    );
    condition((NOT_PAUSED, &expression))
}

/// The namespace of the account about which a match condition, by its name and expression, asks; `None` for other conditions.
pub fn namespace_of_account([name, expression]: [&str; 2]) -> Option<&str> {
    let (_, account) = expression.split_once("authorizer.serviceAccount('").filter(|_| name == NOT_PAUSED)?;
    account.split_once('\'').map(|(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::metadata::documents;
    use memgate_model::pause::SKIP;

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

    #[test]
    fn a_condition_has_the_namespace_about_which_it_asks() {
        let asked = family_not_paused("team-a", "ark");
        assert_eq!(namespace_of_account([&asked.name, &asked.expression]), Some("team-a"));
        assert_eq!(namespace_of_account(["marked", &asked.expression]), None);
    }

    #[test]
    fn there_is_a_role_for_each_pause() {
        let named = |role: &Value| role["metadata"]["name"].as_str().expect("a name").to_owned();
        let rule = |role: &Value| role["rules"][0].clone();
        let roles: Vec<(String, Value)> = documents(include_str!("../objects/pause.yaml"))
            .map(|role| (named(&role), rule(&role)))
            .collect();
        let expected = families().map(|family| {
            let mut rule = serde_json::json!({
                "apiGroups": ["memgate.dev"], "resources": ["webhooks"], "verbs": ["skip"],
            });
            if let Some(family) = family {
                rule["resourceNames"] = serde_json::json!([family]);
            }
            (name(SKIP, family), rule)
        });
        assert_eq!(roles, expected.collect::<Vec<_>>());
    }
}

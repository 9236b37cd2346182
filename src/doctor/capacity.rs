//! Whether namespaces of agents have room for the containers that memgate adds: Pod Security, quotas
//! and limits. Memory that is only variables needs none.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, ResourceQuota};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use crate::cluster::cluster_state::{Agents, Installation};
use crate::cluster::replay::{Replayed, added_containers};
use crate::doctor::check::{Check, abbreviated, unreadable};
use crate::family::quantity::billionths;

/// The label by which Pod Security refuses pods of a namespace.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// Judges the namespaces in which containers are added.
#[must_use]
pub fn checks<'j>(
    found: &Installation,
    agents: &Agents,
    judged: impl IntoIterator<Item = &'j Replayed<'j>>,
) -> Vec<Check> {
    let mut by_namespace: BTreeMap<&str, Vec<(&Value, &Value)>> = BTreeMap::new();
    for judged in judged {
        for container in added_containers(&judged.with_memory) {
            let containers = by_namespace.entry(judged.pod.namespace()).or_default();
            if containers.iter().all(|(_, known)| *known != container) {
                containers.push((&judged.with_memory, container));
            }
        }
    }
    if by_namespace.is_empty() {
        return vec![Check::ok("room", "Namespaces", "no agent pod gets a container from memgate")];
    }
    let mut checks = Vec::new();
    checks.extend(unreadable(&agents.quotas, "quota", "Namespaces"));
    checks.extend(unreadable(&agents.ranges, "limits", "Namespaces"));
    for (namespace, containers) in by_namespace {
        checks.extend(pod_security(found, namespace, &containers));
        for (_, container) in containers {
            checks.extend(quota(agents, namespace, container));
            checks.extend(limits(agents, namespace, container));
        }
    }
    if checks.is_empty() {
        let message = "the containers that memgate adds fit into the namespaces of agents";
        checks.push(Check::ok("room", "Namespaces", message));
    }
    checks
}

fn pod_security(found: &Installation, namespace: &str, containers: &[(&Value, &Value)]) -> Option<Check> {
    const ID: &str = "pod-security";
    let subject = format!("Namespace {namespace}");
    if let Some(unknown) = unreadable(&found.namespaces, ID, &subject) {
        return Some(unknown);
    }
    if found.labels(namespace).get(ENFORCE).map(String::as_str) != Some("restricted") {
        return None;
    }
    let wrong = containers.iter().filter_map(|(pod, container)| {
        let wrong = violations(pod, container);
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        (!wrong.is_empty()).then(|| format!("{name} ({})", wrong.join(", ")))
    });
    let wrong: Vec<String> = wrong.collect();
    let message =
        || format!("it enforces \"restricted\", which these added containers break: {}", abbreviated(&wrong));
    (!wrong.is_empty()).then(|| Check::fail(ID, subject, message()))
}

/// What of "restricted" a container does not meet, as far as memgate's own could break it.
/// Source: Kubernetes documentation, Pod Security Standards.
fn violations(pod: &Value, container: &Value) -> Vec<&'static str> {
    let own = |field: &str| container.pointer(&format!("/securityContext/{field}")).cloned();
    let pods = |field: &str| pod.pointer(&format!("/spec/securityContext/{field}")).cloned();
    let either = |field: &str| own(field).or_else(|| pods(field));
    let drops_all = own("capabilities/drop").and_then(|drop| Some(drop.as_array()?.contains(&"ALL".into())));
    let profile = either("seccompProfile/type");
    let good_profile = profile.is_some_and(|profile| profile == "RuntimeDefault" || profile == "Localhost");
    let user_is_root = either("runAsUser").is_some_and(|user| user == 0);
    [
        (own("allowPrivilegeEscalation") == Some(false.into()), "allowPrivilegeEscalation"),
        (drops_all == Some(true), "capabilities"),
        (either("runAsNonRoot") == Some(true.into()) && !user_is_root, "runAsNonRoot"),
        (good_profile, "seccompProfile"),
    ]
    .into_iter()
    .filter_map(|(good, name)| (!good).then_some(name))
    .collect()
}

/// The amount of `requests.cpu` and the like that a container asks for.
fn amount(container: &Value, key: &str) -> Option<i128> {
    let (list, resource) = key.split_once('.').unwrap_or(("requests", key));
    let value =
        |list: &str| container.pointer(&format!("/resources/{list}/{resource}")).and_then(Value::as_str);
    // Without a request the limit is one.
    let limit = || value("limits");
    billionths(value(list).or_else(limit)?)
}

fn quota(agents: &Agents, namespace: &str, container: &Value) -> Vec<Check> {
    const ID: &str = "quota";
    const COUNTED: [&str; 6] =
        ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
    let here = |quota: &&ResourceQuota| quota.metadata.namespace.as_deref() == Some(namespace);
    let mut checks = Vec::new();
    for quota in agents.quotas.found().into_iter().flatten().filter(here) {
        let subject =
            format!("ResourceQuota {namespace}/{}", quota.metadata.name.clone().unwrap_or_default());
        let status = quota.status.clone().unwrap_or_default();
        // Nobody may have counted yet.
        let wanted = || quota.spec.as_ref().and_then(|spec| spec.hard.clone());
        let hard = status.hard.or_else(wanted).unwrap_or_default();
        let used = status.used.unwrap_or_default();
        for key in COUNTED {
            let Some(limit) = hard.get(key) else { continue };
            let Some(needed) = amount(container, key) else {
                let message = format!("it counts {key}, and the added container {name} says none");
                let help = "give the namespace a LimitRange with defaults";
                checks.push(Check::warn(ID, &subject, message).help(help));
                continue;
            };
            let in_use = used.get(key).and_then(|used| billionths(&used.0)).unwrap_or_default();
            if billionths(&limit.0).is_some_and(|limit| in_use + needed > limit) {
                let taken = used.get(key).map_or_else(|| "0".to_owned(), |used| used.0.clone());
                let message = format!(
                    "no room for the added container {name} in one more pod: {taken} of {} of {key} are taken",
                    limit.0
                );
                checks.push(Check::warn(ID, &subject, message).help("raise the quota"));
            }
        }
    }
    checks
}

fn limits(agents: &Agents, namespace: &str, container: &Value) -> Vec<Check> {
    let here = |range: &&LimitRange| range.metadata.namespace.as_deref() == Some(namespace);
    let ranges = agents.ranges.found().into_iter().flatten().filter(here);
    let mut checks = Vec::new();
    for range in ranges {
        let subject = format!("LimitRange {namespace}/{}", range.metadata.name.clone().unwrap_or_default());
        let items = range.spec.iter().flat_map(|spec| &spec.limits).filter(|item| item.type_ == "Container");
        checks.extend(items.flat_map(|item| outside(&subject, item, container)));
    }
    checks
}

/// Where a container is outside of what a range allows.
fn outside(subject: &str, item: &LimitRangeItem, container: &Value) -> Vec<Check> {
    let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut checks = Vec::new();
    let mut refused = |what: String| {
        let message = format!("pods with the added container {name} are refused: {what}");
        checks.push(Check::fail("limits", subject, message).help("widen the range"));
    };
    for resource in ["cpu", "memory"] {
        let (limit, request) = (
            amount(container, &format!("limits.{resource}")),
            amount(container, &format!("requests.{resource}")),
        );
        let bound = |bounds: &Option<BTreeMap<String, Quantity>>| bounds.as_ref()?.get(resource).cloned();
        if let (Some(max), Some(limit)) = (bound(&item.max), limit)
            && billionths(&max.0).is_some_and(|max| limit > max)
        {
            refused(format!("its {resource} limit is above the maximum of {}", max.0));
        }
        if let (Some(min), Some(request)) = (bound(&item.min), request)
            && billionths(&min.0).is_some_and(|min| request < min)
        {
            refused(format!("its {resource} request is below the minimum of {}", min.0));
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::cluster_state::{AgentPod, Fetched, Listing};
    use crate::doctor::check::Status;
    use crate::model::decision::{Decision, Reason};
    use crate::model::settings::Family;

    fn pod(context: &Value) -> Value {
        json!({
            "metadata": {
                "name": "run", "namespace": "team-a",
                "annotations": {"memgate.dev/injected": r#"{"initContainers":["memory-server"]}"#},
            },
            "spec": {"initContainers": [
                {"name": "other"},
                {
                    "name": "memory-server", "securityContext": context,
                    "resources": {
                        "requests": {"cpu": "50m", "memory": "64Mi"},
                        "limits": {"cpu": "200m", "memory": "128Mi"},
                    },
                },
            ]},
        })
    }

    fn good() -> Value {
        json!({
            "allowPrivilegeEscalation": false, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        })
    }

    fn judged(
        pod: Value,
        enforce: &str,
        quota: &Value,
        range: &Value,
    ) -> Vec<(&'static str, Status, String)> {
        let namespace = json!({"metadata": {"name": "team-a", "labels": {ENFORCE: enforce}}});
        let items = vec![serde_json::from_value(namespace).expect("a namespace")];
        let found = Installation {
            namespaces: Fetched::Found(Listing { items, truncated: false }),
            ..Installation::default()
        };
        let quota = json!({"metadata": {"name": "q", "namespace": "team-a"}, "status": quota});
        let range = json!({"metadata": {"name": "r", "namespace": "team-a"}, "spec": {"limits": range}});
        let agents = Agents {
            quotas: Fetched::Found(vec![serde_json::from_value(quota).expect("a quota")]),
            ranges: Fetched::Found(vec![serde_json::from_value(range).expect("a range")]),
            ..Agents::default()
        };
        let agent = AgentPod::new(Family::Sympozium, pod.clone());
        let judged = Replayed {
            pod: &agent,
            decision: Decision::pass(Reason::Complete),
            lacks_memory: false,
            with_memory: pod,
        };
        let checks = checks(&found, &agents, &[judged]);
        checks.into_iter().map(|check| (check.id, check.status, check.message)).collect()
    }

    fn only<'a>(checks: &'a [(&'static str, Status, String)]) -> (&'static str, Status, &'a str) {
        match checks {
            [(id, status, said)] => (id, *status, said),
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn what_fits_is_good() {
        let quota = json!({"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "500m"}});
        let range = json!([{"type": "Container", "max": {"memory": "1Gi"}, "min": {"cpu": "1m"}}]);
        let checks = judged(pod(&good()), "restricted", &quota, &range);
        assert_eq!((only(&checks).0, only(&checks).1), ("room", Status::Ok));
    }

    #[test]
    fn says_what_breaks_pod_security() {
        let context = json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 0});
        let checks = judged(pod(&context), "restricted", &json!({}), &json!([]));
        let (id, status, said) = only(&checks);
        assert_eq!((id, status), ("pod-security", Status::Fail));
        assert!(said.ends_with("memory-server (capabilities, runAsNonRoot, seccompProfile)"), "{said}");
        let checks = judged(pod(&context), "baseline", &json!({}), &json!([]));
        assert_eq!(only(&checks).1, Status::Ok);
    }

    #[test]
    fn says_where_there_is_no_room() {
        let quota = json!({"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "960m"}});
        let checks = judged(pod(&good()), "baseline", &quota, &json!([]));
        let (id, status, said) = only(&checks);
        assert_eq!((id, status), ("quota", Status::Warn));
        assert!(said.ends_with("960m of 1 of requests.cpu are taken"), "{said}");
    }

    #[test]
    fn says_what_a_range_refuses() {
        let range = json!([{"type": "Container", "max": {"memory": "100Mi"}, "min": {"cpu": "100m"}}]);
        let checks = judged(pod(&good()), "baseline", &json!({}), &range);
        let said: Vec<_> = checks.iter().map(|(id, status, _)| (*id, *status)).collect();
        assert_eq!(said, [("limits", Status::Fail), ("limits", Status::Fail)]);
        assert!(checks[0].2.ends_with("its cpu request is below the minimum of 100m"), "{}", checks[0].2);
    }

    #[test]
    fn variables_alone_need_no_room() {
        let mut bare = pod(&good());
        bare["metadata"]["annotations"] = json!({"memgate.dev/injected": r#"{"env":{}}"#});
        let checks = judged(bare, "restricted", &json!({}), &json!([]));
        assert_eq!(only(&checks).2, "no agent pod gets a container from memgate");
    }
}

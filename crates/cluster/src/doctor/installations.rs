//! Whether another installation of memgate has the name of this one, or receives the same requests.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::cluster_state::{Fetched, Installation, configuration_title, elements, text};
use crate::doctor::check::{Check, abbreviated, unreadable_configurations};
use crate::doctor::inferred::{REQUIRED_PODS, leaves, registered};
use crate::webhook_entry::{WebhookEntry, requirements};
use memgate_model::family::Family;
use memgate_primitives::review_path::Phase;

const ID: &str = "installations";

/// The entries that every installation needs: each installation reads all policies, and warns about the workloads of its
/// own families only.
const SHARED: [&str; 2] = ["policies.memgate.dev", "templates.memgate.dev"];

/// How to keep installations apart.
const APART: &str = "give each installation families (--family) or namespaces of its own, and delete what is left over \
                     of an earlier one";

/// Checks for objects of this name that belong to another installation, and for requests that two installations
/// receive.
pub fn checks(found: &Installation) -> Vec<Check> {
    let mut checks = collisions(found);
    for (other, theirs) in others(found) {
        for call in Phase::ALL {
            let of_call = theirs.iter().filter(|(theirs, _)| *theirs == call);
            let entries: Vec<_> = of_call.map(|(_, entry)| entry).collect();
            checks.extend(overlap(found, call, &other, &entries));
        }
        checks.extend(required_pods(found, &other, &theirs));
    }
    checks.extend(unreadable_configurations(found, ID));
    if checks.is_empty() {
        let message = "no other installation has this name, or is asked about the same requests";
        checks.push(Check::ok(ID, &found.name, message));
    }
    checks
}

/// Cluster-wide objects of this name that another namespace's installation has written.
fn collisions(found: &Installation) -> Vec<Check> {
    let foreign = |namespaces: Vec<&str>| {
        let first = namespaces.first().copied()?;
        (!namespaces.contains(&found.namespace.as_str())).then(|| first.to_owned())
    };
    let leads_to = |entries: Option<Vec<WebhookEntry>>| {
        let entries = entries.unwrap_or_default();
        foreign(entries.iter().filter_map(WebhookEntry::service_namespace).collect())
    };
    let binding = found.cluster_role_binding.as_ref().found().and_then(|binding| {
        let subjects = binding.subjects.iter().flatten();
        foreign(subjects.filter_map(|subject| subject.namespace.as_deref()).collect())
    });
    let guard = found.self_guard.as_ref().found().and_then(|policy| {
        let conditions = elements(policy, "/spec/matchConditions");
        let expressions = conditions.map(|condition| text(condition, "/expression"));
        foreign(expressions.filter_map(guarded_namespace).collect())
    });
    let name = &found.name;
    let [mutating, validating] =
        Phase::ALL.map(|call| (found.own_title(call), leads_to(found.own_entries(call))));
    let objects = [
        mutating,
        validating,
        (format!("ClusterRoleBinding {name}"), binding),
        (format!("ValidatingAdmissionPolicy {name}-self-guard"), guard),
    ];
    let check = |(subject, namespace): (String, Option<String>)| {
        let namespace = namespace?;
        let message = format!(
            "it belongs to an installation in the namespace {namespace}: two of one name overwrite each other"
        );
        let help = format!(
            "-n {namespace} looks at that one; give one of them a name of its own (memgate manifests --name, Helm's \
             clusterName)"
        );
        Some(Check::fail(ID, subject, message).help(help))
    };
    objects.into_iter().filter_map(check).collect()
}

/// The namespace of the account in the condition of a policy on memgate's own account.
fn guarded_namespace(expression: &str) -> Option<&str> {
    expression.split_once("system:serviceaccount:")?.1.split(':').next()
}

/// The entries of other installations, by the name of their configurations.
fn others(found: &Installation) -> BTreeMap<String, Vec<(Phase, WebhookEntry)>> {
    let mut others: BTreeMap<String, Vec<(Phase, WebhookEntry)>> = BTreeMap::new();
    for (call, name, entry) in found.other_entries().filter(|(.., entry)| entry.is_memgates()) {
        others.entry(name.to_owned()).or_default().push((call, entry));
    }
    others
}

/// A warning for the entries of another installation that receive the same requests as this one.
fn overlap(found: &Installation, call: Phase, other: &str, theirs: &[&WebhookEntry]) -> Option<Check> {
    let own: Vec<_> = found.own_entries(call).unwrap_or_default().into_iter().filter(is_of_one).collect();
    let both = |their: &&&WebhookEntry| {
        own.iter().any(|entry| purpose(entry) == purpose(their) && meet(found, entry, their))
    };
    let names: Vec<String> =
        theirs.iter().filter(|their| is_of_one(their)).filter(both).map(|their| their.name.clone()).collect();
    if names.is_empty() {
        return None;
    }
    let leads_here = theirs.iter().all(|their| their.service_namespace() == Some(found.namespace.as_str()));
    let whose = if leads_here { "it leads to this installation too, and " } else { "" };
    let message =
        format!("{whose}its entries ask about the same requests as {}: {}", found.name, abbreviated(&names));
    let subject = configuration_title(call, other);
    Some(Check::warn(ID, subject, message).help(APART))
}

/// Whether only one installation should have an entry for these requests. The entry for pods that require their memory
/// is shared: it refuses pods that no installation knows.
fn is_of_one(entry: &WebhookEntry) -> bool {
    entry.name != REQUIRED_PODS && !SHARED.contains(&entry.name.as_str())
}

/// The purpose of an entry, by its name. The entry for strict namespaces has the same purpose as the one for all
/// others.
fn purpose(entry: &WebhookEntry) -> &str {
    entry.name.trim_start_matches("strict.")
}

/// Pods of a platform that get their memory from one installation, and that the other refuses because it does not know
/// the platform.
fn required_pods(found: &Installation, other: &str, theirs: &[(Phase, WebhookEntry)]) -> Vec<Check> {
    let own = found.all_own_entries();
    let theirs: Vec<WebhookEntry> = theirs.iter().map(|(_, entry)| entry.clone()).collect();
    let [here, there] = [&own, &theirs].map(|entries| registered(entries));
    let [own_entry, their_entry] =
        [&own, &theirs].map(|entries| entries.iter().find(|entry| entry.name == REQUIRED_PODS));
    let (Some(own_entry), Some(their_entry)) = (own_entry, their_entry) else {
        return Vec::new();
    };
    if !meet_in_a_namespace(found, own_entry, their_entry) {
        return Vec::new();
    }
    let refused = |refusing: &WebhookEntry, of: &[&'static Family], by: &[&'static Family]| -> Vec<String> {
        let foreign = of.iter().filter(|family| !by.contains(family) && !leaves(refusing, family));
        foreign.map(|family| family.name.to_owned()).collect()
    };
    let sides = [
        (other, found.name.as_str(), refused(their_entry, &here, &there)),
        (found.name.as_str(), other, refused(own_entry, &there, &here)),
    ];
    let check = |(refuses, knows, families): (&str, &str, Vec<String>)| {
        let first = families.first()?;
        let message = format!(
            "pods that require their memory are refused as unknown, though {knows} knows them: those of {}",
            abbreviated(&families)
        );
        let help = format!("install {refuses} with --elsewhere {first}");
        let subject = format!("MutatingWebhookConfiguration {refuses}");
        Some(Check::fail(ID, subject, message).help(help))
    };
    sides.into_iter().filter_map(check).collect()
}

/// Whether both entries may be called for the same request. Conditions in CEL are not evaluated.
fn meet(found: &Installation, one: &WebhookEntry, other: &WebhookEntry) -> bool {
    let shared = |of_cluster: bool| {
        let mut pairs = one.rules.iter().flat_map(|rule| other.rules.iter().map(move |other| (rule, other)));
        pairs.any(|(rule, other)| {
            is_clusters(rule) == of_cluster && is_clusters(other) == of_cluster && have_common(rule, other)
        })
    };
    !contradict(&one.object_selector, &other.object_selector)
        && (shared(true) || (shared(false) && meet_in_a_namespace(found, one, other)))
}

fn is_clusters(rule: &RuleWithOperations) -> bool {
    rule.scope.as_deref() == Some("Cluster")
}

/// Whether both are called in one of the cluster's namespaces.
fn meet_in_a_namespace(found: &Installation, one: &WebhookEntry, other: &WebhookEntry) -> bool {
    let Fetched::Found(namespaces) = &found.namespaces else {
        return !contradict(&one.namespace_selector, &other.namespace_selector);
    };
    namespaces.values().any(|labels| one.selects_namespace(labels) && other.selects_namespace(labels))
}

/// Whether two rules name an operation on a resource in common. Versions are not compared: the apiserver converts.
fn have_common(one: &RuleWithOperations, other: &RuleWithOperations) -> bool {
    let lists = [
        (&one.api_groups, &other.api_groups),
        (&one.resources, &other.resources),
        (&one.operations, &other.operations),
    ];
    lists.into_iter().all(|(one, other)| {
        let both = |a: &String| other.iter().flatten().any(|b| a == b || a == "*" || b == "*");
        one.iter().flatten().any(both)
    })
}

/// Whether two requirements of the selectors exclude each other, so that no labels meet both selectors.
fn contradict(one: &LabelSelector, other: &LabelSelector) -> bool {
    let (one, other) = (requirements(one), requirements(other));
    let mut pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    pairs.any(|(a, b)| a.key == b.key && (exclude(a, b) || exclude(b, a)))
}

fn exclude(a: &LabelSelectorRequirement, b: &LabelSelectorRequirement) -> bool {
    let listed = |value: &String| b.values.iter().flatten().any(|known| known == value);
    let mut values = a.values.iter().flatten();
    match (a.operator.as_str(), b.operator.as_str()) {
        ("In" | "Exists", "DoesNotExist") => true,
        ("In", "In") => !values.any(listed),
        ("In", "NotIn") => values.all(listed),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

//! Whether another installation of memgate has the name of this one, or is asked about the same requests.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::cluster::cluster_state::{Installation, labels};
use crate::cluster::webhook_entry::{WebhookEntry, entries, requirements};
use crate::doctor::check::{Check, abbreviated, unreadable_configurations};
use crate::doctor::inferred::{REQUIRED_PODS, leaves, registered};
use crate::model::family::Family;

const ID: &str = "installations";

/// The entries that every installation needs: each has to know which policies are in force, and says of a workload only
/// what it knows.
const SHARED: [&str; 2] = ["policies.memgate.dev", "templates.memgate.dev"];

/// How to keep installations apart.
const APART: &str = "give each installation families (--family) or namespaces of its own, and delete what is left over \
                     of an earlier one";

/// One kind of configuration: how its kind begins, and its entries.
type Configuration = (&'static str, Vec<WebhookEntry>);

/// Objects of this name that belong to another installation, and requests that two are asked about.
#[must_use]
pub fn checks(found: &Installation) -> Vec<Check> {
    let mut checks = collisions(found);
    for (other, theirs) in others(found) {
        for (kind, entries) in &theirs {
            checks.extend(overlap(found, kind, &other, entries));
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
    let binding = found.cluster_role_binding.found().and_then(|binding| {
        let subjects = binding.subjects.iter().flatten();
        foreign(subjects.filter_map(|subject| subject.namespace.as_deref()).collect())
    });
    let guard = found.self_guard.found().and_then(|policy| {
        let conditions = policy.spec.as_ref()?.match_conditions.iter().flatten();
        foreign(conditions.filter_map(|condition| guarded_namespace(&condition.expression)).collect())
    });
    let name = &found.name;
    let objects = [
        (format!("MutatingWebhookConfiguration {name}"), leads_to(found.own_mutating_entries())),
        (format!("ValidatingWebhookConfiguration {name}"), leads_to(found.own_validating_entries())),
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

/// The configurations of other installations, by name.
fn others(found: &Installation) -> BTreeMap<String, Vec<Configuration>> {
    let mut others: BTreeMap<String, Vec<Configuration>> = BTreeMap::new();
    let mut add = |kind, name: Option<&String>, entries: Vec<WebhookEntry>| {
        let entries: Vec<_> = entries.into_iter().filter(WebhookEntry::is_memgates).collect();
        if let Some(name) = name.filter(|name| **name != found.name && !entries.is_empty()) {
            others.entry(name.clone()).or_default().push((kind, entries));
        }
    };
    for configuration in found.mutating.found().into_iter().flat_map(|listed| &listed.items) {
        add("Mutating", configuration.metadata.name.as_ref(), entries(configuration.webhooks.as_ref()));
    }
    for configuration in found.validating.found().into_iter().flat_map(|listed| &listed.items) {
        add("Validating", configuration.metadata.name.as_ref(), entries(configuration.webhooks.as_ref()));
    }
    others
}

/// The entries of another installation that are asked about what this one is asked about.
fn overlap(found: &Installation, kind: &str, other: &str, theirs: &[WebhookEntry]) -> Option<Check> {
    let own = match kind {
        "Mutating" => found.own_mutating_entries(),
        _ => found.own_validating_entries(),
    };
    let own: Vec<_> = own.unwrap_or_default().into_iter().filter(is_of_one).collect();
    let both = |their: &&WebhookEntry| {
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
    let subject = format!("{kind}WebhookConfiguration {other}");
    Some(Check::warn(ID, subject, message).help(APART))
}

/// Whether an entry is for what one installation alone should be asked about. That for pods that require their memory
/// refuses those that no installation knows.
fn is_of_one(entry: &WebhookEntry) -> bool {
    entry.name != REQUIRED_PODS && !SHARED.contains(&entry.name.as_str())
}

/// What an entry is for, by its name: those of strict namespaces are for the same as their other halves.
fn purpose(entry: &WebhookEntry) -> &str {
    entry.name.trim_start_matches("strict.")
}

/// Pods of a platform that one installation gives their memory, and the other refuses as nobody's.
fn required_pods(found: &Installation, other: &str, theirs: &[Configuration]) -> Vec<Check> {
    let own = found.own_entries();
    let theirs: Vec<WebhookEntry> = theirs.iter().flat_map(|(_, entries)| entries.clone()).collect();
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
            "pods that require their memory are refused as nobody's, though {knows} knows them: those of {}",
            abbreviated(&families)
        );
        let help = format!("install {refuses} with --elsewhere {first}");
        let subject = format!("MutatingWebhookConfiguration {refuses}");
        Some(Check::fail(ID, subject, message).help(help))
    };
    sides.into_iter().filter_map(check).collect()
}

/// Whether there are requests that both entries are called for. Conditions in CEL are not looked at.
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

/// Whether both are called in one of the namespaces that there are.
fn meet_in_a_namespace(found: &Installation, one: &WebhookEntry, other: &WebhookEntry) -> bool {
    let Some(namespaces) = found.namespaces.found() else {
        return !contradict(&one.namespace_selector, &other.namespace_selector);
    };
    namespaces.items.iter().any(|namespace| {
        let labels = labels(namespace);
        one.selects_namespace(&labels) && other.selects_namespace(&labels)
    })
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

/// Whether no labels meet both selectors, as far as two of their requirements show it.
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

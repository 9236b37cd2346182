//! Policies and exemptions without effect, once all objects are judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::codes::{EXEMPTION_EXPIRED, EXEMPTION_REJECTED, EXEMPTION_UNUSED, UNUSED};
use memgate_model::finding::Finding;
use memgate_model::kind::{MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
use memgate_model::object::Reference;
use memgate_model::policy::{Exemption, Match, Policies, Policy};
use memgate_model::request::Operation;
use memgate_primitives::pointer::Pointer;

use super::advice;
use super::exempt::{Rejection, is_current, rejection};
use super::reader::warning;
use super::text::plain_name;
use super::values::day;

/// The policies and exemptions that had an effect on at least one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Used {
    /// The policies that matched, by name.
    pub policies: BTreeSet<String>,
    /// The exemptions that counted, as `namespace/name`.
    pub exemptions: BTreeSet<String>,
    /// The kinds of the objects that were judged, each with its family.
    pub kinds: BTreeSet<(&'static str, String)>,
}

impl Used {
    /// Whether an object would match a policy but for its operations, of which files and audits have one.
    fn fits_but_for_operations(&self, matching: &Match) -> bool {
        let is_named = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|it| it == name))
        };
        let fits = |(family, kind): &(&str, String)| {
            is_named(&matching.families, family) && is_named(&matching.kinds, kind)
        };
        let creates = matching.operations.as_ref().is_none_or(|all| all.contains(&Operation::Create));
        !creates && self.kinds.iter().any(fits)
    }
}

/// The policies of these names that matched nothing.
pub fn policies(names: &BTreeSet<String>, policies: &Policies, used: &Used) -> Vec<(Reference, Finding)> {
    let is_fit =
        |name: &&String| policies.get(name).is_some_and(|it| used.fits_but_for_operations(&it.matching));
    let unused = names.difference(&used.policies).filter(|name| !is_fit(name));
    let finding = |name: &String| {
        let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name: name.clone() };
        let message = format!("policy {} matched none of the objects", plain_name(name));
        let finding = warning(&UNUSED, "/spec/match", &message);
        (object, finding.help("look at match, or leave the policy out"))
    };
    unused.map(finding).collect()
}

/// Which defaults of the policies of these names another policy writes too, and wins.
pub fn overlaps(names: &BTreeSet<String>, policies: &Policies) -> Vec<(Reference, Finding)> {
    let wanted = names.iter().filter_map(|name| policies.get(name));
    let of_policy = |policy: &Arc<Policy>| {
        let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name: policy.name.clone() };
        advice::overlaps(policy, policies).into_iter().map(move |finding| (object.clone(), finding))
    };
    wanted.flat_map(of_policy).collect()
}

/// The exemptions without effect.
pub fn exemptions(policies: &Policies, used: &Used, now: Timestamp) -> Vec<(Reference, Finding)> {
    let leftover = |exemption: &Exemption| {
        let Exemption { namespace, name, .. } = exemption;
        let (namespace, name) = (namespace.clone(), name.clone());
        let object = Reference { kind: &MEMORY_POLICY_EXEMPTION, namespace, name };
        Some((object, of_exemption(exemption, policies, used, now)?))
    };
    policies.exemptions().filter_map(|exemption| leftover(exemption)).collect()
}

fn of_exemption(exemption: &Exemption, policies: &Policies, used: &Used, now: Timestamp) -> Option<Finding> {
    if let Some(finding) = rejected(exemption, policies) {
        return Some(finding);
    }
    if exemption.expires_at <= now {
        let message = format!("it ended on {}", day(exemption.expires_at));
        return Some(warning(&EXEMPTION_EXPIRED, "/spec/expiresAt", &message).help("remove it"));
    }
    let is_unused = is_current(exemption, now) && !used.exemptions.contains(&exemption.key());
    is_unused.then(|| {
        warning(&EXEMPTION_UNUSED, "/spec/target", "it exempted none of the objects")
            .help("remove it, or look at its target")
    })
}

/// Why an exemption never counts; `None` for one that counts between its two dates.
pub fn rejected(exemption: &Exemption, policies: &Policies) -> Option<Finding> {
    let finding = |pointer: &str, message: String| Some(warning(&EXEMPTION_REJECTED, pointer, &message));
    let shown = plain_name(&exemption.policy);
    let Some(policy) = policies.get(&exemption.policy) else {
        return finding("/spec/policy", format!("there is no policy {shown}"));
    };
    if policy.invalid.is_none() {
        for (id, index) in exemption.rules.iter().zip(0_usize..) {
            let pointer = Pointer::new("/spec/rules").index(index);
            let message = match policy.rules.iter().find(|rule| rule.about.id == *id) {
                None => format!("policy {shown} has no rule \"{id}\""),
                Some(rule) if !rule.exemptable => {
                    format!("rule \"{id}\" of policy {shown} allows no exemption")
                }
                Some(_) => continue,
            };
            return finding(pointer.as_str(), message);
        }
    }
    let reason = match &policy.exemptions {
        None => Some(Rejection::Namespace),
        Some(terms) => rejection(exemption, terms),
    };
    match reason? {
        Rejection::Namespace => {
            let own = plain_name(&exemption.namespace);
            finding(
                "/metadata/namespace",
                format!("policy {shown} accepts no exemption from namespace {own}"),
            )
        }
        Rejection::Age => finding("/spec/expiresAt", format!("it lasts longer than policy {shown} accepts")),
    }
}

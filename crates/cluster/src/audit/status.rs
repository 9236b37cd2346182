//! The status of a policy and of an exemption after an audit.
//!
//! A status is written only if more than its times differs, so its times change only with other fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use serde_json::{Value, json};

use crate::cluster_state::Fetched;
use crate::reader::path;
use memgate_model::finding::Finding;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::policy::{Action, Exemption, Policies, Policy, Rule};
use memgate_model::policy_rule::Counts;
use memgate_policy::judge::{Judgement, promotion};
use memgate_policy::leftover::rejected;
use memgate_primitives::credential::masked_keys;

use super::policies::Head;
use super::state::Stored;
use super::{FIELD_MANAGER, Faults, Run, TooManyFaults, given, truncate, without_nulls, write};

/// How many violations a status has.
const MAX_VIOLATIONS: usize = 20;

/// The most bytes of a violation's field and message. Source: the definition of the status.
const MAX_FIELD_BYTES: usize = 1024;
const MAX_VIOLATION_BYTES: usize = 512;

/// The most bytes of a message, as the definition has it.
const MAX_MESSAGE_BYTES: usize = 4096;

/// The counts of one policy in an audit.
#[derive(Debug, Default)]
pub(super) struct PolicyCounts {
    /// How many stored objects the policy matches.
    pub(super) matched: usize,
    /// How many of them admission would refuse for it.
    pub(super) denied: usize,
    pub(super) counts: Counts,
    /// The first violations, in the form of a status.
    pub(super) first: Vec<Value>,
}

/// The counts of all policies and exemptions in an audit.
#[derive(Debug, Default)]
pub(super) struct AuditCounts {
    /// How many objects were judged.
    pub(super) subjects: usize,
    /// How many of them are Namespaces.
    pub(super) namespaces: usize,
    /// Whether that is all of them.
    pub(super) is_whole: bool,
    /// By the name of the policy.
    pub(super) policies: BTreeMap<String, PolicyCounts>,
    /// How many objects each exemption applies to, by namespace and name.
    pub(super) exemptions: BTreeMap<String, usize>,
}

impl AuditCounts {
    /// Counts an object.
    pub(super) fn add(&mut self, stored: &Stored, judgement: &Judgement) {
        for name in &judgement.policies {
            self.policies.entry(name.clone()).or_default().matched += 1;
        }
        for (name, counts) in &judgement.counts {
            let policy = self.policies.entry(name.clone()).or_default();
            policy.counts.add(*counts);
            policy.denied += usize::from(counts.denied > 0);
        }
        for finding in &judgement.findings {
            let Some(policy) = &finding.policy else { continue };
            let Some(found) = self.policies.get_mut(&policy.rule.policy) else { continue };
            if policy.is_violation() && found.first.len() < MAX_VIOLATIONS {
                found.first.push(violation(stored, &policy.rule.id, finding));
            }
        }
        for key in &judgement.exemptions {
            *self.exemptions.entry(key.clone()).or_default() += 1;
        }
    }
}

/// A violation in the form of a status.
fn violation(stored: &Stored, rule: &str, finding: &Finding) -> Value {
    without_nulls(json!({
        "rule": rule,
        "kind": stored.kind.kind,
        "namespace": given(&stored.namespace),
        "name": stored.name,
        "field": truncate(&masked_keys(finding.pointer.as_str()), MAX_FIELD_BYTES),
        "message": truncate(&finding.message(), MAX_VIOLATION_BYTES),
    }))
}

/// Writes the statuses that differ.
pub(super) async fn write_all(
    run: &Run<'_>,
    heads: &[Head],
    policies: &Policies,
    found: &AuditCounts,
    faults: &mut Faults,
) -> Result<(), TooManyFaults> {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    for head in heads {
        let Some(status) = status(head, policies, found, run.now) else { continue };
        let Head { kind, namespace, name, .. } = head;
        let (api_version, metadata) =
            (kind.api_version(), without_nulls(json!({"name": name, "namespace": given(namespace)})));
        let object =
            json!({"apiVersion": api_version, "kind": kind.kind, "metadata": metadata, "status": status});
        let request = Request::new(path(&api_version, namespace, kind.plural));
        let request = request.patch_subresource("status", name, &params, &Patch::Apply(&object));
        if let Fetched::Unknown(why) = write(run.reader, "patch the status of", kind, request).await {
            faults.add(why)?;
        }
    }
    Ok(())
}

/// The new status of a policy or an exemption; `None` when the stored one is up to date.
pub(super) fn status(head: &Head, policies: &Policies, found: &AuditCounts, now: Timestamp) -> Option<Value> {
    let (wanted, time) = if *head.kind == MEMORY_POLICY {
        (of_policy(head, policies, found.policies.get(&head.name), now), "lastAudit")
    } else {
        let exemption = policies.exemption(&head.namespace, &head.name);
        (of_exemption(head, exemption.map(AsRef::as_ref), policies, found, now), "lastMatched")
    };
    if has_content(&head.status, &wanted) {
        return None;
    }
    let matches = wanted.get("matches").and_then(Value::as_u64);
    let is_moved =
        matches.is_none_or(|count| count > 0 && head.status.get("matches") != wanted.get("matches"));
    let moved = if is_moved { Some(second(now)) } else { head.status.get(time).cloned() };
    let mut status = with_transitions(wanted, &head.status, now);
    if let (Some(fields), Some(moved)) = (status.as_object_mut(), moved) {
        fields.insert(time.to_owned(), moved);
    }
    Some(status)
}

fn of_policy(head: &Head, policies: &Policies, found: Option<&PolicyCounts>, now: Timestamp) -> Value {
    let none = PolicyCounts::default();
    let PolicyCounts { matched, counts, first, .. } = found.unwrap_or(&none);
    let mut conditions = vec![match &head.fault {
        Some(fault) => condition("Ready", false, "Invalid", fault),
        None => condition("Ready", true, "InForce", "its rules count"),
    }];
    if let Some(policy) = policies.get(&head.name).filter(|_| head.fault.is_none()) {
        conditions.extend(of_promotion(policy, *counts, now));
        conditions.extend(of_doubts(&head.doubts));
    }
    json!({
        "observedGeneration": head.generation,
        "conditions": conditions,
        "matched": matched,
        "violations": counts.violations,
        "exempted": counts.exempted,
        "firstViolations": first,
    })
}

/// The condition about parts of a policy that never apply; none where there are none.
fn of_doubts(doubts: &[Finding]) -> Option<Value> {
    let (first, others) = doubts.split_first()?;
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    let message = format!("{} ({}){more}", first.message(), first.code_name());
    Some(condition("Applies", false, "NeverApplies", &message))
}

/// The conditions about the promotion of a policy: whether it has happened, and whether stored objects will be denied.
fn of_promotion(policy: &Policy, counts: Counts, now: Timestamp) -> Vec<Value> {
    let Some(promotion) = policy.promote else { return Vec::new() };
    let (is_promoted, to) = (now >= promotion.at, promotion.to.name());
    let day = promotion.at.strftime("%Y-%m-%d");
    let promoted = if is_promoted {
        condition("Promoted", true, "Promoted", &format!("the action at admission is {to} since {day}"))
    } else {
        condition("Promoted", false, "Waiting", &format!("the action at admission is {to} from {day}"))
    };
    vec![promoted, at_risk(policy, counts, now)]
}

/// The condition whether a promotion is going to deny stored objects. It is about the rules that the promotion makes
/// deny: not those with an action of their own at admission.
fn at_risk(policy: &Policy, counts: Counts, now: Timestamp) -> Value {
    const TYPE: &str = "PromotionAtRisk";
    let Some(at) = policy.promote.map(|it| it.at).filter(|at| now < *at) else {
        return condition(TYPE, false, "Promoted", "it is promoted");
    };
    let is_promoted = |rule: &&Rule| promotion(policy, rule, now).is_some_and(|it| it.to == Action::Deny);
    let promoted: Vec<&Rule> = policy.rules.iter().filter(is_promoted).collect();
    let is_audited = |rule: &&Rule| policy.is_audited(rule);
    let not_audited: Vec<&Rule> = promoted.iter().copied().filter(|rule| !is_audited(rule)).collect();
    let ids: Vec<&str> = not_audited.iter().map(|rule| rule.about.id.as_str()).collect();
    let says = |status, reason: &str, mut message: String| {
        if !ids.is_empty() {
            message += "; audits do not judge these rules: ";
            message += &ids.join(", ");
        }
        condition_of(TYPE, status, reason, &message)
    };
    match counts.at_risk {
        _ if promoted.is_empty() => condition(TYPE, false, "NothingDenied", "the promotion denies nothing"),
        // No audit judges pods, so rules for pods alone leave nothing open.
        0 if ids.len() == promoted.len() || not_audited.iter().any(|rule| !rule.is_for_pods()) => {
            says("Unknown", "NotAudited", "it may deny what audits do not judge".to_owned())
        }
        0 if counts.violations == 0 => {
            says("False", "NoViolations", "audits found nothing that it denies".to_owned())
        }
        0 => {
            let count = counts.violations;
            says(
                "False",
                "NoneDenied",
                format!("it denies none of the violations that audits found: {count}"),
            )
        }
        count => {
            let day = at.strftime("%Y-%m-%d");
            let message = format!("findings about stored objects that are denied from {day}: {count}");
            says("True", "OpenViolations", message)
        }
    }
}

fn of_exemption(
    head: &Head,
    exemption: Option<&Exemption>,
    policies: &Policies,
    found: &AuditCounts,
    now: Timestamp,
) -> Value {
    let rejection = match (&head.fault, exemption) {
        (Some(fault), _) => Some(("Invalid", fault.clone())),
        (None, Some(exemption)) => {
            rejected(exemption, policies).map(|finding| ("NotAccepted", finding.message().into_owned()))
        }
        (None, None) => Some(("Invalid", "it cannot be read".to_owned())),
    };
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let ended = exemption.filter(|it| now >= it.expires_at);
    let ended = ended.map(|it| format!("it ended on {}", day(it.expires_at)));
    let active = match (&rejection, &ended, exemption) {
        (Some((reason, message)), ..) => condition("Active", false, reason, message),
        (None, Some(ended), _) => condition("Active", false, "Expired", ended),
        (None, None, Some(it)) if now < it.from => {
            condition("Active", false, "NotYet", &format!("it begins on {}", day(it.from)))
        }
        (None, None, Some(it)) => {
            condition("Active", true, "InForce", &format!("until {}", day(it.expires_at)))
        }
        (None, None, None) => condition("Active", false, "Invalid", "it cannot be read"),
    };
    let expired = match &ended {
        Some(ended) => condition("Expired", true, "Expired", ended),
        None => condition("Expired", false, "NotExpired", "it has not ended"),
    };
    let rejected = match rejection {
        Some((reason, message)) => condition("Rejected", true, reason, &message),
        None => condition("Rejected", false, "Accepted", "its policy accepts it"),
    };
    let key = format!("{}/{}", head.namespace, head.name);
    let matches = found.exemptions.get(&key).copied().unwrap_or_default();
    json!({
        "observedGeneration": head.generation,
        "conditions": [active, expired, rejected],
        "matches": matches,
    })
}

fn condition(type_name: &str, status: bool, reason: &str, message: &str) -> Value {
    condition_of(type_name, if status { "True" } else { "False" }, reason, message)
}

fn condition_of(type_name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_name, "status": status, "reason": reason, "message": truncate(message, MAX_MESSAGE_BYTES)})
}

/// Whether a stored status has the wanted content. Fields of other clients do not count.
fn has_content(stored: &Value, wanted: &Value) -> bool {
    wanted.as_object().into_iter().flatten().all(|(field, wanted)| match stored.get(field) {
        Some(stored) if field == "conditions" => {
            let ours = |it: &&Value| {
                it.get("type").and_then(Value::as_str).is_some_and(|it| CONDITIONS.contains(&it))
            };
            let ours: Vec<_> =
                stored.as_array().into_iter().flatten().filter(ours).cloned().map(without_time).collect();
            wanted.as_array().is_some_and(|wanted| *wanted == ours)
        }
        Some(stored) => stored == wanted,
        None => false,
    })
}

/// All types of conditions that memgate writes.
const CONDITIONS: [&str; 7] =
    ["Ready", "Promoted", "PromotionAtRisk", "Applies", "Active", "Expired", "Rejected"];

fn without_time(mut condition: Value) -> Value {
    if let Some(fields) = condition.as_object_mut() {
        fields.remove("lastTransitionTime");
    }
    condition
}

fn conditions(status: &mut Value) -> impl Iterator<Item = &mut Value> {
    status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Adds the time of its last transition to each condition.
fn with_transitions(mut status: Value, stored: &Value, now: Timestamp) -> Value {
    let before = stored.get("conditions").and_then(Value::as_array);
    for condition in conditions(&mut status).filter_map(Value::as_object_mut) {
        let is_same = |it: &&Value| ["type", "status"].iter().all(|key| it.get(key) == condition.get(*key));
        let since = before.into_iter().flatten().find(is_same).and_then(|it| it.get("lastTransitionTime"));
        let since = since.filter(|since| since.is_string()).cloned().unwrap_or_else(|| second(now));
        condition.insert("lastTransitionTime".to_owned(), since);
    }
    status
}

/// A time as Kubernetes writes it.
fn second(time: Timestamp) -> Value {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

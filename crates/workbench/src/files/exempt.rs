//! Makes the manifest of an exemption from rules of a policy, if it would be in force.
//!
//! The manifest is read back as an exemption, so that it is refused here for the same reasons as in a cluster.

use crate::report::json::without_nulls;
use jiff::{SignedDuration, Timestamp};
use memgate_model::kind::{MEMORY_POLICY_EXEMPTION, NAMESPACE};
use memgate_model::policy::Policies;
use memgate_policy::leftover::rejected;
use memgate_policy::read;
use memgate_primitives::suggest::{did_you_mean, nearest};
use serde_json::{Value, json};

/// Nanoseconds of an hour.
const HOUR: i128 = 3600 * 1_000_000_000;

/// The exemption that the user asks for.
#[derive(Debug)]
pub struct ExemptionRequest<'a> {
    /// The policy.
    pub policy: &'a str,
    /// The ids of the rules.
    pub rules: Vec<&'a str>,
    /// The object.
    pub object: ExemptObject,
    /// The reason.
    pub reason: &'a str,
    /// The ticket.
    pub ticket: Option<&'a str>,
    /// Its start.
    pub from: Timestamp,
    /// Its length, in nanoseconds.
    pub lasts: i128,
    /// The namespace that grants it.
    pub namespace: &'a str,
}

/// The object of an exemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExemptObject {
    kind: String,
    /// For a Namespace its own name.
    namespace: String,
    name: String,
}

impl ExemptObject {
    /// Reads `KIND/NS/NAME`, or `Namespace/NAME`.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match parts.as_slice() {
            [kind, name] if *kind == NAMESPACE.kind => (kind, name, name),
            [kind, namespace, name] if *kind != NAMESPACE.kind => (kind, namespace, name),
            _ => return Err("write it like ArkMemory/team-a/notes, or Namespace/team-a".to_owned()),
        };
        if [kind, namespace, name].iter().any(|part| part.is_empty()) {
            return Err("kind, namespace and name must not be empty".to_owned());
        }
        Ok(Self { kind: (*kind).to_owned(), namespace: (*namespace).to_owned(), name: (*name).to_owned() })
    }
}

/// The manifest of an exemption.
///
/// # Errors
/// When it would not be in force: the reasons, a sentence each.
pub fn exemption(request: &ExemptionRequest<'_>, policies: &Policies) -> Result<Value, Vec<String>> {
    if policies.get(request.policy).is_none() {
        let names = policies.iter().map(|policy| policy.name.as_str());
        let hint = did_you_mean(nearest(request.policy, names));
        return Err(vec![format!("--policy gives no policy \"{}\"{hint}", request.policy)]);
    }
    let manifest = manifest(request)?;
    let (exemption, faults) = read::exemption(&manifest, &memgate_platforms::ALL);
    let Some(exemption) = exemption else {
        return Err(faults.into_iter().map(|fault| fault.message().into_owned()).collect());
    };
    match rejected(&exemption, policies) {
        None => Ok(manifest),
        Some(finding) => Err(vec![finding.message().into_owned()]),
    }
}

fn manifest(request: &ExemptionRequest<'_>) -> Result<Value, Vec<String>> {
    let ExemptObject { kind, namespace, name } = &request.object;
    let seconds = i64::try_from(request.lasts / 1_000_000_000).unwrap_or(i64::MAX);
    let expires_at = request
        .from
        .checked_add(SignedDuration::from_secs(seconds))
        .map_err(|_| vec!["--ttl leads beyond the year 9999; use a shorter one".to_owned()])?;
    let spec = without_nulls(json!({
        "policy": request.policy,
        "rules": request.rules,
        "target": {"namespaces": [namespace], "kinds": [kind], "names": [name]},
        "reason": request.reason,
        "ticket": request.ticket,
        "from": request.from.to_string(),
        "expiresAt": expires_at.to_string(),
    }));
    Ok(json!({
        "apiVersion": MEMORY_POLICY_EXEMPTION.api_version(),
        "kind": MEMORY_POLICY_EXEMPTION.kind,
        "metadata": {"name": name_of(request), "namespace": request.namespace},
        "spec": spec,
    }))
}

/// A name of at most 63 characters made from policy, rule and object.
fn name_of(request: &ExemptionRequest<'_>) -> String {
    let rule = request.rules.first().copied().unwrap_or_default();
    let text = format!("{}-{rule}-{}", request.policy, request.object.name).to_lowercase();
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let text: String =
        text.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).take(63).collect();
    text.trim_matches('-').to_owned()
}

/// Nanoseconds as the policy may have written them: in days where they are whole ones.
pub fn duration(nanoseconds: i128) -> String {
    let second = 1_000_000_000;
    match nanoseconds {
        whole if whole % (24 * HOUR) == 0 => format!("{}d", whole / (24 * HOUR)),
        whole if whole % HOUR == 0 => format!("{}h", whole / HOUR),
        other => format!("{}s", other / second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_objects() {
        let of = |text| ExemptObject::parse(text).map(|it| (it.kind, it.namespace, it.name));
        let three = |kind: &str, namespace: &str, name: &str| {
            Ok((kind.to_owned(), namespace.to_owned(), name.to_owned()))
        };
        assert_eq!(of("ArkMemory/team-a/notes"), three("ArkMemory", "team-a", "notes"));
        assert_eq!(of("Namespace/team-a"), three("Namespace", "team-a", "team-a"));
        for wrong in ["", "ArkMemory", "ArkMemory/notes", "ArkMemory//notes", "a/b/c/d", "Namespace/a/b"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn writes_durations() {
        for (nanoseconds, text) in [(720 * HOUR, "30d"), (5 * HOUR, "5h"), (HOUR / 2, "1800s")] {
            assert_eq!(duration(nanoseconds), text);
        }
    }
}

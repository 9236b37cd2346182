//! What is paused: there memgate reviews nothing.

use jiff::Timestamp;

use crate::cluster_state::{Fetched, Installation};
use crate::doctor::check::{Check, CheckStatus};
use memgate_model::pause::Pause;

const ID: &str = "paused";

/// A check for each pause, or one that nothing is paused.
pub fn checks(found: &Installation) -> Vec<Check> {
    let now = found.apiserver_time.and_then(|seconds| Timestamp::from_second(seconds).ok());
    match &found.pauses {
        Fetched::Found(pauses) if !pauses.is_empty() => {
            pauses.iter().map(|pause| check(pause, now)).collect()
        }
        Fetched::Found(_) | Fetched::Absent => vec![Check::ok(ID, "", "nothing is paused")],
        Fetched::Unknown(why) => vec![Check::new(ID, CheckStatus::Unknown, "", why.clone())],
    }
}

fn check(pause: &Pause, now: Option<Timestamp>) -> Check {
    let (kind, place, which) = match &pause.namespace {
        Some(namespace) => ("RoleBinding", format!("{namespace}/"), format!("-n {namespace}")),
        None => ("ClusterRoleBinding", String::new(), "--all".to_owned()),
    };
    let subject = format!("{kind} {place}{}", pause.binding());
    let of = pause.family.as_ref().map(|family| format!(" for {family}")).unwrap_or_default();
    let end = pause.end().map_or_else(|| "its removal".to_owned(), |end| end.to_string());
    let end_now = format!("memgate pause end {which}");
    if now.is_some_and(|now| pause.has_ended(now)) {
        let message = format!("the pause{of} ended at {end}, and no replica has removed it");
        return Check::warn(ID, subject, message).help(format!("{end_now}, if no replica is about to start"));
    }
    let message = format!("memgate is paused{of} until {end}, by {}: {}", pause.by, pause.reason);
    Check::warn(ID, subject, message).help(format!("{end_now} ends it before"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::pause::{BY, REASON, UNTIL};
    use serde_json::json;

    #[test]
    fn warns_of_each_pause() {
        let pause = |until: &str| {
            Pause::read(&json!({
                "metadata": {
                    "name": "memgate-paused-ark", "namespace": "team-a",
                    "annotations": {UNTIL: until, BY: "jane", REASON: "an outage"},
                },
                "roleRef": {"kind": "ClusterRole", "name": "memgate-skip-ark"},
                "subjects": [{"kind": "ServiceAccount", "name": "memgate-paused"}],
            }))
        };
        let said = |until: &str| {
            let apiserver_time = Some(1_764_064_800); // 2025-11-25T10:00:00Z
            let pauses = Fetched::Found(pause(until).into_iter().collect());
            checks(&Installation { apiserver_time, pauses, ..Installation::default() })
        };
        let [check] = &said("2025-11-25T11:00:00Z")[..] else { panic!("one check") };
        assert_eq!(
            (check.status, &*check.subject),
            (CheckStatus::Warn, "RoleBinding team-a/memgate-paused-ark")
        );
        assert_eq!(check.message, "memgate is paused for ark until 2025-11-25T11:00:00Z, by jane: an outage");
        let [check] = &said("2025-11-25T09:00:00Z")[..] else { panic!("one check") };
        assert!(check.message.contains("no replica has removed it"), "{}", check.message);
        let none = Installation { pauses: Fetched::Found(Vec::new()), ..Installation::default() };
        assert_eq!(checks(&none)[0].status, CheckStatus::Ok);
    }
}

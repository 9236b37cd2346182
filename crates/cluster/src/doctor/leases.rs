//! What each replica says of itself in its Lease, and which kinds the replicas cannot read.

use jiff::Timestamp;
use serde_json::Value;

use crate::check::Check;
use crate::cluster_state::{Fetched, Installation, elements, text};
use memgate_install::replica::{ANNOTATION, ReplicaReport, SILENT_SECONDS};

const ID: &str = "replicas";

/// By how many seconds a clock may be wrong.
const MAX_CLOCK_SECONDS: u64 = 300;

/// A check for each fault of a running replica, and for each Lease that is no replica's.
pub(super) fn checks(found: &Installation) -> Vec<Check> {
    if let Fetched::Unknown(why) = &found.leases {
        return vec![Check::unknown(ID, "Leases of the replicas", why.clone())];
    }
    let (pods, leases) = (found.replicas.items(), found.leases.items());
    let of_pod = |lease: &Value, pod: &Value| {
        elements(lease, "/metadata/ownerReferences")
            .any(|owner| owner.get("uid") == pod.pointer("/metadata/uid"))
    };
    let running = pods.iter().filter(|pod| text(pod, "/status/phase") == "Running");
    let running = running.filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
    let of_replicas = running.flat_map(|pod| {
        let subject = format!("Pod {}/{}", found.namespace, text(pod, "/metadata/name"));
        let own =
            leases.iter().filter(|lease| of_pod(lease, pod)).find_map(|lease| Some((lease, report(lease)?)));
        match own {
            Some((lease, report)) => replica(found, pod, &subject, lease, &report),
            None => {
                vec![Check::unknown(ID, subject, "it has written no Lease in which it says what it knows")]
            }
        }
    });
    let is_foreign = |lease: &&Value| report(lease).is_none() || !pods.iter().any(|pod| of_pod(lease, pod));
    let foreign = leases.iter().filter(is_foreign).map(|lease| {
        let (home, name) = (&found.namespace, text(lease, "/metadata/name"));
        Check::warn(ID, format!("Lease {home}/{name}"), "no replica of memgate has written it; it is ignored")
            .help(format!("kubectl -n {home} delete lease {name}"))
    });
    let mut checks: Vec<Check> = of_replicas.chain(foreign).collect();
    // All replicas cannot read the same kind.
    checks.dedup();
    checks
}

fn report(lease: &Value) -> Option<ReplicaReport> {
    let annotations = lease.pointer("/metadata/annotations")?;
    serde_json::from_str(annotations.get(ANNOTATION)?.as_str()?).ok()
}

fn replica(
    found: &Installation,
    pod: &Value,
    subject: &str,
    lease: &Value,
    report: &ReplicaReport,
) -> Vec<Check> {
    let home = &found.namespace;
    let seconds = |text: &str| text.parse::<Timestamp>().map_or(0, Timestamp::as_second);
    let heard = seconds(&report.heard_until).min(seconds(text(lease, "/spec/renewTime")));
    let silent = found.apiserver_time.map_or(0, |now| now - heard);
    let mut checks = Vec::new();
    if silent > SILENT_SECONDS.cast_signed() {
        let message =
            format!("it has heard nothing from the apiserver for {silent} s, and its answers are as old");
        let help = format!("kubectl -n {home} delete pod {}", text(pod, "/metadata/name"));
        checks.push(Check::fail(ID, subject, message).help(help));
    }
    checks.extend(report.not_read.iter().map(|(kind, why)| unread(kind, why)));
    if !report.not_ready.is_empty() {
        checks.push(Check::warn(ID, subject, format!("it says: not ready; {}", report.not_ready.join("; "))));
    }
    if report.clock_seconds.unsigned_abs() > MAX_CLOCK_SECONDS {
        let (seconds, node) = (report.clock_seconds, text(pod, "/spec/nodeName"));
        let message =
            format!("the clock of its machine is {seconds} s ahead of the apiserver's, which counts");
        checks.push(Check::warn(ID, subject, message).help(format!("set the clock of the node {node}")));
    }
    if checks.is_empty() {
        checks.push(Check::ok(ID, subject, format!("version {}, hears of all kinds", report.version)));
    }
    checks
}

/// A kind that cannot be listed. If that is since a conversion webhook is away, which its URL names, it has to come back.
pub(super) fn unread(kind: &str, why: &str) -> Check {
    let message = format!("it cannot be listed, and reviews that need it are refused with 503: {why}");
    let host = why.split_once("conversion webhook for ").and_then(|(_, rest)| rest.split_once("https://"));
    let host = host.and_then(|(_, rest)| rest.split([':', '/', '?', '"']).next()).unwrap_or_default();
    let is_plain =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match host.split('.').collect::<Vec<_>>()[..] {
        [service, namespace, "svc", ..] if is_plain(service) && is_plain(namespace) => {
            let message =
                format!("its conversion webhook, the Service {namespace}/{service}, is away: {message}");
            Check::fail("unread", kind, message)
                .help(format!("kubectl -n {namespace} rollout restart deployment"))
        }
        _ => Check::fail("unread", kind, message).help("memgate explain runbook/not-ready"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::CheckStatus::{self, Fail, Ok, Unknown, Warn};

    /// 2026-01-01T00:00:00Z.
    const NOW: i64 = 1_767_225_600;

    fn checks_of(
        change: impl FnOnce(&mut ReplicaReport, &mut Value),
    ) -> Vec<(CheckStatus, String, Option<String>)> {
        let heard_until = "2026-01-01T00:00:00Z".to_owned();
        let mut report =
            ReplicaReport { version: "0.1.0".to_owned(), heard_until, ..ReplicaReport::default() };
        let mut lease = json!({
            "metadata": {"name": "memgate-0", "ownerReferences": [{"kind": "Pod", "uid": "a"}]},
            "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
        });
        change(&mut report, &mut lease);
        if lease["metadata"]["annotations"].is_null() {
            lease["metadata"]["annotations"] = json!({ANNOTATION: json!(report).to_string()});
        }
        let pod = |name: &str, uid: &str, phase: &str| json!({"metadata": {"name": name, "uid": uid}, "spec": {"nodeName": "n"}, "status": {"phase": phase}});
        let found = Installation {
            namespace: "home".to_owned(),
            apiserver_time: Some(NOW),
            replicas: Fetched::Found(vec![
                pod("memgate-0", "a", "Running"),
                pod("memgate-1", "b", "Pending"),
            ]),
            leases: Fetched::Found(vec![lease]),
            ..Installation::default()
        };
        checks(&found).into_iter().map(|check| (check.status, check.message, check.help)).collect()
    }

    #[test]
    fn says_what_each_replica_knows() {
        let silent = "it has heard nothing from the apiserver for 600 s, and its answers are as old";
        let delete = Some("kubectl -n home delete pod memgate-0");
        for (change, status, message, help) in [
            (
                (|_, _| ()) as fn(&mut ReplicaReport, &mut Value),
                Ok,
                "version 0.1.0, hears of all kinds",
                None,
            ),
            (|report, _| report.heard_until = "2025-12-31T23:50:00Z".to_owned(), Fail, silent, delete),
            (
                |_, lease| lease["spec"]["renewTime"] = json!("2025-12-31T23:50:00.000000Z"),
                Fail,
                silent,
                delete,
            ),
            (
                |report, _| report.not_ready = vec!["not read yet: v1 Pod".to_owned()],
                Warn,
                "it says: not ready; not read yet: v1 Pod",
                None,
            ),
            (
                |report, _| report.clock_seconds = -301,
                Warn,
                "the clock of its machine is -301 s ahead of the apiserver's, which counts",
                Some("set the clock of the node n"),
            ),
        ] {
            let expected = vec![(status, message.to_owned(), help.map(str::to_owned))];
            assert_eq!(checks_of(change), expected);
        }
    }

    #[test]
    fn a_lease_that_no_replica_wrote_is_reported_and_ignored() {
        let foreign = (
            Warn,
            "no replica of memgate has written it; it is ignored".to_owned(),
            Some("kubectl -n home delete lease memgate-0".to_owned()),
        );
        let unknown = (Unknown, "it has written no Lease in which it says what it knows".to_owned(), None);
        for change in [
            (|_, lease| lease["metadata"]["ownerReferences"][0]["uid"] = json!("c"))
                as fn(&mut ReplicaReport, &mut Value),
            |_, lease| lease["metadata"]["annotations"] = json!({ANNOTATION: "{"}),
            |_, lease| lease["metadata"]["annotations"] = json!({"other": "x"}),
        ] {
            assert_eq!(checks_of(change), [unknown.clone(), foreign.clone()]);
        }
    }

    #[test]
    fn a_conversion_webhook_that_is_away_is_named() {
        let why = "object not decodable: conversion webhook for ark.mckinsey.com/v2, Kind=Memory failed: Post \"https://hook.ark-system.svc:443/convert?timeout=30s\": service \"hook\" not found";
        let check = unread("ark.mckinsey.com/v1alpha1 Memory", why);
        assert!(
            check.message.starts_with("its conversion webhook, the Service ark-system/hook, is away: "),
            "{check:?}"
        );
        assert_eq!(check.help.as_deref(), Some("kubectl -n ark-system rollout restart deployment"));
        for why in [
            "403 Forbidden",
            "conversion webhook for x failed: Post \"https://a;b.c.svc/x\"",
            "conversion webhook for x failed: Post \"https://10.0.0.1/x\"",
        ] {
            assert_eq!(unread("v1 Pod", why).help.as_deref(), Some("memgate explain runbook/not-ready"));
        }
    }
}

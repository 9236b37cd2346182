//! Whether namespaces of agents admit the containers that memgate adds: Pod Security, quotas, limits, and other webhooks.
//! Memory that is only environment variables adds no container.

use crate::doctor::check::{Check, CheckStatus, abbreviated};
use crate::pod_dry_run::{PodAdmission, PodDryRun, PodDryRuns};

const ID: &str = "room";

/// A check for each pod that is not admitted, or one for all.
pub fn checks(dry_runs: &PodDryRuns) -> Vec<Check> {
    let PodDryRuns { results, skipped } = dry_runs;
    if results.is_empty() {
        return vec![Check::ok(ID, "Namespaces", "no agent pod gets a container from memgate")];
    }
    let mut checks: Vec<Check> = results.iter().filter_map(check).collect();
    if *skipped > 0 {
        let message = format!("there are too many namespaces of agents to try a pod in {skipped} more");
        checks.push(Check::unknown(ID, "Namespaces", message));
    }
    if checks.is_empty() {
        let message = "the containers that memgate adds fit into the namespaces of agents";
        checks.push(Check::ok(ID, "Namespaces", message));
    }
    checks
}

fn check(dry_run: &PodDryRun) -> Option<Check> {
    let namespace = &dry_run.namespace;
    let subject = || format!("Namespace {namespace}");
    let containers = abbreviated(&dry_run.containers);
    let (message, admitted_without) = match &dry_run.admission {
        PodAdmission::Admitted => return None,
        PodAdmission::Unknown(why) => return Some(Check::unknown(ID, subject(), why.clone())),
        PodAdmission::RefusedAnyway(message) if dry_run.is_stand_in => {
            let message = format!(
                "its agents have no pod to try, and a made-up one is refused, with memory and without: {message}"
            );
            return Some(Check::unknown(ID, subject(), message));
        }
        PodAdmission::RefusedAnyway(message) => (message, false),
        PodAdmission::Refused(message) => (message, true),
    };
    let RefusedBy { id, status, quota, help } = classify(message);
    let subject = quota.map_or_else(subject, |quota| format!("ResourceQuota {namespace}/{quota}"));
    // A pod that is refused without memory too is not a failure of memgate.
    let (status, also) = if admitted_without {
        (status, "")
    } else {
        (CheckStatus::Warn, ", and one without it is refused too")
    };
    let message = format!("one more pod with the added container {containers} is refused{also}: {message}");
    Some(Check { help: help.map(str::to_owned), ..Check::new(id, status, subject, message) })
}

/// The part of admission that refused a pod, with the id and the status of its check.
struct RefusedBy<'m> {
    id: &'static str,
    status: CheckStatus,
    quota: Option<&'m str>,
    help: Option<&'static str>,
}

/// Recognises the texts of k8s.io/apiserver (plugin/resourcequota), the plugin limitranger of kube-apiserver, and
/// k8s.io/pod-security-admission.
fn classify(message: &str) -> RefusedBy<'_> {
    let refused_by = |id, status, help| RefusedBy { id, status, quota: None, help };
    // The text after this prefix is free, so nothing is inferred from it.
    if message.starts_with("admission webhook ") {
        return refused_by(ID, CheckStatus::Fail, None);
    }
    if let Some(rest) = message.strip_prefix("exceeded quota: ") {
        let quota = rest.split_once(',').map(|(quota, _)| quota);
        return RefusedBy { quota, ..refused_by("quota", CheckStatus::Warn, Some("raise the quota")) };
    }
    if let Some(rest) = message.strip_prefix("failed quota: ") {
        let quota = rest.split_once(':').map(|(quota, _)| quota);
        let help = Some("give the namespace a LimitRange with defaults");
        return RefusedBy { quota, ..refused_by("quota", CheckStatus::Warn, help) };
    }
    if message.contains("violates PodSecurity ") {
        return refused_by("pod-security", CheckStatus::Fail, None);
    }
    if message.contains(" usage per ") || message.contains(" max limit to request ratio per ") {
        return refused_by("limits", CheckStatus::Fail, Some("widen the range"));
    }
    refused_by(ID, CheckStatus::Fail, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dry_run(admission: PodAdmission) -> PodDryRun {
        PodDryRun {
            namespace: "team-a".to_owned(),
            containers: vec!["memory-server".to_owned()],
            is_stand_in: false,
            admission,
        }
    }

    fn only(dry_run: PodDryRun) -> Check {
        let checks = checks(&PodDryRuns { results: vec![dry_run], skipped: 0 });
        assert_eq!(checks.len(), 1, "{checks:#?}");
        checks.into_iter().next().expect("a check")
    }

    #[test]
    fn pods_that_are_admitted_are_good() {
        assert_eq!(checks(&PodDryRuns::default())[0].message, "no agent pod gets a container from memgate");
        let check = only(dry_run(PodAdmission::Admitted));
        assert_eq!((check.id, check.status), ("room", CheckStatus::Ok));
    }

    #[test]
    fn says_which_part_of_admission_refuses() {
        let of_namespace = "Namespace team-a";
        for (message, id, status, subject) in [
            (
                "exceeded quota: full, requested: requests.cpu=50m, used: requests.cpu=960m, limited: requests.cpu=1",
                "quota",
                CheckStatus::Warn,
                "ResourceQuota team-a/full",
            ),
            (
                "failed quota: full: must specify limits.cpu for: memory-server",
                "quota",
                CheckStatus::Warn,
                "ResourceQuota team-a/full",
            ),
            (
                "maximum memory usage per Container is 16Mi, but limit is 128Mi",
                "limits",
                CheckStatus::Fail,
                of_namespace,
            ),
            (
                "violates PodSecurity \"restricted:latest\": seccompProfile (container \"memory-server\" must set it)",
                "pod-security",
                CheckStatus::Fail,
                of_namespace,
            ),
            (
                "admission webhook \"a.example.com\" denied the request: 2 pods usage per team",
                "room",
                CheckStatus::Fail,
                of_namespace,
            ),
        ] {
            let check = only(dry_run(PodAdmission::Refused(message.to_owned())));
            assert_eq!((check.id, check.status, check.subject.as_str()), (id, status, subject));
            let expected =
                format!("one more pod with the added container memory-server is refused: {message}");
            assert_eq!(check.message, expected);
        }
    }

    #[test]
    fn a_quota_that_refuses_any_pod_is_not_reported_as_a_failure() {
        let refused =
            PodAdmission::RefusedAnyway("violates PodSecurity \"restricted:latest\": all of it".to_owned());
        let check = only(dry_run(refused.clone()));
        assert_eq!((check.id, check.status), ("pod-security", CheckStatus::Warn));
        assert!(check.message.contains("and one without it is refused too: "), "{}", check.message);
        let check = only(PodDryRun { is_stand_in: true, ..dry_run(refused) });
        assert_eq!((check.id, check.status), ("room", CheckStatus::Unknown));
    }

    #[test]
    fn says_what_could_not_be_tried() {
        let why = "you may not create pods: this right is needed";
        let check = only(dry_run(PodAdmission::Unknown(why.to_owned())));
        assert_eq!((check.id, check.status, check.message.as_str()), ("room", CheckStatus::Unknown, why));
        let checks = checks(&PodDryRuns { results: vec![dry_run(PodAdmission::Admitted)], skipped: 3 });
        assert_eq!((checks.len(), checks[0].status), (1, CheckStatus::Unknown));
    }
}

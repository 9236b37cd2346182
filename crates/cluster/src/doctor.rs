//! What is wrong with an installation of memgate, and with the cluster around it.
//!
//! ```text
//! cluster ──installation──▶ Installation ──one function a group──▶ Checks
//! ```
//!
//! An object that could not be read becomes a check with the status `unknown`.

mod ca_bundle;
mod entries;
mod inferred;
mod leases;
mod paused;
mod platforms;
mod replicas;
mod rights;

use std::cmp::Reverse;
use std::time::Duration;

use futures::future::join4;
use kube::Client;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::audit::{Looked, look};
use crate::check::{Check, CheckStatus, abbreviated};
use crate::cluster_state::Installation;
use crate::installation::{homes, installation};
use crate::probe::probes;
use crate::reader::{ClusterReader, PAGE_OBJECTS};
use crate::wait::send_probes;
use memgate_model::settings::Settings;
use memgate_primitives::review_path::Phase;

/// How long memgate has to answer all probes.
const PROBES_TIMEOUT: Duration = Duration::from_mins(1);

/// The installation to check, and how.
#[derive(Debug)]
pub struct DoctorOptions<'a> {
    /// The namespace that memgate runs in.
    pub namespace: &'a str,
    /// The namespace of the dry runs that show whether memgate answers.
    pub dry_run_namespace: &'a str,
    /// How many owners of pods without their memory to list.
    pub max_listed: usize,
    /// Reads the settings from the flags of memgate's Deployment; none when these are wrong.
    pub parse_flags: fn(&[&str]) -> Option<Settings>,
    /// The flag among the arguments of memgate's Deployment that `memgate serve` does not have.
    pub wrong_flag: fn(&[&str]) -> Option<String>,
}

/// All checks, the worst first, and causes before their consequences.
///
/// # Errors
/// The reason, when the apiserver does not answer at all.
pub async fn checks(client: Client, options: &DoctorOptions<'_>) -> Result<Vec<Check>, String> {
    let reader = ClusterReader { client, page_objects: PAGE_OBJECTS };
    let mut found = installation(&reader, options.namespace).await?;
    let mut settings = inferred::settings(&found, options.parse_flags);
    settings.policies.own_namespace = options.namespace.to_owned();
    let families = &settings.families;
    let plan = inferred::plan(&found, options.namespace, families.clone());
    found.flags = inferred::flags(&plan);
    let asked = if found.exists() { probes(families) } else { Vec::new() };
    let wanted = memgate_install::objects(&plan);
    let (answers, paused, looked, rights) = join4(
        send_probes(&reader.client, &asked, options.dry_run_namespace, Instant::now() + PROBES_TIMEOUT),
        paused::checks(&reader, options.namespace, &found.namespaces, families),
        look(&reader, &settings),
        rights::check(&reader, &found, memgate_install::rights::rights(&wanted)),
    )
    .await;
    let mut checks = if found.exists() {
        let mut checks = replicas::checks(&found, options.wrong_flag);
        checks.extend(entries::checks(&found, &wanted));
        checks.extend(paused);
        checks.extend(ca_bundle::checks(&found, &answers));
        checks.push(rights);
        checks.extend(looked.deny_all.iter().map(|(policy, lift)| {
            let message =
                format!("it denies each of the {} stored objects, and every new one", looked.stored);
            Check::fail("policies", format!("MemoryPolicy {policy}"), message).help(&**lift)
        }));
        // Where no replica runs or no configuration is, it is plain that none answers.
        let is_plain = checks.first().is_some_and(|first| first.status == CheckStatus::Fail)
            || Phase::ALL.into_iter().any(|call| found.own(call).is_none());
        let answers = by_cause(answers).into_iter();
        checks.extend(answers.filter(|check| !is_plain || check.status != CheckStatus::Fail));
        checks
    } else {
        vec![not_installed(&found)]
    };
    checks.extend(platforms::checks(&found, families));
    checks.extend(missed(looked, options.max_listed));
    checks.dedup();
    checks.sort_by_key(|check| Reverse(check.status));
    Ok(checks)
}

/// That nothing of memgate is in the namespace, and where it is instead, or how it is installed.
fn not_installed(found: &Installation) -> Check {
    let subject = format!("Namespace {}", found.namespace);
    let elsewhere = found.mutating.items().iter().find_map(|one| homes(one).next());
    let help = elsewhere.map_or_else(
        || format!("{} | kubectl apply -f -", found.manifests("--image IMAGE")),
        |home| format!("memgate doctor -n {home}"),
    );
    Check::fail("installed", subject, "memgate is not installed here").help(help)
}

/// A check for each cause, with the first probes that have it. The message of a failure has the entry that was asked in
/// brackets.
fn by_cause(answers: Vec<Answer>) -> Vec<Check> {
    let cause = |check: &Check| match check.status {
        CheckStatus::Fail => check.message.split(" (").next().unwrap_or_default().to_owned(),
        _ => check.message.clone(),
    };
    let mut checks: Vec<(Check, Vec<String>)> = Vec::new();
    for Answer { check, .. } in answers {
        match checks.iter_mut().find(|(other, _)| cause(other) == cause(&check)) {
            Some((_, subjects)) => subjects.push(check.subject),
            None => checks.push((check.clone(), vec![check.subject])),
        }
    }
    let joined = |(check, subjects): (Check, Vec<String>)| Check { subject: abbreviated(&subjects), ..check };
    checks.into_iter().map(joined).collect()
}

/// Agent pods that run without the memory that they would get today: a check for each of the first owners.
fn missed(looked: Looked, max_listed: usize) -> Vec<Check> {
    const ID: &str = "missed-pods";
    let Looked { missed, faults, .. } = looked;
    let fault = |why: String| {
        if why.contains("conversion webhook for ") {
            leases::unread("A kind of a platform", &why)
        } else {
            Check::unknown(ID, "Pods", why)
        }
    };
    let mut checks: Vec<Check> = faults.into_iter().map(fault).collect();
    checks.extend(
        missed
            .iter()
            .take(max_listed)
            .map(|(owner, missed)| Check::warn(ID, owner.title(), missed.message()).help(missed.help(owner))),
    );
    let more: usize = missed.values().skip(max_listed).map(|missed| missed.pods).sum();
    if more > 0 {
        let message = format!("{more} more agent pods run without their memory; -o json lists them");
        checks.push(Check::warn(ID, "Pods", message));
    }
    if checks.is_empty() {
        checks.push(Check::ok(ID, "Pods", "no agent pod runs without its memory"));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_one_line() {
        let answer =
            |name: &str, why: &str| Answer { check: Check::fail("answers", name, why), is_missing: true };
        let answers = vec![
            answer("pods", "no (a.memgate.dev: EOF)"),
            answer("ark memories", "late"),
            answer("orloj memories", "no (b.memgate.dev: EOF)"),
        ];
        let subjects: Vec<_> = by_cause(answers).into_iter().map(|check| check.subject).collect();
        assert_eq!(subjects, ["pods, orloj memories", "ark memories"]);
    }
}

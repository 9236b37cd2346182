//! One audit of all stored objects.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};

use crate::events::truncate;
use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;
use memgate_model::policy::Policies;
use memgate_policy::judge::Judgement;
use memgate_primitives::credential::masked_keys;

use super::judged::{ByPolicies, Context, Judged, Judges};
use super::policies::{self, Head, Listed};
use super::reports::{MAX_FAILURES, Reports, is_refused};
use super::status::{AuditCounts, MAX_VIOLATIONS, status};
use super::subjects::{Stored, Subjects};
use super::{API_TIMEOUT, FIELD_MANAGER, given, without_nulls};

/// How many steps are made per second where the rate of objects is limited.
const STEPS_PER_SECOND: u32 = 10;
/// The most objects of a step: each may have a megabyte and a half.
const MAX_STEP: u32 = 50;

/// The most bytes of a violation's field and message in a status. Source: the definition of the status.
const MAX_FIELD_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 512;

/// Why a pass did not complete.
#[derive(Debug, Error)]
pub(super) enum Error {
    #[error("policies could not be listed: {}", explained(.0))]
    Policies(#[source] kube::Error),
    #[error("a thread of it has ended")]
    Thread(#[from] JoinError),
}

/// The result of a pass.
#[derive(Debug)]
pub(super) struct PassResult {
    /// How many objects were judged.
    pub(super) subjects: usize,
    pub(super) found: AuditCounts,
    pub(super) policies: Policies,
    /// Whether all objects were judged, and all statuses are up to date.
    pub(super) is_whole: bool,
}

/// Judges all stored objects, and writes reports and statuses. If a kind could not be listed or an object not judged, its
/// reports stay as they are, and no status is written, since a status counts all objects.
///
/// # Errors
/// When policies cannot be read.
pub(super) async fn run(context: &Context<'_>, reports: &mut Reports) -> Result<PassResult, Error> {
    let Listed { policies, heads } = policies::list(context.client).await.map_err(Error::Policies)?;
    let policies = Arc::new(policies);
    let mut found = AuditCounts::default();
    let mut subjects = Subjects::new(context.store, context.client, &policies);
    let mut judges = Judges::new(
        context.store,
        context.lookups,
        Arc::new(ByPolicies::new(context)),
        Arc::clone(&policies),
    );
    let mut count = 0;
    let step = context.rate.map_or(MAX_STEP, |rate| rate.get().div_ceil(STEPS_PER_SECOND).min(MAX_STEP));
    let mut next = Instant::now();
    loop {
        let objects = subjects.next(step).await?;
        if objects.is_empty() {
            break;
        }
        count += objects.len();
        if let Some(rate) = context.rate {
            next = next.max(Instant::now()) + Duration::from_secs(1) * length(&objects) / rate.get();
        }
        for Judged { stored, judgement, report, is_sure } in judges.judge(objects).await? {
            found.add(&stored, &judgement);
            match report {
                _ if !is_sure => reports.keep(&stored),
                Some(report) => reports.put(report).await,
                None => {}
            }
        }
        sleep_until(next).await;
    }
    for kind in &subjects.failed {
        reports.keep_kind(kind);
    }
    reports.delete_others().await;
    let mut is_whole = subjects.failed.is_empty() && !judges.has_failed;
    drop(judges);
    if is_whole {
        is_whole = write_statuses(context, &heads, &policies, &found).await;
    }
    Ok(PassResult { subjects: count, found, policies: Arc::unwrap_or_clone(policies), is_whole })
}

fn length(objects: &[Stored]) -> u32 {
    u32::try_from(objects.len()).unwrap_or(u32::MAX)
}

impl AuditCounts {
    fn add(&mut self, stored: &Stored, judgement: &Judgement) {
        for name in &judgement.policies {
            self.policies.entry(name.clone()).or_default().matched += 1;
        }
        for (name, counts) in &judgement.counts {
            self.policies.entry(name.clone()).or_default().counts.add(*counts);
        }
        for finding in &judgement.findings {
            let Some(policy) = &finding.policy else { continue };
            let Some(found) = self.policies.get_mut(&policy.rule.policy) else { continue };
            if policy.is_violation() && found.first.len() < MAX_VIOLATIONS {
                found.first.push(violation(
                    stored,
                    &policy.rule.id,
                    finding.pointer.as_str(),
                    &finding.message(),
                ));
            }
        }
        for key in &judgement.exemptions {
            *self.exemptions.entry(key.clone()).or_default() += 1;
        }
    }
}

/// A violation in the form of a status.
fn violation(stored: &Stored, rule: &str, field: &str, message: &str) -> Value {
    without_nulls(json!({
        "rule": rule,
        "kind": stored.kind.kind,
        "namespace": given(&stored.namespace),
        "name": stored.name,
        "field": truncate(&masked_keys(field), MAX_FIELD_BYTES),
        "message": truncate(message, MAX_MESSAGE_BYTES),
    }))
}

/// Writes the statuses that differ. Returns whether all are up to date.
async fn write_statuses(
    context: &Context<'_>,
    heads: &[Head],
    policies: &Policies,
    found: &AuditCounts,
) -> bool {
    let (mut is_whole, mut failures) = (true, 0);
    for head in heads {
        let Some(status) = status(head, policies, found, context.now) else { continue };
        let Err(error) = write_status(context, head, status).await else {
            failures = 0;
            continue;
        };
        if is_whole {
            tracing::warn!(
                kind = head.kind.kind,
                namespace = head.namespace,
                name = head.name,
                error = explained(&error),
                "a status could not be written"
            );
        }
        is_whole = false;
        failures += u32::from(!is_refused(&error));
        if failures >= MAX_FAILURES {
            break;
        }
    }
    is_whole
}

async fn write_status(context: &Context<'_>, head: &Head, status: Value) -> kube::Result<()> {
    let kind = head.kind;
    let metadata = without_nulls(json!({"name": head.name, "namespace": given(&head.namespace)}));
    let object =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "status": status});
    let api = policies::api(context.client, kind, &head.namespace);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match with_timeout(API_TIMEOUT, api.patch_status(&head.name, &params, &Patch::Apply(&object))).await {
        Ok(_) => Ok(()),
        // The object was deleted meanwhile.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

//! The stored objects that policies judge: memory resources, and what refers to them and lasts.

use jiff::Timestamp;

use memgate_core::decide::audit::audit;
use memgate_model::kind::NAMESPACE;
use memgate_model::request::{Occasion, Operation, Point, Request};
use memgate_policy::selection::may_be_judged;

use super::report::Report;
use super::reports::Reports;
use super::state::{Pages, State, Stored};
use super::status::AuditCounts;
use super::{Faults, Run, TooManyFaults};

impl Stored {
    /// The request that an audit judges: the creation of the stored object.
    pub(super) fn request(&self, now: Timestamp) -> Request<'_> {
        Request {
            operation: Operation::Create,
            group: self.kind.group.into(),
            version: self.kind.version.into(),
            kind: self.kind.kind.into(),
            subresource: "".into(),
            namespace: self.namespace.as_str().into(),
            name: self.name.as_str().into(),
            object: Some(&self.text),
            old_object: None,
            occasion: Occasion::new(Point::Audit, now),
            cancelled: None,
        }
    }
}

/// Judges all stored objects that policies may judge, and writes their reports, if there are such. The reports of objects of which too little
/// is known stay as they are.
pub(super) async fn judge(
    run: &Run<'_>,
    state: &mut State<'_>,
    mut reports: Option<&mut Reports<'_>>,
    faults: &mut Faults,
) -> Result<AuditCounts, TooManyFaults> {
    let mut found = AuditCounts { is_whole: true, ..AuditCounts::default() };
    let policies = state.snapshot.policies.clone();
    let families = run.plan.settings.families.iter();
    let kinds = families.flat_map(|family| family.audited().map(move |kind| (family, kind)));
    for (_, kind) in kinds.filter(|(family, kind)| may_be_judged(&policies, family, kind)) {
        let mut pages = Pages::new(run.reader, kind, None);
        loop {
            let objects = match pages.next().await {
                Ok(Some(objects)) => objects,
                Ok(None) => break,
                Err(why) => {
                    found.is_whole = false;
                    if let Some(reports) = &mut reports {
                        reports.keep_kind(kind);
                    }
                    faults.add(why)?;
                    break;
                }
            };
            found.subjects += objects.len();
            found.namespaces += objects.iter().filter(|stored| *stored.kind == NAMESPACE).count();
            let before = faults.count;
            let judged = state.judge(objects, faults, |stored, snapshot| {
                let judged = audit(&stored.request(run.now), snapshot);
                (judged.is_read.then_some(judged.judgement), judged.unknown)
            });
            let judged = judged.await?;
            found.is_whole &= faults.count == before;
            for (stored, judgement) in judged {
                let judgement = judgement.flatten();
                if let Some(judgement) = &judgement {
                    found.add(&stored, judgement);
                }
                let Some(reports) = &mut reports else { continue };
                let Some(judgement) = judgement else {
                    reports.keep(&stored);
                    continue;
                };
                if let Some(report) = Report::new(&stored, &judgement, &run.plan.installation) {
                    reports.put(report, faults).await?;
                }
            }
        }
    }
    Ok(found)
}

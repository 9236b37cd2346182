//! Keeps the reports of a cluster up to date: writes those that differ, and deletes those of objects without findings.
//!
//! The stored reports are listed first, and remembered as one digest each. So a report that another client has edited or
//! deleted is mended. A write is a server-side apply, so two runs that write the same report do not conflict.

use std::collections::BTreeMap;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::Request;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cluster_state::Fetched;
use crate::reader::{ClusterReader, path, resource};
use memgate_model::kind::Kind;
use memgate_model::schema::Schema;

use super::report::{
    AUDITED_BY, MANAGED_BY, REPORT_API, Report, content_digest, report_name, report_name_start,
};
use super::state::Stored;
use super::{FIELD_MANAGER, Faults, TooManyFaults, write};

/// How many reports are read at a time. Any client may write a similar one, as large as etcd allows.
const PAGE: u32 = 10;

/// The most reports, of both kinds together.
const MAX_REPORTS: usize = 10_000;

/// How many reports are remembered beyond that: other clients may write similar ones.
const MAX_FOREIGN: usize = 10_000;

static REPORT: Kind = kind("Report", "reports", true);
static CLUSTER_REPORT: Kind = kind("ClusterReport", "clusterreports", false);

const fn kind(kind: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { namespaced, ..Kind::new(REPORT_API, kind, plural, Schema::Any) }
}

/// The reports of this installation.
pub(super) struct Reports<'r> {
    reader: &'r ClusterReader,
    /// The most reports.
    pub(super) most: usize,
    /// The stored reports, by namespace (empty for a ClusterReport) and name.
    known: BTreeMap<(String, String), ListedReport>,
    /// The kinds that are not served or cannot be listed.
    missing: Vec<&'static str>,
    /// How many objects have findings, how many of them may have a report, and how many have none because of the limit.
    found: usize,
    wanted: usize,
    left_out: usize,
    written: usize,
    deleted: usize,
}

/// A report that was listed or written.
struct ListedReport {
    digest: u64,
    /// Whether it stays.
    is_current: bool,
}

impl<'r> Reports<'r> {
    /// Lists the stored reports.
    pub(super) async fn list(
        reader: &'r ClusterReader,
        installation: &str,
        said: &mut Vec<String>,
        faults: &mut Faults,
    ) -> Result<Self, TooManyFaults> {
        let (known, missing, most) = (BTreeMap::new(), Vec::new(), MAX_REPORTS);
        let mut reports =
            Self { reader, most, known, missing, found: 0, wanted: 0, left_out: 0, written: 0, deleted: 0 };
        for kind in [&REPORT, &CLUSTER_REPORT] {
            match reports.list_kind(kind, installation).await {
                Fetched::Found(()) => continue,
                Fetched::Absent => {
                    said.push(format!(
                        "no {} is written: {} is not installed",
                        kind.kind,
                        kind.api_version()
                    ));
                }
                Fetched::Unknown(why) => faults.add(why)?,
            }
            reports.missing.push(kind.kind);
        }
        Ok(reports)
    }

    async fn list_kind(&mut self, kind: &Kind, installation: &str) -> Fetched<()> {
        let selector = format!("{}={},{AUDITED_BY}={installation}", MANAGED_BY.0, MANAGED_BY.1);
        let mut params = ListParams::default().labels(&selector).limit(PAGE);
        let path = path(&kind.api_version(), "", kind.plural);
        loop {
            let page = match self.reader.page::<Box<RawValue>>(&resource(kind), &path, &mut params).await {
                Fetched::Found(page) => page,
                Fetched::Absent => return Fetched::Absent,
                Fetched::Unknown(why) => return Fetched::Unknown(why),
            };
            for Stored { namespace, name, text, .. } in
                page.into_iter().filter_map(|report| Stored::read(&REPORT, report))
            {
                let report: Value = serde_json::from_str(&text).unwrap_or_default();
                let digest = content_digest(&report).unwrap_or_default();
                self.known.insert((namespace, name), ListedReport { digest, is_current: false });
            }
            if params.continue_token.is_none() || self.known.len() >= self.most + MAX_FOREIGN {
                return Fetched::Found(());
            }
        }
    }

    /// Writes a report, unless the stored one is equal.
    pub(super) async fn put(&mut self, report: Report, faults: &mut Faults) -> Result<(), TooManyFaults> {
        let Report { namespace, name, object, digest } = report;
        let kind = kind_of(&namespace);
        self.found += 1;
        if self.missing.contains(&kind.kind) {
            return Ok(());
        }
        self.wanted += 1;
        if self.wanted - self.left_out > self.most {
            self.left_out += 1;
            return Ok(());
        }
        let key = (namespace, name);
        if let Some(known) = self.known.get_mut(&key) {
            // Also where it cannot be written: its object has findings.
            known.is_current = true;
            if known.digest == digest {
                return Ok(());
            }
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let request = Request::new(path(&kind.api_version(), &key.0, kind.plural));
        let request = request.patch(&key.1, &params, &Patch::Apply(&object));
        match write(self.reader, "patch", kind, request).await {
            Fetched::Found(is_written) => self.written += usize::from(is_written),
            Fetched::Absent => {}
            Fetched::Unknown(why) => faults.add(why)?,
        }
        Ok(())
    }

    /// Deletes the reports of objects without findings.
    pub(super) async fn delete_others(&mut self, faults: &mut Faults) -> Result<(), TooManyFaults> {
        for (namespace, name) in self.known.iter().filter(|(_, known)| !known.is_current).map(|(key, _)| key)
        {
            let kind = kind_of(namespace);
            let request = Request::new(path(&kind.api_version(), namespace, kind.plural));
            let request = request.delete(name, &DeleteParams::default());
            match write(self.reader, "delete", kind, request).await {
                Fetched::Found(is_deleted) => self.deleted += usize::from(is_deleted),
                Fetched::Absent => {}
                Fetched::Unknown(why) => faults.add(why)?,
            }
        }
        Ok(())
    }

    /// Leaves the report of an object as it is.
    pub(super) fn keep(&mut self, Stored { kind, namespace, uid, .. }: &Stored) {
        if let Some(known) = self.known.get_mut(&(namespace.clone(), report_name(kind, uid))) {
            known.is_current = true;
        }
    }

    /// Leaves the reports of a kind as they are.
    pub(super) fn keep_kind(&mut self, kind: &Kind) {
        let start = report_name_start(kind);
        for ((_, name), known) in &mut self.known {
            known.is_current |= name.starts_with(&start);
        }
    }

    /// The sentences about the reports of so many judged objects.
    pub(super) fn said(&self, subjects: usize) -> impl Iterator<Item = String> {
        let Self { found, left_out, written, deleted, most, .. } = self;
        let summary = format!(
            "stored objects judged: {subjects}; with findings: {found}; reports written: {written}, deleted: {deleted}"
        );
        let more = format!("{left_out} more objects violate policies than the {most} that may have reports");
        [summary].into_iter().chain((*left_out > 0).then_some(more))
    }
}

/// The kind of the reports in a namespace; the reports of cluster-wide objects have none.
fn kind_of(namespace: &str) -> &'static Kind {
    if namespace.is_empty() { &CLUSTER_REPORT } else { &REPORT }
}

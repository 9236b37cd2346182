//! Keeps the reports of a cluster up to date: writes those that differ, and deletes those of objects without findings.
//!
//! The stored reports are listed at an interval, and remembered as one digest each. So the next list repairs a report
//! that another client has edited or deleted. A write is a server-side apply, so two replicas that write the same
//! report do not conflict.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use tokio::task::spawn_blocking;

use crate::store::apply_event::RawObject;
use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;
use memgate_model::kind::Kind;
use memgate_model::schema::Schema;

use super::policies::api;
use super::report::{
    AUDITED_BY, MANAGED_BY, REPORT_API, Report, content_digest, report_name, report_name_start,
};
use super::subjects::Stored;
use super::{API_TIMEOUT, FIELD_MANAGER};

/// How many reports are read at a time. Any client may write a similar one, as large as etcd allows.
const PAGE: u32 = 10;

/// How many reports are remembered beyond the limit of own reports: other clients may write similar ones.
const MAX_FOREIGN: usize = 10_000;

/// How many requests in a row may fail before a pass stops writing.
pub(super) const MAX_FAILURES: u32 = 3;

static REPORT: Kind = kind("Report", "reports", true);
static CLUSTER_REPORT: Kind = kind("ClusterReport", "clusterreports", false);

const fn kind(kind: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { namespaced, ..Kind::new(REPORT_API, kind, plural, Schema::Any) }
}

/// The reports of this installation.
pub(super) struct Reports {
    client: Client,
    installation: String,
    /// The most reports.
    most: usize,
    /// The stored reports, by namespace (empty for a ClusterReport) and name.
    known: BTreeMap<(String, String), ListedReport>,
    /// Whether they were listed.
    pub(super) is_listed: bool,
    /// The kinds that are not served or may not be listed.
    missing: BTreeSet<&'static str>,
    logged_left_out: usize,
    failures: u32,
    /// The counts of this pass.
    pub(super) pass: Tally,
}

/// A report that was listed or written.
#[derive(Debug)]
struct ListedReport {
    digest: u64,
    /// Whether this pass has judged its object.
    is_current: bool,
}

/// The counts of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// How many objects have findings.
    pub(super) wanted: usize,
    /// How many of them are left out because of the limit.
    pub(super) left_out: usize,
    pub(super) written: usize,
    pub(super) deleted: usize,
    /// How many requests failed.
    pub(super) failed: usize,
}

impl Reports {
    pub(super) fn new(client: Client, installation: &str, most: usize) -> Self {
        Self {
            client,
            installation: installation.to_owned(),
            most,
            known: BTreeMap::new(),
            is_listed: false,
            missing: BTreeSet::new(),
            logged_left_out: 0,
            failures: 0,
            pass: Tally::default(),
        }
    }

    /// Begins a pass; `relist` lists the stored reports again.
    ///
    /// # Errors
    /// When the reports cannot be listed. Then none are written.
    pub(super) async fn begin(&mut self, relist: bool) -> kube::Result<()> {
        (self.pass, self.failures) = (Tally::default(), 0);
        for known in self.known.values_mut() {
            known.is_current = false;
        }
        if self.is_listed && !relist {
            return Ok(());
        }
        self.is_listed = false;
        self.known.clear();
        self.list(&REPORT).await?;
        self.list(&CLUSTER_REPORT).await?;
        self.is_listed = true;
        Ok(())
    }

    /// Lists the reports of a kind.
    async fn list(&mut self, kind: &'static Kind) -> kube::Result<()> {
        let selector = format!("{}={},{AUDITED_BY}={}", MANAGED_BY.0, MANAGED_BY.1, self.installation);
        let mut params = ListParams::default().labels(&selector).limit(PAGE);
        let api = Api::<RawObject>::all_with(self.client.clone(), &kind);
        loop {
            let page = match with_timeout(API_TIMEOUT, api.list(&params)).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if [404, 403].contains(&status.code) => {
                    self.set_missing(kind, status.code);
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let read = move || page.items.into_iter().map(stored).collect::<Vec<_>>();
            // It fails only when the runtime shuts down.
            let read = spawn_blocking(read).await.unwrap_or_default();
            self.known.extend(
                read.into_iter().map(|(key, digest)| (key, ListedReport { digest, is_current: false })),
            );
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) if self.known.len() < self.most + MAX_FOREIGN => {
                    params = params.continue_token(&token);
                }
                _ => {
                    self.missing.remove(kind.kind);
                    return Ok(());
                }
            }
        }
    }

    /// Remembers that a kind is not served or may not be listed, and logs it once.
    fn set_missing(&mut self, kind: &'static Kind, code: u16) {
        if !self.missing.insert(kind.kind) {
            return;
        }
        let (group, version) = REPORT_API;
        if code == 404 {
            tracing::info!("audits write no {}: {group}/{version} is not installed", kind.kind);
        } else {
            tracing::warn!("audits write no {}: they may not list {}.{group}", kind.kind, kind.plural);
        }
    }

    /// Writes a report, unless the stored one is equal.
    pub(super) async fn put(&mut self, report: Report) {
        if !self.may_write(&report.namespace) {
            return;
        }
        self.pass.wanted += 1;
        if self.pass.wanted - self.pass.left_out > self.most {
            self.pass.left_out += 1;
            return;
        }
        let key = (report.namespace.clone(), report.name.clone());
        let digest = report.digest;
        let known = self.known.get_mut(&key);
        if let Some(known) = known.filter(|known| known.digest == digest) {
            known.is_current = true;
            return;
        }
        if self.failures >= MAX_FAILURES {
            return;
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = self.api(&key.0);
        let patch = Patch::Apply(report.object);
        match with_timeout(API_TIMEOUT, api.patch(&key.1, &params, &patch)).await {
            Ok(_) => {
                self.pass.written += 1;
                self.failures = 0;
                self.known.insert(key, ListedReport { digest, is_current: true });
            }
            // Its namespace is being deleted.
            Err(kube::Error::Api(status)) if status.code == 404 || is_ending(&status) => {}
            Err(error) => {
                self.fail("written", &error);
                if let Some(known) = self.known.get_mut(&key) {
                    // The stored report differs, but its object has findings, so it stays.
                    known.is_current = true;
                }
            }
        }
    }

    /// Deletes the reports of objects without findings.
    pub(super) async fn delete_others(&mut self) {
        let gone = self.known.iter().filter(|(_, known)| !known.is_current).map(|(key, _)| key.clone());
        for key in gone.collect::<Vec<_>>() {
            if !self.may_write(&key.0) || self.failures >= MAX_FAILURES {
                return;
            }
            let api = self.api(&key.0);
            match with_timeout(API_TIMEOUT, api.delete(&key.1, &DeleteParams::default())).await {
                Ok(_) => self.pass.deleted += 1,
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    self.fail("deleted", &error);
                    continue;
                }
            }
            self.failures = 0;
            self.known.remove(&key);
        }
    }

    /// Logs how many objects have no report because of the limit, if the number has changed.
    pub(super) fn log_left_out(&mut self) {
        let (left_out, most) = (self.pass.left_out, self.most);
        if left_out > 0 && left_out != self.logged_left_out {
            tracing::warn!(
                left_out,
                most,
                "more objects violate policies than may have reports; maxReports in the settings file raises that"
            );
        }
        self.logged_left_out = left_out;
    }

    /// Leaves the report of an object as it is.
    pub(super) fn keep(&mut self, stored: &Stored) {
        let key = (stored.namespace.clone(), report_name(stored.kind, &stored.uid));
        if let Some(known) = self.known.get_mut(&key) {
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

    fn may_write(&self, namespace: &str) -> bool {
        self.is_listed && !self.missing.contains(kind_of(namespace).kind)
    }

    /// Logs the first failure of a pass and counts the others. A refusal does not count towards [`MAX_FAILURES`].
    fn fail(&mut self, what: &str, error: &kube::Error) {
        if self.pass.failed == 0 {
            tracing::warn!(error = explained(error), "a report could not be {what}");
        }
        self.pass.failed += 1;
        self.failures += u32::from(!is_refused(error));
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        api(&self.client, kind_of(namespace), namespace)
    }
}

/// The kind of the reports in a namespace; the reports of cluster-wide objects have none.
fn kind_of(namespace: &str) -> &'static Kind {
    if namespace.is_empty() { &CLUSTER_REPORT } else { &REPORT }
}

/// The namespace and name of a stored report, and its digest.
fn stored(report: RawObject) -> ((String, String), u64) {
    let ([namespace, name, _], text) = report.into_parts();
    ((namespace, name), content_digest(text.get()).unwrap_or_default())
}

/// Whether the apiserver has refused this object.
pub(super) fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && ![408, 429].contains(&status.code))
}

/// Whether it is refused because its namespace is being deleted.
fn is_ending(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

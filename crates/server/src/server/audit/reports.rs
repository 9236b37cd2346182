//! Keeps the reports of a cluster as they should be: written when they change, gone when there is nothing to say.
//!
//! What stands there is listed now and then, and remembered in between as one digest for each report, so that a report
//! which somebody else has edited or deleted is mended by the next list. Writing is a server-side apply: two replicas
//! that write the same leave the same.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::server::certs::kube_api::{error_message, with_timeout};

use super::report::{AUDITED_BY, MANAGED_BY, REPORT_API, Report, content_digest};
use super::{API_TIMEOUT, FIELD_MANAGER};

/// How many reports are read at a time.
const PAGE: u32 = 100;

/// How many reports are remembered beyond those that are allowed; of more, somebody else has written some.
const MAX_FOREIGN: usize = 10_000;

/// After how many failures in a row no more is written in a pass.
const MAX_FAILURES: u32 = 3;

/// The reports of this installation.
pub(super) struct Reports {
    client: Client,
    installation: String,
    /// The most reports.
    most: usize,
    /// Those that stand in the cluster, by namespace (empty for a ClusterReport) and name.
    known: BTreeMap<(String, String), Known>,
    /// Whether they were listed.
    pub(super) is_listed: bool,
    served: Served,
    /// Whether it was told that one of them is not served.
    is_told: bool,
    is_forbidden: bool,
    failures: u32,
    /// What this pass has seen and done.
    pub(super) pass: Tally,
}

/// Which of both kinds there are, and may be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Served {
    reports: bool,
    cluster_reports: bool,
}

/// A report as it stands in the cluster.
#[derive(Debug)]
struct Known {
    digest: u64,
    /// Whether this pass has come by its object.
    is_current: bool,
}

/// What a pass did to reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// How many there should be.
    pub(super) wanted: usize,
    /// How many of them are left out, because there are more than allowed.
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
            served: Served::default(),
            is_told: false,
            is_forbidden: false,
            failures: 0,
            pass: Tally::default(),
        }
    }

    /// Begins a pass; `anew` reads what stands in the cluster.
    ///
    /// # Errors
    /// When the reports cannot be listed. Then none are written.
    pub(super) async fn begin(&mut self, anew: bool) -> kube::Result<()> {
        (self.pass, self.failures) = (Tally::default(), 0);
        for known in self.known.values_mut() {
            known.is_current = false;
        }
        if self.is_listed && !anew {
            return Ok(());
        }
        (self.is_listed, self.is_forbidden, self.served) = (false, false, Served::default());
        self.known.clear();
        let (reports, cluster_reports) = (self.list("Report").await?, self.list("ClusterReport").await?);
        self.served = Served { reports, cluster_reports };
        self.is_listed = true;
        let is_whole = reports && cluster_reports;
        if !is_whole && !self.is_told {
            let why = if self.is_forbidden { "may not be listed" } else { "are not installed" };
            tracing::info!("audits write no reports: Report and ClusterReport of {REPORT_API} {why}");
        }
        self.is_told = !is_whole;
        Ok(())
    }

    /// Reads all reports of a kind; whether it is served.
    async fn list(&mut self, kind: &str) -> kube::Result<bool> {
        let selector = format!("{}={},{AUDITED_BY}={}", MANAGED_BY.0, MANAGED_BY.1, self.installation);
        let mut params = ListParams::default().labels(&selector).limit(PAGE);
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource(kind));
        loop {
            let page = match with_timeout(API_TIMEOUT, api.list(&params)).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    self.is_forbidden = true;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            for report in page.items {
                let digest = content_digest(&content(&report));
                let key =
                    (report.metadata.namespace.unwrap_or_default(), report.metadata.name.unwrap_or_default());
                self.known.insert(key, Known { digest, is_current: false });
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) if self.known.len() < self.most + MAX_FOREIGN => {
                    params = params.continue_token(&token);
                }
                _ => return Ok(true),
            }
        }
    }

    /// Writes a report, unless it stands there as it should be.
    pub(super) async fn put(&mut self, report: Report) {
        let is_cluster_wide = report.namespace.is_empty();
        self.pass.wanted += 1;
        if self.pass.wanted - self.pass.left_out > self.most {
            self.pass.left_out += 1;
            return;
        }
        let key = (report.namespace.clone(), report.name.clone());
        let digest = report.digest();
        let known = self.known.get_mut(&key);
        if let Some(known) = known.filter(|known| known.digest == digest) {
            known.is_current = true;
            return;
        }
        if !self.may_write(is_cluster_wide) {
            return;
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = self.api(&key.0);
        let patch = Patch::Apply(report.object());
        match with_timeout(API_TIMEOUT, api.patch(&key.1, &params, &patch)).await {
            Ok(_) => {
                self.pass.written += 1;
                self.failures = 0;
                self.known.insert(key, Known { digest, is_current: true });
            }
            // Its namespace is about to go, and its object with it.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                self.fail("written", &error);
                if let Some(known) = self.known.get_mut(&key) {
                    // It is not as it should be, and stays.
                    known.is_current = true;
                }
            }
        }
    }

    /// Deletes the reports of objects of which there is nothing to say any more.
    pub(super) async fn delete_others(&mut self) {
        let gone = self.known.iter().filter(|(_, known)| !known.is_current).map(|(key, _)| key.clone());
        for key in gone.collect::<Vec<_>>() {
            if !self.may_write(key.0.is_empty()) {
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

    fn may_write(&self, is_cluster_wide: bool) -> bool {
        let Served { reports, cluster_reports } = self.served;
        let is_served = if is_cluster_wide { cluster_reports } else { reports };
        self.is_listed && is_served && self.failures < MAX_FAILURES
    }

    /// The first failure of a pass is logged; the others are counted.
    fn fail(&mut self, what: &str, error: &kube::Error) {
        if self.pass.failed == 0 {
            tracing::warn!(error = error_message(error), "a report could not be {what}");
        }
        self.pass.failed += 1;
        self.failures += 1;
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource("ClusterReport"))
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource("Report"))
        }
    }
}

fn resource(kind: &str) -> ApiResource {
    let (group, version) = REPORT_API.split_once('/').unwrap_or_default();
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: REPORT_API.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    }
}

/// What a report says that stands in the cluster, as [`Report`] has it.
fn content(report: &DynamicObject) -> Value {
    let labels = report.metadata.labels.iter().flatten();
    let ours = labels.filter(|(key, _)| [MANAGED_BY.0, AUDITED_BY].contains(&key.as_str()));
    let labels: serde_json::Map<_, _> =
        ours.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    json!({
        "labels": labels,
        "ownerReferences": report.metadata.owner_references,
        "source": report.data.get("source"),
        "scope": report.data.get("scope"),
        "summary": report.data.get("summary"),
        "results": report.data.get("results"),
    })
}
